"""A query whose boxes fail stops; the others go on, now and after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.engine.runtime.in_process import InProcessKernelRunner
from auroral.errors import RunError
from auroral.spark.running.runner import Runner
from tests.conformance import sparkless
from tests.conformance.running import Crash, Faults

from .market import batch, numbers, ticks

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

COUNTS = "SELECT count(*) AS c FROM ticks [ROWS 2]"


def _network(**queries: str) -> au.Network:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    for name, text in queries.items():
        net.query(name, text)
    return net


def _fail(monkeypatch: pytest.MonkeyPatch, kind: type, *boxes: str) -> None:
    """Let every step with one of some boxes fail from now on."""
    run = kind.run  # type: ignore[attr-defined]

    def failing(self: Any, superbox: Any, *given: Any, **more: Any) -> Any:
        own = self.superbox if kind is InProcessKernelRunner else superbox
        for box in boxes:
            if box in own.boxes:
                raise RunError("SPARK_FAILED", f"{box} divides by nothing", where=own.name)
        return run(self, superbox, *given, **more)

    monkeypatch.setattr(kind, "run", failing)


def _told(engine: Engine) -> Mapping[str, Any]:
    return {n: q["error"] for n, q in engine.stats()["queries"].items() if q.get("stopped")}


def test_others_go_on_and_a_restart_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = _network(bad=COUNTS, fine=COUNTS)
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(0, 4))
        engine.drain()
        with monkeypatch.context() as patch:
            _fail(patch, InProcessKernelRunner, "bad#1", "bad#2")
            engine.enqueue("ticks", batch(4, 8))
            engine.drain()
        assert list(_told(engine)) == ["bad"]
        assert "divides by nothing" in _told(engine)["bad"]
        failed = [entry for entry in engine.story("bad") if entry["event"] == "failed"]
        assert ["divides by nothing" in entry["why"] for entry in failed] == [True]
        assert not [entry for entry in engine.story("fine") if entry["event"] == "failed"]
        assert numbers(engine.dequeue("all")) == list(range(8))
        assert engine.dequeue("fine")["c"].to_pylist() == [2] * 4
        assert engine.dequeue("bad")["c"].to_pylist() == [2] * 2, "what it gave before"
    with sparkless.make_engine(net, state=tmp_path) as engine:
        assert list(_told(engine)) == ["bad"]
        engine.enqueue("ticks", batch(8, 12))
        engine.drain()
        assert engine.dequeue("bad").num_rows == 0
        assert engine.dequeue("fine")["c"].to_pylist() == [2] * 2
        waiting = [log for log, held in engine._store._logs.items() if held and log == "ticks"]
        assert waiting == [], "tuples are kept for a query that does nothing more"
        engine.modify(remove=["bad"], add={"bad": COUNTS})
        assert _told(engine) == {}
        engine.enqueue("ticks", batch(12, 16))
        engine.drain()
        assert engine.dequeue("bad")["c"].to_pylist() == [2] * 2
    with sparkless.make_engine(net, state=tmp_path) as engine:
        assert _told(engine) == {}


def test_a_crash_while_a_query_fails_loses_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine dies once at each third point there is, until there is none left."""
    net = _network(bad=COUNTS, fine=COUNTS)
    _fail(monkeypatch, InProcessKernelRunner, "bad#1", "bad#2")
    point = 0
    while True:
        faults = Faults(frozenset((point,)))
        taken: dict[str, int] = {"all": 0, "fine": 0}
        done = False
        while not done:
            with (
                suppress(Crash),
                sparkless.make_engine(net, state=tmp_path / str(point), fault=faults) as engine,
            ):
                for start in range(4, 16, 4):
                    if (engine.position("ticks") or -1) < start:
                        engine.enqueue("ticks", batch(start, start + 4), position=start)
                        engine.drain()
                engine.drain()
                faults.armed = False
                taken = {name: engine.dequeue(name).num_rows for name in taken}
                assert list(_told(engine)) == ["bad"]
                done = True
        assert taken == {"all": 12, "fine": 6}, point
        if faults.passed <= point:
            break
        point += 3
    assert point > 20


@pytest.mark.parametrize("again", [True, False])
def test_what_fails_while_spark_gets_ready_is_left_to_the_step(
    again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it fails again, its query stops; if it was bad luck, nobody has to know."""
    net = _network(bad=COUNTS, fine=COUNTS)
    warm: list[str] = []

    def warm_up(runner: InProcessKernelRunner) -> None:
        warm.append(str(runner.superbox.stateful))
        if warm[-1].startswith("bad"):
            raise RunError("SPARK_FAILED", "cannot be planned", where=warm[-1])

    monkeypatch.setattr(InProcessKernelRunner, "warm_up", warm_up)
    if again:
        _fail(monkeypatch, InProcessKernelRunner, "bad#1", "bad#2")
    with sparkless.make_engine(net, background=True) as engine:
        engine.enqueue("ticks", batch(0, 4))
        engine.drain()
        assert {name.partition("#")[0] for name in warm} == {"bad", "fine", "eddy@ticks"}
        assert list(_told(engine)) == (["bad"] if again else [])
        assert engine.dequeue("fine")["c"].to_pylist() == [2] * 2
        assert engine.dequeue("bad")["c"].to_pylist() == ([] if again else [2] * 2)
        assert numbers(engine.dequeue("all")) == list(range(4))


def test_what_is_no_query_stops_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _network()
    net.box("number", "numbered", input="ticks", **{"as": "at"})
    net.output("numbers", "numbered")
    _fail(monkeypatch, InProcessKernelRunner, "numbered")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 4))
        with pytest.raises(RunError, match="divides by nothing"):
            engine.drain()


@pytest.mark.spark
def test_boxes_that_ran_together_go_on_apart(
    make_engine: MakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = "SELECT n, hex(encode(sym, 'utf-8')) AS code FROM ticks"
    net = _network(bad=codes, fine=codes, also=f"{codes} WHERE n % 2 = 0")
    net.box("filter", "low", input="ticks", where="n < 100")
    net.output("lows", "low")
    with make_engine(net, state=tmp_path, background=False) as engine:
        engine.enqueue("ticks", batch(0, 4))
        engine.drain()
        together = [box.boxes for box in engine._loop.execution.superboxes if "fine#1" in box.boxes]
        assert {"bad#1", "also#1"} <= {*together[0]}
        with monkeypatch.context() as patch:
            _fail(patch, Runner, "bad#1")
            engine.enqueue("ticks", batch(4, 8))
            engine.drain()
        assert list(_told(engine)) == ["bad"]
    with make_engine(net, state=tmp_path, background=False) as engine:
        engine.enqueue("ticks", batch(8, 10))
        engine.drain()
        assert numbers(engine.dequeue("bad")) == list(range(4))
        assert numbers(engine.dequeue("fine")) == list(range(10))
        assert numbers(engine.dequeue("also")) == list(range(0, 10, 2))
        assert numbers(engine.dequeue("lows")) == list(range(10))
        assert numbers(engine.dequeue("all")) == list(range(10))


def test_after_an_error_of_any_kind_nothing_more_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    with suppress(RunError), sparkless.make_engine(_network()) as engine:
        engine.enqueue("ticks", batch(0, 4))
        with monkeypatch.context() as patch:
            patch.setattr(
                "auroral.engine.runtime.eddy_step.EddyStep.begin", lambda *_: int("nothing")
            )
            with pytest.raises(ValueError, match="nothing"):
                engine.drain()
        with pytest.raises(RunError, match="INTERNAL: ValueError"):
            engine.drain()
