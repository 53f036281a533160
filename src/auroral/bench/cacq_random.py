"""Random queries over one stream [5 §3.2.8]: throughput, one more query, plain Spark, peers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

import auroral as au
from auroral.bench.cacq_data import (
    SCHEMA,
    Conjunction,
    count_matches,
    random_queries,
    select,
    uniform_trains,
)
from auroral.bench.cacq_lab import feed, write_parts
from auroral.bench.cacq_spark import run_ways
from auroral.bench.lab import Lab
from auroral.bench.peers import NOT_INSTALLED, PEERS, Peer, find_interpreter, run_peer
from auroral.bench.report import Report, Section

RANDOM = "Random queries over five integers, matches counted per query"
HUNDRED = "100 random queries: Auroral, plain Spark and peers"
_LEAST_RATE = {1_000: 1_000_000, 10_000: 400_000}
_TRAIN = 1_000_000
_WARM = 3
_SAMPLE = 50
_AHEAD = 50
"""How many times faster than plain Spark and every peer."""


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


def hundred(report: Report, lab: Lab) -> None:
    """100 queries: every way of every system over the same tuples, and the best of each."""
    section = report.section(HUNDRED, "system", "way", "tuples", "tuples_per_s", "Auroral_is_x")
    queries = random_queries(100)
    rows = lab.rows(_TRAIN)
    trains = uniform_trains(4 + _WARM, rows)
    lab.say("100 random queries, Auroral")
    with lab.engine(random_network(queries), rows) as engine:
        seconds = [feed(engine, "S", train) for train in trains][_WARM:]
        found = matches(engine)
    rate = rows * len(seconds) / sum(seconds)
    section.rows.append(("Auroral", "shared eddy", rows * len(seconds), rate, 1.0))
    agree = agreement(found, trains, queries)
    report.bar("100 queries: counts that agree with numpy", agree, least=1.0)
    parts = [
        path
        for number, train in enumerate(trains[:4])
        for path in write_parts(train, lab.place / f"random{number}", lab.files)
    ]
    _against_spark(report, section, lab, rate, parts, rows // lab.files, queries)
    for peer in PEERS:
        _against_peer(report, section, lab, rate, parts, queries, peer)


def _against_spark(
    report: Report,
    section: Section,
    lab: Lab,
    rate: float,
    files: Sequence[str],
    rows: int,
    queries: Sequence[Conjunction],
) -> None:
    lab.say("100 random queries, plain Spark")
    best: dict[bool, float] = {}
    for done in run_ways(lab.spark, files, rows, queries):
        section.rows.append(
            ("plain Spark", done.way.name, done.tuples, done.rate, rate / done.rate)
        )
        read = [pq.read_table(path) for path in files[: done.tuples // rows]]
        _require_equal(report, f"plain Spark, {done.way.name}", done.counts, read, queries)
        best[done.way.by_hand] = max(best.get(done.way.by_hand, 0.0), done.rate)
    _bars(report, "plain Spark", rate, best)


def _against_peer(
    report: Report,
    section: Section,
    lab: Lab,
    rate: float,
    files: Sequence[str],
    queries: Sequence[Conjunction],
    peer: Peer,
) -> None:
    interpreter = find_interpreter(peer, lab.peers)
    if interpreter is None:
        section.rows.append((peer.name, NOT_INSTALLED, 0, 0.0, 0.0))
        return
    lab.say(f"100 random queries, {peer.name}")
    best: dict[bool, float] = {}
    for done in run_peer(peer, interpreter, files, queries, lab.place, 0.1 if lab.quick else 1.0):
        section.rows.append((done.peer, done.way, done.tuples, done.rate, rate / done.rate))
        _require_equal(report, f"{peer.name}, {done.way}", done.counts, done.read(files), queries)
        best[done.by_hand] = max(best.get(done.by_hand, 0.0), done.rate)
    _bars(report, peer.name, rate, best)


def _require_equal(
    report: Report,
    name: str,
    counts: Sequence[int],
    tables: Sequence[pa.Table],
    queries: Sequence[Conjunction],
) -> None:
    """A system that counts wrongly is told; one that counts rightly needs no line."""
    if list(counts) != count_matches(tables, queries):
        report.bar(f"100 queries, {name}: counts agree with numpy", 0.0, least=1.0)


def _bars(report: Report, name: str, rate: float, best: dict[bool, float]) -> None:
    for by_hand, other in sorted(best.items()):
        how = ", numpy by hand" if by_hand else ""
        report.bar(f"100 queries: throughput / {name}{how}", rate / other, least=_AHEAD)
