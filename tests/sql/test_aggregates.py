"""What aggregates mean, and how an expression is divided into them."""

# ruff: noqa: E501  (a case a line)

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from auroral.errors import NetworkError
from auroral.network.types import Schema, Type
from auroral.sql.aggregates.analysis import aggregate_evaluator, analyze_aggregate
from auroral.sql.aggregates.calls import AggregateCall
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS

SCHEMA = Schema.parse(
    "i int, l bigint, d double, m decimal(8,2), w decimal(38,0), s string, b boolean, "
    "k map<string,int>, t timestamp"
)
NAN, INF = math.nan, math.inf


def rows(column: str, *values: Any) -> list[dict[str, Any]]:
    """Rows of which only one or two columns are not NULL: `rows("i s", (1, "a"), …)`."""
    names = column.split()
    tuples = [value if len(names) > 1 else (value,) for value in values]
    return [
        {**dict.fromkeys(SCHEMA.names), **dict(zip(names, value, strict=True))} for value in tuples
    ]


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("count(*)", rows("i", 1, None), 2),
        ("count(*)", [], 0),
        ("count(i)", rows("i", 1, None), 1),
        ("count(NULL)", rows("i", 1, None), 0),
        ("count(i, s)", rows("i s", (1, "a"), (1, None), (None, "a")), 1),
        ("count(DISTINCT i)", rows("i", 1, None, 2, 1), 2),
        ("count(DISTINCT d)", rows("d", 0.0, -0.0, NAN, NAN, None), 2),
        ("count(DISTINCT i, s)", rows("i s", (1, "a"), (1, "a"), (1, "b"), (1, None)), 2),
        ("approx_count_distinct(s, 0.01)", rows("s", "a", "b", "a", None), 2),
        ("count_if(i > 1)", rows("i", 1, 2, None, 3), 2),
        ("count_if(b)", [], 0),
        ("regr_count(d, i)", rows("d i", (1.0, 1), (1.0, None), (None, 1)), 1),
        ("sum(i)", rows("i", 1, None, 2), 3),
        ("sum(i)", rows("i", None), None),
        ("sum(l)", rows("l", 2**63 - 1, 1), -(2**63)),
        ("try_sum(l)", rows("l", 2**63 - 1, 1, -5), None),
        ("try_sum(l)", rows("l", 2**63 - 1, -5, 1), 2**63 - 5),
        ("sum(d)", rows("d", 0.1, 0.2, 0.3), 0.1 + 0.2 + 0.3),
        ("sum(d)", rows("d", 1e16, 1.0, -1e16), 0.0),
        ("sum(DISTINCT d)", rows("d", 0.5, 0.5, 1.0), 1.5),
        ("sum(ALL i)", rows("i", 1, 1), 2),
        ("sum(s)", rows("s", "1", "x", "2.5"), 3.5),
        ("sum(m)", rows("m", Decimal("1.10"), Decimal("2.20")), Decimal("3.30")),
        ("sum(w)", rows("w", Decimal(10**38 - 1), Decimal(1)), None),
        ("sum(w)", rows("w", Decimal(10**38 - 1), Decimal(1), Decimal(-2)), Decimal(10**38 - 2)),
        ("avg(w)", rows("w", Decimal(10**33), Decimal(1)), Decimal(f"5{'0' * 32}.5000")),
        ("avg(i)", rows("i", 1, 2, None), 1.5),
        ("avg(i)", [], None),
        ("mean(m)", rows("m", Decimal("0.01"), Decimal("0.01"), Decimal("0.00")), Decimal("0.006667")),
        ("try_avg(m)", rows("m", Decimal("-0.01"), Decimal("0.00")), Decimal("-0.005000")),
        ("min(d)", rows("d", NAN, 1.0, None), 1.0),
        ("max(d)", rows("d", INF, NAN, 1.0), NAN),
        ("max(d)", rows("d", -0.0, 0.0, -0.0), 0.0),
        ("max(s)", rows("s", "b", "ab", "é"), "é"),
        ("min(b)", rows("b", True, False), False),
        ("first(i)", rows("i", None, 1), None),
        ("first(i, true)", rows("i", None, 1, 2), 1),
        ("first(i) IGNORE NULLS", rows("i", None, 1, 2), 1),
        ("first(i IGNORE NULLS)", rows("i", None, 1, 2), 1),
        ("first(i) RESPECT NULLS", rows("i", None, 1, 2), None),
        ("last_value(i, true)", rows("i", 1, 2, None), 2),
        ("any_value(i)", rows("i", 3, 4), 3),
        ("max_by(s, i)", rows("s i", ("a", 1), ("b", 2), ("c", 2), ("d", None)), "b"),
        ("min_by(s, i)", rows("s i", ("a", 2), (None, 1), ("c", 1)), None),
        ("bool_and(b)", rows("b", True, None, True), True),
        ("every(b)", rows("b", True, False), False),
        ("some(b)", rows("b", None), None),
        ("any(b)", rows("b", False, True), True),
        ("bit_and(i)", rows("i", 6, 3), 2),
        ("bit_or(i)", rows("i", 6, None, 3), 7),
        ("bit_xor(i)", rows("i", 6, 3), 5),
        ("collect_list(i)", rows("i", 2, None, 1, 2), [2, 1, 2]),
        ("array_agg(i)", [], []),
        ("collect_set(i)", rows("i", 2, None, 1, 2), [2, 1]),
        ("mode(i)", rows("i", 3, 3, 1, 1, 2, None, None, None), 1),
        ("mode(s)", rows("s", None), None),
        ("median(i)", rows("i", 4, 1, None, 2, 3), 2.5),
        ("percentile(i, 0.25)", rows("i", 10, 20), 12.5),
        ("percentile(i, array(0, 0.5, 1))", rows("i", 1, 3, 8), [1.0, 3.0, 8.0]),
        ("percentile(i, array(0.5))", [], None),
        ("var_pop(i)", rows("i", 1, 2, 3, 4), 1.25),
        ("variance(i)", rows("i", 1, 3), 2.0),
        ("stddev(i)", rows("i", 5), None),
        ("std(i)", rows("i", 2, 4, 4, 4, 5, 5, 7, 9), math.sqrt(32 / 7)),
        ("stddev_pop(i)", rows("i", 2, 4, 4, 4, 5, 5, 7, 9), 2.0),
        ("skewness(i)", rows("i", 1, 2, 3), 0.0),
        ("kurtosis(i)", rows("i", 1, 1), None),
        ("corr(i, d)", rows("i d", (1, 2.0), (2, 4.0)), 1.0),
        ("covar_pop(i, d)", rows("i d", (1, 2.0), (3, 4.0), (None, 9.0)), 1.0),
        ("covar_samp(i, d)", rows("i d", (1, 2.0), (3, 4.0)), 2.0),
        ("sum(i) FILTER (WHERE s = 'a')", rows("i s", (1, "a"), (2, "b"), (3, None)), 1),
        ("count(DISTINCT i) FILTER (WHERE i > 1)", rows("i", 1, 2, 2), 1),
        ("max(i) - min(i)", rows("i", 3, 8), 5),
        ("sum(i) / count(*)", rows("i", 3, 4), 3.5),
        ("CASE WHEN sum(i) BETWEEN 1 AND 5 THEN 'few' ELSE 'many' END", rows("i", 3, 4), "many"),
    ],
)  # fmt: skip
def test_value(text: str, given: list[dict[str, Any]], value: Any) -> None:
    found = aggregate_evaluator(text, SCHEMA)(given)
    assert repr(found) == repr(value)


def test_groups_are_read_from_the_rows() -> None:
    evaluate = aggregate_evaluator("i + count(*)", SCHEMA, groups=("i",))
    assert evaluate(rows("i", 5, 5)) == 7


@pytest.mark.parametrize(
    ("text", "calls", "outer"),
    [
        ("count(*)", ["count()"], None),
        (" ( count( * ) ) ", ["count()"], None),
        ("SUM( i /* x */ + 1 )", ["sum(i /* x */ + 1)"], None),
        ("sum(i)/count(*)", ["sum(i)", "count()"], "agg0/agg1"),
        ("sum(i) + sum( i ) * max(`l`)", ["sum(i)", "max(`l`)"], "agg0 + agg0 * agg1"),
        ("round(avg(d), 2)", ["avg(d)"], "round(agg0, 2)"),
        ("sum(i) BETWEEN 1 AND 5", ["sum(i)"], "agg0 BETWEEN 1 AND 5"),
        ("cast(max(i) FILTER (WHERE s = ')') AS string)", ["max(i | s = ')')"], "cast(agg0 AS string)"),
        ("sum(s)", ["sum(CAST((s) AS double))"], None),
        ("stddev(m)", ["stddev_samp(CAST((m) AS double))"], None),
        ("stddev(i)", ["stddev_samp(i)"], None),
        ("count(NULL)", ["count(CAST((NULL) AS boolean))"], None),
        ("any_value(concat(s, ',)'))", ["first(concat(s, ',)'))"], None),
        ("count(DISTINCT i, s)", ["count(DISTINCT i, s)"], None),
        ("approx_count_distinct(i)", ["count(DISTINCT i)"], None),
        ("max(DISTINCT i)", ["max(i)"], None),
    ],
)  # fmt: skip
def test_division_into_calls(text: str, calls: list[str], outer: str | None) -> None:
    found = analyze_aggregate(text, SCHEMA)
    assert ([shown(call) for call in found.calls], found.outer) == (calls, outer)


def shown(call: AggregateCall) -> str:
    where = f" | {call.where}" if call.where else ""
    return f"{call.name}({'DISTINCT ' if call.distinct else ''}{', '.join(call.args)}{where})"


def test_constant_arguments_are_literals() -> None:
    (call,) = analyze_aggregate("percentile(d, array(0.25, 1))", SCHEMA).calls
    assert (call.args, call.literals) == (("d",), ((0.25, 1.0),))
    (call,) = analyze_aggregate("median(d)", SCHEMA).calls
    assert (call.name, call.literals) == ("percentile", (0.5,))
    (call,) = analyze_aggregate("last(d, true)", SCHEMA).calls
    assert (call.args, call.ignore_nulls) == (("d",), True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sum(avg(i))", "AGGREGATE"),
        ("sum(i) FILTER (WHERE max(i) > 1)", "AGGREGATE"),
        ("upper(DISTINCT s)", "AGGREGATE"),
        ("sum(i) FILTER (WHERE i)", "TYPE_MISMATCH"),
        ("sum(i) FILTER (WHERE x > 1)", "UNKNOWN_FIELD"),
        ("sum(i) FILTER (i > 1)", "SYNTAX_ERROR"),
        ("sum(i) IGNORE NULLS", "BAD_AGGREGATE"),
        ("first(i, b)", "TYPE_MISMATCH"),
        ("percentile(i, 1.5)", "BAD_AGGREGATE"),
        ("percentile(i, d)", "BAD_AGGREGATE"),
        ("percentile(i, NULL)", "BAD_AGGREGATE"),
        ("max(k)", "TYPE_MISMATCH"),
        ("count(DISTINCT k)", "TYPE_MISMATCH"),
        ("max_by(i, k)", "TYPE_MISMATCH"),
        ("corr(i, b)", "TYPE_MISMATCH"),
        ("first(NULL)", "UNTYPED_NULL"),
        ("mode() WITHIN GROUP (ORDER BY i)", "UNSUPPORTED_AGGREGATE"),
    ],
)
def test_refused(text: str, code: str) -> None:
    with pytest.raises(NetworkError) as raised:
        analyze_aggregate(text, SCHEMA)
    assert raised.value.code == code


def test_what_only_spark_has_is_refused_with_a_list_of_what_there_is() -> None:
    found = analyze_aggregate("hll_sketch_agg(i)", SCHEMA, resolver=lambda *_: Type("binary"))
    with pytest.raises(NetworkError) as raised:
        _ = found.calls
    assert raised.value.code == "UNSUPPORTED_AGGREGATE"
    assert all(name in raised.value.message for name in AGGREGATE_FUNCTIONS)
    with pytest.raises(NetworkError) as raised:
        aggregate_evaluator("histogram_numeric(i, 3)", SCHEMA)
    assert raised.value.code == "UNSUPPORTED_AGGREGATE"


def test_arguments_only_spark_knows_are_asked_of_it_when_they_are_computed() -> None:
    asked: list[str] = []

    def resolver(text: str, schema: Schema) -> Type:
        asked.append(text)
        return Type("int")

    found = analyze_aggregate("sum(ascii( s )) + nosuch(max(i))", SCHEMA, resolver=resolver)
    assert [shown(call) for call in found.calls] == ["sum(ascii( s ))", "max(i)"]
    assert found.outer == "agg0 + nosuch(agg1)"
    found = analyze_aggregate("sum(soundex2( s ))", SCHEMA, resolver=resolver)
    assert found.calls[0].type == Type("bigint")
    assert asked[-1] == "soundex2( s )"
    with pytest.raises(NetworkError, match="only Spark can evaluate soundex2"):
        aggregate_evaluator("sum(soundex2(s))", SCHEMA)


def test_scalars_still_refuse_aggregates_with_clauses() -> None:
    from auroral.sql.expressions.expression import analyze

    for text in ("sum(i) FILTER (WHERE b)", "count(DISTINCT i)", "first(i) IGNORE NULLS"):
        with pytest.raises(NetworkError) as raised:
            analyze(text, SCHEMA)
        assert raised.value.code == "AGGREGATE"
