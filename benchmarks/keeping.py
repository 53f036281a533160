"""Keeping history: what a connection point costs the live path, with and without a key.

The networks filter tuples and count those in windows; they differ only in the point behind the
filter. They take turns, a few trains each, so that a busy machine slows all of them alike. What the
background thread still has to organise by key at the end of a turn is not the live path's time: the
next turn begins when it is done.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import auroral as au
from benchmarks.ad_hoc import settle
from benchmarks.lab import Lab
from benchmarks.report import Report

KEEPING = "Throughput of the live path with and without history"
WAYS: dict[str, dict[str, Any] | None] = {
    "no history": None,
    "rows": {"keep": {"rows": 2_000_000}},
    "rows by key": {"keep": {"rows": 2_000_000}, "key": "k"},
}
_TRAIN = 200_000
_TURNS = 9
_TRAINS_PER_TURN = 4
_GROUPS = 5_000
_WINDOW = 1_000


def keeping(report: Report, lab: Lab) -> None:
    """Median time of a turn with each network."""
    turns = lab.steps(_TURNS, 3)
    section = report.section(KEEPING, "history", "turns", "tuples_per_s", "relative", "kept_mb")
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with ExitStack() as stack:
        engines = {way: stack.enter_context(_engine(lab, way)) for way in WAYS}
        for turn in range(turns + 1):
            first = turn * _TRAINS_PER_TURN
            trains = [_tuples(number) for number in range(first, first + _TRAINS_PER_TURN)]
            for way in _rotated(list(WAYS), turn):
                lab.say(f"keeping: {way}, turn {turn} of {turns}")
                took = _turn(engines[way], trains)
                if turn:  # the first one lets Spark compile
                    seconds[way].append(took)
                if WAYS[way] is not None:
                    settle(engines[way], "recent")
        kept_mb = {way: _kept_bytes(engine) / 2**20 for way, engine in engines.items()}
    # Each turn next to the one without history, so that slow minutes of the machine cancel out.
    relative = {
        way: statistics.median(b / a for a, b in zip(seconds["no history"], own, strict=True))
        for way, own in seconds.items()
    }
    for way, own in seconds.items():
        rate = _TRAINS_PER_TURN * _TRAIN / statistics.median(own)
        section.rows.append((way, turns, rate, relative[way], kept_mb[way]))
    for way in list(WAYS)[1:]:
        report.bar(f"keeping {way}: time of the live path / without", relative[way], most=1.1)


def _engine(lab: Lab, way: str) -> au.Engine:
    net = au.Network("keeping")
    stream = net.stream("s", "k bigint, t bigint, x double", progress=au.Ordered("t"))
    some = stream.filter("x < 0.5", name="some")
    point = WAYS[way]
    if point is not None:
        net.connection_point("recent", some, **point)
    order, window = au.Order("t", by=("k",)), au.Window(size=_WINDOW)
    net.output("counts", some.aggregate(order, window, n="count(*)", name="counted"))
    state = Path(tempfile.mkdtemp(dir=lab.place))
    return lab.engine(net, _TRAIN, background=True, state=state)


def _turn(engine: au.Engine, trains: Sequence[pa.Table]) -> float:
    started = time.perf_counter()
    for tuples in trains:
        engine.enqueue("s", tuples)
        engine.drain()
    seconds = time.perf_counter() - started
    engine.dequeue("counts")
    return seconds


def _tuples(number: int) -> pa.Table:
    """The tuples of one train, which fill one window."""
    random = np.random.default_rng(number)
    times = np.sort(random.integers(number * _WINDOW, (number + 1) * _WINDOW, _TRAIN))
    keys = random.integers(0, _GROUPS, _TRAIN)
    return pa.table({"k": keys, "t": times, "x": random.random(_TRAIN)})


def _rotated(ways: list[str], turn: int) -> list[str]:
    """Nobody is always first."""
    cut = turn % len(ways)
    return ways[cut:] + ways[:cut]


def _kept_bytes(engine: au.Engine) -> int:
    points = engine.stats()["connection_points"].values()
    return sum(point["bytes"] + point.get("by_key", {}).get("indexed_bytes", 0) for point in points)
