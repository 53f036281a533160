"""Boxes that are to come are made ready while the others go on."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import auroral as au
import auroral.engine.topology.background
import auroral.engine.topology.execution
from auroral.engine.runtime.loop import Loop
from auroral.engine.topology.execution import Execution
from auroral.engine.topology.plan import ExecutionPlan
from tests.conformance import sparkless
from tests.conformance.delivering import Lasting

from .market import BOXED, NEWS, SUMS, all_ticks, batch, numbers

_LONG_S = 30


class _Slow:
    """Lets Spark take its time to compile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.compiling, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(ExecutionPlan, "warm_up", lambda _design: self._warm_up())

    def _warm_up(self) -> None:
        self.compiling.set()
        assert self.go_on.wait(_LONG_S)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> _Slow:
    return _Slow(monkeypatch)


def _await(engine: au.Engine, query: str, count: int) -> list[int]:
    """The results of a query, as soon as there are so many."""
    found: list[int] = []
    while len(found) < count:
        engine.wait(0.05)
        found += numbers(engine.dequeue(query))
    return found


def test_others_go_on_while_boxes_are_compiled(slow: _Slow) -> None:
    with sparkless.make_engine(all_ticks(), background=True, train=5) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("ticks", batch(10, 20))
        assert slow.compiling.wait(_LONG_S)
        engine.enqueue("ticks", batch(20, 30))
        assert _await(engine, "all", 30) == list(range(30))
        assert engine.dequeue("boxed").num_rows == 0
        slow.go_on.set()
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == list(range(10, 30)), "from its moment on"
        assert engine._store.readers("next@") == []


def test_others_go_on_up_to_what_comes_after_that(slow: _Slow) -> None:
    """A join connects the eddy that goes on with another one."""
    pairs = "SELECT ticks.n FROM ticks [ROWS 1], news [ROWS 9] WHERE ticks.sym = news.sym"
    with sparkless.make_engine(all_ticks(), background=True, train=5) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("news", NEWS)
        assert slow.compiling.wait(_LONG_S)
        engine.enqueue("ticks", batch(10, 20))
        engine.modify(add={"pairs": pairs, "late": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(20, 30))
        assert _await(engine, "all", 20) == list(range(20))
        slow.go_on.set()
        engine.drain()
        assert numbers(engine.dequeue("all")) == list(range(20, 30))
        assert numbers(engine.dequeue("boxed")) == list(range(10, 30))
        assert numbers(engine.dequeue("late")) == list(range(20, 30))


def test_what_is_drafted_may_be_something_else_in_the_end(slow: _Slow) -> None:
    with sparkless.make_engine(all_ticks(), background=True, train=5) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": BOXED})
        assert slow.compiling.wait(_LONG_S)
        engine.modify(add={"more": SUMS}, remove=["boxed"])
        slow.go_on.set()
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert numbers(engine.dequeue("more")) == list(range(10, 20))
        assert engine.list_entities()["queries"] == ["all", "more"]


def test_a_crash_while_others_are_ahead_loses_nothing(slow: _Slow, tmp_path: Path) -> None:
    net = all_ticks()
    with sparkless.make_engine(net, background=True, train=5, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("ticks", batch(10, 20))
        assert slow.compiling.wait(_LONG_S)
        assert _await(engine, "all", 20) == list(range(20))
        slow.go_on.set()
        engine._loop._stopping.set()  # it ends before it has moved on, or just after
    with sparkless.make_engine(net, train=5, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(20, 30))
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == list(range(10, 30))
        assert numbers(engine.dequeue("all")) == list(range(20, 30))
        assert engine._store.readers("next@") == []


def test_a_query_that_fails_meanwhile_is_no_more_in_the_next(slow: _Slow) -> None:
    """Another network is drafted then: the one before has other boxes."""
    with sparkless.make_engine(all_ticks(), background=True, train=5) as engine:
        engine.modify(add={"boxed": SUMS})
        assert slow.compiling.wait(_LONG_S)
        slow.go_on.set()
        engine.drain()
        with engine._loop.between_rounds():
            engine.modify(add={"other": SUMS})
            engine._queries.standalone.fail({"boxed": "divides by nothing"})
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
        assert engine.stats()["queries"]["boxed"]["stopped"]
        assert numbers(engine.dequeue("other")) == list(range(10))
        assert engine.dequeue("boxed").num_rows == 0


def test_what_cannot_be_drafted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_works: Execution) -> ExecutionPlan:
        raise RuntimeError("no such network")

    with sparkless.make_engine(all_ticks(), background=True) as engine:
        monkeypatch.setattr(auroral.engine.topology.background, "plan_next", fail)
        engine.modify(add={"boxed": BOXED})
        with pytest.raises(au.RunError, match="INTERNAL: RuntimeError: no such network"):
            engine.drain()
        engine._loop.failure = None


def test_a_sink_gets_its_rest_though_the_boxes_had_not_come(slow: _Slow) -> None:
    sink = Lasting()
    with sparkless.make_engine(all_ticks(), background=True, train=50) as engine:
        engine.modify(add={"boxed": SUMS})
        engine.bind_sink("boxed", sink)
        engine.enqueue("ticks", batch(0, 7))
        assert slow.compiling.wait(_LONG_S)
        assert _await(engine, "all", 7) == list(range(7))
        engine.modify(remove=["boxed"])
        slow.go_on.set()
        engine.drain()
        assert sink.column("n") == list(range(7))
        assert sink.closed


def test_marks_are_those_of_the_moment_though_no_step_lies_between(
    slow: _Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boxes come one after the other, and all others are beyond both moments."""
    step = Loop._step

    def step_and_wait(self: Loop, complete: int) -> bool:
        done = step(self, complete)
        if slow.go_on.is_set() and self._drafting is not None:
            self._drafting.wait()  # it is ready before this round moves on
        return done

    monkeypatch.setattr(Loop, "_step", step_and_wait)
    with sparkless.make_engine(all_ticks(), background=True, train=50) as engine:
        engine.modify(add={"first": SUMS})
        engine.enqueue("ticks", batch(0, 5))
        engine.modify(remove=["first"])
        engine.enqueue("ticks", batch(5, 8))
        engine.modify(add={"second": SUMS})
        engine.enqueue("ticks", batch(8, 12))
        assert slow.compiling.wait(_LONG_S)
        slow.go_on.set()
        engine.drain()
        assert numbers(engine.dequeue("second")) == list(range(8, 12))
        assert engine.stats()["late"] == 0


def test_a_crash_while_boxes_come_loses_nothing_of_what_was_held(
    slow: _Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = all_ticks()

    def crash(*_given: object, **_more: object) -> None:
        raise SystemError("crash")

    with (
        monkeypatch.context() as patch,
        suppress(au.RunError),
        sparkless.make_engine(net, background=True, train=5, state=tmp_path) as engine,
    ):
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("ticks", batch(10, 20))
        assert _await(engine, "all", 20) == list(range(20))
        patch.setattr(auroral.engine.topology.execution, "build_execution", crash)
        slow.go_on.set()
        engine.drain()
    with sparkless.make_engine(net, train=5, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == list(range(10, 23))


def test_who_drains_waits_for_boxes_that_have_just_come(
    slow: _Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, built = auroral.engine.topology.execution.build_execution, threading.Event()

    def late(*given: Any, **more: Any) -> Execution:
        made = build(*given, **more)
        built.set()
        draining.wait(0.2)
        return made

    draining = threading.Event()
    with sparkless.make_engine(all_ticks(), background=True, train=5) as engine:
        monkeypatch.setattr(auroral.engine.topology.execution, "build_execution", late)
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("ticks", batch(0, 10))
        assert _await(engine, "all", 10) == list(range(10))
        slow.go_on.set()
        assert built.wait(_LONG_S)
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == list(range(10))
