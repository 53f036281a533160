"""Ad hoc queries: how soon they give a first row, and what they cost the live path.

Both experiments read a connection point that keeps many tuples of random keys.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

import auroral as au
from benchmarks.lab import Lab
from benchmarks.report import Report

FIRST_ROW = "From attaching a query to its first row"
CATCHING_UP = "Steps of the live path while an ad hoc query catches up"
_KEPT = 10_000_000
_BATCH = 500_000
_ROWS_PER_KEY = 200
_TIMES = 5
_PACED_TUPLES = 1_000
_PACE_S = 0.05
_STEPS = 400
_LONGEST_S = 120.0
_EVERYTHING = "SELECT sid, time, pos, speed FROM recent"
_HUNDREDTH = "SELECT sid, time, speed FROM recent WHERE pos = 7"
_ONE_KEY = "SELECT sid, time, pos FROM recent WHERE sid = 3"

_WINDOWS = "SELECT pos, avg(speed) AS mean FROM recent [RANGE 1000, WA time] GROUP BY pos"


def first_row(report: Report, lab: Lab) -> None:
    """Attach queries to a point with much history; the first of each kind also compiles it."""
    kept = lab.rows(_KEPT)
    section = report.section(
        FIRST_ROW, "point", "query", "kept", "first_s", "median_s", "slowest_s", "rows_per_s"
    )
    slowest = 0.0
    queries = {"all": _EVERYTHING, "filter": _HUNDREDTH, "filter on sid": _ONE_KEY}
    for key in (None, "sid"):
        with _kept_history(lab, kept, key) as engine:
            for query, sql in queries.items():
                lab.say(f"attach: {query}, key {key}")
                seconds = [_seconds_to_first_row(engine, sql) for _ in range(_TIMES)]
                slowest = max(slowest, *seconds)
                rate = kept / _seconds_to_catch_up(engine, sql)
                median = statistics.median(seconds)
                figures = (kept, seconds[0], median, max(seconds), rate)
                section.rows.append((f"key {key}" if key else "no key", query, *figures))
    report.bar("attach to first row: slowest, in s", slowest, most=2.0)


def catching_up(report: Report, lab: Lab) -> None:
    """Median live step with and without a query that reads history; the two take turns."""
    section = report.section(
        CATCHING_UP, "query", "steps_without", "median_without_ms", "steps", "median_ms", "ratio"
    )
    steps = lab.steps(_STEPS, _STEPS // 10)
    with _kept_history(lab, lab.rows(_KEPT), None) as engine:
        source = _paced_tuples(lab.rows(_KEPT))
        _live_steps(engine, source, max(steps // 4, 3))  # lets Spark compile
        for query, sql in {"filter": _HUNDREDTH, "window": _WINDOWS}.items():
            without: list[float] = []
            beside: list[float] = []
            for turn in range(4):
                lab.say(f"catching up: {query}, turn {turn + 1} of 4")
                without += _live_steps(engine, source, steps // 4)
                beside += _steps_beside(engine, source, sql, steps // 4)
            medians = statistics.median(without), statistics.median(beside)
            ratio = medians[1] / medians[0]
            shown = (len(without), medians[0] * 1e3, len(beside), medians[1] * 1e3, ratio)
            section.rows.append((query, *shown))
            name = f"live median step while a query catches up / without it ({query})"
            report.bar(name, ratio, most=1.25)


def _network(key: str | None) -> au.Network:
    net = au.Network("ad_hoc")
    schema = "sid bigint, time bigint, pos int, speed double"
    reports = net.stream("reports", schema, progress=au.Ordered("time"))
    across = reports.filter("pos >= 0", name="across")
    net.connection_point("recent", across, keep="all", key=key)
    order, window = au.Order("time"), au.Window(size=1_000)
    net.output("means", across.aggregate(order, window, mean="avg(speed)", name="averaged"))
    return net


def _tuples(first: int, count: int, kept: int) -> pa.Table:
    random = np.random.default_rng(first)
    return pa.table(
        {
            "sid": random.integers(0, max(kept // _ROWS_PER_KEY, 4), count),
            "time": np.arange(first, first + count) // 50,
            "pos": random.integers(0, 100, count, np.int32),
            "speed": random.random(count),
        }
    )


@contextmanager
def _kept_history(lab: Lab, kept: int, key: str | None) -> Iterator[au.Engine]:
    """An engine whose point has `kept` tuples, processed and, with a key, organised by it."""
    state = Path(tempfile.mkdtemp(dir=lab.place))
    with lab.engine(_network(key), _BATCH, background=True, state=state) as engine:
        lab.say(f"keeping {kept:,} tuples")
        for first in range(0, kept, _BATCH):
            engine.enqueue("reports", _tuples(first, min(_BATCH, kept - first), kept))
            engine.drain()
            engine.dequeue("means")
        settle(engine, "recent")
        yield engine


def settle(engine: au.Engine, point: str, quiet_s: float = 3.0) -> None:
    """Wait until the background thread has nothing left to organise by key."""
    before: object = None
    changed_at = time.perf_counter()
    while time.perf_counter() - changed_at < quiet_s:
        by_key: Mapping[str, object] | None = engine.stats()["connection_points"][point].get(
            "by_key"
        )
        if by_key is None:
            return
        now = by_key["runs"], by_key["indexed_rows"], by_key["indexed_bytes"]
        if now != before:
            before, changed_at = now, time.perf_counter()
        engine.wait(0.1)


def _seconds_to_first_row(engine: au.Engine, sql: str) -> float:
    started = time.perf_counter()
    name = engine.attach("recent", sql)
    while not engine.dequeue(name, 1).num_rows:
        engine.wait(0.005)
    seconds = time.perf_counter() - started
    engine.detach(name)
    return seconds


def _seconds_to_catch_up(engine: au.Engine, sql: str) -> float:
    started = time.perf_counter()
    name = engine.attach("recent", sql)
    engine.drain()
    seconds = time.perf_counter() - started
    engine.detach(name)
    return seconds


def _paced_tuples(first: int) -> Iterator[pa.Table]:
    kept = first
    while True:
        yield _tuples(first, _PACED_TUPLES, kept)
        first += _PACED_TUPLES


def _feed_paced(engine: au.Engine, source: Iterator[pa.Table]) -> Iterator[None]:
    """Enqueue one small batch per `_PACE_S`; yields when the next one is due."""
    due = time.perf_counter()
    for tuples in source:
        engine.enqueue("reports", tuples)
        due = max(due + _PACE_S, time.perf_counter())
        while (left := due - time.perf_counter()) > 0:
            engine.wait(left)
        yield


def _live_steps(engine: au.Engine, source: Iterator[pa.Table], steps: int) -> list[float]:
    """So many steps of the network alone, and how long each took."""
    before = engine.recent_steps_s()
    for _ in _feed_paced(engine, source):
        if len(_steps_since(engine, before)) >= steps:
            break
    engine.drain()
    return _steps_since(engine, before)


def _steps_since(engine: au.Engine, before: list[float]) -> list[float]:
    """How long the live steps took since the engine had these; it remembers a thousand."""
    now = engine.recent_steps_s()
    for forgotten in range(len(before) + 1):
        known = len(before) - forgotten
        if before[forgotten:] == now[:known]:
            return now[known:]
    raise AssertionError("an empty list is the beginning of every list")


def _steps_beside(
    engine: au.Engine, source: Iterator[pa.Table], sql: str, steps: int
) -> list[float]:
    """Live steps while a query catches up; it is attached again if it is done too soon."""
    found: list[float] = []
    started = time.perf_counter()
    while not found or (len(found) < steps and time.perf_counter() - started < _LONGEST_S):
        name = engine.attach("recent", sql)
        before = engine.recent_steps_s()
        own: list[float] = []
        for _ in _feed_paced(engine, source):
            if engine.stats()["attachments"][name]["caught_up"]:
                break
            own = _steps_since(engine, before)
            if len(found) + len(own) >= steps:
                break
        found += own
        engine.detach(name)
        engine.drain()
    return found
