"""Late tuples of queries: read by outputs and sinks as those of boxes are."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import auroral as au
from auroral.boxes import Filter
from auroral.errors import NetworkError, UsageError
from auroral.io.sinks.sink import Delivery
from auroral.reference import Reference
from tests.conformance import sparkless

COUNTS = (
    "SELECT k, count(*) AS n, sum(x) AS sx FROM S [RANGE 4, SLIDE 2, WA at] WHERE x > 0 GROUP BY k"
)
PAIRS = (
    "SELECT S.x, T.x AS y FROM S, T"
    " WHERE S.k = T.k AND S.at <= T.at + 2 AND T.at <= S.at + 2 AND S.x > 0"
)
ROWS = [(1, 5, 1), (1, 5, 9), (2, 7, 3), (1, -1, 2), (2, 8, 8), (1, 3, None)]
"""k, x, at: (2, 7, 3) is late for both of its windows; (1, -1, 2) is, too, but not wanted."""


def network(sql: str = COUNTS, **outputs: str) -> au.Network:
    net = au.Network("late")
    for name in "ST":
        net.stream(name, "k int, x int, at int", progress=au.Ordered("at"))
    net.query("q", sql)
    for name, arc in outputs.items():
        net.output(name, arc)
    return net


def results(net: au.Network, rows: list[Any], *names: str, stream: str = "S") -> list[Any]:
    with sparkless.make_engine(net) as engine:
        engine.enqueue(stream, rows)
        engine.drain()
        return [[tuple(r.values()) for r in engine.dequeue(n).to_pylist()] for n in names]


def test_late_tuples_that_a_query_wanted_leave_on_its_late_arc() -> None:
    plain, (with_late, missed) = (
        results(network(), ROWS, "q")[0],
        results(network(missed="q.late"), ROWS, "q", "missed"),
    )
    assert missed == [(2, 7, 3), (1, 3, None)]
    assert with_late == plain, "results are the same, whoever reads what is late"


def test_they_are_counted_by_reason_whether_shared_or_not() -> None:
    for net, shared in ((network(), True), (network(missed="q.late"), False)):
        with sparkless.make_engine(net) as engine:
            engine.enqueue("S", ROWS)
            engine.drain()
            told = engine.stats()
            assert told["queries"]["q"]["shared"] is shared
            assert told["queries"]["q"]["late"] == {"late": 1, "null": 1}
            assert told["late"] == 2


def test_the_reference_says_the_same_of_random_data() -> None:
    for seed in range(6):
        rng = Random(seed)
        rows = [
            (rng.choice([1, 2, None]), rng.randint(-1, 5), rng.choice([None, *range(n, n + 9)]))
            for n in range(40)
        ]
        net = network(missed="q.late")
        reference = Reference(net)
        for row in rows:
            reference.push("S", row)
        expected = [
            [tuple(row.values()) for row in reference.collected(name)] for name in ("q", "missed")
        ]
        assert expected[1], "some are late"
        assert results(net, rows, "q", "missed") == expected
        assert results(network(), rows, "q") == expected[:1], "as when it is shared"


def test_a_join_of_two_has_a_late_arc_for_each_side() -> None:
    net = network(PAIRS, left="q.left_late", right="q.right_late")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("S", [(1, 5, 9), (1, 6, 3), (1, -6, 3)])
        engine.enqueue("T", [(1, 7, 10), (1, 8, 9), (1, 9, 11)])
        engine.drain()
        found = {n: engine.dequeue(n).to_pylist() for n in ("q", "left", "right")}
    assert [tuple(row.values()) for row in found["q"]] == [(5, 7), (5, 9)]
    assert [row["x"] for row in found["left"]] == [6], "−6 is late, but was not wanted"
    assert [row["x"] for row in found["right"]] == [8]


def test_a_sink_may_be_bound_to_it_and_survives_restarts(tmp_path: Path) -> None:
    got: list[Any] = []

    def take(delivery: Delivery) -> None:
        got.extend(row["x"] for row in delivery.table.to_pylist())

    for batch in (ROWS[:3], ROWS[3:], [(1, 4, 0)]):
        engine = au.Engine(
            network(), executor=sparkless.InProcessExecutor(), state=tmp_path, background=False
        )
        engine.bind_sink("q.late", take)
        with engine:
            engine.enqueue("S", batch)
            engine.drain()
    assert got == [7, 3, 4]


def test_a_query_whose_late_tuples_are_read_stays() -> None:
    with sparkless.make_engine(network(missed="q.late")) as engine:
        with pytest.raises(UsageError, match=r"HAS_OUTPUT.*missed reads its late tuples"):
            engine.modify(remove=["q"])
        engine.enqueue("S", ROWS)
        engine.drain()
        assert engine.dequeue("q.late").num_rows == 2
        assert engine.dequeue("missed").num_rows == 0, "these are two names of one output"


@pytest.mark.parametrize(
    ("sql", "arc", "problem"),
    [
        ("SELECT x FROM S WHERE x > 0", "q.late", "UNKNOWN_ARC.*q.late"),
        (COUNTS, "q.lat", "UNKNOWN_ARC.*q.lat; .*q.late"),
        (PAIRS, "q.late", "UNKNOWN_ARC.*q.late; .*q.left_late"),
        (
            "SELECT a.x FROM S [ROWS 2] AS a, S [ROWS 2] AS b, T [ROWS 2] AS c WHERE a.k = c.k",
            "q.late",
            "BAD_QUERY.*a join of 3 streams",
        ),
    ],
)
def test_arcs_that_there_are_not(sql: str, arc: str, problem: str) -> None:
    with pytest.raises(NetworkError, match=problem):
        network(sql, missed=arc).check()


def test_a_family_has_no_late_arc() -> None:
    net = network()
    net.family("f", f"{COUNTS} HAVING n > :n", [{"rule": 1, "n": 1}], "rule")
    net.output("missed", "f.late")
    with pytest.raises(NetworkError, match=r"BAD_QUERY.*a family"):
        net.check()


def test_boxes_do_not_read_queries() -> None:
    net = network()
    net.boxes["b"] = Filter(input="q.late", where="x > 1")
    with pytest.raises(NetworkError, match=r"UNKNOWN_ARC.*q.late is of the query q.*outputs"):
        net.check()
