"""What others notice of queries that run as boxes and come and go: how long they get nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa

import auroral as au
from benchmarks.cacq.data import SCHEMA, random_queries, uniform_trains
from benchmarks.cacq.random_queries import random_network
from benchmarks.lab import Lab
from benchmarks.report import Report

PAUSES = "Queries that run as boxes come and go: longest time without results of another query"
_QUERIES = 100
_BATCH = 2_000
_EVERY_S = 0.05
_WARM_S = 20.0
_PHASE_S = 5.0
_MUCH = 8
"""How many times as long as without changes others may get nothing."""
_MOST_MS = 200
_UNION = "select index from S union T where a > {}"
_ASKS = "select soundex('{}') as s from S where a > 95"
_ROWS = "select count(*) as n from S [rows 100] where a > {}"


def pauses(report: Report, lab: Lab) -> None:
    """Two streams with 2,000 tuples twenty times a second each; a sink notes when it got some."""
    lab.say("what others notice of queries that come and go")
    section = report.section(PAUSES, "change", "modify_ms", "longest_ms")
    net = random_network(random_queries(_QUERIES))
    net.stream("T", SCHEMA)
    net.query("other", "select index from S where a > 50")
    (batch,) = uniform_trains(1, _BATCH)
    got: list[float] = []
    engine = lab.engine(net, 1_000_000, background=True)
    engine.bind_sink("other", lambda _delivery: got.append(time.perf_counter()))
    with engine, _feeding(engine, batch):
        time.sleep(lab.seconds(_WARM_S))
        for change, add, remove in _changes():
            began = time.perf_counter()
            if add or remove:
                engine.modify(add=add, remove=remove)
            took = time.perf_counter() - began
            time.sleep(lab.seconds(_PHASE_S))
            longest = longest_gap(got, began, time.perf_counter())
            section.rows.append((change, took * 1e3, longest * 1e3))
    quiet = max(row[2] for row in section.rows if row[0] == "none")
    worst = max(row[2] for row in section.rows)
    report.bar("pauses: longest while boxes come / without", worst / quiet, most=_MUCH)
    slowest = max(row[1] for row in section.rows)
    report.bar("pauses: ms of the slowest modify", slowest, most=_MOST_MS)


def _changes() -> Iterator[tuple[str, dict[str, str], list[str]]]:
    yield from [("none", {}, [])] * 2
    yield "the first UNION comes", {"u0": _UNION.format(90)}, []
    yield "another UNION comes", {"u1": _UNION.format(95)}, []
    yield "an aggregate over the latest rows comes", {"r0": _ROWS.format(95)}, []
    yield "a function only Spark knows comes", {"f0": _ASKS.format("a")}, []
    yield "another such function comes", {"f1": _ASKS.format("b")}, []
    yield "a UNION goes", {}, ["u1"]
    yield "all go", {}, ["u0", "r0", "f0", "f1"]
    yield "a UNION comes again", {"u2": _UNION.format(91)}, []


@contextmanager
def _feeding(engine: au.Engine, batch: pa.Table) -> Iterator[None]:
    """While in here, a batch of each stream arrives again and again."""
    over = threading.Event()

    def feed() -> None:
        due = time.perf_counter()
        while not over.is_set():
            for stream in ("S", "T"):
                engine.enqueue(stream, batch)
            due += _EVERY_S
            over.wait(max(due - time.perf_counter(), 0.0))

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def longest_gap(times: Sequence[float], first: float, last: float) -> float:
    """The longest time without anything between two times.

    >>> longest_gap([1.0, 2.5, 9.0], 2.0, 4.0)
    1.5
    """
    seen = [first, *(moment for moment in times if first <= moment <= last), last]
    return max(after - before for before, after in pairwise(seen))
