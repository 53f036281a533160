"""Queries that come and go while data flow: what a change costs, and what it costs the others."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

import auroral as au
from benchmarks.cacq.alerts_run import FAMILIES
from benchmarks.cacq.data import (
    FIELDS,
    SCHEMA,
    TICKS,
    Conjunction,
    count_matches,
    fired,
    price_rules,
    random_queries,
    range_rules,
    select,
    ticks,
    uniform_trains,
)
from benchmarks.cacq.lab import feed, matches_by_rule
from benchmarks.cacq.random_queries import agreement, matches, random_network
from benchmarks.lab import Lab
from benchmarks.report import Report, Section

CHANGES = "Queries that come and go: calls of modify"
_QUERIES = 1_000
_RULES = 1_000_000
_MANY = 10_000
_TRAIN = 200_000
_WARM = 5
_MOST_MS = 50
_MOST_ASKED_MS = 100
"""Where Spark is asked for a type."""
_MOST_MANY_S = 30
_LITTLE = 1.25
"""How much longer a train may take because queries change before it."""
_MUCH = 10
"""And because very many change during it: reading them takes the driver's core."""


def changes(report: Report, lab: Lab) -> None:
    """One query and ten thousand, to a thousand that differ and to a million of a family."""
    section = report.section(CHANGES, "change", "there_are", "calls", "median_ms", "worst_ms")
    _random(report, section, lab)
    _eddies(report, section, lab)
    _boxes(report, section, lab)
    _family(report, section, lab)


def _random(report: Report, section: Section, lab: Lab) -> None:
    lab.say("queries that come and go, random ones")
    count, many, times = lab.rows(_QUERIES), lab.rows(_MANY), lab.steps(20, 3)
    queries = random_queries(count + many)
    more = queries[count:]
    trains = uniform_trains(3, lab.rows(_TRAIN))
    added: list[float] = []
    removed: list[float] = []
    disturbed: list[float] = []
    quiet: list[float] = []
    right = 0
    with lab.engine(random_network(queries[:count]), trains[0].num_rows) as engine:
        for _ in range(_WARM):
            feed(engine, "S", trains[0])
        for number in range(times):
            name, query = f"more{number}", more[number]
            added.append(_seconds(lambda: engine.modify(add={name: _counted(query)})))  # noqa: B023
            disturbed.append(feed(engine, "S", trains[0]))
            right += matches(engine)[name] == count_matches(trains[:1], [query])[0]
            removed.append(_seconds(lambda: engine.modify(remove=[name])))  # noqa: B023
            disturbed.append(feed(engine, "S", trains[1]))
            quiet.append(feed(engine, "S", trains[2]))
        wanted = {f"q{count + n}": _counted(query) for n, query in enumerate(more)}
        all_added = _seconds(lambda: engine.modify(add=wanted))
        feed(engine, "S", trains[0])
        found = matches(engine)
        agree = agreement({f"q{n}": found[f"q{count + n}"] for n in range(many)}, trains[:1], more)
        all_removed = _seconds(lambda: engine.modify(remove=list(wanted)))
        meanwhile = _meanwhile(engine, trains[2], lambda: engine.modify(add=wanted))
    _rows(section, "a query is added", count, added)
    _rows(section, "a query is removed", count + 1, removed)
    _rows(section, f"{many:,} queries are added", count, [all_added])
    _rows(section, f"{many:,} queries are removed", count + many, [all_removed])
    one = statistics.median(added) * 1e3
    report.bar(f"changes: ms to add a query to {count:,}", one, most=_MOST_MS)
    report.bar(f"changes: s to add {many:,} queries at once", all_added, most=_MOST_MANY_S)
    ratio = statistics.median(disturbed) / statistics.median(quiet)
    report.bar("changes: train after one / train without", ratio, most=_LITTLE)
    longest = max(meanwhile) / statistics.median(quiet)
    name = f"changes: longest train while {many:,} are added / train without"
    report.bar(name, longest, most=_MUCH)
    report.bar("changes: new queries that count what comes after them", right / times, least=1.0)
    report.bar(f"changes: of {many:,} queries, counts that agree with numpy", agree, least=1.0)


def _eddies(report: Report, section: Section, lab: Lab) -> None:
    """Queries for which there is no eddy yet, while tuples wait to be processed."""
    lab.say("queries that come and go, first ones over a stream and joins")
    count, times = lab.rows(_QUERIES), 5
    queries = random_queries(count + times)
    (train,) = uniform_trains(1, lab.rows(_TRAIN))
    net = random_network(queries[:count])
    for number in range(times):
        net.stream(f"T{number}", SCHEMA)
    field = FIELDS[0]
    seven = train.slice(0, 1).set_column(1, train.schema.field(1), pa.array([7], pa.int32()))
    first: list[float] = []
    joins: list[float] = []
    right = 0
    with lab.engine(net, train.num_rows) as engine:
        feed(engine, "S", train)
        for number, query in enumerate(queries[count:]):
            name = f"T{number}"
            engine.enqueue("S", train)
            engine.enqueue(name, train)
            single = au.Query(select(query, name), results="count")
            first.append(_seconds(lambda: engine.modify(add={f"first{number}": single})))  # noqa: B023
            engine.enqueue(name, train)
            text = (
                f"select S.index from S [rows 1], {name} [rows 1] where S.{field} = {name}.{field}"
            )
            pairs = au.Query(text, results="count")
            joins.append(_seconds(lambda: engine.modify(add={f"join{number}": pairs})))  # noqa: B023
            engine.enqueue(name, seven)
            engine.enqueue("S", train)
            engine.drain()
            found = matches(engine)
            right += found[f"first{number}"] == count_matches([train, seven], [query])[0]
            right += found[f"join{number}"] == int((train[field].to_numpy() == 7).sum())
    there = f"{count:,}, and {train.num_rows:,} tuples wait"
    _rows(section, "the first query over a stream is added", there, first)
    _rows(section, "a join of what was not joined is added", there, joins)
    worst = max(*first, *joins) * 1e3
    report.bar("changes: ms to add queries that need other eddies, worst", worst, most=_MOST_MS)
    name = "changes: such queries that count what comes after them"
    report.bar(name, right / (2 * times), least=1.0)


def _boxes(report: Report, section: Section, lab: Lab) -> None:
    """Queries that run as boxes, and some whose sinks have not got everything, come and go."""
    lab.say("queries that come and go, with boxes and with sinks")
    count, times = lab.rows(_QUERIES), 5
    (train,) = uniform_trains(1, lab.rows(_TRAIN))
    net = random_network(random_queries(count))
    net.stream("T", SCHEMA)
    where = f"where {FIELDS[0]} > 90"
    expected = int((train[FIELDS[0]].to_numpy() > 90).sum())
    added: list[float] = []
    removed: list[float] = []
    ended: list[float] = []
    asked: list[float] = []
    right = 0
    with lab.engine(net, train.num_rows) as engine:
        feed(engine, "S", train)
        for number in range(times):
            boxes, sunk = f"boxes{number}", f"sunk{number}"
            got: list[int] = []
            engine.modify(add={sunk: f"select index from S {where}"})
            engine.bind_sink(sunk, lambda delivery: got.append(delivery.table.num_rows))  # noqa: B023
            engine.enqueue("S", train)
            text = f"select index from S union T {where}"
            added.append(_seconds(lambda: engine.modify(add={boxes: text})))  # noqa: B023
            engine.enqueue("S", train)
            ended.append(_seconds(lambda: engine.modify(remove=[sunk])))  # noqa: B023
            engine.enqueue("S", train)
            engine.drain()
            right += engine.dequeue(boxes).num_rows == 2 * expected
            right += sum(got) == 2 * expected
            engine.enqueue("S", train)
            removed.append(_seconds(lambda: engine.modify(remove=[boxes])))  # noqa: B023
        for number in range(times):
            asks, text = f"asks{number}", f"select soundex('{number}') as s from S {where}"
            engine.enqueue("S", train)
            asked.append(_seconds(lambda: engine.modify(add={asks: text})))  # noqa: B023
            engine.enqueue("S", train)
            engine.drain()
            right += engine.dequeue(asks).num_rows == expected
            engine.modify(remove=[asks])
    there = f"{count:,}, and {train.num_rows:,} tuples wait"
    _rows(section, "a query that runs as boxes is added", there, added)
    _rows(section, "a query that runs as boxes is removed", there, removed)
    _rows(section, "a query with a sink is removed", there, ended)
    _rows(section, "a query with a function only Spark knows is added", there, asked)
    worst = max(*added, *removed, *ended) * 1e3
    report.bar("changes: ms to change queries with boxes or sinks, worst", worst, most=_MOST_MS)
    one = statistics.median(asked) * 1e3
    report.bar(
        "changes: ms to add a query with a function only Spark knows", one, most=_MOST_ASKED_MS
    )
    name = "changes: such queries that give what comes while they are there"
    report.bar(name, right / (3 * times), least=1.0)


def _family(report: Report, section: Section, lab: Lab) -> None:
    """With a state directory: every change is on disk, and there after a restart."""
    lab.say("queries that come and go, rules of a family")
    count, many, times = lab.rows(_RULES), lab.rows(_MANY), lab.steps(20, 3)
    rules = price_rules(count + many)
    net = au.Network("alerts")
    net.stream("ticks", TICKS)
    values = rules.slice(0, count)
    net.family("prices", FAMILIES["prices"], values=values, key="rule", results="count")
    train = ticks(lab.rows(_TRAIN), 1)
    added: list[float] = []
    removed: list[float] = []

    def opened() -> au.Engine:
        state = lab.place / "changes"
        return au.Engine(net, spark=lab.spark, train=train.num_rows, background=False, state=state)

    with opened() as engine:
        feed(engine, "ticks", train)
        for number in range(times):
            row = rules.slice(count + number, 1).to_pylist()
            added.append(_seconds(lambda: engine.modify(add={"prices": row})))  # noqa: B023
            feed(engine, "ticks", train)
            name = f"prices[{count + number}]"
            removed.append(_seconds(lambda: engine.modify(remove=[name])))  # noqa: B023
        fresh = rules.slice(count + times)
        all_added = _seconds(lambda: engine.modify(add={"prices": fresh}))
        feed(engine, "ticks", train)
    engine = opened()
    restarted = _seconds(engine.start)
    try:
        feed(engine, "ticks", train)
        table = matches_by_rule(engine, "prices")
        found = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    finally:
        engine.shutdown()
    expected = _expected(rules, train, count, times)
    _rows(section, "a rule is added", count, added)
    _rows(section, "a rule is removed", count + 1, removed)
    _rows(section, f"{fresh.num_rows:,} rules are added", count, [all_added])
    _rows(section, "restart", count + fresh.num_rows, [restarted])
    one = statistics.median(added) * 1e3
    report.bar(f"changes: ms to add a rule to {count:,}", one, most=_MOST_MS)
    right = sum(found.get(rule, 0) == times_ for rule, times_ in expected.items())
    same = right / len(expected) if found.keys() <= expected.keys() else 0.0
    report.bar("changes: rules that agree with numpy after a restart", same, least=1.0)


def _expected(rules: pa.Table, train: pa.Table, count: int, times: int) -> dict[int, int]:
    """How often each rule that is left has fired: before the restart and after it."""
    once, _ = fired(train, rules, range_rules(1))
    seen = {
        **dict.fromkeys(range(count), 2 + times + 1),
        **dict.fromkeys(range(count + times, rules.num_rows), 2),
    }
    return {rule: int(once[rule]) * trains for rule, trains in seen.items()}


def _meanwhile(engine: au.Engine, train: pa.Table, action: Callable[[], object]) -> list[float]:
    """How long trains take while something is done in a thread of its own; at least one."""
    seconds: list[float] = []
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(action)
        while not seconds or not done.done():
            seconds.append(feed(engine, "S", train))
        done.result()
    return seconds


def _counted(query: Conjunction) -> au.Query:
    return au.Query(select(query), results="count")


def _seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _rows(section: Section, change: str, there: int | str, seconds: Sequence[float]) -> None:
    worst = max(seconds) * 1e3
    median = statistics.median(seconds) * 1e3
    section.rows.append((change, there, len(seconds), median, worst))
