"""Stocks and articles [5 §5, Figures 12 and 13], next to NiagaraCQ's plans as Spark's joins."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import pyarrow as pa

import auroral as au
from benchmarks.cacq.data import ARTICLES, STOCKS, articles, count_joined, stocks, thresholds
from benchmarks.cacq.lab import write_parts
from benchmarks.cacq.plans import (
    Plan,
    by_functions,
    constants,
    finish,
    plan_session,
    pull_up,
    push_down,
    spin_above,
)
from benchmarks.lab import Lab
from benchmarks.report import Report

FIGURE_12 = "Figure 12: an update of 2,250 stocks and articles"
FIGURE_13 = "Figure 13: 100 selections by Python functions, 50 stocks, 10 to 50 µs a call"
"""The paper has 2,250 stocks and 10 to 500 µs: PullUp would take an hour and a half a point.

It leaves out PushDown, for it was much slower before."""
_QUERIES = (1, 10, 50, 100, 200)
_STOCKS = 2_250
_PER_STOCK = (1, 10, 100)
_UDF_STOCKS = 50
_SPIN_US = (10.0, 50.0)
_JOIN = "stocks.symbol = articles.symbol"
Update = tuple[pa.Table, pa.Table]


def niagara(report: Report, lab: Lab) -> None:
    """1 to 200 queries; the time of one update."""
    section = report.section(FIGURE_12, "queries", "system", "updates", "update_ms", "results")
    for queries in _QUERIES:
        lab.say(f"Figure 12, {queries} queries")
        # A hundred joins in one plan take seconds: fewer updates give the median, of all systems.
        warm, timed = (3, lab.steps(7, 3)) if queries <= 10 else (2, 3)
        updates = [(stocks(_STOCKS, n), articles(_STOCKS, n)) for n in range(warm + timed)]
        limits = thresholds(queries)
        tests = [f"stocks.price > {limit!r}" for limit in limits]
        mine, found = run_auroral(lab, join_network(tests, 5_000), updates, warm)
        section.rows.append((queries, "Auroral", timed, mine * 1e3, found))
        of = f"Figure 12, {queries} queries"
        _require_results(report, f"{of}: Auroral", found, limits, updates)
        for system, plan in (("PullUp", pull_up()), ("PushDown", push_down(queries))):
            theirs, given = run_plan(lab, plan, limits, updates, warm)
            section.rows.append((queries, system, timed, theirs * 1e3, given))
            _require_results(report, f"{of}: {system}", given, limits, updates)
            report.bar(f"{of}: {system} / Auroral", theirs / mine, least=1.0)


def functions(report: Report, lab: Lab) -> None:
    """100 Python functions; 1, 10 or 100 articles per stock."""
    section = report.section(
        FIGURE_13, "articles_per_stock", "system", "updates", "update_ms", "results"
    )
    limits = thresholds(lab.rows(100))
    warm, timed = 1, 3
    for per_stock in _PER_STOCK:
        lab.say(f"Figure 13, {per_stock} articles per stock")
        updates = [
            (stocks(_UDF_STOCKS, n), articles(_UDF_STOCKS, n, per_stock))
            for n in range(warm + timed)
        ]
        net = join_network([f"pick{n}(stocks.price)" for n in range(len(limits))], 50_000)
        for number, limit in enumerate(limits):
            net.function(f"pick{number}", spin_above(limit, *_SPIN_US), returns="boolean")
        mine, found = run_auroral(lab, net, updates, warm)
        section.rows.append((per_stock, "Auroral", timed, mine * 1e3, found))
        of = f"Figure 13, {per_stock} articles"
        _require_results(report, f"{of}: Auroral", found, limits, updates)
        select = by_functions(limits, *_SPIN_US)
        plans = {"PullUp": pull_up(select), "PushDown": push_down(len(limits), select)}
        for system, plan in plans.items():
            theirs, given = run_plan(lab, plan, limits, updates, warm)
            section.rows.append((per_stock, system, timed, theirs * 1e3, given))
            _require_results(report, f"{of}: {system}", given, limits, updates)
            report.bar(f"{of}: {system} / Auroral", theirs / mine, least=1.0)


def join_network(tests: Sequence[str], rows: int) -> au.Network:
    """Queries that differ in how they select stocks."""
    net = au.Network("news")
    net.stream("stocks", STOCKS)
    net.stream("articles", ARTICLES)
    for number, test in enumerate(tests):
        source = f"stocks [ROWS {rows}], articles [ROWS {rows}]"
        net.query(f"q{number}", f"select * from {source} where {test} and {_JOIN}")
    return net


def run_auroral(
    lab: Lab, network: au.Network, updates: Sequence[Update], warm: int
) -> tuple[float, int]:
    """The median update in seconds, and how many results queries had of all updates."""
    seconds: list[float] = []
    results = 0
    train = max(quotes.num_rows + news.num_rows for quotes, news in updates)
    with lab.engine(network, train) as engine:
        for quotes, news in updates:
            started = time.perf_counter()
            engine.enqueue("stocks", quotes)
            engine.enqueue("articles", news)
            engine.drain()
            taken = engine.dequeue_all()
            seconds.append(time.perf_counter() - started)
            results += count_results(taken)
    return statistics.median(seconds[warm:]), results


def count_results(taken: pa.Table) -> int:
    """Results of all queries in tuples with lists of queries."""
    return sum(len(chunk.flatten()) for chunk in taken["queries"].chunks)


def run_plan(
    lab: Lab, plan: Plan, limits: Sequence[float], updates: Sequence[Update], warm: int
) -> tuple[float, int]:
    """The median update of a plan over Parquet files, and how many results all updates gave.

    Each stream is a file for every core, so that Spark can use them all.
    """
    session = plan_session(lab.spark)
    queries = constants(session, limits)
    queries.count()
    seconds: list[float] = []
    given = 0
    for number, (quotes, news) in enumerate(updates):
        paths = [
            write_parts(table, lab.place / f"{name}{number}", lab.files)
            for name, table in (("stocks", quotes), ("articles", news))
        ]
        started = time.perf_counter()
        quotes_frame, news_frame = (session.read.parquet(*each) for each in paths)
        given += finish(plan(quotes_frame, news_frame, queries))
        seconds.append(time.perf_counter() - started)
        session.catalog.clearCache()
        queries.cache()
    return statistics.median(seconds[warm:]), given


def _require_results(
    report: Report, name: str, found: int, limits: Sequence[float], updates: Sequence[Update]
) -> None:
    """A system with wrong results is told; one with right ones needs no line."""
    expected = sum(
        count_joined(quotes, limits, news.num_rows // quotes.num_rows) for quotes, news in updates
    )
    if found != expected:
        report.bar(f"{name}: results agree with numpy", 0.0, least=1.0)
