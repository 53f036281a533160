"""Random queries over one stream [5 §3.2.8]: throughput, and what one more query costs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import pyarrow as pa

import auroral as au
from auroral.bench.cacq_data import (
    SCHEMA,
    Conjunction,
    count_matches,
    random_queries,
    select,
    uniform_trains,
)
from auroral.bench.cacq_lab import feed
from auroral.bench.lab import Lab
from auroral.bench.report import Report

RANDOM = "Random queries over five integers, matches counted per query"
_LEAST_RATE = {1_000: 1_000_000, 10_000: 400_000}
_TRAIN = 1_000_000
_WARM = 3
_SAMPLE = 50


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
    report.bar("one more query at 1,000 / a train", _one_more(lab, trains), most=0.001)


def agreement(
    found: dict[str, int], trains: Sequence[pa.Table], queries: Sequence[Conjunction]
) -> float:
    """Which part of some queries has as many matches as numpy finds."""
    some = range(0, len(queries), max(len(queries) // _SAMPLE, 1))
    expected = count_matches(trains, [queries[number] for number in some])
    same = [found.get(f"q{n}", 0) == count for n, count in zip(some, expected, strict=True)]
    return sum(same) / len(same)


def _one_more(lab: Lab, trains: Sequence[pa.Table]) -> float:
    """What the 1,001st query adds to a train, from a hundred more; trains take turns."""
    queries = random_queries(1_100)
    fewer, more = random_network(queries[:1_000]), random_network(queries)
    train = trains[0].num_rows
    seconds: dict[int, list[float]] = {1_000: [], 1_100: []}
    with lab.engine(fewer, train) as one, lab.engine(more, train) as other:
        for number, table in enumerate([*trains, *trains]):
            for count, engine in ((1_000, one), (1_100, other)):
                taken = feed(engine, "S", table)
                if number >= _WARM:
                    seconds[count].append(taken)
    least, most = (statistics.median(seconds[count]) for count in (1_000, 1_100))
    return (most - least) / 100 / least
