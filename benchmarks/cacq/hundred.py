"""100 random queries: Auroral, and plain Spark and other stream processors in many ways."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import auroral as au
from benchmarks.cacq.data import Conjunction, count_matches, random_queries, uniform_trains
from benchmarks.cacq.lab import write_parts
from benchmarks.cacq.random_queries import agreement, matches, random_network
from benchmarks.cacq.spark import run_ways
from benchmarks.lab import Lab
from benchmarks.peers.running import NOT_INSTALLED, PEERS, Peer, find_interpreter, run_peer
from benchmarks.report import Report, Section

HUNDRED = "100 random queries: Auroral, plain Spark and peers"
_PART = 1_000_000
_TRAIN = 2
"""How many parts of the stream are a train, for plain Spark too."""
_FED = 24
"""How many are fed while the engine works, before the benchmark waits for the last."""
_READ = 4
_WARM_S, _TIMED_S = 30.0, 10.0
"""How long each way of Auroral and Spark runs to become warm, and then to be timed."""
_AHEAD = 50
"""How many times faster than plain Spark and every peer."""
_BARS = {
    "each": "a query each",
    "merged": "all in one statement",
}
"""Where numpy does the work the other system only carries data: shown, not compared with."""


def hundred(report: Report, lab: Lab) -> None:
    """Every way of every system over the same tuples, and the best of each."""
    section = report.section(
        HUNDRED, "system", "way", "queries_are", "tuples", "tuples_per_s", "Auroral_is_x"
    )
    queries = random_queries(100)
    parts = uniform_trains(_READ, lab.rows(_PART))
    lab.say("100 random queries, Auroral")
    ways = {
        "shared eddy, fed while it works": _auroral(lab, queries, parts, _FED),
        "the same, synced to a state directory": _auroral(
            lab, queries, parts, _FED, lab.place / "hundred"
        ),
        "shared eddy, a train and then the next": _auroral(lab, queries, parts, _TRAIN),
        "one query without predicates: what carrying costs": _auroral(lab, [()], parts, _FED),
    }
    _, rate, _ = next(iter(ways.values()))
    for way, (tuples, its_rate, _) in ways.items():
        section.rows.append(("Auroral", way, "each", tuples, its_rate, rate / its_rate))
    right = min(agree for _, _, agree in ways.values())
    report.bar("100 queries: counts that agree with numpy", right, least=1.0)
    files = [
        path
        for number, part in enumerate(parts)
        for path in write_parts(part, lab.place / f"random{number}", lab.files)
    ]
    _against_spark(report, section, lab, rate, files, parts[0].num_rows // lab.files, queries)
    for peer in PEERS:
        _against_peer(report, section, lab, rate, files, queries, peer)


def _auroral(
    lab: Lab,
    queries: Sequence[Conjunction],
    parts: Sequence[pa.Table],
    at_once: int,
    state: Path | None = None,
) -> tuple[int, float, float]:
    """Tuples, tuples per second from `enqueue` until they are processed, and agreement.

    So many parts are enqueued at once: more than a train are fed while the engine works, as an
    application would.
    """
    rows = int(parts[0].num_rows)
    fed: list[pa.Table] = []

    def feed(engine: au.Engine, seconds: float) -> float:
        """Tuples per second of some rounds."""
        first, started = len(fed), time.perf_counter()
        while True:
            for _ in range(at_once):
                engine.enqueue("S", parts[len(fed) % len(parts)])
                fed.append(parts[len(fed) % len(parts)])
            engine.drain()
            taken = time.perf_counter() - started
            if taken >= seconds:
                return (len(fed) - first) * rows / taken

    network = random_network(queries)
    with lab.engine(network, _TRAIN * rows, background=True, state=state) as engine:
        feed(engine, lab.seconds(_WARM_S))
        warm = len(fed)
        rate = feed(engine, lab.seconds(_TIMED_S))
        found = matches(engine)
    return (len(fed) - warm) * rows, rate, agreement(found, fed, queries)


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
    best: dict[str, float] = {}
    train = files[: _TRAIN * lab.files]
    warm, timed = lab.seconds(_WARM_S), lab.seconds(_TIMED_S)
    for done in run_ways(lab.spark, train, rows, queries, warm, timed):
        way = done.way
        section.rows.append(
            ("plain Spark", way.name, way.queries, done.tuples, done.rate, rate / done.rate)
        )
        read = [pq.read_table(path) for path in files[: done.tuples // rows]]
        _require_equal(report, f"plain Spark, {way.name}", done.counts, read, queries)
        best[way.queries] = max(best.get(way.queries, 0.0), done.rate)
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
        section.rows.append((peer.name, NOT_INSTALLED, "", 0, 0.0, 0.0))
        return
    lab.say(f"100 random queries, {peer.name}")
    best: dict[str, float] = {}
    for done in run_peer(peer, interpreter, files, queries, lab.place, 0.1 if lab.quick else 1.0):
        section.rows.append(
            (done.peer, done.way, done.queries, done.tuples, done.rate, rate / done.rate)
        )
        _require_equal(report, f"{peer.name}, {done.way}", done.counts, done.read(files), queries)
        best[done.queries] = max(best.get(done.queries, 0.0), done.rate)
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


def _bars(report: Report, name: str, rate: float, best: dict[str, float]) -> None:
    for queries, how in _BARS.items():
        if queries in best:
            report.bar(
                f"100 queries: throughput / {name}, {how}", rate / best[queries], least=_AHEAD
            )
