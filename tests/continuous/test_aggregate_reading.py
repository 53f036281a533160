"""Which aggregates share partial results, and what is read of them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import auroral as au
from auroral.continuous.boxing.compiler import compile_query
from auroral.continuous.sharing.aggregate_reading import (
    ReadAggregate,
    read_aggregate_family,
    read_shared_aggregate,
)
from auroral.continuous.sharing.families import family_constants
from auroral.continuous.sharing.predicates import NotShared
from auroral.errors import NetworkError
from auroral.network.box import Scope
from auroral.network.types import Schema, Type

ARCS = {
    "S": Schema.parse(
        "ts bigint, at timestamp, sym string, price double, cost decimal(8,2), n int, x double,"
        " tags array<int>, long decimal(30,2)"
    ),
    "T": Schema.parse("ts bigint, sym string"),
    "U": Schema.parse("ts bigint, sym string"),
}
PROGRESS = {"S": ["ts"], "T": ["ts"], "U": ["ts"]}


def read(sql: str) -> ReadAggregate:
    return read_shared_aggregate(sql, ARCS, PROGRESS)


def test_an_expression_is_the_same_wherever_it_is_listed() -> None:
    """Otherwise results that two queries share would have one column twice."""
    window = "FROM S [RANGE 60, SLIDE 10, WA ts] GROUP BY sym"
    (_, one), (other, _) = (
        read(f"SELECT {listed} {window}").items
        for listed in (
            "count(*) AS n, sum(x) + count(*) AS more",
            "sum(x) + count(*) AS more, count(x) AS n",
        )
    )
    assert one.attribute == other.attribute


def test_what_a_query_asks_for_is_read_from_its_boxes() -> None:
    found = read(
        "SELECT sym, ts AS start, avg(price) * 2 AS twice FROM S [RANGE 60, SLIDE 10, WA ts]"
        " WHERE n = 7 AND (price > 1.5 OR sym LIKE 'A%') GROUP BY sym HAVING count(*) >= 3"
    )
    assert (found.shape.arc, found.shape.on, found.shape.by) == ("S", "ts", ("sym",))
    assert [str(type) for type in found.shape.types] == ["bigint", "string"]
    assert (found.size, found.advance) == (60, 10)
    assert found.fields == ("ts", "sym", "price")
    assert [[(a.attribute.text, a.op, a.slot) for a in clause] for clause in found.clauses] == [
        [("n", "=", 0)],
        [("price", ">", 1), ("sym", "prefix", 2)],
    ]
    average, count = (call.name for call in found.calls)
    assert [[(a.attribute.text, a.op, a.slot) for a in clause] for clause in found.having] == [
        [(count, ">=", 3)]
    ]
    assert found.constants == (7, 1.5, "A", 3)
    assert found.constants_table().to_pylist() == [{"0": 7, "1": 1.5, "2": "A", "3": 3}]
    assert [(item.name, item.attribute.text) for item in found.items] == [
        ("sym", "sym"),
        ("start", "ts"),
        ("twice", f"{average} * 2"),
    ]
    assert str(found.schema()) == "sym string, start bigint, twice double"


def test_calls_that_are_written_otherwise_are_the_same() -> None:
    one = read("SELECT SUM( Price*2 ) AS a, Mean(price) AS b FROM S [RANGE 60, WA ts]")
    other = read("SELECT avg(PRICE) AS c, sum(price * 2) AS d FROM S [RANGE 7, SLIDE 3, WA ts]")
    assert one.shape == other.shape
    assert set(one.calls) == set(other.calls)
    assert {call.name for call in one.calls} == {call.name for call in other.calls}


def test_calls_with_another_filter_are_others() -> None:
    found = read(
        "SELECT sum(n) AS a, sum(n) FILTER (WHERE n > 1) AS b, sum(n) FILTER (WHERE n > 2) AS c"
        " FROM S [RANGE 60, WA ts]"
    )
    assert len({call.name for call in found.calls}) == 3
    assert [len(call.arguments) for call in found.calls] == [1, 2, 2]


@pytest.mark.parametrize(
    ("window", "lengths"),
    [
        ("RANGE 1 min, WA at", (60_000_000, 60_000_000)),
        ("RANGE 1 min, SLIDE 500 ms, WA at", (60_000_000, 500_000)),
        ("RANGE 0.5, SLIDE 0.25, WA cost", (50, 25)),
        ("RANGE 3, WA n", (3, 3)),
    ],
)
def test_lengths_are_in_units_of_marks(window: str, lengths: tuple[int, int]) -> None:
    found = read(f"SELECT count(*) AS n FROM S [{window}]")
    assert (found.size, found.advance) == lengths


def test_groups_by_progress_are_windows_of_the_least_size() -> None:
    found = read("SELECT ts, count(*) AS n FROM S GROUP BY ts")
    assert (found.shape.on, found.shape.by, found.size, found.advance) == ("ts", (), 1, 1)


def test_distinct_values_of_windows_are_groups() -> None:
    found = read("SELECT DISTINCT sym, n FROM S [RANGE 9, WA ts]")
    assert (found.shape.by, [item.name for item in found.items]) == (("sym", "n"), ["sym", "n"])


def test_a_predicate_that_never_holds_is_sought_in_vain() -> None:
    found = read("SELECT count(*) AS n FROM S [RANGE 9, WA ts] WHERE 1 = 2 AND 2 = 2")
    assert [(a.op, a.slot) for clause in found.clauses for a in clause] == [("in", 0)]
    assert found.constants == ([],)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM S [ROWS 10]",
        "SELECT n + 1 AS k, count(*) AS n FROM S [RANGE 9, WA ts] GROUP BY n + 1",
        "SELECT DISTINCT ts, sym FROM S",
        "SELECT count(*) AS n FROM T UNION U [RANGE 9, WA ts]",
        "SELECT T.sym, T.ts, count(*) AS n FROM T [RANGE 9, WA ts], U [RANGE 9, WA ts]"
        " WHERE T.sym = U.sym GROUP BY T.sym, T.ts",
        "SELECT sym FROM S WHERE n > 1",
        *(
            f"SELECT {call} AS v FROM S [RANGE 9, WA ts]"
            for call in (
                "first(sym)",
                "last(price)",
                "count(DISTINCT sym)",
                "stddev(price)",
                "collect_list(n)",
                "percentile(price, 0.5)",
                "max_by(sym, price)",
                "mode(sym)",
                "try_sum(n)",
                "corr(price, x)",
            )
        ),
        "SELECT max(tags) AS v FROM S [RANGE 9, WA ts]",
        "SELECT count(*) AS n FROM S [RANGE 0.5, WA price]",
        "SELECT count(*) AS n FROM S [RANGE 9, WA long]",
    ],
)
def test_others_are_not_shared(sql: str) -> None:
    try:
        compile_query("query", sql, ARCS, PROGRESS)
    except NetworkError as error:
        pytest.fail(f"{sql}: {error}")
    with pytest.raises(NotShared):
        read(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM R [RANGE 9, WA ts]",
        "SELECT sum(sym2) AS n FROM S [RANGE 9, WA ts]",
        "SELECT sym, count(*) AS n FROM S [RANGE 9, WA ts]",
        "SELECT count(*) AS n FROM S [RANGE 9, WA ts] WHERE n + 1",
        "SELECT count(*) AS n FROM S [RANGE 9, WA ts] HAVING price > 3",
        "SELECT count(*) AS n FROM S",
        "SELECT count(*) AS n FROM S [RANGE -9, WA ts]",
        "SELECT sum(tags) AS n FROM S [RANGE 9, WA ts]",
    ],
)
def test_mistakes_are_those_of_queries_that_are_not_shared(sql: str) -> None:
    with pytest.raises(NetworkError) as expected:
        compile_query("query", sql, ARCS, {})
    with pytest.raises(NetworkError) as found:
        read_shared_aggregate(sql, ARCS, {})
    assert str(found.value) == str(expected.value)


def test_what_only_spark_can_evaluate_is_not_shared() -> None:
    scope = Scope(resolver=lambda text, _: Type("boolean" if ">" in text else "double"))
    for part in ("sum(levenshtein(sym, 'a')) AS v FROM S [RANGE 9, WA ts]", "count(*) AS v FROM S"):
        where = "" if "sum" in part else " [RANGE 9, WA ts] WHERE soundex(sym) > 'a'"
        with pytest.raises(NotShared, match="Spark"):
            read_shared_aggregate(f"SELECT {part}{where}", ARCS, PROGRESS, scope=scope)


@pytest.mark.parametrize("call", ["count(*)", "count(DISTINCT n)", "median(n)"])
@pytest.mark.parametrize("window", ["RANGE 9, WA ts", "ROWS 3"])
def test_functions_in_python_are_refused(call: str, window: str) -> None:
    """In WHERE of anything but a selection or a join."""
    net = au.Network("n")
    net.stream("S", "ts bigint, n int", progress=au.Ordered("ts"))
    net.function("odd", lambda n: n, returns="boolean")
    net.query("q", f"SELECT {call} AS c FROM S [{window}] WHERE Odd(n)")
    with pytest.raises(au.NetworkError, match=r"BAD_QUERY: query q.*odd is a function in Python"):
        net.check()


def test_a_family_has_its_constants_from_a_table() -> None:
    found, family = read_aggregate_family(
        "SELECT sym, count(*) AS c FROM S [RANGE 9, WA ts] WHERE n > :low AND sym IN ('a', :sym)"
        " GROUP BY sym HAVING sum(cost) >= :least AND count(*) < 100",
        ARCS,
        PROGRESS,
        columns=Schema.parse("low bigint, sym string, least decimal(10,2)"),
    )
    values = pa.table(
        {
            "low": [3, 4],
            "sym": ["b", "c"],
            "least": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        }
    )
    assert family_constants(family, values).to_pylist() == [
        {"0": 3, "1": ["a", "b"], "2": Decimal("1.50"), "3": 100},
        {"0": 4, "1": ["a", "c"], "2": None, "3": 100},
    ]
    assert [[(a.op, a.slot) for a in clause] for clause in found.clauses] == [
        [(">", 0)],
        [("in", 1)],
    ]
    assert [[(a.op, a.slot) for a in clause] for clause in found.having] == [
        [(">=", 2)],
        [("<", 3)],
    ]


def test_parameters_stand_in_where_and_having_only() -> None:
    columns = Schema.parse("x int")
    for items in ("sum(n * :x) AS v", "sum(n) + :x AS v", "count_if(n > :x) AS v"):
        with pytest.raises(NotShared, match="WHERE and HAVING"):
            read_aggregate_family(
                f"SELECT {items} FROM S [RANGE 9, WA ts]", ARCS, PROGRESS, columns=columns
            )


def test_an_unknown_parameter_is_a_mistake() -> None:
    with pytest.raises(NetworkError, match="there is no column y among the values"):
        read_aggregate_family(
            "SELECT count(*) AS c FROM S [RANGE 9, WA ts] WHERE n = :y",
            ARCS,
            PROGRESS,
            columns=Schema.parse("x int"),
        )
