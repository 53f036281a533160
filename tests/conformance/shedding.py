"""Engines that shed, as often as they die, against the reference on what was kept."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from auroral import Network
from auroral.continuous.boxing.expansion import expanded
from auroral.engine import Engine
from auroral.engine.shedding.control import with_reason
from auroral.progress.values import to_mark
from auroral.reference import Reference
from auroral.reference.operator import Emission, Failed, Now, Tuple
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.choosing import chosen_moments
from auroral.shedding.drops import Drop, DropInterval, parse_drops
from auroral.storage import ShedRow
from auroral.testing import Collector

from .networks import BAD, Batch, Way
from .running import (
    Crash,
    Faults,
    MakeEngine,
    Tables,
    dead_of,
    plain,
    require_same_counts,
    require_same_letters,
    require_same_marks,
)

ON = ("int", "bigint", "double", "float", "smallint", "timestamp", "date", "decimal")


class Kept:
    """Which tuples superboxes got, by what an engine has recorded."""

    def __init__(self, superboxes: Sequence[Superbox], rows: Sequence[ShedRow]):
        self._home = {box: one for one in superboxes for box in one.boxes}
        self._rows = [(row, parse_drops(row.drops)) for row in rows]
        self.dropped: dict[ShedRow, int] = dict.fromkeys(rows, 0)
        self.taken: dict[ShedRow, int] = dict.fromkeys(rows, 0)
        self._counted: set[tuple[str, str, int, int]] = set()

    def gets(self, box: str, arc: str, moment: int, number: int, row: dict[str, Any]) -> bool:
        """Whether a box gets a tuple of an arc, which is the `number`-th of its moment."""
        superbox = self._home.get(box)
        if superbox is None or arc not in superbox.sources:
            return True
        for found, drops in self._rows:
            here = (found.superbox, found.arc) == (superbox.name, arc)
            if here and found.first <= moment < found.last:
                dropped = any(is_dropped(drop, moment, row) for drop in drops)
                seen = (superbox.name, arc, moment, number)
                if seen not in self._counted:  # several boxes of a superbox may read an arc
                    self._counted.add(seen)
                    self.taken[found] += 1
                    self.dropped[found] += dropped
                return not dropped
        return True


def is_dropped(drop: Drop, moment: int, row: dict[str, Any]) -> bool:
    """What a drop box does with one tuple."""
    if not chosen_moments(np.array([moment]), drop.rate, drop.seed)[0]:
        return False
    if drop.interval is None:
        return True
    value = row[drop.interval.field]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return False
    number = float(to_mark(value)) if isinstance(value, date) else float(value)
    low, high = drop.interval.low, drop.interval.high
    return (low is None or number >= low) and (high is None or number < high)


class KeptReference(Reference):
    """The reference, in which boxes get what was kept; moments count as the engine's do."""

    def __init__(self, network: Network, tables: Tables, kept: Kept, stride: int):
        super().__init__(network, tables)
        self._kept, self._stride = kept, stride
        self._arrivals = 0
        self._now = 0
        """The engine's moment."""

    def arrive(self, stream: str, row: dict[str, Any]) -> None:
        """Let a tuple or a punctuation arrive."""
        at = row.get("_at")
        self._now = self._stride * self._arrivals
        self._tick(at)
        self._now += self._stride - 1
        if "_punctuation" in row:
            declared = self.network.streams[self._stream(stream)].punctuated
            group = tuple(row[name] for name in declared.by) if declared else ()
            self.punctuate(stream, row["_punctuation"], group, at)
        else:
            self.push(stream, {n: v for n, v in row.items() if n != "_at"}, at)
        self._arrivals += 1

    def end(self) -> None:
        self._now = self._stride * self._arrivals
        super().end()

    def _flow(self, arrived: dict[str, list[Tuple]]) -> None:
        promises = self.promised()
        for name, operator in self._operators.items():
            sources = self.network.boxes[name].sources()
            made: list[Emission | Failed] = []
            for port, arc in enumerate(sources):
                for number, one in enumerate(arrived.get(arc, ())):
                    if self._kept.gets(name, arc, self._now, number, one.row):
                        made += operator.push(port, one)
            known_now = [promises.get(arc, {}) for arc in sources]
            made += operator.settle(Now(known_now, self._clock_us, self._ended))
            for emitted in made:
                self._take(name, emitted, arrived)
        for arc, tuples in arrived.items():
            self._collected[arc] += tuples
        self._moment += 1


def random_drops(rng: Random, engine: Engine) -> list[Drop]:
    """Drop boxes in front of some superboxes."""
    execution = engine._loop.execution
    found = []
    for superbox in execution.superboxes:
        for arc in superbox.sources:
            fields = [f.name for f in execution.checked.arcs[arc].schema if f.type.name in ON]
            for _ in range(rng.choice([0, 0, 1, 1, 2])):
                interval = None
                if fields and rng.random() < 0.4:
                    low, high = rng.choice([None, -1.0, 1.0]), rng.choice([None, 2.0, 4.0])
                    interval = DropInterval(rng.choice(fields), low, high)
                rate = rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
                drop = Drop(superbox.name, arc, rate, rng.randrange(2**63), (), interval)
                found.append(with_reason(drop, "auto"))
    return found


class SheddingRun:
    """An engine fed batch by batch with drop boxes that change, started again when it died."""

    def __init__(
        self,
        make_engine: MakeEngine,
        net: Network,
        batches: list[Batch],
        way: Way,
        tables: Tables,
        rng: Random,
    ):
        self.make_engine, self.net, self.batches, self.way = make_engine, net, batches, way
        self.plain = expanded(net)
        self.tables = {name: rows for name, rows in tables.items() if name in net.tables}
        self.faults = Faults(way.crashes)
        self.sinks = {name: Collector() for name in self.plain.outputs}
        self.rng = rng
        self.taken = 0
        self.starts = 0
        self.rows: list[ShedRow] = []

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
            control = engine._context.shedding
            control.set(random_drops(self.rng, engine), "a test")
            if not engine.ended:
                self._feed(engine)
            engine.finish()
            self.rows = control.log.rows()
            assert sorted(self.rows, key=str) == sorted(engine._store.manifest.shed(), key=str)
            self._compare(engine)

    def _feed(self, engine: Engine) -> None:
        known = [engine.position(stream) for stream in self.net.streams]
        self.taken = max((p + 1 for p in known if p is not None), default=0)
        while self.taken < len(self.batches):
            batch = self.batches[self.taken]
            engine.enqueue(batch.stream, list(batch.rows), position=self.taken)
            self.taken += 1
            if self.rng.random() < 0.2:
                engine._context.shedding.set(random_drops(self.rng, engine), "another test")
            if batch.drain:
                engine.drain()

    def _compare(self, engine: Engine) -> None:
        kept = Kept(engine._loop.execution.superboxes, self.rows)
        reference = KeptReference(self.plain, self.tables, kept, engine._ingest._stride)
        for batch in self.batches:
            for row in batch.rows:
                if row is not BAD:
                    reference.arrive(batch.stream, row)
        reference.end()
        for name, sink in self.sinks.items():
            assert plain(sink.rows) == plain(reference.collected(name)), name
        bad = sum(row is BAD for batch in self.batches for row in batch.rows)
        assert engine.stats()["dead"] == bad + len(dead_of(reference))
        require_same_letters(engine, reference)
        require_same_marks(engine, reference)
        require_same_counts(engine, reference, held=self.starts == 1)
        for shed in self.rows:
            assert (shed.taken, shed.dropped) == (kept.taken[shed], kept.dropped[shed]), shed
        counted = sum(
            sum(by.values()) for by in engine._context.shedding.statistics()["arcs"].values()
        )
        assert counted == sum(row.dropped for row in self.rows)
