"""Streams, tuples at the edges of their types, and random predicates over them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from auroral.continuous.sharing.reading import ReadQuery, read_shared
from auroral.network.types import Schema

WIDE = Schema.parse(
    "b boolean, ty tinyint, i int, j int, l bigint, f float, d double, dec decimal(6,2), "
    "s string, u string, day date, t timestamp, tn timestamp_ntz"
)
ARCS = {
    "W": WIDE,
    "S": Schema.parse("ts bigint, a int, b string, at timestamp, z double"),
    "T": Schema.parse("ts bigint, a int, c double, at timestamp"),
    "U": Schema.parse("ts bigint, a int, x double"),
}
PROGRESS = {"S": ("ts", "at"), "T": ("ts", "at"), "U": ("ts",)}
_EDGES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [0, 1, 2, 3, -1, 127, -128],
    "int": [0, 1, 2, 3, -1, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, 2, 3, 2**53 + 1, 2**63 - 1, -(2**63)],
    "float": [0.0, -0.0, 1.5, 2.0, float(np.float32(0.1)), math.nan, math.inf, -math.inf],
    "double": [0.0, -0.0, 2.5, 0.1, 2.0, -3e9, math.nan, math.inf, -math.inf],
    "decimal(6,2)": [Decimal(x) for x in ("0.00", "2.50", "2.51", "2.00", "-9999.99", "9999.99")],
    "string": ["", "a", "abc", "ab%", "12", "2", "2.5", "x_y", "ünï", "2024-02-29"],
    "date": [date(2024, 2, 29), date(1969, 12, 31), date(2024, 3, 1)],
    "timestamp": [
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
    "timestamp_ntz": [datetime(2024, 2, 29), datetime(1969, 7, 20, 20, 17, 40)],
}


def _rows(count: int = 80) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    choices = {f.name: [None, *_EDGES[str(f.type)]] for f in WIDE}
    return [{n: c[rng.integers(len(c))] for n, c in choices.items()} for _ in range(count)]


ROWS = _rows()


def read(sql: str, **more: Any) -> ReadQuery:
    return read_shared(sql, ARCS, PROGRESS, **more)


def where(condition: str) -> ReadQuery:
    return read(f"SELECT i FROM W WHERE {condition}")


JOINS = [
    "S.ts = T.ts AND S.a = T.a",
    "S.ts BETWEEN T.ts - 3 AND T.ts + 2 AND S.a < T.a",
    "S.ts > T.ts - 3 AND S.ts < T.ts + 2.5 AND S.z > 1 AND T.c < 2",
    "S.ts / 4 = T.ts / 4 AND (S.a = 1 OR T.a = 2)",
    "S.ts - T.ts < 2 AND S.ts <= T.ts AND S.ts >= T.ts - 1",
    "S.ts <= T.ts - 1 AND T.ts < S.ts + 4 AND NOT (S.a = T.a)",
]


def _of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


_ops = _of("= <> < <= > >= <=>")
_number_fields = _of("ty i j l f d dec")
_numbers = _of(
    "0 1 2 -1 2.5 2.50 2.505 -0.5 0.1 128 -129 3000000000 2L 1e2 2.5D 0.1D 0.1f 3e9 1BD 9999.991"
    " 99999 2*5 1/3 -(2) cast('NaN'as(double)) '2' null cast('Infinity'as(double))"
    " 9223372036854775807 99999999999999999999999999999 12345678901234567890123456789012345678"
    " -9223372036854775809 0.1234567890123456789012345678901"
).map(lambda text: text.replace("as(double)", " as double"))
_strings = _of("'a' 'abc' '' '2' 'x_y' null 'ünï' lower('ABC') 2 2.5")
_moments = st.sampled_from(
    [
        "'2024-02-29'",
        "date '2024-02-29'",
        "timestamp '2024-02-29 12:30:00'",
        "timestamp '2024-02-29 00:00:00'",
        "date '2024-02-28' + interval 1 day",
        "'2024'",
        "null",
    ]
)
_patterns = _of(r"'a%' 'ab\\%' 'ab\\%%' '%' 'abc' '_b%' '' 'x\\_%' 'x_y'")


def _call(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(template.format, *parts)


_not = st.sampled_from(["", "not"])
_leaves = st.one_of(
    _call("{} {} {}", _number_fields, _ops, _numbers),
    _call("{} {} {}", _numbers, _ops, _number_fields),
    _call("{} {} {}", _of("s u"), _ops, _strings),
    _call("{} {} {}", _of("day t tn"), _ops, _moments),
    _call("{} {} in ({}, {}, {})", _number_fields, _not, _numbers, _numbers, _numbers),
    _call("s {} in ({}, {})", _not, _strings, _strings),
    _call("{} {} in ({}, {})", _of("day t"), _not, _moments, _moments),
    _call("{} {} between {} and {}", _number_fields, _not, _numbers, _numbers),
    _call("{} {} like {}", _of("s u"), _not, _patterns),
    _call("{} is {} null", _of("b i d s t"), _not),
    _call("{} is {} {}", _of("b"), _not, _of("true false unknown")),
    _call("i {} j * {}", _ops, _of("1 2")),
    _call("i + {} {} {}", _of("1 j"), _ops, _numbers),
    _call("{} {} {}", _numbers, _ops, _numbers),
    _call("length(s) {} {}", _ops, _numbers),
    _call("b {} {}", _of("= <>"), _of("true false null 1 0 2 2.0D 0.5D 1.5f 1BD")),
    _of("b true false"),
)


def predicates(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return _leaves
    part = predicates(depth - 1)
    return st.one_of(
        _leaves,
        _call("({} {} {})", part, _of("and or"), part),
        _call("not ({})", part),
    )
