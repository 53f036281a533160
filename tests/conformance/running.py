"""Running a network in some way, as often as it dies, and comparing it with the reference."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auroral import Network
from auroral.boxes import Join
from auroral.boxes.table_write import TableWrite
from auroral.continuous.boxing.expansion import expanded
from auroral.engine import Engine
from auroral.engine.runtime.watermarks import group_key
from auroral.io.rows import shown
from auroral.progress.lowwater import GroupedLowWater, LowWater
from auroral.reference import Reference
from auroral.reference.network import Dead
from auroral.spark.running.executor import SparkExecutor
from auroral.testing import Collector

from .networks import BAD, Batch, Way

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
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

    def __init__(
        self,
        make_engine: MakeEngine,
        net: Network,
        batches: list[Batch],
        way: Way,
        tables: Tables | None = None,
    ):
        self.make_engine, self.net, self.batches, self.way = make_engine, net, batches, way
        self.plain = expanded(net)
        """The network the reference interprets: continuous queries are boxes."""
        self.tables = {name: rows for name, rows in (tables or {}).items() if name in net.tables}
        self.faults = Faults(way.crashes)
        self.sinks = {name: Collector() for name in self.plain.outputs}
        self.taken = 0
        self.starts = 0

    def go(self, state: Path) -> None:
        """Run to the end, and compare."""
        while True:
            with contextlib.suppress(Crash):
                self._attempt(state)
                return

    def _attempt(self, state: Path) -> None:
        way = self.way
        self.starts += 1
        with self.make_engine(
            self.net,
            bind=list(self.sinks.items()),
            state=state,
            train=way.train,
            reuse_plans=way.reuse_plans,
            driver_bytes=way.driver_bytes,
            clock="arrival",
            tables=self.tables,
            fault=self.faults,
        ) as engine:
            executor = engine._context.settings.executor
            if way.partition_bytes and not way.reuse_plans and isinstance(executor, SparkExecutor):
                conf = executor.session.conf
                conf.set("spark.sql.files.maxPartitionBytes", str(way.partition_bytes))
            reference = expected(self.plain, self.batches, self.tables)
            if not engine.ended:
                self._feed(engine)
                self._compare(engine, reference)
            engine.finish()
            reference.end()
            self._compare(engine, reference)

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

    def _compare(self, engine: Engine, reference: Reference) -> None:
        for name, sink in self.sinks.items():
            assert plain(sink.rows) == plain(reference.collected(name)), name
        bad = sum(row is BAD for batch in self.batches for row in batch.rows)
        assert engine.stats()["dead"] == bad + len(dead_of(reference))
        require_same_letters(engine, reference)
        require_same_marks(engine, reference)
        # What is held is known to a box that has worked; after a restart it is not at once.
        require_same_counts(engine, reference, held=self.starts == 1)


def expected(net: Network, batches: list[Batch], tables: Tables | None = None) -> Reference:
    """The reference after all batches."""
    reference = Reference(net, tables)
    for batch in batches:
        declared = net.streams[batch.stream].punctuated
        for row in batch.rows:
            if "_punctuation" in row:
                group = tuple(row[name] for name in declared.by) if declared else ()
                reference.punctuate(batch.stream, row["_punctuation"], group, row.get("_at"))
            elif row is not BAD:
                tuple_ = {name: value for name, value in row.items() if name != "_at"}
                reference.push(batch.stream, tuple_, row.get("_at"))
    return reference


def dead_of(reference: Reference) -> list[Dead]:
    """What failed in boxes that lead to an output or change a table; no others run."""
    checked = reference.checked
    running: set[str] = set()
    stack = [checked.arcs[output.from_].producer for output in reference.network.outputs.values()]
    stack += [n for n, box in reference.network.boxes.items() if isinstance(box, TableWrite)]
    while stack:
        box = stack.pop()
        if box in reference.network.boxes and box not in running:
            running.add(box)
            stack += [arc.producer for arc in checked.inputs_of(box)]
    return [dead for dead in reference.dead if dead.box in running]


def require_same_counts(engine: Engine, reference: Reference, *, held: bool) -> None:
    """Every box has had as many late tuples for each reason, and holds as much."""
    stats, running = engine.stats(), engine._loop.execution.stateful
    for name, found in stats["streams"].items():
        if "late" in found and name in running:
            assert found["late"] == _late(reference, name), (name, "late")
    for name, found in stats["boxes"].items():
        if "held" in found and not name.startswith("eddy@"):
            assert found["late"] == _late(reference, name), (name, "late")
            assert not held or _holds(reference, name, found), (name, "held")


def _late(reference: Reference, name: str) -> dict[str, int]:
    return {why: n for (box, why), n in reference.late.items() if box == name}


def _holds(reference: Reference, name: str, found: Mapping[str, Any]) -> bool:
    """Whether a box holds what it should; a join may drop at once what has no key."""
    if isinstance(reference.network.boxes[name], Join):
        return bool(found["held"] <= reference.held(name))
    return bool(found["held"] == reference.held(name))


def require_same_letters(engine: Engine, reference: Reference) -> None:
    """The same results failed for the same reasons."""
    path = engine.dead_letters
    lines = path.read_text().splitlines() if path.exists() else []
    letters = [json.loads(line) for line in lines]
    boxes = reference.network.boxes.keys() - engine.network.streams.keys()
    found = [(d["source"], d["reason"], d["row"]) for d in letters if d["source"] in boxes]
    ours = [(d.box, d.reason, shown(d.row)) for d in dead_of(reference)]
    for box in boxes:
        mine, theirs = (sorted(d for d in all_ if d[0] == box) for all_ in (found, ours))
        assert mine == theirs, (box, "dead")


def require_same_marks(engine: Engine, reference: Reference) -> None:
    """Every arc promises what it should."""
    for arc, marks in engine._loop.execution.watermarks.arcs().items():
        if arc.startswith("eddy@"):
            continue  # nothing reads it: results of queries go to their readers
        promises = reference.promises(arc)
        assert set(marks) == set(promises), arc
        for attribute, mark in marks.items():
            ours = promises[attribute].marks
            if isinstance(mark, GroupedLowWater):
                theirs = {group: m.latest for group, m in mark.groups.items()}
                assert theirs == {_group(group): m for group, m in ours.items()}, (arc, attribute)
            else:
                assert isinstance(mark, LowWater)
                assert mark.latest == ours[()], (arc, attribute)


def _group(group: tuple[Any, ...]) -> tuple[Any, ...]:
    """A group of the reference as the engine names it."""
    return group_key(tuple(math.nan if value == "NaN" else value for value in group))


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that compare as they print: NaN equals itself, zeros keep their sign."""
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).isoformat()
    return value
