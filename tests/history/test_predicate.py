"""Intervals of a key: what SQL demands, compared with the reference evaluator."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.history import Interval, KeyPredicate, can_be_key, key_predicate
from auroral.network.types import Schema, Type
from auroral.sql.expressions.expression import evaluator

SCHEMA = Schema.parse(
    "k int, other int, name string, ratio double, price decimal(10,2), at timestamp"
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("k = 3", (Interval(3, 3),)),
        ("3 = k", (Interval(3, 3),)),
        ("K = 3", (Interval(3, 3),)),
        ("k <=> 3", (Interval(3, 3),)),
        ("k > 2.5", (Interval(3, None),)),
        ("k BETWEEN 3 AND 7", (Interval(3, 7),)),
        ("k IN (3, 4, NULL)", (Interval(3, 3), Interval(4, 4))),
        ("k = 3 OR k > 9", (Interval(3, 3), Interval(9, None, closed_low=False))),
        ("k = 3 AND other > 5", (Interval(3, 3),)),
        ("NOT (k < 3)", (Interval(3, None),)),
        ("k = 3 AND k = 4", ()),
        ("k = NULL", ()),
        ("k = 3 AND (other = 1 OR k = 9)", (Interval(3, 3),)),
    ],
)
def test_what_sql_demands_of_a_key(where: str, expected: tuple[Interval, ...]) -> None:
    found = key_predicate(where, SCHEMA, "k")
    assert found is not None
    assert found.key == "k"
    assert found.intervals == expected


@pytest.mark.parametrize(
    "where",
    [
        "other = 3",
        "k = 3 OR other = 4",
        "k + 1 = 3",
        "k <> 3",
        "k = other",
        "k IS NULL",
        "abs(k) = 3",
    ],
)
def test_what_says_nothing_of_a_key_demands_nothing(where: str) -> None:
    assert key_predicate(where, SCHEMA, "k") is None


def test_text_times_and_decimals() -> None:
    def demanded(where: str, key: str) -> tuple[Interval, ...]:
        found = key_predicate(where, SCHEMA, key)
        assert found is not None
        return found.intervals

    assert demanded("name LIKE 'ab%'", "name") == (Interval("ab", "ac", closed_high=False),)
    assert demanded("price = 1.5", "price") == (Interval(Decimal("1.50"), Decimal("1.50")),)
    noon = datetime(2024, 2, 29, 12, tzinfo=UTC)
    micros = int(noon.timestamp()) * 10**6
    assert demanded("at >= TIMESTAMP '2024-02-29 12:00:00'", "at") == (Interval(micros, None),)


def test_nan_is_the_greatest_number() -> None:
    column = pa.chunked_array([pa.array([1.0, math.nan, None, -0.0, math.inf])])

    def holds(*intervals: Interval) -> list[bool]:
        found: list[bool] = KeyPredicate("k", intervals).mask(column).to_pylist()
        return found

    assert holds(Interval(0.0, 0.0)) == [False, False, False, True, False]
    assert holds(Interval(1.0, None)) == [True, True, False, False, True]
    assert holds(Interval(None, math.inf)) == [True, False, False, True, True]
    assert holds(Interval(math.nan, math.nan)) == [False, True, False, False, False]
    assert holds(Interval(math.nan, None, closed_low=False)) == [False] * 5
    assert holds(Interval(None, math.nan)) == [True, True, False, True, True]
    assert holds(Interval(None, math.nan, closed_high=False)) == [True, False, False, True, True]
    assert holds() == [False] * 5


def test_types_that_have_no_order_are_no_keys() -> None:
    assert can_be_key(Type.parse("string"))
    assert not can_be_key(Type.parse("array<int>"))
    assert key_predicate("xs = array(1)", Schema.parse("xs array<int>"), "xs") is None


NUMBERS = st.integers(-4, 4)
LITERALS = {
    "k": NUMBERS.map(str) | st.sampled_from(["2.5", "-0.5", "1e0", "NULL", "'3'"]),
    "name": st.sampled_from(["''", "'a'", "'ab'", "'b'", "'\u20ac'"]),
    "ratio": NUMBERS.map(lambda n: f"{n}.5D") | st.sampled_from(["0.0D", "1", "double('NaN')"]),
    "price": NUMBERS.map(lambda n: f"{n}.25") | NUMBERS.map(str) | st.just("1.255"),
    "other": NUMBERS.map(str),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.none() | NUMBERS,
    "name": st.none() | st.sampled_from(["", "a", "ab", "abc", "b", "\u20ac"]),
    "ratio": st.none()
    | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0])
    | NUMBERS.map(lambda n: n + 0.5),
    "price": st.none() | NUMBERS.map(lambda n: Decimal(n) + Decimal("0.25")),
    "other": st.none() | NUMBERS,
}


@st.composite
def leaves(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(LITERALS)))
    literal = LITERALS[name]
    match draw(st.sampled_from(["compare", "flipped", "in", "between", "like", "null"])):
        case "compare":
            op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"]))
            return f"{name} {op} {draw(literal)}"
        case "flipped":
            return f"{draw(literal)} {draw(st.sampled_from(['=', '<', '>=']))} {name}"
        case "in":
            return f"{name} IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})"
        case "between":
            return f"{name} BETWEEN {draw(literal)} AND {draw(literal)}"
        case "like":
            return f"name LIKE {draw(st.sampled_from(['a%', '%', 'ab', '_b%']))!r}"
    return f"{name} IS {draw(st.sampled_from(['NULL', 'NOT NULL']))}"


PREDICATES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({' '.join(p)})"),
        inner.map(lambda p: f"(NOT ({p}))"),
    ),
    max_leaves=4,
)
ROWS = st.fixed_dictionaries(VALUES)


@given(PREDICATES, st.sampled_from(["k", "name", "ratio", "price"]), st.lists(ROWS, max_size=12))
def test_no_row_that_satisfies_the_sql_is_left_out(
    where: str, key: str, rows: list[dict[str, Any]]
) -> None:
    found = key_predicate(where, SCHEMA, key)
    if found is None:
        return
    holds = evaluator(where, SCHEMA)
    column = pa.chunked_array(
        [pa.array([row[key] for row in rows], SCHEMA.field(key).type.arrow())]
    )
    matched = found.mask(column).to_pylist()
    for row, match in zip(rows, matched, strict=True):
        if holds({**row, "at": None}) is True:
            assert match, (row, found)
