"""What threads see when an engine ends, or when a sink asks for what cannot be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.eddy.query_index import QueryIndex
from auroral.engine.queries.modification import Modification, ModificationReader
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.stepper import Stepper
from auroral.engine.sinks.sinks import Sinks
from auroral.io.sinks.sink import Delivery
from auroral.storage import Store
from tests.conformance import sparkless

from .market import all_ticks, batch, numbers

_LONG_S = 60


def _in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """A call in a thread of its own, and what it raised."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


def test_who_drains_is_told_when_the_engine_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    stepping, go_on = threading.Event(), threading.Event()

    def step(_self: Stepper, *_given: object) -> bool:
        stepping.set()
        assert go_on.wait(_LONG_S)
        return False

    monkeypatch.setattr(Stepper, "step", step)
    with sparkless.make_engine(all_ticks(), background=True) as engine:
        engine.enqueue("ticks", batch(0, 10))
        waiting, raised = _in_thread(engine.drain)
        assert stepping.wait(_LONG_S)
        ending, _ = _in_thread(engine.shutdown)
        go_on.set()
        for thread in (waiting, ending):
            thread.join(_LONG_S)
            assert not thread.is_alive()
        assert "NOT_STARTED" in str(raised[0])


def test_an_engine_ends_after_the_change_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    changing, go_on = threading.Event(), threading.Event()
    read, close = QueryRegistry.read, Store.close
    order: list[str] = []

    def reading(self: QueryRegistry, add: Mapping[str, Any], remove: Sequence[str]) -> Modification:
        changing.set()
        assert go_on.wait(_LONG_S)
        order.append("changed")
        return read(self, add, remove)

    def closing(self: Store) -> None:
        order.append("closed")
        close(self)

    with sparkless.make_engine(all_ticks(), background=True) as engine:
        monkeypatch.setattr(QueryRegistry, "read", reading)
        monkeypatch.setattr(Store, "close", closing)
        change, raised = _in_thread(lambda: engine.modify(add={"more": "SELECT n FROM ticks"}))
        assert changing.wait(_LONG_S)
        ending, _ = _in_thread(engine.shutdown)
        for thread in engine._loop._threads:  # then there is nothing else it waits for
            thread.join(_LONG_S)
        go_on.set()
        change.join(_LONG_S)
        ending.join(_LONG_S)
        assert order == ["changed", "closed"]
        assert raised == []


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("going", [True, False])
@pytest.mark.parametrize("call", ["drain", "finish", "shutdown"])
def test_a_sink_cannot_wait_for_itself(
    background: bool, going: bool, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever calls it: the engine, or somebody who removes its query."""
    told: list[au.AuroralError] = []
    with sparkless.make_engine(all_ticks(), background=background) as engine:

        def wait(_delivery: Delivery) -> None:
            try:
                getattr(engine, call)()
            except au.AuroralError as error:
                told.append(error)

        engine.bind_sink("all", wait)
        engine.enqueue("ticks", batch(0, 10))
        if going:
            engine.modify(remove=["all"])
        engine.drain(_LONG_S)
        assert "NOT_HERE" in str(told[0])


def test_a_sink_is_not_given_to_a_query_that_goes_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever comes first: nobody else notices."""
    opening, go_on = threading.Event(), threading.Event()

    class Slow:
        def open(self, _position: Any | None) -> None:
            opening.set()
            assert go_on.wait(_LONG_S)

        def write(self, delivery: Delivery) -> int:
            return len(delivery.table)

        def close(self) -> None: ...

    net = all_ticks()
    net.query("other", "SELECT n FROM ticks")
    with sparkless.make_engine(net, background=True) as engine:
        binding, refused = _in_thread(lambda: engine.bind_sink("all", Slow()))
        assert opening.wait(_LONG_S)
        removing, failed = _in_thread(lambda: engine.modify(remove=["all"]))
        go_on.set()
        for thread in (binding, removing):
            thread.join(_LONG_S)
        assert [*refused, *failed] == []
        engine.enqueue("ticks", batch(0, 10))
        engine.drain(_LONG_S)
        assert engine.dequeue("other").num_rows == 10


def test_what_comes_when_the_engine_ends_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sparkless.make_engine(all_ticks(), state=tmp_path, background=True) as engine:
        reading, go_on = threading.Event(), threading.Event()
        lock = engine._changing.lock

        def change() -> None:
            reading.set()
            assert go_on.wait(_LONG_S)
            engine._changing.change({"more": "SELECT n FROM ticks"}, [])

        late, raised = _in_thread(change)  # it has seen that the engine runs
        assert reading.wait(_LONG_S)
        with lock:
            ending, _ = _in_thread(engine.shutdown)
            for thread in engine._loop._threads:
                thread.join(_LONG_S)
            go_on.set()
        for thread in (late, ending):
            thread.join(_LONG_S)
        assert "NOT_STARTED" in str(raised[0])
        assert engine._loop.failure is None


@pytest.mark.parametrize("slow", ["read", "draft"])
def test_others_go_on_while_queries_are_read_and_compiled(
    monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Also if their predicates are compiled anew meanwhile; the new ones see what comes after."""
    changing, go_on = threading.Event(), threading.Event()
    whose = {"read": ModificationReader, "draft": QueryIndex}[slow]
    quick = getattr(whose, slow)

    def slowly(self: Any, one: Any, other: Any) -> Any:
        done = quick(self, one, other)
        changing.set()
        assert go_on.wait(_LONG_S)
        return done

    with sparkless.make_engine(all_ticks(), background=True) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
        monkeypatch.setattr(whose, slow, slowly)
        thread, raised = _in_thread(
            lambda: engine.modify(add={"new": "SELECT n FROM ticks WHERE price < 100 OR n = 25"})
        )
        assert changing.wait(_LONG_S)
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert engine.dequeue("all").num_rows == 20
        engine._queries.query_index.parts("ticks")._rebuild()
        engine._queries.eddies.at("eddy@ticks", 15)
        go_on.set()
        thread.join(_LONG_S)
        assert not raised
        engine.enqueue("ticks", batch(20, 30))
        engine.drain()
        assert numbers(engine.dequeue("all")) == list(range(20, 30))
        assert numbers(engine.dequeue("new")) == [n for n in range(20, 30) if n % 11 or n == 25]


def test_who_waits_for_the_end_of_a_round_comes_before_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stepping = threading.Event()
    happened: list[str] = []

    def step(_self: Stepper, *_given: object) -> bool:
        happened.append("step")
        stepping.set()
        while "bind" not in happened and not engine._loop._asking:
            pass  # until somebody waits
        return True  # there is always more to do

    def bind(_self: Sinks, *_given: object) -> None:
        happened.append("bind")

    with sparkless.make_engine(all_ticks(), background=True) as engine:
        monkeypatch.setattr(Sinks, "bind", bind)
        monkeypatch.setattr(Stepper, "step", step)
        engine.enqueue("ticks", batch(0, 10))
        assert stepping.wait(_LONG_S)
        engine.bind_sink("all", lambda _delivery: None)
    assert happened[:2] == ["step", "bind"]
