"""Attaching random boxes to random arcs at random moments, and what that should give."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from auroral import Network
from auroral.engine import Engine
from auroral.errors import UsageError
from auroral.ids import ArcId
from auroral.network.arc import Arc
from auroral.network.box import class_of
from auroral.network.declarations import Output
from auroral.network.types import Schema
from auroral.progress.durations import parse_duration_us
from auroral.progress.values import clock_to_mark, to_mark
from auroral.reference import Reference
from auroral.reference.operator import Emission, Failed, Now, ReferenceOperator, Tuple
from auroral.testing import Collector

from .events import TABLE, TABLE_ROWS, Events
from .networks import BAD, Batch
from .running import Crash, Faults, MakeEngine, plain
from .stateful import KINDS, PLAIN, _Builder, stateful_network

TABLES = {"refs": TABLE_ROWS}
_ATTACHABLE = tuple(kind for kind in KINDS if kind != "latch")
"""What attached queries may contain: no boxes that write tables."""


class BranchBuilder(_Builder):
    """Adds boxes behind one arc."""

    def __init__(self, rng: Random, arc: Arc):
        self._rng, self._net = rng, arc.network
        self._streams = [arc]
        self._arcs = list(self._streams)
        self._late = []
        self._joins = 0

    def _matching(self, left: Schema, right: Schema, *, functions: bool = True) -> str | None:
        found = super()._matching(left, right, functions=functions)
        return None if found is None or "picky" in found else found  # which needs Spark

    def build(self, most_boxes: int) -> Arc:
        for number in range(self._rng.randint(1, most_boxes)):
            kinds = PLAIN if self._rng.random() < 0.3 else _ATTACHABLE
            self.add(self._rng.choice(kinds), number)
        return self._rng.choice([*self._arcs[-2:], *self._late[-1:]])


@dataclass(frozen=True)
class NotYet:
    """A box that sees no tuples yet, but knows what was promised before its first."""

    operator: ReferenceOperator

    def push(self, _port: int, _arrived: Tuple) -> list[Emission | Failed]:
        return []

    def settle(self, now: Now) -> list[Emission | Failed]:
        return list(self.operator.settle(now))

    def held(self) -> int:
        return self.operator.held()


class LateBranch(Reference):
    """The reference of a network some boxes of which are there from a moment on only."""

    def __init__(self, network: Network, tables: Any, stride: int):
        super().__init__(network, tables)
        self._stride = stride
        self._arrivals = 0
        self._now = 0
        self.branch: Collection[str] = ()
        self.begins = 0

    def _tick(self, at: float | None) -> None:
        self._now = self._stride * self._arrivals
        super()._tick(at)
        self._now += self._stride - 1
        self._moment = self._now  # what arrives is marked with it
        self._arrivals += 1

    def end(self) -> None:
        self._now = self._stride * self._arrivals
        super().end()

    def _flow(self, arrived: dict[str, list[Tuple]]) -> None:
        every = self._operators
        if self._now < self.begins:
            self._operators = {
                name: NotYet(box) if name in self.branch else box for name, box in every.items()
            }
        self._moment = self._now
        super()._flow(arrived)
        self._operators = every

    def feed(self, batch: Batch) -> None:
        declared = self.network.streams[self._stream(batch.stream)].punctuated
        for row in batch.rows:
            if "_punctuation" in row:
                group = tuple(row[name] for name in declared.by) if declared else ()
                self.punctuate(batch.stream, row["_punctuation"], group, row.get("_at"))
            else:
                tuple_ = {name: value for name, value in row.items() if name != "_at"}
                self.push(batch.stream, tuple_, row.get("_at"))


@dataclass(frozen=True)
class AttachScenario:
    """A network with a point, what is fed, and when something is attached."""

    net: Network
    batches: list[Batch]
    attach_at: int
    branch_seed: int
    train: int | None
    crashes: frozenset[int]


def scenario(rng: Random, *, crashing: bool) -> AttachScenario:
    while True:
        net = stateful_network(rng, rng.choice([1, 1, 2, 3]), routed=rng.random() < 0.1)
        if "refs" not in net.tables:
            net.table("refs", TABLE)
        arcs = net.check().arcs
        fit = [name for name, arc in arcs.items() if arc.revised_by is None]
        calls = any("picky" in str(box) for box in net.boxes.values())  # in joins, needs Spark
        if fit and not calls:
            break
    net.connection_point("recent", rng.choice(fit), keep=_keep(rng))
    script = Events(rng, net).script(rng.choice([20, 40, 70]), drains=rng.choice([0.1, 0.3, 1]))
    batches = [Batch(b.stream, tuple(r for r in b.rows if r is not BAD), b.drain) for b in script]
    crashes = frozenset(rng.sample(range(60), rng.choice([1, 2, 4]))) if crashing else frozenset()
    return AttachScenario(
        net,
        batches,
        rng.randrange(len(batches)),
        rng.randrange(1 << 30),
        rng.choice([1, 2, 3, 5, 8, None]),
        crashes,
    )


def _keep(rng: Random) -> Any:
    time, rows = f"{rng.choice([1, 3, 6, 10])} s", rng.choice([1, 3, 8, 20])
    return rng.choice(["all", time, {"rows": rows}, {"rows": rows, "time": time}])


class AttachRun:
    """An engine that goes through a scenario, started again whenever it dies."""

    def __init__(self, make_engine: MakeEngine, given: AttachScenario):
        self._make_engine, self._given = make_engine, given
        self._faults = Faults(given.crashes)
        self.sink = Collector()
        self._seed = given.branch_seed
        self._taken = 0
        self.boxes: dict[str, Any] = {}
        self._output = ""
        self._moment: int | None = None
        self.stride = 1

    def go(self, state: Path) -> None:
        while True:
            with contextlib.suppress(Crash):
                self._attempt(state)
                return

    def _attempt(self, state: Path) -> None:
        given = self._given
        with self._make_engine(
            given.net,
            state=state,
            train=given.train,
            clock="arrival",
            tables=TABLES,
            fault=self._faults,
        ) as engine:
            self.stride = engine._ingest._stride
            if not engine.ended:
                self._feed(engine)
            else:
                engine.bind_sink("hot", self.sink)
            engine.finish()
            self._faults.armed = False
            expected = self._expected(engine)
            assert plain(self.sink.rows) == plain(expected), self.boxes
            engine.detach("hot")
            self._faults.armed = True

    def _feed(self, engine: Engine) -> None:
        given = self._given
        known = [engine.position(stream) for stream in given.net.streams]
        self._taken = max((p + 1 for p in known if p is not None), default=0)
        if "hot" in engine._attachments:
            engine.bind_sink("hot", self.sink)
        for number in range(self._taken, len(given.batches)):
            self._before(engine, number)
            if number == given.attach_at:
                self._attach(engine)
            batch = given.batches[number]
            engine.enqueue(batch.stream, list(batch.rows), position=number)
            if batch.drain:
                engine.drain()
        if self._taken > given.attach_at and "hot" not in engine._attachments:
            raise AssertionError("it was attached, and is not any more")

    def _before(self, engine: Engine, number: int) -> None:
        """What else happens before a batch."""

    def _attach(self, engine: Engine) -> None:
        if "hot" in engine._attachments:
            return
        self._moment = engine._ingest.next_moment
        while True:
            try:
                engine.attach("recent", self._branch, name="hot")
                break
            except UsageError as error:
                if error.code != "NO_CLOCK":
                    raise
                self._seed += 1
        query = engine._attachments._held["hot"].record.query
        self.boxes, self._output = dict(query.boxes), query.output
        engine.bind_sink("hot", self.sink)

    def _branch(self, arc: Arc) -> Arc:
        return BranchBuilder(Random(self._seed), arc).build(3)

    # ── what it should give ──

    def _expected(self, engine: Engine) -> list[dict[str, Any]]:
        given = self._given
        query = engine._attachments._held["hot"].record.query
        combined = copy.copy(given.net)
        combined.boxes = dict(given.net.boxes)
        for name, declared in query.boxes.items():
            combined.boxes[name] = class_of(declared, declared["box"]).model_validate(declared)
        combined.outputs = {"hot": Output.model_validate({"from": query.output})}
        before = LateBranch(given.net, TABLES, self.stride)
        for batch in given.batches[: given.attach_at]:
            before.feed(batch)
        reference = LateBranch(combined, TABLES, self.stride)
        reference.branch = {ArcId.parse(name).producer for name in query.boxes}
        reference.begins = self._beginning(before, engine)
        for batch in given.batches:
            reference.feed(batch)
        reference.end()
        return reference.collected("hot")

    def _beginning(self, before: LateBranch, engine: Engine) -> int:
        """The moment of the oldest tuple that is kept when the query is attached."""
        point = self._given.net.connection_points["recent"]
        assert point.on is not None
        arc, moment = point.on, before._stride * before._arrivals
        tuples = before.tuples(arc)
        time, rows = _bounds(point.keep)
        begins = 0
        if rows is not None and len(tuples) >= rows:
            begins = tuples[-rows].moment
            tuples = [t for t in tuples if t.moment >= begins]
        if time is not None:
            attribute = engine._history.points["recent"].attribute
            if attribute is None:
                now = max((t.entered_us for t in tuples), default=0)
                kept = [t.moment for t in tuples if t.entered_us >= now - time]
                begins = kept[0] if kept else moment
            elif (mark := before.mark(arc, attribute)) is not None:
                kind = before.checked.arcs[arc].schema.field(attribute).type
                bound = mark - clock_to_mark(time, kind.name, kind.scale)
                kept = [t.moment for t in tuples if _reaches(t.row[attribute], kind.scale, bound)]
                begins = kept[0] if kept else moment
        return begins


def _reaches(value: Any, scale: int, bound: Any) -> bool:
    return value is not None and value == value and to_mark(value, scale) >= bound


def _bounds(keep: Any) -> tuple[int | None, int | None]:
    if keep == "all":
        return None, None
    if isinstance(keep, str):
        return parse_duration_us(keep), None
    return (None if keep.time is None else parse_duration_us(keep.time)), keep.rows
