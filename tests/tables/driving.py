"""Running a scenario as often as the engine dies, and comparing with the reference."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from auroral.engine import Engine
from auroral.reference import Reference
from auroral.testing import Collector
from tests.conformance.running import Crash, Faults, MakeEngine

from .networks import TableScenario


@dataclass(frozen=True)
class Way:
    """How the engine goes through a scenario."""

    train: int | None
    crashes: frozenset[int]
    background: bool = False


def way(rng: Random) -> Way:
    crashes = rng.sample(range(120), rng.choice([0, 1, 2, 5])) if rng.random() < 0.7 else []
    return Way(rng.choice([1, 2, 3, 7, None]), frozenset(crashes))


class TableRun:
    """An engine fed batch by batch, started again whenever it died."""

    def __init__(self, make_engine: MakeEngine, scenario: TableScenario, way: Way):
        self._make_engine, self._scenario, self._way = make_engine, scenario, way
        self._faults = Faults(way.crashes)
        self._sinks = {name: Collector() for name in scenario.network.outputs}
        self.points: list[str] = []

    def go(self, state: Path, *, reasons: bool = True) -> None:
        """Run to the end, and compare; databases give different `reasons` for the same failure."""
        while True:
            with contextlib.suppress(Crash):
                self._attempt(state, reasons=reasons)
                return

    def _attempt(self, state: Path, *, reasons: bool) -> None:
        scenario = self._scenario
        with self._make_engine(
            scenario.network,
            bind=list(self._sinks.items()),
            state=state,
            durability="process",
            train=self._way.train,
            background=self._way.background,
            tables=scenario.tables,
            fault=self._fault,
        ) as engine:
            known = [engine.position(stream) for stream in scenario.network.streams]
            done = max((at + 1 for at in known if at is not None), default=0)
            for at, batch in enumerate(scenario.batches[done:], done):
                engine.enqueue(batch.stream, list(batch.rows), position=at)
                if batch.drain:
                    engine.drain()
            engine.drain()
            if not engine.ended:
                engine.finish()
            self._compare(engine, reasons=reasons)

    def _fault(self, point: str) -> None:
        self.points.append(point)
        self._faults(point)

    def _compare(self, engine: Engine, *, reasons: bool) -> None:
        self._faults.armed = False
        scenario = self._scenario
        reference = Reference(scenario.network, scenario.tables)
        for batch in scenario.batches:
            for row in batch.rows:
                reference.push(batch.stream, row)
        reference.end()
        for name, sink in self._sinks.items():
            assert sink.rows == reference.collected(name), name
        for name in scenario.network.tables:
            assert engine.table(name).to_pylist() == reference.table(name), name
        path = engine.dead_letters
        lines = (
            [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        )
        letters = [
            (d["source"], d["reason"] if reasons else "", json.loads(d["row"])) for d in lines
        ]
        ours = [(d.box, d.reason if reasons else "", d.row) for d in wanted(reference)]
        assert sorted(letters, key=str) == sorted(ours, key=str)


def wanted(reference: Reference) -> list[Any]:
    """What failed in boxes that run: those that lead to an output, or to a change of a table."""
    network, checked = reference.network, reference.checked
    running: set[str] = set()
    stack = [checked.arcs[output.from_].producer for output in network.outputs.values()]
    stack += [name for name, box in network.boxes.items() if box.kind == "update"]
    while stack:
        box = stack.pop()
        if box in network.boxes and box not in running:
            running.add(box)
            stack += [arc.producer for arc in checked.inputs_of(box)]
    return [dead for dead in reference.dead if dead.box in running]
