"""Queries that run as boxes or have sinks come and go at once, whatever still waits."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless
from tests.conformance.delivering import Lasting

from .market import BOXED, NEWS, PAIRS, SUMS, batch, going_ticks, in_thread, numbers

_LONG_S = 60


class _Blocked(Lasting):
    """Takes nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.go_on = threading.Event(), threading.Event()

    def write(self, delivery: Delivery) -> int:
        self.called.set()
        assert self.go_on.wait(_LONG_S)
        return super().write(delivery)


@pytest.mark.parametrize("going", ["SELECT n FROM ticks", SUMS])
@pytest.mark.parametrize("there", [True, False])
def test_a_change_is_made_while_a_sink_is_called(going: str, there: bool) -> None:
    """What had arrived is for the query that goes; its sink gets it later, and is closed."""
    sink = _Blocked()
    with sparkless.make_engine(going_ticks(going), train=5, background=True) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        assert sink.called.wait(_LONG_S)
        engine.enqueue("ticks", batch(10, 20))
        other = {"going": "SELECT n FROM ticks WHERE n > 30"} if there else {}
        engine.modify(
            add={"boxed": BOXED, "late": "SELECT n FROM ticks", **other}, remove=["going"]
        )
        engine.enqueue("ticks", batch(20, 40))
        assert engine.list_entities()["queries"][-1] == "boxed"
        assert engine.stats()["outputs"]["going"]["left"] >= 0
        sink.go_on.set()
        engine.drain()
        assert sink.column("n") == [*range(20), *(range(31, 40) if there else ())]
        assert sink.closed is not there
        assert numbers(engine.dequeue("late")) == list(range(20, 40))
        assert engine.dequeue("boxed").num_rows == 20
        assert "left" not in engine.stats()["outputs"].get("going", {})


@pytest.mark.parametrize("texts", [("SELECT n FROM ticks", SUMS), (SUMS, "SELECT n FROM ticks")])
def test_another_of_the_same_name_has_nothing_of_the_one_before(texts: tuple[str, str]) -> None:
    before, after = texts
    sink = Lasting()
    with sparkless.make_engine(going_ticks(before), train=3) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
        with pytest.raises(au.UsageError, match="UNKNOWN_OUTPUT"):
            engine.dequeue("going")
        engine.modify(add={"going": after})
        assert engine.dequeue("going").num_rows == 0
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert numbers(engine.dequeue("going")) == list(range(10, 20))
        assert sink.column("n") == list(range(10))
        assert sink.closed
        assert engine._store.counters["going", "out"] == 10, "the rest is nobody's output"
        more = Lasting()
        engine.bind_sink("going", more)
        engine.enqueue("ticks", batch(20, 30))
        engine.modify(remove=["going"], add={"going": before})
        engine.enqueue("ticks", batch(30, 40))
        engine.modify(remove=["going"], add={"going": after})
        engine.enqueue("ticks", batch(40, 50))
        engine.drain()
        assert more.column("n") == list(range(20, 50)), "one sink for all three"
        assert not more.closed


def test_another_sink_waits_until_the_one_before_has_everything(tmp_path: Path) -> None:
    path = tmp_path / "going.jsonl"
    with sparkless.make_engine(going_ticks(), train=3) as engine:
        for start in (0, 10):
            engine.bind_sink("going", au.JsonlSink(path))
            engine.enqueue("ticks", batch(start, start + 10))
            engine.modify(remove=["going"])
            engine.modify(add={"going": "SELECT n FROM ticks"})
        engine.drain()
    found = [json.loads(line)["n"] for line in path.read_text().splitlines()]
    assert found == list(range(20))


def test_a_sink_cannot_take_the_place_of_one_that_still_gets_something() -> None:
    refused: list[au.UsageError] = []
    with sparkless.make_engine(going_ticks(), train=3) as engine:

        def deliver(_delivery: Delivery) -> None:
            if not refused:
                engine.modify(remove=["going"])
                engine.modify(add={"going": "SELECT n FROM ticks"})
                with pytest.raises(au.UsageError, match="NOT_HERE") as error:
                    engine.bind_sink("going", Lasting())
                refused.append(error.value)

        engine.bind_sink("all", deliver)
        engine.bind_sink("going", Lasting())
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
    assert "a sink cannot give going a sink while another still gets" in str(refused[0])


def test_boxes_that_are_to_come_have_a_name_already() -> None:
    with sparkless.make_engine(going_ticks(), train=3) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": BOXED, "sunk": SUMS})
        assert engine.dequeue("boxed").schema.names == ["n"]
        assert engine.describe("boxed")["kind"] == "query"
        assert engine.stats()["queries"]["boxed"] == {"sql": BOXED, "shared": False, "late": {}}
        sink = Lasting()
        engine.bind_sink("sunk", sink)
        engine.enqueue("ticks", batch(10, 15))
        engine.modify(remove=["sunk"])
        engine.enqueue("ticks", batch(15, 20))
        engine.drain()
        assert engine.dequeue("boxed").num_rows == 10
        assert sink.column("n") == list(range(10, 15)), "it had not begun when it was removed"
        assert sink.closed


def test_what_comes_and_goes_at_one_moment_leaves_nothing() -> None:
    with sparkless.make_engine(going_ticks(), train=3) as engine:
        engine.enqueue("ticks", batch(0, 10))
        for text in (SUMS, "SELECT n FROM ticks"):
            engine.modify(add={"brief": text})
            sink = Lasting()
            engine.bind_sink("brief", sink)
            engine.modify(remove=["brief"])
            assert sink.closed
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert numbers(engine.dequeue("all")) == list(range(20))
        assert [log for log in engine._store.names()[0] if "brief" in log or "rest" in log] == []
        assert [r for _, r in engine._store.names()[1] if "brief" in r or "rest" in r] == []


def test_boxes_come_at_their_moment_though_queries_came_later() -> None:
    net = going_ticks()
    net.stream("other", "sym string, o bigint")
    third = "SELECT ticks.n FROM other [ROWS 9], ticks [ROWS 9] WHERE ticks.sym = other.sym"
    with sparkless.make_engine(net, train=5) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": SUMS})
        engine.modify(add={"pairs": PAIRS})
        engine.enqueue("ticks", batch(10, 20))
        engine.modify(add={"third": third, "late": SUMS})
        engine.enqueue("news", NEWS)
        engine.modify(remove=["boxed"], add={"boxed": BOXED})
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert engine.dequeue("boxed")["n"].to_pylist() == [1, 1, 1]
        assert numbers(engine.dequeue("late")) == [20, 21, 22]
        assert set(numbers(engine.dequeue("pairs"))) == {*range(11, 20), 20, 21, 22}


def _both(first: Callable[[], object], then: Callable[[], object]) -> Callable[..., None]:
    """A sink that does something when it is called first."""
    calls = itertools.count()

    def deliver(_delivery: Delivery) -> None:
        if next(calls) == 0:
            first()
            then()

    return deliver


@pytest.mark.parametrize("inner", ["boxed", "sink"])
@pytest.mark.parametrize("background", [False, True])
def test_a_sink_may_change_what_others_have_changed(inner: str, background: bool) -> None:
    net = going_ticks()
    net.output("raw", "ticks")
    change: dict[str, Any] = {"remove": ["going"]} if inner == "sink" else {"add": {"inner": BOXED}}
    with sparkless.make_engine(net, train=5, background=background) as engine:
        more = lambda: engine.enqueue("ticks", batch(10, 20))  # noqa: E731
        engine.bind_sink("all", _both(more, lambda: engine.modify(**change)))
        engine.bind_sink("going", lambda _delivery: None)
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == list(range(23))
        if inner == "boxed":
            assert engine.dequeue("inner").num_rows >= 3


def test_an_engine_ends_while_a_sink_is_to_get_more() -> None:
    sink = _Blocked()
    engine = Engine(going_ticks(), executor=sparkless.InProcessExecutor())
    engine.start()
    engine.bind_sink("going", sink)
    engine.enqueue("ticks", batch(0, 10))
    assert sink.called.wait(_LONG_S)
    engine.modify(remove=["going"])
    ending = in_thread(engine.shutdown)
    assert engine._loop._stopping.wait(_LONG_S)
    sink.go_on.set()
    ending.join(_LONG_S)
    assert not ending.is_alive()
    assert engine._loop.failure is None
    assert sink.closed
