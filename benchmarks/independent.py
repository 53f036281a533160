"""Parts that do not wait for each other: applications, a filter before a window, slow sinks.

Counting windows over 500,000 tuples a train. Ways that are compared take turns, train by train,
so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import auroral as au
from auroral.spark.session.session import start_session
from benchmarks.report import Report

_TRAIN = 500_000
_WINDOW = 1_000
_SLOW_S = 2.0


def independent(*, quick: bool = False) -> Report:
    """Run everything; about three minutes, `quick` about one."""
    report = Report("independent")
    spark = start_session("local[2]")
    trains = 4 if quick else 12
    _applications(report, spark, trains)
    for groups in (260_000, 5_000):
        _filter_first(report, spark, trains, groups)
    _slow_sink(report, spark, 10 if quick else 30)
    return report


def counting(applications: int, *, filtered: bool = False) -> au.Network:
    """Windowed counts by key, each over a stream of its own."""
    net = au.Network("counting")
    for number in range(applications):
        arc = net.stream(f"s{number}", "k bigint, t bigint", progress=au.Ordered("t"))
        if filtered:
            arc = arc.filter("k >= 0")
        order, window = au.Order("t", by=("k",)), au.Window(size=_WINDOW)
        net.output(f"o{number}", arc.aggregate(order, window, n="count(*)"))
    return net


def train(number: int, groups: int) -> pa.Table:
    """The tuples of one train, which fill one window."""
    random = np.random.default_rng(number)
    times = np.sort(random.integers(number * _WINDOW, (number + 1) * _WINDOW, _TRAIN))
    return pa.table({"k": random.integers(0, groups, _TRAIN), "t": times})


def _applications(report: Report, spark: Any, trains: int) -> None:
    section = report.section("Applications with 260,000 groups", "applications", "tuples_per_s")
    tuples = [train(number, 260_000) for number in range(3 + trains)]
    rates: dict[int, float] = {}
    for count in (1, 2):
        with au.Engine(counting(count), spark=spark, train=_TRAIN) as engine:
            _feed(engine, count, tuples[:3])
            started = time.perf_counter()
            _feed(engine, count, tuples[3:])
            rates[count] = count * trains * _TRAIN / (time.perf_counter() - started)
        section.rows.append((count, rates[count]))
    report.bar("two applications: throughput / one", rates[2] / rates[1], least=1.75)


def _feed(engine: au.Engine, applications: int, trains: Sequence[pa.Table]) -> None:
    for tuples in trains:
        for stream in range(applications):
            engine.enqueue(f"s{stream}", tuples)
    engine.drain()
    for stream in range(applications):
        engine.dequeue(f"o{stream}")


def _filter_first(report: Report, spark: Any, trains: int, groups: int) -> None:
    title = f"A filter before a window, {groups:,} groups"
    section = report.section(title, "network", "median_s", "tuples_per_s")
    with (
        au.Engine(counting(1), spark=spark, train=_TRAIN) as alone,
        au.Engine(counting(1, filtered=True), spark=spark, train=_TRAIN) as filtered,
    ):
        engines = {"aggregate alone": alone, "filter, aggregate": filtered}
        medians = _in_turn(engines, trains, lambda number: train(number, groups))
    for name, seconds in medians.items():
        section.rows.append((name, seconds, _TRAIN / seconds))
    ratio = medians["aggregate alone"] / medians["filter, aggregate"]
    report.bar(f"{groups:,} groups: filter, aggregate / aggregate alone", ratio, least=0.8)


def _in_turn(
    engines: Mapping[str, au.Engine], trains: int, tuples: Callable[[int], pa.Table]
) -> dict[str, float]:
    """The median time of a train on each engine."""
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for number in range(trains + 2):
        rows = tuples(number)
        for name, engine in engines.items():
            started = time.perf_counter()
            engine.enqueue("s0", rows)
            engine.drain()
            if number >= 2:  # the first ones let Spark compile
                seconds[name].append(time.perf_counter() - started)
            engine.dequeue("o0")
    return {name: statistics.median(own) for name, own in seconds.items()}


def _slow_sink(report: Report, spark: Any, batches: int) -> None:
    section = report.section(
        f"Delay of an output while another one's sink takes {_SLOW_S:g} s", "slow_sink", "median_s"
    )
    delays = {slow: _median_delay(spark, batches, slow=slow) for slow in (False, True)}
    section.rows += list(delays.items())
    report.bar("delay beside a slow sink / without it", delays[True] / delays[False], most=1.5)


def _median_delay(spark: Any, batches: int, *, slow: bool) -> float:
    net = au.Network("sinks")
    stream = net.stream("s", "n bigint")
    for name in ("quick", "slow"):
        net.output(name, stream.filter("n >= 0", name=f"{name}_box"))
    came, stop = threading.Event(), threading.Event()
    engine = au.Engine(net, spark=spark, sink_grace_s=2 * _SLOW_S)
    engine.bind_sink("quick", lambda _delivery: came.set())
    engine.bind_sink("slow", lambda _delivery: slow and stop.wait(_SLOW_S))
    delays = []
    with engine:
        for number in range(batches + 3):
            came.clear()
            started = time.perf_counter()
            engine.enqueue("s", [(number,)])
            came.wait()
            if number >= 3:
                delays.append(time.perf_counter() - started)
        stop.set()
    return statistics.median(delays)
