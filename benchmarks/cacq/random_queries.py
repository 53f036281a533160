"""Random queries over one stream [5 §3.2.8]: throughput, and what one more query costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import pyarrow as pa

import auroral as au
from benchmarks.cacq.data import (
    SCHEMA,
    Conjunction,
    count_matches,
    random_queries,
    select,
    uniform_trains,
)
from benchmarks.cacq.lab import feed
from benchmarks.lab import Lab
from benchmarks.report import Report

RANDOM = "Random queries over five integers, matches counted per query"
ONE_MORE = "One more query at 1,000: part of a train (negative: less than trains vary)"
_LEAST_RATE = {1_000: 1_000_000, 10_000: 400_000}
_TRAIN = 1_000_000
_WARM = 3
_MORE = 100


def random_network(queries: Sequence[Conjunction]) -> au.Network:
    """S, and queries whose matches are counted."""
    net = au.Network("random")
    net.stream("S", SCHEMA)
    for number, query in enumerate(queries):
        net.query(f"q{number}", select(query), results="count")
    return net


def matches(engine: au.Engine) -> dict[str, int]:
    """Matches so far, by query."""
    table = engine.matches()
    return dict(zip(table["query"].to_pylist(), table["matches"].to_pylist(), strict=True))


def throughput(report: Report, lab: Lab) -> None:
    """1,000 and 10,000 queries, and what one more costs."""
    section = report.section(
        RANDOM, "queries", "tuples", "tuples_per_s", "train_ms", "per_query_ns"
    )
    trains = uniform_trains(_WARM + lab.steps(8, 3), lab.rows(_TRAIN))
    for count, least in _LEAST_RATE.items():
        lab.say(f"{count:,} random queries")
        queries = random_queries(count)
        with lab.engine(random_network(queries), trains[0].num_rows) as engine:
            seconds = [feed(engine, "S", train) for train in trains]
            found = matches(engine)
        tuples = sum(train.num_rows for train in trains[_WARM:])
        rate = tuples / sum(seconds[_WARM:])
        train_s = statistics.median(seconds[_WARM:])
        each_ns = train_s / trains[0].num_rows / count * 1e9
        section.rows.append((count, tuples, rate, train_s * 1e3, each_ns))
        report.bar(f"random, {count:,} queries: tuples/s", rate, least=least)
        agree = agreement(found, trains, queries)
        report.bar(f"random, {count:,} queries: counts that agree with numpy", agree, least=1.0)
    _one_more(report, lab, trains)


def agreement(
    found: dict[str, int], trains: Sequence[pa.Table], queries: Sequence[Conjunction]
) -> float:
    """Which part of the queries has as many matches as numpy finds."""
    expected = count_matches(trains, queries)
    same = [found.get(f"q{n}", 0) == count for n, count in enumerate(expected)]
    return sum(same) / len(same)


def _one_more(report: Report, lab: Lab, trains: Sequence[pa.Table]) -> None:
    """What the 1,001st query adds to a train, from a hundred more; trains take turns.

    It is less than trains vary, so it is told with its spread.
    """
    queries = random_queries(1_000 + _MORE)
    fewer, more = random_network(queries[:1_000]), random_network(queries)
    train = trains[0].num_rows
    added: list[float] = []
    base: list[float] = []
    with lab.engine(fewer, train) as one, lab.engine(more, train) as other:
        for number, table in enumerate([*trains] * lab.steps(8, 3)):
            if number % 2:  # whoever comes first has an advantage, or none: in turn
                much, little = feed(other, "S", table), feed(one, "S", table)
            else:
                little, much = feed(one, "S", table), feed(other, "S", table)
            if number >= _WARM:
                added.append((much - little) / _MORE)
                base.append(little)
    shares = [each / statistics.median(base) for each in added]
    low, middle, high = median_within(shares)
    section = report.section(ONE_MORE, "pairs", "median", "from", "to")
    section.rows.append((len(shares), middle, low, high))
    report.bar("one more query at 1,000 / a train", middle, most=0.001)


def median_within(values: Sequence[float]) -> tuple[float, float, float]:
    """The median between bounds that hold it in 19 of 20 cases, by the ranks of values.

    >>> median_within([float(n) for n in range(1, 20)])
    (5.0, 10.0, 15.0)
    """
    ordered = sorted(values)
    reach = math.ceil(0.98 * math.sqrt(len(ordered)))
    middle = (len(ordered) - 1) / 2
    low = ordered[max(math.ceil(middle) - reach, 0)]
    high = ordered[min(math.floor(middle) + reach, len(ordered) - 1)]
    return low, statistics.median(ordered), high
