"""What expressions mean, as tables: no Spark, milliseconds."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from auroral.network.types import Schema
from auroral.sql.expressions.expression import analyze, evaluator

SCHEMA = Schema.parse(
    "i int, d double, s string, b boolean, t timestamp, day date, dec decimal(6,2)"
)
ROW = {
    "i": 7,
    "d": math.nan,
    "s": "Abc",
    "b": None,
    "t": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
    "day": date(2024, 1, 31),
    "dec": Decimal("1.50"),
}
NULLS = dict.fromkeys(SCHEMA.names)


def value(text: str, row: dict[str, Any] | None = None) -> Any:
    return evaluator(text, SCHEMA)(ROW if row is None else row)


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("i + 1", "int", 8),
        ("2147483647 + 1", "int", -(2**31)),
        ("i / 2", "double", 3.5),
        ("i div 2", "bigint", 3),
        ("-7 % 3", "int", -1),
        ("pmod(-7, 3)", "int", 2),
        ("i / 0", "double", None),
        ("i % 0", "int", None),
        ("'3' + 1", "double", 4.0),
        ("dec * 2", "decimal(8,2)", Decimal("3.00")),
        ("dec / 3", "decimal(10,6)", Decimal("0.500000")),
        ("i | 8 & 3", "int", 7),
        ("'x' || 1 + 2", "double", None),
        ("round(2.5)", "decimal(2,0)", Decimal(3)),
        ("bround(2.5)", "decimal(2,0)", Decimal(2)),
        ("d = d", "boolean", True),
        ("d > 1e308", "boolean", True),
        ("0.0D = -0.0D", "boolean", True),
        ("'1.9' = 1", "boolean", True),
        ("b and false", "boolean", False),
        ("b or true", "boolean", True),
        ("b and true", "boolean", None),
        ("not b", "boolean", None),
        ("b is not true", "boolean", True),
        ("i in (1, null)", "boolean", None),
        ("i in (7, null)", "boolean", True),
        ("null <=> b", "boolean", True),
        ("case i when 7 then 'x' else 1 end", "string", "x"),
        ("coalesce(b, null, true)", "boolean", True),
        ("greatest(i, null, 9.5)", "decimal(11,1)", Decimal("9.5")),
        ("cast('x' as int)", "int", None),
        ("cast(' 12.9 ' as int)", "int", 12),
        ("try_cast('12.9' as int)", "int", None),
        ("cast(300 as tinyint)", "tinyint", 44),
        ("try_cast(300 as tinyint)", "tinyint", None),
        ("cast(1e10D as int)", "int", 2**31 - 1),
        ("cast(0.00001D as string)", "string", "1.0E-5"),
        ("s like 'a%'", "boolean", False),
        ("s ilike 'a%'", "boolean", True),
        ("s rlike 'b'", "boolean", True),
        ("substring(s, -2)", "string", "bc"),
        ("split('a1b2', '[0-9]')", "array<string>", ["a", "b", ""]),
        ("day + interval 1 month", "date", date(2024, 2, 29)),
        ("t - interval 30 minutes", "timestamp", datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("t > '2024-02-29'", "boolean", True),
        ("date_trunc('month', t)", "timestamp", datetime(2024, 2, 1, tzinfo=UTC)),
        ("struct(i, 2 as two)", "struct<i:int,two:int>", {"i": 7, "two": 2}),
        ("array(i, 1L)[1]", "bigint", 1),
        ("array(i)[1]", "int", None),
    ],
)
def test_value_and_type(text: str, type: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert str(analyze(text, SCHEMA).type) == type


@pytest.mark.parametrize(
    "text",
    ["i + 1", "upper(s)", "i between 1 and 2", "s like '%'", "t + interval 1 day", "abs(d)", "-i"],
)
def test_null_in_null_out(text: str) -> None:
    assert value(text, NULLS) is None


def test_division_reads_a_bigint_beside_a_float_exactly() -> None:
    schema = Schema.parse("l bigint, f float")
    found = evaluator("l / f", schema)({"l": 123456789012, "f": 16777216.0})
    assert found == 123456789012 / 16777216


def test_float_fields_are_rounded_to_32_bits() -> None:
    assert evaluator("f", Schema.parse("f float"))({"f": 0.1}) == 0.10000000149011612


def test_long_disjunctions_compile() -> None:
    text = " or ".join(f"i = {n}" for n in range(2000))
    assert value(text) is True
