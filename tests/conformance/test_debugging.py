"""Pausing, stepping, breakpoints and looking never change a result."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral.engine import Engine
from auroral.engine.ingest import ingest
from auroral.engine.inspect.followers import Follower
from auroral.errors import UsageError
from auroral.network import declarations, endpoints
from auroral.reference import Reference

from . import sparkless
from .events import Events
from .networks import Batch, way
from .running import Run, plain
from .test_scheduling import drawn_network
from .test_stateful import TABLES, set_out


class DebuggedRun(Run):
    """An engine that somebody debugs between batches, as the dice say."""

    rng: Random
    followers: dict[str, Follower]
    followed: dict[str, list[dict[str, Any]]]
    stops = 0
    stepped = 0

    def _feed(self, engine: Engine) -> None:
        self.followers = {name: engine.follow(name) for name in self.sinks}
        self.followed = {name: [] for name in self.sinks}
        engine.set_breakpoint(self.batches[0].stream)
        for batch in self.batches:
            engine.enqueue(batch.stream, list(batch.rows))
            for _ in range(self.rng.choice([0, 1, 2, 5])):
                self._meddle(engine)
            if batch.drain:
                self._drain(engine)
        for breakpoint in engine.debug_state()["breakpoints"]:
            if self.rng.random() < 0.7:
                engine.remove_breakpoint(breakpoint["id"])
        engine.resume()
        self._drain(engine)
        engine.resume()
        for breakpoint in engine.debug_state()["breakpoints"]:
            engine.enable_breakpoint(breakpoint["id"], False)

    def _meddle(self, engine: Engine) -> None:
        rng, outputs = self.rng, list(self.sinks)
        self.stops += engine.debug_state()["hit"] is not None
        application = rng.choice([None, None, *outputs])
        arc = rng.choice([a for a in engine.typecheck() if "@" not in a])
        match rng.choice(["pause", "resume", "train", "tuple", "break", "look", "work", "follow"]):
            case "pause":
                engine.pause(application)
            case "resume":
                engine.resume(application)
            case ("train" | "tuple") as kind if engine.debug_state()["paused"]:
                self.stepped += len(engine.step(kind, application, rng.randint(1, 3)))
            case "break" if len(engine.debug_state()["breakpoints"]) < 4:
                self._look_at(engine.set_breakpoint, arc)
            case "look":
                self._look_at(engine.sample, arc)
            case "work":
                engine.wait(0)
            case "follow":
                self._read()

    def _look_at(self, call: Any, arc: str) -> None:
        with contextlib.suppress(UsageError):  # nothing is written of it
            call(arc)

    def _drain(self, engine: Engine) -> None:
        """Drain, going on whenever that is stopped; sometimes leave it at that."""
        for _ in range(2_000):
            state = engine.debug_state()
            if not state["paused"]:
                with contextlib.suppress(UsageError):
                    engine.drain()
                    return
            self.stops += engine.debug_state()["hit"] is not None
            engine.resume()
        raise AssertionError("it stops at the same tuples again and again")

    def _read(self) -> None:
        for name, follower in self.followers.items():
            while (table := follower.next(0)) is not None:
                self.followed[name] += table.to_pylist()

    def _compare(self, engine: Engine, reference: Reference) -> None:
        super()._compare(engine, reference)
        self._read()
        for name, rows in self.followed.items():
            assert plain(rows) == plain(reference.collected(name)), (name, "followed")


@pytest.mark.parametrize("seed", range(16))
def test_debugging_never_changes_a_result(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"debugging {seed}")
    monkeypatch.setattr(declarations, "LEAST_MEMORY_BYTES", 1)
    monkeypatch.setattr(endpoints, "require_room", lambda *_: None)
    net = drawn_network(rng, 6)
    batches: list[Batch] = Events(rng, net).script(25, drains=0.2)
    if rng.random() < 0.7:
        monkeypatch.setattr(ingest, "LARGE_ROWS", 1)
    chosen = way(rng, crashing=False)
    set_out(monkeypatch, chosen)
    run = DebuggedRun(sparkless.make_engine, net, batches, chosen, TABLES)
    run.rng = rng
    run.go(tmp_path)
    assert run.stops + run.stepped > 0
