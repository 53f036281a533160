"""What the out-of-order experiments share: feeding an engine and noting what it costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import auroral as au
from auroral.errors import RunError
from benchmarks.data import Train, size

_AHEAD_TRAINS = 2
_POLL_S = 0.02


@dataclass(frozen=True)
class Held:
    """Rows in the state of all boxes; `needed` leaves out what is only not swept away yet."""

    rows: int
    needed: int

    @staticmethod
    def of(engine: au.Engine) -> Held:
        told = [box for box in engine.stats()["boxes"].values() if "state" in box]
        if not told:
            raise RunError("NO_STATE", "the engine does not tell what its boxes hold")
        rows = sum(sum(box["state"].values()) for box in told)
        return Held(rows, sum(box["held"] for box in told))

    def over(self, other: Held) -> float:
        """How many times the other's; by whichever count it is more.

        Sweeping lazily must not make either side look better than it is.
        """
        return max(self.rows / max(other.rows, 1), self.needed / max(other.needed, 1))

    def since(self, other: Held) -> Held:
        """How much it has grown."""
        return Held(self.rows - other.rows, self.needed - other.needed)


def most_held(run: Sequence[Held]) -> Held:
    """The most rows at any time of a run."""
    return Held(max(held.rows for held in run), max(held.needed for held in run))


@dataclass
class Run:
    """What feeding some trains has cost."""

    tuples: int = 0
    seconds: float = 0.0
    steps_s: list[float] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    results: list[pa.Table] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.tuples / self.seconds

    @property
    def median_s(self) -> float:
        return statistics.median(self.steps_s)

    @property
    def slowest_s(self) -> float:
        return max(self.steps_s)

    @property
    def table(self) -> pa.Table:
        """Everything that came out."""
        return pa.concat_tables(self.results)


def with_options(network: au.Network, **options: Any) -> au.Network:
    """The same network with other engine options."""
    document = network.document()
    engine = {**document.get("engine", {}), **options}
    return au.Network.parse({**document, "engine": engine})


def enqueue(engine: au.Engine, train: Train) -> None:
    """Let a train arrive."""
    for stream, table in train:
        engine.enqueue(stream, table)


def pump(engine: au.Engine, train: Train, output: str) -> tuple[float, pa.Table]:
    """One train from `enqueue` to `dequeue`; returns seconds and what came out."""
    started = time.perf_counter()
    enqueue(engine, train)
    engine.drain()
    table = engine.dequeue(output)
    return time.perf_counter() - started, table


def sustain(engine: au.Engine, trains: Sequence[Train], output: str, warm: int) -> Run:
    """Keep an engine busy: the next trains wait while one is processed; the first do not count."""
    run = Run(tuples=sum(size(train) for train in trains[warm:]))
    for train in trains[:warm]:
        run.results.append(pump(engine, train, output)[1])
    before = engine.stats()["steps"]["count"]
    started = time.perf_counter()
    for train in trains[warm:]:
        enqueue(engine, train)
        while _waiting(engine) > _AHEAD_TRAINS * size(train):
            engine.wait(_POLL_S)
        run.results.append(engine.dequeue(output))
    engine.drain()
    run.results.append(engine.dequeue(output))
    run.seconds = time.perf_counter() - started
    count = engine.stats()["steps"]["count"] - before
    run.steps_s = engine.recent_steps_s()[-count:]
    return run


def finish(engine: au.Engine, output: str) -> pa.Table:
    """What still comes when the input ends."""
    engine.finish()
    engine.drain()
    return engine.dequeue(output)


def _waiting(engine: au.Engine) -> int:
    return sum(int(stream["waiting"]) for stream in engine.stats()["streams"].values())
