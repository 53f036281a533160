"""Whole columns are computed as the row evaluator computes tuples, which agrees with Spark."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.template import Attribute
from auroral.eddy.vectors.evaluation import PythonFunction, TupleColumns
from auroral.errors import AuroralError, NetworkError, RunError
from auroral.network.types import Schema, Type
from auroral.sql.expressions.expression import analyze, evaluator

SCHEMA = Schema.parse(
    "b boolean, ty tinyint, sm smallint, i int, j int, l bigint, k bigint, f float, d double, "
    "e double, dec decimal(10,2), big decimal(38,18), s string, u string, n string, bin binary, "
    "day date, day2 date, t timestamp, t2 timestamp, tn timestamp_ntz, arr array<int>"
)
_EDGES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [0, 1, -1, 127, -128],
    "smallint": [0, 7, -32768, 32767],
    "int": [0, 1, -1, 3, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, -1, 12, 2**53 + 1, 2**63 - 1, -(2**63)],
    "float": [0.0, -0.0, 1.5, 16777216.0, math.nan, math.inf, -math.inf],
    "double": [0.0, -0.0, 2.5, 0.1, 1e300, -3e9, math.nan, math.inf, -math.inf],
    "decimal(10,2)": [Decimal(x) for x in ("0.00", "12.34", "-99999999.99", "2.50")],
    "decimal(38,18)": [Decimal(x) for x in ("0E-18", "1.5", "-12345678901234567890.5", "1E-18")],
    "string": ["", "abc", "A_b%", "12", " -3.7", "ünïß", "日本😀", "NaN", "2024-02-29", "true"],
    "binary": [b"", b"abc", b"\xff\x00"],
    "date": [date(2024, 2, 29), date(1969, 12, 31), date(1970, 1, 1)],
    "timestamp": [
        datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ],
    "timestamp_ntz": [datetime(2024, 2, 29), datetime(1969, 7, 20, 20, 17, 40)],
    "array<int>": [[1, 2, None], []],
}


def _rows(count: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    made = []
    for _ in range(count):
        row = {}
        for field in SCHEMA:
            choices = [None, *_EDGES[str(field.type)]]
            row[field.name] = choices[rng.integers(len(choices))]
        made.append(row)
    return made


ROWS = _rows()
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA.arrow())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(type(a) is type(b) and a == b)


def check(text: str) -> None:
    """Compare each value with the row evaluator's."""
    run = evaluator(text, SCHEMA)
    type = analyze(text, SCHEMA).type
    found = TupleColumns(TABLE).evaluate(Attribute(text, type))
    assert found.values.type == type.arrow()
    for at, row in enumerate(ROWS):
        try:
            wanted = run(row)
        except RunError:
            continue  # what it cannot represent, whole columns may
        mine = found.values[at].as_py()
        if type.name == "float" and wanted is not None:
            wanted = float(np.float32(wanted))
        assert _same(mine, wanted), f"{text}: {row}: {mine!r}, by rows {wanted!r}"


def _of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


_numbers = _of("ty sm i j l k f d e dec big n 0 1 -1 2.5 0.1 7L 1e2 9BD 3Y 1.5f 100000 null")
_texts = _of("s u n 'a' '12' '' 'abc' null")
_times = st.sampled_from(
    ["day", "day2", "t", "t2", "tn", "date '2024-02-29'", "timestamp '2024-02-29 12:00:00'"]
)
_types = _of("boolean tinyint smallint int bigint float double decimal(12,3) string")
_compared = _of("= < <= > >= <> <=>")


def _call(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(template.format, *parts)


def _number(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return _numbers
    n = _number(depth - 1)
    return st.one_of(
        _numbers,
        _call("({} {} {})", n, _of("+ - * / % div"), n),
        _call("-({})", n),
        _call("abs({})", n),
        _call("cast({} as {})", n, _types),
        _call("coalesce({}, {})", n, n),
        _call("case when {} then {} when {} then {} end", _truth(depth - 1), n, _truth(0), n),
        _call("if({}, {}, {})", _truth(depth - 1), n, n),
        _call("length({})", _text(depth - 1)),
        _call("sqrt({})", n),
        _call("greatest({}, {})", n, n),
    )


def _text(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return _texts
    t = _text(depth - 1)
    return st.one_of(
        _texts,
        _call("{}({})", _of("upper lower trim"), t),
        _call("concat({}, {})", t, t),
        _call("substring({}, {}, {})", t, _of("0 1 2 -2"), _of("0 1 3")),
        _call("cast({} as string)", _number(depth - 1)),
        _call("coalesce({}, {})", t, t),
    )


def _time(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return _times
    return st.one_of(
        _times,
        _call("({} {} interval {} seconds)", _times, _of("+ -"), _of("1 86400 0.5")),
        _call("({} {} {})", _of("day day2"), _of("+ -"), _of("1 ty i")),
        _call("cast({} as {})", _times, _of("date timestamp timestamp_ntz")),
        _call("(day + interval {} day)", _of("1 -3")),
    )


def _truth(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return _of("b true false null")
    n, t, m, p = _number(depth - 1), _text(depth - 1), _time(depth - 1), _truth(depth - 1)
    return st.one_of(
        _of("b true"),
        _call("({} {} {})", n, _compared, n),
        _call("({} {} {})", t, _compared, t),
        _call("({} {} {})", t, _compared, n),
        _call("({} {} {})", m, _compared, m),
        _call("(t - t2 {} interval {} days)", _compared, _of("0 1 300")),
        _call("(day - day2 {} interval {} days)", _compared, _of("0 1 300")),
        _call("(bin {} X'616263')", _compared),
        _call("({} {} {})", p, _of("and or"), p),
        _call("(not {})", p),
        _call("({} is {} null)", st.one_of(n, t, m, p), st.sampled_from(["", "not"])),
        _call("({} between {} and {})", n, n, n),
        _call("({} {} in ({}, {}, 3))", n, st.sampled_from(["", "not"]), n, n),
        _call("({} in (0, 1, -1, {}, 127, 3))", _of("ty i l j"), _of("5 null 12")),
        _call("({} in ('', 'abc', '12', {}, 'x', 'y'))", t, _of("'NaN' null")),
        _call("({} like {})", t, _of("'a%' '%b%' 'abc' '%c' '_b%' '%' 'A\\\\_%' ''")),
    )


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(_truth(3), _number(2), _text(2), _time(1)))
def test_whole_columns_agree_with_the_row_evaluator(text: str) -> None:
    try:
        evaluator(text, SCHEMA)
    except (AuroralError, RunError) as refused:
        with pytest.raises(type(refused)):
            TupleColumns(TABLE).evaluate(Attribute(text, Type("boolean")))
        return
    check(text)


@pytest.mark.parametrize(
    "text",
    ["i % -1", "l div -1", "l div k", "-l", "abs(ty)", "l + k", "ty * ty", "f + 0.1f", "d % e",
     "cast(d as int)", "cast(f as bigint)", "cast(l as float)", "cast(d as tinyint)", "d / e",
     "i / j", "f = e", "d > 0.1", "dec > 12.3", "big = 1.5", "dec + d", "s || i", "b = 1",
     "nvl(d, 0)", "case when b then s end", "d in (e, 0.0)", "dec in (12.34, 2.5)"],
)  # fmt: skip
def test_edges(text: str) -> None:
    check(text)


def test_rows_may_repeat_and_constants_go_with_them() -> None:
    columns = TupleColumns(
        pa.table({"s0.x": pa.array([1, 2, 3], pa.int32()), "s1.x": ["a", None, "c"]})
    )
    rows = np.array([2, 0, 2])
    assert columns.evaluate(
        Attribute("s0.x", Type("int"), "s0.x", ("s0.x",)), rows
    ).values.to_pylist() == [3, 1, 3]
    attribute = Attribute("s0.x + :1 > :0 OR s1.x IS NULL", Type("boolean"), slots=(0, 1))
    constants = {0: pa.array([4, 4, None], pa.int64()), 1: pa.array([1, 9, 1], pa.int16())}
    assert columns.evaluate(attribute, rows, constants).values.to_pylist() == [False, True, None]


def test_what_was_computed_for_all_is_not_computed_again() -> None:
    calls = []

    def seen(values: pa.Array) -> pa.Array:
        calls.append(len(values))
        return pc.add(values, 1)

    functions = {"seen": PythonFunction("seen", seen, Type("bigint"))}
    columns = TupleColumns(pa.table({"x": [1, 2, 3]}), functions)
    attribute = Attribute("seen(x)", Type("bigint"), costly=True)
    assert columns.evaluate(attribute).values.to_pylist() == [2, 3, 4]
    assert columns.evaluate(attribute, np.array([1])).values.to_pylist() == [3]
    assert calls == [3]


def test_tuples_for_which_a_function_raises_are_null_and_counted() -> None:
    def score(values: pa.Array, _: pa.Array) -> pa.Array:
        if 3 in values.to_pylist():
            raise ValueError("three is too much\nby far")
        return pc.multiply(values, 0.5)

    functions = {"Score": PythonFunction("Score", score, Type("double"))}
    columns = TupleColumns(pa.table({"x": [1, 3, None, 2, 3], "y": ["a"] * 5}), functions)
    found = columns.evaluate(Attribute("SCORE(x, y) > 0.5", Type("boolean")))
    assert found.values.to_pylist() == [False, None, None, True, None]
    assert found.failed is not None
    assert found.failed.tolist() == [False, True, False, False, True]
    assert found.reason == "ValueError: three is too much"
    # Only the tuples that need it are given to it.
    guarded = columns.evaluate(Attribute("x < 3 AND score(x, y) > 0.5", Type("boolean")))
    assert guarded.failed is None
    assert guarded.values.to_pylist() == [False, False, None, True, False]
    chosen = Attribute("CASE WHEN x = 3 THEN -1 ELSE sqrt(score(x, y)) END", Type("double"))
    assert columns.evaluate(chosen).values.to_pylist()[1] == -1.0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            lambda _: pa.array([1.0, 2.0, 3.0]),
            "ValueError: expected 1 values, the function returned 3",
        ),
        (lambda _: 1.0, "TypeError: expected an Arrow array, found float"),
        (
            lambda v: pa.array(["x"] * len(v)),
            "TypeError: <lambda> should return double, and returned string",
        ),
    ],
)
def test_a_function_that_returns_something_else_fails(wrong: Any, reason: str) -> None:
    functions = {"g": PythonFunction("g", wrong, Type("double"))}
    columns = TupleColumns(pa.table({"x": [1, 2]}), functions)
    found = columns.evaluate(Attribute("g(x)", Type("double")))
    assert found.values.to_pylist() == [None, None]
    assert found.failed is not None
    assert found.failed.all()
    assert (found.reason or "").startswith(reason)


def test_no_tuples() -> None:
    columns = TupleColumns(TABLE.slice(0, 0))
    for text in ("i + 1 > 2", "sqrt(d) > 1", "case when b then s else u end = 'x'", "1 = 1"):
        assert columns.evaluate(Attribute(text, Type("boolean"))).values.to_pylist() == []


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(NetworkError, match="there is no field pric; there are price"):
        TupleColumns(pa.table({"price": [1.0]})).column("pric")


@pytest.mark.parametrize(
    "text",
    [
        "CAST(day + 1 AS string)",
        "concat('on ', CAST(day + 1 AS string))",
        "CAST(timestamp(day + 1) AS string)",
        "date_trunc('DAY', timestamp(day + 1))",
        "last_day(day + 1)",
        "CAST(later AS string)",
        "last_day(later)",
        "hour(date_trunc('HOUR', at))",
        "CAST(days AS string)",
        "days[0] = day",
    ],
)
def test_a_time_that_python_lacks_fails_its_tuple_only(text: str) -> None:
    far = pa.array([19_000, 2_932_896 + 1, None], pa.int32()).cast(pa.date32())
    columns = TupleColumns(
        pa.table(
            {
                "day": pa.array([date(2024, 1, 1), date(9999, 12, 31), None]),
                "later": far,
                "at": far.cast(pa.timestamp("us", "UTC")),
                "days": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), far),
            }
        )
    )
    found = columns.evaluate(Attribute(text, _typed(columns.table, text)))
    assert found.values.to_pylist()[0] is not None
    if found.failed is not None:
        assert found.failed.tolist() == [False, True, False]
        assert not found.values[1].is_valid


def _typed(table: pa.Table, text: str) -> Type:
    types = "day date, later date, at timestamp, days array<date>"
    assert Schema.parse(types).names == tuple(table.column_names)
    return analyze(text, Schema.parse(types)).type
