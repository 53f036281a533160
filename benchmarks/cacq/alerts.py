"""A million selective rules over one stream, next to Spark's broadcast join with rules tables.

Each system runs in a process of its own, so that what is in memory is its own; memory is the most
that was seen from registering to the last train.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from auroral.errors import RunError
from benchmarks.cacq.data import fired, price_rules, range_rules, ticks
from benchmarks.cacq.lab import answer_of, write_parts
from benchmarks.lab import Lab
from benchmarks.report import Report

ALERTS = "1,000,000 alert rules as two families, about one match per tuple"
_RULES = 500_000
_TRAIN = 500_000
_TRAINS = 8
_WARM = 3
_SYSTEMS = ("auroral", "broadcast", "shuffled", "sorted")


def alerts(report: Report, lab: Lab) -> None:
    """Registering, throughput and memory; matches of every rule are counted again by numpy."""
    section = report.section(
        ALERTS,
        "system",
        "results",
        "register_s",
        "tuples_per_s",
        "train_ms",
        "matches_per_tuple",
        "peak_mb",
        "of_which",
    )
    write(lab)
    rates: dict[str, dict[str, float]] = {"kept": {}, "counted": {}}
    for system in _SYSTEMS:
        lab.say(f"alerts, {system}")
        told = run_system(lab, system)
        of_which = ", ".join(f"{name} {mb:,.0f}" for name, mb in sorted(told["memory_mb"].items()))
        memory = sum(told["memory_mb"].values())
        for results, run in told["runs"].items():
            rates[results][system] = run["rate"]
            figures = (run["rate"], run["train_s"] * 1e3, run["matches_per_tuple"], memory)
            section.rows.append((system, results, told["register_s"], *figures, of_which))
            name = f"alerts, {system}, {results}: rules whose matches agree with numpy"
            report.bar(name, run["agree"], least=1.0)
        if system == "auroral":
            report.bar("alerts: seconds to register all rules", told["register_s"], most=60)
            if not memory:
                raise RunError("NO_MEMORY", "this system does not tell what processes hold")
            report.bar("alerts: peak memory of all processes, MB", memory, most=3_000)
    for results, by_system in rates.items():
        mine = by_system.pop("auroral")
        report.bar(f"alerts, {results}: tuples/s", mine, least=200_000)
        plain = max(by_system.values())
        report.bar(f"alerts, {results}: throughput / best plain Spark", mine / plain, least=1.0)


def write(lab: Lab) -> None:
    """Rules, trains, and how often each rule must fire."""
    count = lab.rows(_RULES)
    symbols, ids = lab.rows(20_000), lab.rows(100_000)
    prices, ranges = price_rules(count, symbols), range_rules(count, ids)
    pq.write_table(prices, lab.place / "prices.parquet")
    pq.write_table(ranges, lab.place / "ranges.parquet")
    expected = [np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)]
    for number in range(_TRAINS):
        train = ticks(lab.rows(_TRAIN), 50 + number, symbols, ids)
        write_parts(train, lab.place / f"ticks{number:03d}", lab.files)
        for total, part in zip(expected, fired(train, prices, ranges), strict=True):
            total += part
    np.save(lab.place / "expected.npy", np.stack(expected))


def run_system(lab: Lab, system: str) -> dict[str, Any]:
    """Run one system in a process of its own; returns what it tells."""
    module = "benchmarks.cacq.alerts_run"
    command = [sys.executable, "-m", module, system, str(lab.place), str(_WARM)]
    paths = os.pathsep.join(
        [str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    )
    return answer_of(system, command, os.environ | {"PYTHONPATH": paths}, lab.place)
