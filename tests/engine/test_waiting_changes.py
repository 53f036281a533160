"""Changes of queries that have to wait until something is processed, and who does not."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

import auroral as au
from auroral.engine.loop import Loop
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless

from .market import BOXED, NEWS, PAIRS, all_ticks, batch, in_thread, numbers

_LONG_S = 60


@pytest.mark.parametrize("change", [{}, {"add": {"boxed": BOXED}}])
def test_others_go_on_while_a_change_waits(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query goes that has a sink; what it gave is being delivered."""
    sparkless.no_spark(monkeypatch)
    net = all_ticks()
    net.query("going", "SELECT n FROM ticks")
    got: list[int] = []
    others: list[threading.Thread] = []
    with sparkless.make_engine(net, train=5) as engine:

        def meanwhile() -> None:
            engine.enqueue("ticks", batch(10, 20))
            engine.modify(add={"meanwhile": "SELECT n FROM ticks"})
            engine.enqueue("ticks", batch(20, 30))

        def deliver(delivery: Delivery) -> None:
            if not others:
                others.append(in_thread(meanwhile))
                others[0].join(_LONG_S)
                assert not others[0].is_alive()
            got.extend(numbers(delivery.table))

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(**change, remove=["going"])
        assert others
        assert engine.list_entities()["queries"][:2] == ["all", "meanwhile"]
        assert got == list(range(30))  # the other change came first
        engine.enqueue("ticks", batch(30, 40))
        engine.drain()
        assert got == list(range(30))
        assert numbers(engine.dequeue("all")) == list(range(40))
        assert numbers(engine.dequeue("meanwhile")) == list(range(20, 40))
        if change:
            assert engine.dequeue("boxed").num_rows == 10


def test_boxes_come_at_their_moment_though_queries_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sparkless.no_spark(monkeypatch)
    net = all_ticks()
    done: list[threading.Thread] = []
    with sparkless.make_engine(net, train=5) as engine:

        def meanwhile() -> None:
            engine.enqueue("ticks", batch(10, 20))
            engine.modify(add={"pairs": PAIRS})
            engine.enqueue("news", NEWS)

        def deliver(_delivery: Delivery) -> None:
            if not done:
                done.append(in_thread(meanwhile))
                done[0].join(_LONG_S)
                assert not done[0].is_alive()

        engine.bind_sink("all", deliver)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": BOXED})
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert engine.dequeue("boxed").num_rows == 13
        assert numbers(engine.dequeue("pairs")) == [20, 21, 22]


def test_queries_that_change_all_the_time_do_not_keep_another_from_going(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sparkless.no_spark(monkeypatch)
    net = all_ticks()
    net.query("going", "SELECT n FROM ticks")
    number = itertools.count()
    with sparkless.make_engine(net, train=5) as engine:

        def deliver(_delivery: Delivery) -> None:
            n = next(number)
            if n < 7:
                engine.enqueue("ticks", batch(100 + n, 101 + n))
                engine.modify(add={f"more{n}": "SELECT n FROM ticks"})

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 5))
        engine.modify(remove=["going"])
        assert next(number) == 8
        engine.drain()
        assert numbers(engine.dequeue("all")) == [*range(5), *range(100, 107)]
        assert [engine.dequeue(f"more{n}").num_rows for n in range(7)] == [6, 5, 4, 3, 2, 1, 0]


def _both(first: Callable[[], object], then: Callable[[], object]) -> Callable[..., None]:
    """A sink that does something when it is called first."""
    calls = itertools.count()

    def deliver(_delivery: Delivery) -> None:
        if next(calls) == 0:
            first()
            then()

    return deliver


@pytest.mark.parametrize("inner", ["boxed", "sink"])
def test_boxes_do_not_come_at_a_moment_that_is_processed(
    inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink makes a change that has to wait, too, for a later moment."""
    sparkless.no_spark(monkeypatch)
    net = all_ticks()
    net.query("going", "SELECT n FROM ticks")
    net.output("raw", "ticks")
    change: dict[str, Any] = (
        {"add": {"inner": BOXED}} if inner == "boxed" else {"remove": ["going"]}
    )
    with sparkless.make_engine(net, train=5) as engine:
        more = lambda: engine.enqueue("ticks", batch(10, 20))  # noqa: E731
        engine.bind_sink("all", _both(more, lambda: engine.modify(**change)))
        engine.bind_sink("going", lambda _delivery: None)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": "SELECT sum(n) AS n FROM ticks [ROWS 1]"})
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == [20, 21, 22]


def test_boxes_that_come_late_leave_later_eddies_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others come at the same moment and after it, when all before it is settled already."""
    sparkless.no_spark(monkeypatch)
    net = all_ticks()
    net.stream("other", "sym string, o bigint")
    third = "SELECT ticks.n FROM other [ROWS 9], ticks [ROWS 9] WHERE ticks.sym = other.sym"
    with sparkless.make_engine(net, train=5) as engine:
        settle, settled = Loop.settle, itertools.count()

        def others() -> None:
            engine.modify(add={"pairs": PAIRS})
            engine.enqueue("ticks", batch(10, 20))
            engine.modify(add={"third": third, "late": "SELECT n FROM ticks"})

        def settle_late(self: Loop, moment: int) -> None:
            settle(self, moment)
            if next(settled) == 0:
                thread = in_thread(others)
                thread.join(_LONG_S)

        monkeypatch.setattr(Loop, "settle", settle_late)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": BOXED})
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert engine.dequeue("boxed").num_rows == 13
        assert numbers(engine.dequeue("late")) == [20, 21, 22]


def test_an_engine_ends_after_a_change_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)
    net = all_ticks()
    delivering, go_on = threading.Event(), threading.Event()
    engine = au.Engine(net, spark=sparkless.NoSession(), background=False)  # type: ignore[arg-type]
    engine.start()

    def deliver(_delivery: Delivery) -> None:
        delivering.set()
        assert go_on.wait(_LONG_S)

    engine.bind_sink("all", deliver)
    engine.enqueue("ticks", batch(0, 10))
    changing = in_thread(lambda: engine.modify(remove=["all"]))
    assert delivering.wait(_LONG_S)
    ending = in_thread(engine.shutdown)
    assert engine._loop._stopping.wait(_LONG_S)
    assert ending.is_alive()
    go_on.set()
    for thread in (changing, ending):
        thread.join(_LONG_S)
        assert not thread.is_alive()
    assert engine._loop.failure is None
    assert engine._queries.catalogue.names() == []
