"""Running a network in some way, as often as it dies, and comparing it with the reference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auroral import Network
from auroral.engine import Engine
from auroral.progress.lowwater import GroupedLowWater, LowWater
from auroral.reference import Reference
from auroral.testing import Collector

from .networks import BAD, Batch, Way

MakeEngine = Callable[..., AbstractContextManager[Engine]]


class Crash(BaseException):
    """The process dies."""


class Faults:
    """Dies at the points it was told to, each once; quiet while not armed."""

    def __init__(self, at: frozenset[int]):
        self.at = at
        self.passed = 0
        self.armed = True

    def __call__(self, point: str) -> None:
        if self.armed:
            self.passed += 1
            if self.passed - 1 in self.at:
                raise Crash(point)


class Run:
    """An engine fed batch by batch, started again whenever it died."""

    def __init__(self, make_engine: MakeEngine, net: Network, batches: list[Batch], way: Way):
        self.make_engine, self.net, self.batches, self.way = make_engine, net, batches, way
        self.faults = Faults(way.crashes)
        self.sinks = {name: Collector() for name in net.outputs}
        self.taken = 0

    def go(self, state: Path) -> None:
        """Run to the end, and compare."""
        while True:
            with contextlib.suppress(Crash):
                self._attempt(state)
                return

    def _attempt(self, state: Path) -> None:
        way = self.way
        with self.make_engine(
            self.net,
            bind=list(self.sinks.items()),
            state=state,
            train=way.train,
            reuse_plans=way.reuse_plans,
            driver_bytes=way.driver_bytes,
            fault=self.faults,
        ) as engine:
            if way.partition_bytes and not way.reuse_plans:
                conf = engine._runner.session.conf
                conf.set("spark.sql.files.maxPartitionBytes", str(way.partition_bytes))
            self._feed(engine)
            self._compare(engine)

    def _feed(self, engine: Engine) -> None:
        if self.way.positions:
            known = [engine.position(stream) for stream in self.net.streams]
            self.taken = max((p + 1 for p in known if p is not None), default=0)
        while self.taken < len(self.batches):
            batch = self.batches[self.taken]
            # Without a position nobody knows whether a call that died was acknowledged.
            self.faults.armed = self.way.positions
            position = {"position": self.taken} if self.way.positions else {}
            engine.enqueue(batch.stream, list(batch.rows), **position)
            self.taken += 1
            self.faults.armed = True
            if batch.drain:
                engine.drain()
        engine.drain()

    def _compare(self, engine: Engine) -> None:
        reference = expected(self.net, self.batches)
        for name, sink in self.sinks.items():
            assert plain(sink.rows) == plain(reference.collected(name)), name
        bad = sum(row is BAD for batch in self.batches for row in batch.rows)
        assert engine.stats()["dead"] == bad
        require_same_marks(engine, reference)


def expected(net: Network, batches: list[Batch]) -> Reference:
    """The reference after all batches."""
    reference = Reference(net)
    for batch in batches:
        for row in batch.rows:
            if "_punctuation" in row:
                reference.punctuate(batch.stream, row["_punctuation"])
            elif row is not BAD:
                reference.push(batch.stream, row)
    return reference


def require_same_marks(engine: Engine, reference: Reference) -> None:
    """Every arc promises what it should."""
    for arc, marks in engine._plane.arcs().items():
        promises = reference.promises(arc)
        assert set(marks) == set(promises), arc
        for attribute, mark in marks.items():
            ours = promises[attribute].marks
            if isinstance(mark, GroupedLowWater):
                theirs = {group: m.latest for group, m in mark.groups.items()}
                assert theirs == ours, (arc, attribute)
            else:
                assert isinstance(mark, LowWater)
                assert mark.latest == ours[()], (arc, attribute)


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that compare as they print: NaN equals itself, zeros keep their sign."""
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).isoformat()
    return value
