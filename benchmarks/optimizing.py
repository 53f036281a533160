"""The optimiser: a cheap selective filter behind an expensive function moves before it, and back.

Tuples come in trains of one size. Two filters follow each other: an expensive one, whose Python
function takes some microseconds for each tuple, and a cheap one. At first the cheap one drops
almost everything; it should move in front within ten trains, and throughput should rise as much as
work falls. Then the selectivities flip, and it should move back: a filter that costs next to
nothing is worth its place until it drops next to nothing. Some trains run with `optimize: false`
for comparison.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import auroral as au
from auroral.spark.session.session import start_session
from benchmarks.lab import Lab
from benchmarks.report import Report

MOVING = "A cheap selective filter behind an expensive function"
_TRAIN = 10_000
_SELECTIVE = 20
"""Trains in which the cheap filter drops almost everything."""
_FLIPPED = 40
"""Trains in which the expensive one does."""
_PLAIN = 10
"""Trains without the optimiser."""
_COST_US = 200.0
_PASSED = 0.05


def optimizing(report: Report, lab: Lab) -> None:
    """Run the same trains with and without the optimiser."""
    selective, flipped = lab.steps(_SELECTIVE, 12), lab.steps(_FLIPPED, 30)
    section = report.section(
        MOVING, "optimize", "phase", "trains", "tuples_per_s", "moved_after", "moved"
    )
    trains = {True: [selective, flipped], False: [lab.steps(_PLAIN, 6)]}
    runs = {on: _run(lab, count, optimize=on) for on, count in trains.items()}
    for on, run in runs.items():
        for phase in run.phases:
            shown = (phase.name, len(phase.seconds), phase.tuples_per_s(), phase.moved_after)
            section.rows.append(("yes" if on else "no", *shown, phase.moved))
    first, second = runs[True].phases
    plain = runs[False].phases[0]
    report.bar("trains until the cheap filter has moved", float(first.moved_after), most=10.0)
    gain = first.tuples_per_s() / plain.tuples_per_s()
    report.bar("throughput after it has moved, by that without", gain, least=_least_gain(plain))
    report.bar("it moves back after the flip", float(second.moved_after > 0), least=1.0)
    every = round(1 / _PASSED)
    expected = [(n, 1) for n in range(0, (selective + flipped) * _TRAIN, every)]
    wrong = len(set(expected) ^ set(runs[True].came)) + (runs[True].came != expected)
    report.bar("tuples that are wrong, missing or out of order", float(wrong), most=0.0)


@dataclass
class _Phase:
    """Trains of one kind."""

    name: str
    seconds: list[float] = field(default_factory=list)
    moved_after: int = 0
    """After so many trains the order of the boxes had changed; 0: never."""
    moved: str = ""

    def tuples_per_s(self) -> float:
        """The throughput of the latest half, by the median of trains."""
        return _TRAIN / statistics.median(self.seconds[len(self.seconds) // 2 :])


@dataclass
class _Run:
    phases: list[_Phase]
    came: list[tuple[int, int]]


def _least_gain(plain: _Phase) -> float:
    """Half of what the saved time of the function promises.

    Of a train, the function no longer sees what the cheap filter drops.
    """
    before_s = statistics.median(plain.seconds[len(plain.seconds) // 2 :])
    saved_s = _TRAIN * (1 - _PASSED) * _COST_US * 1e-6
    return 1 + (before_s / max(before_s - saved_s, before_s / 20) - 1) / 2


def _run(lab: Lab, counts: Sequence[int], *, optimize: bool) -> _Run:
    phases = [_Phase("cheap is selective"), _Phase("expensive is selective")][: len(counts)]
    came: list[tuple[int, int]] = []
    with lab.engine(_network(optimize), _TRAIN, background=True) as engine:
        at = 0
        for phase, trains in zip(phases, counts, strict=True):
            before = _order(engine)
            for number in range(trains):
                began = time.perf_counter()
                engine.enqueue("reports", _rows(at, flipped=phase is not phases[0]))
                engine.drain()
                phase.seconds.append(time.perf_counter() - began)
                at += _TRAIN
                if not phase.moved_after and _order(engine) != before:
                    phase.moved_after, phase.moved = number + 1, " → ".join(_order(engine))
                table = engine.dequeue("alerts")
                came += zip(*(table[name].to_pylist() for name in ("n", "k")), strict=True)
            lab.say(f"optimizing, {phase.name}: {phase.tuples_per_s():,.0f} tuples/s")
    return _Run(phases, came)


def _order(engine: au.Engine) -> list[str]:
    """The boxes as they run."""
    found: list[dict[str, list[str]]] = engine.stats()["optimizer"]["subnetworks"]
    return found[0]["runs"] if found else ["expensive", "cheap"]


def _network(optimize: bool) -> au.Network:
    net = au.Network("optimizing")
    reports = net.stream("reports", "n bigint, k int, g int")
    net.function("examined", spinning(_COST_US), returns="int")
    expensive = reports.filter("examined(g) > 0", name="expensive")
    net.output("alerts", expensive.filter("k > 0", name="cheap"))
    net.engine = net.engine.model_copy(update={"optimize": optimize})
    return net


def spinning(cost_us: float) -> Callable[[pa.Array], pa.Array]:
    """A function that takes so long for each tuple, and returns what it got."""

    def examined(values: pa.Array) -> pa.Array:
        until = time.perf_counter() + len(values) * cost_us * 1e-6
        while time.perf_counter() < until:
            pass
        return values

    return examined


def _rows(first: int, *, flipped: bool) -> pa.Table:
    numbers = np.arange(first, first + _TRAIN)
    rare = (numbers % round(1 / _PASSED) == 0).astype("int32")
    usual = np.ones(_TRAIN, dtype="int32")
    columns: dict[str, Any] = {
        "n": numbers,
        "k": usual if flipped else rare,
        "g": rare if flipped else usual,
    }
    return pa.table(columns)


def main() -> None:
    """Run this part alone."""
    report = Report("optimizing")
    with tempfile.TemporaryDirectory() as place:
        optimizing(report, Lab(start_session("local[2]"), "--quick" in sys.argv, Path(place)))
    sys.stdout.write(report.text() + "\n")


if __name__ == "__main__":
    main()
