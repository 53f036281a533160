"""A band join of two fast streams, second by second."""

from __future__ import annotations

import statistics
from typing import TypeVar

import auroral as au
from benchmarks.data import READINGS, SECOND_US, Batch, reading_trains, size, write_files
from benchmarks.lab import Lab
from benchmarks.oop.lab import Held, Run, most_held, pump
from benchmarks.report import Report
from benchmarks.structured import Batches, band_join, faster_store, run_query

JOIN = "Band join of two streams within 1 s, about one match per tuple"
T = TypeVar("T")
_RATE = 50_000
_WARM = 6


def join_network() -> au.Network:
    """Pairs of one key at most a second apart: about one per tuple."""
    net = au.Network("near")
    left, right = (net.stream(name, READINGS, progress=au.Ordered("ts")) for name in ("l", "r"))
    ts = au.Order("ts")
    pairs = left.join(right, "left.key = right.key", left=ts, right=ts, within="1 second")
    net.output("pairs", pairs)
    return net


def join(report: Report, lab: Lab) -> None:
    """Steps must not grow, and must beat a plain stream-stream join."""
    rate = lab.rows(_RATE)
    lab.say(f"band join of 2 x {rate:,} tuples/s")
    seconds = _WARM + lab.steps(30, 12)
    trains = reading_trains(seconds, rate, 2 * rate, streams=("l", "r"), span_us=SECOND_US)
    ours = _run(lab, trains)
    theirs = _plain(lab, trains[: _WARM + lab.steps(12, 6)])
    section = report.section(
        JOIN,
        "system",
        "arriving_per_s",
        "tuples_per_s",
        "first_quarter_ms",
        "last_quarter_ms",
        "rows_held",
        "matches_per_tuple",
    )
    held = most_held(ours.held).rows
    section.rows.append(("Auroral", 2 * rate, ours.rate, *_medians_ms(ours.steps_s), held))
    steps = _medians_ms(theirs.seconds[_WARM:])
    name = f"plain ({theirs.store})"
    section.rows.append((name, 2 * rate, theirs.rate(_WARM), *steps, max(theirs.held)))
    for number, results in enumerate((ours.results, theirs.results[: len(theirs.seconds)])):
        pairs = sum(table.num_rows for table in results)
        section.rows[number] = (*section.rows[number], pairs / (rate * len(results)))
    _judge(report, ours, theirs, rate)


def _judge(report: Report, ours: Run, theirs: Batches, rate: int) -> None:
    first, last = _medians_ms(ours.steps_s)
    report.bar("band join: tuples/s / arriving", ours.rate / (2 * rate), least=1.0)
    report.bar("band join: step time, last quarter / first", last / first, most=1.2)
    early, late = quarters(ours.held)
    swelling = most_held(late).over(most_held(early))
    report.bar("band join: rows held, last quarter / first", swelling, most=1.2)
    report.bar("band join: throughput / plain", ours.rate / theirs.rate(_WARM), least=1.5)
    # Plain Spark ends with a batch without input.
    both = zip(ours.results, theirs.results[: len(theirs.seconds)], strict=False)
    same = [mine.num_rows == other.num_rows for mine, other in both]
    report.bar("band join: trains that agree with plain", sum(same) / len(same), least=1.0)


def _medians_ms(steps_s: list[float]) -> tuple[float, float]:
    """The median step of the first and of the last quarter."""
    first, last = quarters(steps_s)
    return statistics.median(first) * 1e3, statistics.median(last) * 1e3


def quarters(values: list[T]) -> tuple[list[T], list[T]]:
    """The first and the last quarter."""
    part = max(len(values) // 4, 1)
    return values[:part], values[-part:]


def _run(lab: Lab, trains: list[list[Batch]]) -> Run:
    run = Run()
    with lab.engine(join_network(), size(trains[0])) as engine:
        for number, train in enumerate(trains):
            seconds, table = pump(engine, train, "pairs")
            run.results.append(table)
            if number >= _WARM:
                run.steps_s.append(seconds)
                run.held.append(Held.of(engine))
                run.tuples += size(train)
                run.seconds += seconds
    return run


def _plain(lab: Lab, trains: list[list[Batch]]) -> Batches:
    def query(name: str, some: list[list[Batch]], store: str) -> Batches:
        places = write_files(some, lab.place / f"{name}-join", lab.files)
        return run_query(lab.spark, band_join(places, READINGS, lab.files, "1 second"), store)

    store = faster_store(lambda name: query("trial", trains[:5], name), 2)
    return query("pairs", trains, store)
