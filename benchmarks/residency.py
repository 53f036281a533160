"""Queues in memory: what a step saves whose train is cut from segments that wait.

A backlog of large segments is processed in trains that are smaller than the segments. With memory
for queues a segment is cut from a table; without, it is read again for each train. Both engines
take turns, and give the same results. Each starts on a state directory that has the backlog.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import auroral as au
from auroral.spark.session.session import start_session
from benchmarks.lab import Lab
from benchmarks.report import Report

RESIDENT = "Steps that cut trains from waiting segments"
WAYS = {"1 GB": "in memory", "1 MB": "on disk"}
_BATCH = 2_000_000
_TRAIN = 20_000


def residency(report: Report, lab: Lab) -> None:
    """The median time of a step with and without memory for queues."""
    rounds = lab.steps(80, 8)
    runs: dict[str, _Run] = {}
    with _engine(lab, "1 GB") as rich, _engine(lab, "1 MB") as poor:
        engines = {"1 GB": rich, "1 MB": poor}
        runs = {memory: _Run() for memory in engines}
        for number in range(rounds):
            for memory in sorted(engines, reverse=bool(number % 2)):
                runs[memory].step(engines[memory])
        for memory, engine in engines.items():
            runs[memory].finish(engine)
    section = report.section(RESIDENT, "memory", "queue", "steps", "step_ms", "from_memory")
    for memory, run in runs.items():
        shown = (len(run.seconds), run.median_s() * 1e3, run.from_memory)
        section.rows.append((memory, WAYS[memory], *shown))
        lab.say(f"residency, {memory}: {run.median_s() * 1e3:.1f} ms for a step")
    poor_s, rich_s = runs["1 MB"].median_s(), runs["1 GB"].median_s()
    report.bar("time of a step on disk / in memory", poor_s / rich_s, least=1.0)
    wrong = sum(a != b for a, b in zip(runs["1 GB"].came, runs["1 MB"].came, strict=True))
    report.bar("tuples that differ", float(wrong), most=0.0)


@dataclass
class _Run:
    seconds: list[float] = field(default_factory=list)
    came: list[int] = field(default_factory=list)
    from_memory: float = 0.0
    """The share of the bytes that steps read."""

    def median_s(self) -> float:
        """Of the later steps: the first ones load, and compile."""
        return statistics.median(self.seconds[len(self.seconds) // 4 :])

    def step(self, engine: au.Engine) -> None:
        began = time.perf_counter()
        engine.wait(0)  # without threads: one round, which is one step here
        self.seconds.append(time.perf_counter() - began)

    def finish(self, engine: au.Engine) -> None:
        memory = engine.stats()["memory"]
        read = memory["memory_bytes"] + memory["disk_bytes"]
        self.from_memory = memory["memory_bytes"] / read
        self.came = engine.dequeue("found")["n"].to_pylist()


@contextmanager
def _engine(lab: Lab, memory: str) -> Iterator[au.Engine]:
    """An engine that has the whole backlog before it."""
    with tempfile.TemporaryDirectory(dir=lab.place) as place:
        state = Path(place) / "state"
        with lab.engine(_network(memory), _TRAIN, state=state) as engine:
            engine.enqueue("reports", _rows(lab.rows(_BATCH)))
        with lab.engine(_network(memory), _TRAIN, state=state) as engine:
            yield engine


def _network(memory: str) -> au.Network:
    net = au.Network("residency")
    reports = net.stream("reports", "n bigint, x double, city string")
    net.output("found", reports.filter("x > 0.999"))
    net.engine = au.EngineOptions(memory=memory)
    return net


def _rows(count: int) -> pa.Table:
    rng = np.random.default_rng(7)
    cities = np.array([f"city {number}" for number in range(1000)])
    return pa.table(
        {
            "n": np.arange(count),
            "x": rng.random(count),
            "city": cities[rng.integers(0, 1000, count)],
        }
    )


def main() -> None:
    """Run this part alone."""
    report = Report("residency")
    with tempfile.TemporaryDirectory() as place:
        residency(report, Lab(start_session("local[2]"), "--quick" in sys.argv, Path(place)))
    sys.stdout.write(report.text() + "\n")


if __name__ == "__main__":
    main()
