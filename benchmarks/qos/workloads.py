"""Applications with a known load: a stream each, boxes that cost time, graphs, and a feeder."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import auroral as au

TIGHT = ((0, 1), (0.001, 1), (1, 0))
"""The tight latency graph of [2 §6.1], in seconds."""
LOOSE = ((0, 1), (4, 1), (5, 0))
_FIRST_TUPLES = 4_000
"""Of each application, to begin to measure what the machine can do; and then so many seconds."""
_CAPACITY_S = 4.0
_WORK = "crc32(sha2(sha2(sha2(repeat(concat(v, '{salt}'), 40), 512), 512), 512))"
"""An expression that keeps a core busy for some microseconds a tuple."""


@dataclass(frozen=True)
class Measured:
    """What outputs were worth over some seconds, and what deciding cost."""

    utility: float
    """Mean over outputs and seconds."""
    delay_s: float
    """Mean over outputs."""
    by_output: Mapping[str, tuple[float, float]]
    """Utility and mean delay of each."""
    deciding: float
    """The share of the time that was spent on decisions."""
    tuples_per_s: float
    period_s: float
    """How often tuples were enqueued: less often than asked for, if enqueuing took longer."""


def applications(
    count: int, options: au.EngineOptions, *, seed: int = 3, boxes: int = 2
) -> au.Network:
    """Applications with a stream, some boxes and a tight or a loose graph each [2 §6.1]."""
    net = au.Network("applications")
    random = Random(seed)
    graphs = [TIGHT if number % 2 else LOOSE for number in range(count)]
    random.shuffle(graphs)
    for number, graph in enumerate(graphs):
        arc = net.stream(f"s{number}", "v bigint")
        for place in range(boxes - 1):
            arc = arc.filter(f"v % 1000 >= {place}", name=f"f{number}_{place}")
        arc = arc.map(v="v", w=_WORK.format(salt=number), name=f"work{number}")
        net.output(f"o{number}", arc, qos=au.QoS(latency=graph))
    net.engine = options
    return net


def rows(count: int, seed: int) -> pa.Table:
    """Some tuples."""
    return pa.table({"v": np.random.default_rng(seed).integers(0, 1_000_000, count)})


def capacity(spark: Any, count: int) -> float:
    """How many tuples a second all applications together can process, if they never wait.

    Trains grow with the load, so that the fixed costs of calls are shared by more tuples: it is
    measured with as many tuples as take some seconds.
    """
    net = applications(count, au.EngineOptions(scheduler="rr"))
    with au.Engine(net, spark=spark) as engine:
        tuples = _FIRST_TUPLES
        _push(engine, net, [rows(tuples, 1)] * 2)
        for seed in range(2, 5):
            started = time.perf_counter()
            _push(engine, net, [rows(tuples, seed)])
            most = count * tuples / (time.perf_counter() - started)
            tuples = int(most * _CAPACITY_S / count)
        return most


def _push(engine: au.Engine, net: au.Network, batches: Sequence[pa.Table]) -> None:
    for batch in batches:
        for stream in net.streams:
            engine.enqueue(stream, batch)
        engine.drain()
        for output in net.outputs:
            engine.dequeue(output)


def run_at(
    spark: Any,
    net: au.Network,
    rates: Mapping[str, float],
    *,
    seconds: float,
    warm_s: float,
    period_s: float = 0.1,
    state: Path | None = None,
) -> Measured:
    """Feed streams at even rates (tuples a second), and see what the outputs are worth."""
    with au.Engine(net, spark=spark, state=state, durability="process") as engine:
        _push(engine, net, [rows(200, 1), rows(2_000, 2), rows(500, 3)])
        feeder = Feeder(engine, rates, period_s)
        feeder.run_for(warm_s)
        before = engine.stats()
        began = time.time()
        sent, batches = feeder.sent, feeder.batches
        feeder.run_for(seconds)
        elapsed_s = time.time() - began
        stats = engine.stats()
        found = {name: engine.describe(name)["quality"]["history"] for name in net.outputs}
        feeder.stop()
        spent = stats["scheduler"].get("seconds", 0.0) - before["scheduler"].get("seconds", 0.0)
        by_output = {
            name: _mean_of([one for one in points if one["ago_s"] <= seconds])
            for name, points in found.items()
        }
    utilities = [utility for utility, _ in by_output.values()]
    delays = [delay for _, delay in by_output.values()]
    return Measured(
        float(np.mean(utilities)),
        float(np.mean(delays)),
        by_output,
        spent / elapsed_s,
        (feeder.sent - sent) / elapsed_s,
        elapsed_s / max(feeder.batches - batches, 1),
    )


def _mean_of(points: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Utility and delay of an output, over all that it got in some seconds; none: worthless."""
    weights = [point["delivered"] for point in points]
    if not sum(weights):
        return 0.0, float("inf")
    utilities = [point["utility"] for point in points]
    delays = [point["delay_s"] for point in points]
    return (
        float(np.average(utilities, weights=weights)),
        float(np.average(delays, weights=weights)),
    )


class Feeder:
    """Enqueues tuples at even rates, and takes results, so that nothing piles up at the end."""

    def __init__(self, engine: au.Engine, rates: Mapping[str, float], period_s: float):
        self._engine = engine
        self._rates = rates
        self._period_s = period_s
        self._stopping = threading.Event()
        self._ready = {stream: rows(max(int(r), 1), 7) for stream, r in rates.items()}
        self._owed = dict.fromkeys(rates, 0.0)
        self.sent = 0
        self.batches = 0
        self.factor = 1.0
        """By which rates are multiplied."""

    def run_for(self, seconds: float) -> None:
        """Feed for so long."""
        began = last = time.perf_counter()
        while time.perf_counter() - began < seconds:
            now = time.perf_counter()
            self._feed(now - last)
            last = now
            left = self._period_s - (time.perf_counter() - now)
            if left > 0:
                self._stopping.wait(left)

    def _feed(self, elapsed_s: float) -> None:
        self.batches += 1
        for stream, rate in self._rates.items():
            self._owed[stream] += rate * self.factor * elapsed_s
            count = int(self._owed[stream])
            if count:
                self._owed[stream] -= count
                ready = self._ready[stream]
                while count > 0:
                    part = ready.slice(0, min(count, ready.num_rows))
                    self.sent += self._engine.enqueue(stream, part)
                    count -= part.num_rows
        for output in self._engine.network.outputs:
            self._engine.dequeue(output)

    def stop(self) -> None:
        """Feed no more."""
        self._stopping.set()
