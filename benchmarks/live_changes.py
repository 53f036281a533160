"""Live networks: a stateful box comes and goes under load, and other outputs do not notice.

A thread feeds tuples at a steady pace. Meanwhile a box that counts by key and its output are added,
give a first result, and are removed, many times. Tuples are numbered, so that each one that an
untouched output lost, repeated or moved can be counted.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import auroral as au
from benchmarks.lab import Lab
from benchmarks.report import Report

CHANGES = "A stateful box added and removed under load"
UNTOUCHED = "Outputs that no change touched"
_TIMES = 300
_TRAIN = 1_000
_PACE_S = 0.05
_KEYS = 100
_WINDOW = 500
_SLOWEST_S = 60.0


def changes(report: Report, lab: Lab) -> None:
    """Change the network many times; then compare what the untouched outputs gave."""
    times = lab.steps(_TIMES, max(_TIMES // 10, 1))
    section = report.section(CHANGES, "change", "times", "median_ms", "p95_ms", "slowest_ms")
    untouched = report.section(
        UNTOUCHED, "output", "tuples_in", "expected", "came", "lost", "repeated", "moved"
    )
    state = Path(tempfile.mkdtemp(dir=lab.place))
    with lab.engine(_network(), 10 * _TRAIN, background=True, state=state) as engine:
        load = _Load(engine)
        load.start()
        try:
            came = _Collected()
            seconds = _change(engine, times, load, came, lab)
        finally:
            load.stop()
        engine.finish()
        came.take(engine)
    for change, took in seconds.items():
        shown = statistics.median(took), float(np.percentile(took, 95)), max(took)
        section.rows.append((change, len(took), *(1e3 * value for value in shown)))
    wrong = 0
    for output, expected in expected_rows(load.tuples).items():
        verdict = compare(expected, came.rows(output))
        wrong += sum(verdict)
        counts = (load.tuples, len(expected), len(came.rows(output)))
        untouched.rows.append((output, *counts, *verdict))
    report.bar(f"{times} boxes added and removed: tuples wrong elsewhere", wrong, most=0.0)


def expected_rows(tuples: int) -> dict[str, list[tuple[int, ...]]]:
    """What the untouched outputs give for the first so many tuples, in order."""
    numbers = np.arange(tuples)
    counts: list[tuple[int, ...]] = []
    for first in range(0, tuples, _WINDOW):
        own = numbers[first : first + _WINDOW]
        counts.append((first, len(own), int(own.sum())))
    return {"all": [(int(number),) for number in numbers], "windows": counts}


def compare(expected: list[tuple[int, ...]], came: list[tuple[int, ...]]) -> tuple[int, int, int]:
    """How many rows were lost, came without being expected or again, and came out of order."""
    lost = len(set(expected) - set(came))
    repeated = len(came) - len(expected) + lost
    if lost or repeated:
        return lost, repeated, 0
    return 0, 0, sum(a != b for a, b in zip(expected, came, strict=True))


def _network() -> au.Network:
    net = au.Network("changing")
    ticks = net.stream("ticks", "n bigint, k int", progress=au.Ordered("n"))
    net.output("all", ticks.map(n="n", name="numbers"))
    order, window = au.Order("n"), au.Window(size=_WINDOW)
    summed = ticks.aggregate(order, window, c="count(*)", s="sum(n)", name="summed")
    net.output("windows", summed)
    return net


def _change(
    engine: au.Engine, times: int, load: _Load, came: _Collected, lab: Lab
) -> dict[str, list[float]]:
    """Add the box, wait for a result of it, remove it; how long each of these took."""
    box = {
        "box": "aggregate",
        "input": "ticks",
        "order": {"on": "n", "by": ["k"]},
        "window": {"size": _WINDOW},
        "compute": {"c": "count(*)"},
    }
    seconds: dict[str, list[float]] = {"add": [], "first result": [], "remove": []}
    for number in range(times):
        if number % 50 == 0:
            lab.say(f"changes: {number} of {times}")
        started = time.perf_counter()
        engine.modify(add={"counted": box, "counts": {"from": "counted"}})
        added = time.perf_counter()
        while not engine.dequeue("counts").num_rows:
            load.require_alive()
            assert time.perf_counter() - added < _SLOWEST_S, "the new box gives nothing"
            engine.wait(0.01)
        answered = time.perf_counter()
        engine.modify(remove=["counts", "counted"])
        seconds["add"].append(added - started)
        seconds["first result"].append(answered - added)
        seconds["remove"].append(time.perf_counter() - answered)
        came.take(engine)
    return seconds


class _Load:
    """A thread that feeds numbered tuples at a steady pace."""

    def __init__(self, engine: au.Engine):
        self.tuples = 0
        self._engine = engine
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bench-load", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return when the last tuples have been enqueued."""
        self._stopped.set()
        self._thread.join()
        self.require_alive()

    def require_alive(self) -> None:
        """Raise what made the thread end, if something did."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stopped.wait(_PACE_S):
                numbers = np.arange(self.tuples, self.tuples + _TRAIN)
                keys = (numbers % _KEYS).astype("int32")
                self._engine.enqueue("ticks", pa.table({"n": numbers, "k": keys}))
                self.tuples += _TRAIN
        except BaseException as error:
            self._failure = error


@dataclass
class _Collected:
    """What the untouched outputs gave, in order."""

    taken: dict[str, list[tuple[int, ...]]] = field(
        default_factory=lambda: {"all": [], "windows": []}
    )

    def take(self, engine: au.Engine) -> None:
        """Dequeue until the outputs have nothing more."""
        for output, rows in self.taken.items():
            while (table := engine.dequeue(output)).num_rows:
                columns = [column.to_pylist() for column in table.columns]
                rows += zip(*columns, strict=True)

    def rows(self, output: str) -> list[tuple[int, ...]]:
        return self.taken[output]
