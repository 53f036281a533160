"""How an eddy routes: filters visited per tuple [5 Table 3], shares over time [5 Table 4]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import auroral as au
from auroral.errors import RunError
from benchmarks.cacq.data import FIELDS, SCHEMA, uniform_trains
from benchmarks.cacq.lab import feed
from benchmarks.lab import Lab
from benchmarks.report import Report

TABLE_3 = "Table 3, Figure 9: filters visited per tuple"
TABLE_4 = "Table 4, Figure 10: tickets as queries come, workload {}"
POLICIES = ("tickets", "random", "fixed", "optimal")
_TRAIN = 100_000
_WARM = 5
_BATCHES = 8
"""Batches between one new query and the next."""
_SETTLED = 5
_TOLERANCE = 0.1
"""Shares that differ by no more are settled."""


def _nested(limits: Sequence[int]) -> list[str]:
    """Queries of which each has one predicate more than the last."""
    tests = [f"{field} > {limit}" for field, limit in zip(FIELDS, limits, strict=True)]
    return [" and ".join(tests[: number + 1]) for number in range(len(tests))]


FIVE = _nested((90, 70, 50, 30, 10))
WORKLOADS: dict[int, list[str]] = {
    1: [f"{f} > {limit}" for f, limit in zip(FIELDS, (30, 50, 10, 40, 90), strict=True)],
    2: _nested((10, 10, 10, 10, 10)),
    3: _nested((10, 30, 50, 70, 90)),
}
ORDERED: dict[int, tuple[tuple[str, str], ...]] = {
    1: (("e", "b"), ("b", "d"), ("d", "a"), ("a", "c")),
    2: (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")),
    3: (("a", "d"), ("a", "e"), ("b", "d"), ("b", "e"), ("c", "d"), ("c", "e")),
}
"""Which filter has more tickets than which once all queries are there, as the paper tells."""


def routing_network(policy: str, wheres: Sequence[str]) -> au.Network:
    """S under a routing policy."""
    net = au.Network("routing")
    net.engine = au.EngineOptions(routing=policy)
    net.stream("S", SCHEMA)
    for number, where in enumerate(wheres, 1):
        net.query(f"q{number}", _query(where), results="count")
    return net


def table_3(report: Report, lab: Lab) -> None:
    """Five queries that share predicates under each policy."""
    section = report.section(TABLE_3, "policy", "filters_per_tuple", "paper", *FIELDS)
    paper = {"tickets": "1.3", "random": "3.2", "fixed": "", "optimal": "1.15"}
    trains = uniform_trains(_WARM + lab.steps(20, 8), lab.rows(_TRAIN))
    for policy in POLICIES:
        with lab.engine(routing_network(policy, FIVE), trains[0].num_rows) as engine:
            for train in trains[:_WARM]:
                feed(engine, "S", train)
            before = routed(engine)
            for train in trains[_WARM:]:
                feed(engine, "S", train)
            visits = {field: count - before[field] for field, count in routed(engine).items()}
        tuples = sum(train.num_rows for train in trains[_WARM:])
        visited = {field: visits[field] / tuples for field in FIELDS}
        section.rows.append((policy, sum(visited.values()), paper[policy], *visited.values()))
        if policy == "tickets":
            name = "Table 3: filters visited per tuple with tickets"
            report.bar(name, sum(visited.values()), most=1.2)


def table_4(report: Report, lab: Lab) -> None:
    """Queries come one after the other; shares of the tickets after every batch."""
    for number, wheres in WORKLOADS.items():
        section = report.section(TABLE_4.format(number), "batch", "filter", "share")
        history = introduce(lab, wheres)
        for batch, shares in enumerate(history):
            section.rows.extend((batch, field, 100 * share) for field, share in shares.items())
        slowest = max(
            settled_after(history[first : first + _BATCHES])
            for first in range(0, len(history), _BATCHES)
        )
        report.bar(f"Table 4, workload {number}: batches to settle", slowest, most=_SETTLED)
        report.bar(
            f"Table 4, workload {number}: pairs of filters in the paper's order",
            in_order(history[-_BATCHES + _SETTLED :], ORDERED[number]),
            least=1.0,
        )


def introduce(lab: Lab, wheres: Sequence[str]) -> list[dict[str, float]]:
    """Add queries one by one; returns the shares of filters after each batch."""
    trains = uniform_trains(len(wheres) * _BATCHES, lab.rows(_TRAIN))
    history: list[dict[str, float]] = []
    with lab.engine(routing_network("tickets", ()), trains[0].num_rows) as engine:
        for batch, train in enumerate(trains):
            if batch % _BATCHES == 0:
                number = batch // _BATCHES
                asked = au.Query(_query(wheres[number]), results="count")
                engine.modify(add={f"q{number + 1}": asked})
            feed(engine, "S", train)
            told = figures(engine.stats(), used(wheres[: batch // _BATCHES + 1]), "share")
            history.append({field: told.get(field, 0.0) for field in FIELDS})
    return history


def settled_after(history: Sequence[Mapping[str, float]]) -> int:
    """After how many batches shares stay within a tenth of where they end."""
    late = history[-max(len(history) // 3, 1) :]
    final = {f: sum(shares[f] for shares in late) / len(late) for f in late[0]}
    for batch in range(len(history), 0, -1):
        if any(abs(history[batch - 1][f] - final[f]) > _TOLERANCE for f in final):
            return batch + 1
    return 1


def in_order(history: Sequence[Mapping[str, float]], pairs: Sequence[tuple[str, str]]) -> float:
    """Which part of the pairs has more tickets for the first than for the second, on average."""
    mean = {f: sum(shares[f] for shares in history) / len(history) for f in history[0]}
    return sum(mean[one] > mean[other] for one, other in pairs) / len(pairs)


def used(wheres: Sequence[str]) -> list[str]:
    """The fields that queries have predicates on."""
    return [field for field in FIELDS if any(f"{field} >" in where for where in wheres)]


def routed(engine: au.Engine) -> dict[str, float]:
    """Tuples sent to each filter so far."""
    return figures(engine.stats(), FIELDS, "routed")


def figures(stats: Mapping[str, Any], fields: Sequence[str], name: str) -> dict[str, float]:
    """What the eddy tells of its filters; one it does not tell of would look like a good one."""
    filters = stats["eddies"]["S"]["arcs"]["S"]["filters"]
    missing = [field for field in fields if field not in filters]
    if missing:
        raise RunError("NO_FILTER", f"the eddy does not tell of {', '.join(missing)}")
    found = {field: float(filters[field][name]) for field in fields}
    if not sum(found.values()):
        raise RunError("NO_FIGURES", f"the eddy tells no {name} of any filter")
    return found


def _query(where: str) -> str:
    return f"select index from S where {where}"
