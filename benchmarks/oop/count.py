"""Windowed counts: throughput, latency and smoothing [3 §6, §8.1: G1, Figure 9]."""

from __future__ import annotations

import statistics

import pyarrow as pa
import pyarrow.compute as pc

import auroral as au
from benchmarks.data import PACKETS, SECOND_US, Batch, packet_trains, write_files
from benchmarks.lab import Lab
from benchmarks.oop.lab import Run, pump, sustain, with_options
from benchmarks.report import Report
from benchmarks.structured import Batches, faster_store, run_query, windowed_count

COUNT = "Q4: tumbling count per (srcIP, destIP), plain Structured Streaming and Auroral"
LATENCY = "Trains of 1,000 tuples into a windowed count of 1,000 groups"
FLUSH = "Figure 9: flush policies"
_GROUPS = (65_000, 260_000, 520_000)
_TRAIN = 250_000
_TRAINS_PER_WINDOW = 8
_WINDOW_S = 60
_FIRST = 4
"""Trains of a run that does not count: the first one in a new JVM is slow."""
_FLUSHES = ("eager", "slow", "lazy")


def count_network(**options: str) -> au.Network:
    """Q4 over a stream that is at most a second out of order."""
    net = au.Network("q4")
    m = net.stream("m", PACKETS, progress=au.Delayed("ts", "1 second"))
    order = au.Order("ts", by=("srcIP", "destIP"))
    window = au.Window(size=f"{_WINDOW_S} seconds")
    net.output("counts", m.aggregate(order, window, name="counted", cnt="count(*)"))
    return with_options(net, **options) if options else net


def count(report: Report, lab: Lab) -> None:
    """Throughput against plain Structured Streaming, and how even the steps are."""
    section = report.section(
        COUNT, "groups", "system", "tuples", "tuples_per_s", "median_ms", "slowest_ms"
    )
    warm = _TRAINS_PER_WINDOW
    for groups in map(lab.rows, _GROUPS):
        lab.say(f"count, {groups:,} groups")
        trains = _trains(lab, groups, warm + lab.steps(2, 1) * _TRAINS_PER_WINDOW)
        if not section.rows:
            _run(lab, count_network(), trains[:_FIRST], 1)
        ours = _run(lab, count_network(), trains, warm)
        theirs = _plain(lab, trains, groups)
        plain_rate, plain_steps = theirs.rate(warm), theirs.seconds[warm:]
        figures = (plain_rate, statistics.median(plain_steps) * 1e3, max(plain_steps) * 1e3)
        section.rows.append((groups, f"plain ({theirs.store})", sum(theirs.rows[warm:]), *figures))
        section.rows.append(
            (groups, "Auroral", ours.tuples, ours.rate, ours.median_s * 1e3, ours.slowest_s * 1e3)
        )
        of = f"{groups:,} groups"
        report.bar(f"count, {of}: throughput / plain", ours.rate / plain_rate, least=2.5)
        if groups == lab.rows(_GROUPS[1]):
            report.bar(f"count, {of}: tuples/s", ours.rate, least=500_000)
        evenness = ours.slowest_s / ours.median_s
        report.bar(f"count, {of}: slowest step / median", evenness, most=2.0)
        agree = agreement(ours.table, pa.concat_tables(theirs.results))
        report.bar(f"count, {of}: windows that agree with plain", agree, least=1.0)


def latency(report: Report, lab: Lab) -> None:
    """A small train through a stateful box, against a stateful micro-batch."""
    section = report.section(LATENCY, "what", "median_ms", "p90_ms")
    lab.say("latency of small trains")
    rows, warm, rounds = 1_000, 20, lab.steps(80, 25)
    trains = packet_trains(warm + rounds, rows, 1_000, span_us=SECOND_US, jitter_us=SECOND_US)
    with lab.engine(count_network(), rows, background=True) as engine:
        ours = [pump(engine, train, "counts")[0] for train in trains][warm:]
    places = write_files(trains[: warm // 2 + rounds], lab.place / "latency", 1)
    query = windowed_count(places["m"], PACKETS, 1, f"{_WINDOW_S} seconds", "1 second")
    short = write_files(trains[:warm], lab.place / "latency-short", 1)
    trial = windowed_count(short["m"], PACKETS, 1, f"{_WINDOW_S} seconds", "1 second")
    store = faster_store(lambda name: run_query(lab.spark, trial, name), warm // 2)
    theirs = run_query(lab.spark, query, store).seconds[warm // 2 :]
    for name, times in (
        ("Auroral step, enqueue to dequeue", ours),
        (f"plain Structured Streaming micro-batch ({store})", theirs),
    ):
        p90 = sorted(times)[int(len(times) * 0.9)]
        section.rows.append((name, statistics.median(times) * 1e3, p90 * 1e3))
    ratio = statistics.median(ours) / statistics.median(theirs)
    report.bar("windowed step / plain micro-batch, 1,000 tuples", ratio, most=0.4)


def flush(report: Report, lab: Lab) -> None:
    """Workload smoothing: when closed windows leave."""
    section = report.section(FLUSH, "flush", "groups", "tuples_per_s", "median_ms", "slowest_ms")
    groups = lab.rows(_GROUPS[-1])
    warm = _TRAINS_PER_WINDOW
    trains = _trains(lab, groups, 2 * _TRAINS_PER_WINDOW)
    _run(lab, count_network(), trains[:_FIRST], 1)
    runs: dict[str, list[Run]] = {policy: [] for policy in _FLUSHES}
    # There and back, so that none gains from its place.
    for policy in (*_FLUSHES, *reversed(_FLUSHES)):
        lab.say(f"flush {policy}, {groups:,} groups")
        runs[policy].append(_run(lab, count_network(flush=policy), trains, warm))
    for policy, (one, other) in runs.items():
        rate = (one.tuples + other.tuples) / (one.seconds + other.seconds)
        steps = [*one.steps_s, *other.steps_s]
        figures = (statistics.median(steps) * 1e3, max(steps) * 1e3)
        section.rows.append((policy, groups, rate, *figures))


def _trains(lab: Lab, groups: int, trains: int) -> list[list[Batch]]:
    span_us = _WINDOW_S * SECOND_US // _TRAINS_PER_WINDOW
    return packet_trains(trains, lab.rows(_TRAIN), groups, span_us=span_us, jitter_us=SECOND_US)


def _run(lab: Lab, network: au.Network, trains: list[list[Batch]], warm: int) -> Run:
    with lab.engine(network, lab.rows(_TRAIN), background=True) as engine:
        return sustain(engine, trains, "counts", warm)


def _plain(lab: Lab, trains: list[list[Batch]], groups: int) -> Batches:
    """The same files, with the state store that is the faster in a short trial."""

    def query(name: str, some: list[list[Batch]], store: str) -> Batches:
        places = write_files(some, lab.place / f"{name}-{groups}", lab.files)
        counted = windowed_count(
            places["m"], PACKETS, lab.files, f"{_WINDOW_S} seconds", "1 second"
        )
        return run_query(lab.spark, counted, store)

    store = faster_store(lambda name: query("trial", trains[:6], name), 2)
    return query("count", trains, store)


def agreement(ours: pa.Table, theirs: pa.Table) -> float:
    """The share of the windows both have closed that have the same groups and counts."""
    mine, other = _windows(ours), _windows(theirs)
    both = mine.keys() & other.keys()
    return sum(mine[start] == other[start] for start in both) / len(both) if both else 0.0


def _windows(table: pa.Table) -> dict[int, tuple[int, int, int]]:
    """By window: how many groups, how many tuples, and a sum that depends on which is where."""
    weighed = pc.multiply(table["cnt"], pc.bit_wise_xor(table["srcIP"], table["destIP"]))
    start = table["ts"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    columns = pa.table({"start": start, "cnt": table["cnt"], "weighed": weighed})
    grouped = columns.group_by("start").aggregate(
        [("cnt", "count"), ("cnt", "sum"), ("weighed", "sum")]
    )
    return {
        row["start"]: (row["cnt_count"], row["cnt_sum"], row["weighed_sum"])
        for row in grouped.to_pylist()
    }
