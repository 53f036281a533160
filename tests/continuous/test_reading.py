"""Queries read into templates: the same tuples, names, types and mistakes as ever."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from auroral.continuous.boxing.compiler import compile_query
from auroral.continuous.functions import PythonFunction
from auroral.continuous.sharing.aggregate_reading import read_shared_aggregate
from auroral.continuous.sharing.reading import NotShared, ReadQuery
from auroral.errors import AuroralError, NetworkError
from auroral.network.box import Scope
from auroral.network.types import Schema, Type
from auroral.sql.expressions.expression import evaluator

from .naive import selects
from .texts import ARCS, PROGRESS, ROWS, WIDE, predicates, read, where


def atoms(found: ReadQuery) -> list[Any]:
    """The clauses as attribute, op and constant."""
    return [
        [
            (a.attribute.text, a.op, None if a.slot is None else found.constants[a.slot])
            for a in clause
        ]
        for clause in found.template.sources[0].clauses
    ]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(predicates(2))
@example("i in (12345678901234567890123456789012345678, 1.5)")  # no room for the 5: Spark rounds
def test_template_and_constants_select_what_the_text_selects(text: str) -> None:
    try:
        wanted = evaluator(text, WIDE)
    except AuroralError:
        with pytest.raises(NetworkError):
            where(text)
        return
    found = where(text)
    for row in ROWS:
        mine = selects(found.template, found.constants, row, WIDE)
        assert mine is (wanted(row) is True), (text, row, atoms(found))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("i > 2.5", [[("i", ">=", 3)]]),
        ("i > 5", [[("i", ">", 5)]]),
        ("5 < i", [[("i", ">", 5)]]),
        ("ty < 1000", [[("ty", "<=", 127)]]),
        ("ty > 1000", [[("ty", ">=", None)]]),
        ("i <> 2.5", [[("i", "not in", [])]]),
        ("dec > 2.505", [[("dec", ">=", Decimal("2.51"))]]),
        ("d > 2 * 5", [[("d", ">", 10.0)]]),
        ("i + j > 10", [[("i + j", ">", 10)]]),
        ("s = 5", [[("CAST(s AS int)", "=", 5)]]),
        ("s like 'a\\\\%b%'", [[("s", "prefix", "a%b")]]),
        ("s not like 'abc'", [[("s", "!=", "abc")]]),
        ("s not in ('x', null)", [[("s", "not in", None)]]),
        ("s in ('x', null, 'y', 'x')", [[("s", "in", ["x", "y"])]]),
        ("b", [[("b", "=", True)]]),
        ("not b and b <> true", [[("b", "=", False)], [("b", "=", False)]]),
        ("b <> 1", [[("CAST(b AS int)", "!=", 1)]]),
        ("not (b = 2D)", [[("CAST(b AS double)", "!=", 2.0)]]),
        ("i IS NULL or not (d is null)", [[("i", "null", None), ("d", "not null", None)]]),
        ("i < J", [[("i < j", "=", True)]]),
        ("not (i = j + 1)", [[("i <> (j + 1)", "=", True)]]),
        ("not (s rlike 'a')", [[("s RLIKE 'a'", "=", False)]]),
        ("1 = 1 and (i > 3 or 2 > 1)", []),
        ("i > 3 and 1 = null", [[("i", ">", 3)], [("b", "in", [])]]),
        ("i = null or i = 3", [[("i", "=", 3)]]),
        ("i between 1 and 3", [[("i", ">=", 1)], [("i", "<=", 3)]]),
        ("i = 1 or s = 'x' and j = 2", [[("i", "=", 1), ("s", "=", "x")],
                                        [("i", "=", 1), ("j", "=", 2)]]),
        ("day > timestamp '2024-01-01 12:00:00'", [[("day", ">=", date(2024, 1, 2))]]),
        ("t >= '2024-01-01'", [[("t", ">=", datetime(2024, 1, 1, tzinfo=UTC))]]),
        ("tn = date '2024-01-01'", [[("tn", "=", datetime(2024, 1, 1))]]),
    ],
)  # fmt: skip
def test_atoms(text: str, meant: list[Any]) -> None:
    assert atoms(where(text)) == meant


def test_queries_that_differ_in_constants_share_a_template() -> None:
    one = read("select I, s FROM W where D>2 and dec >= 1 and s IN ('a') and f < 1 or b")
    other = read(
        "SELECT i, S FROM w2.W WHERE d > 7.5".replace("w2.", "")
        + " AND dec >= 2.505 AND s IN ('x','y','z') AND f < 0.1 OR b"
    )
    assert one.template.sources == other.template.sources
    assert hash(one.template.sources) == hash(other.template.sources)
    assert one.template.slots == other.template.slots
    assert one.constants != other.constants


def test_a_predicate_in_several_clauses_has_one_constant() -> None:
    found = where("i = 1 OR (j = 2 AND s = 'x') OR (l = 3 AND d > 4)")
    assert [[atom.slot for atom in c] for c in found.template.sources[0].clauses] == [
        [0, 1, 2],
        [0, 1, 3],
        [0, 4, 2],
        [0, 4, 3],
    ]
    assert found.constants == (1, 2, 3, 4.0, "x")


# Items


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM S", "SELECT a, a + 1, B AS n FROM S WHERE a > 1", "SELECT S.* FROM S [RANGE 5]",
     "SELECT x.a, a * 2 twice FROM S AS x", "SELECT * FROM S, T WHERE S.ts = T.ts",
     "SELECT T.a, S.a, z - c FROM S [ROWS 3], T [ROWS 4] WHERE S.a = T.a",
     "SELECT T.*, S.b FROM S [RANGE 5, WA ts], T [RANGE 6, WA ts]", "SELECT a FROM S [ROWS 5]",
     "SELECT x.b, y.b FROM S x JOIN S y ON x.ts = y.ts AND x.a < y.a",
     "SELECT 1 AS one, 'x' AS x, upper(b) FROM S WHERE b = SYN"],
)  # fmt: skip
def test_results_have_the_names_and_types_they_have_as_boxes(sql: str) -> None:
    assert read(sql).template.schema() == compile_query("q", sql, ARCS, PROGRESS).schema


def test_fields_of_a_third_source_are_named_by_it() -> None:
    found = read("SELECT * FROM S [ROWS 1], T [ROWS 2], U AS v [ROWS 3] WHERE S.a = v.a")
    assert found.template.schema().names[-3:] == ("v_ts", "v_a", "x")
    assert found.template.items[-2].attribute.text == "s2.a"
    assert found.template.items[-2].attribute.field == "s2.a"


# Mistakes


MISTAKES = [
    ("SELECT ▸x FROM S", "UNKNOWN_FIELD"),
    ("SELECT a FROM ▸R", "UNKNOWN_STREAM"),
    ("SELECT ▸R.* FROM S", "UNKNOWN_STREAM"),
    ("SELECT S.▸x FROM S", "UNKNOWN_FIELD"),
    ("SELECT a FROM S WHERE b = ▸Syn", "UNKNOWN_FIELD"),
    ("SELECT a FROM S WHERE ▸a", "TYPE_MISMATCH"),
    ("SELECT a FROM S WHERE a > 1 AND ▸a + 1 AND b = 'x'", "TYPE_MISMATCH"),
    ("SELECT a FROM S WHERE a > 1 AND\n ▸a > at", "TYPE_MISMATCH"),
    ("SELECT a FROM S WHERE ▸null", "UNTYPED_NULL"),
    ("SELECT a,\n  ▸a + length(a, 2) FROM S", "WRONG_ARITY"),
    ("SELECT ▸nosuch(a) FROM S", "UNKNOWN_FUNCTION"),
    ("SELECT a FROM S WHERE ▸rand() > 1", "NON_DETERMINISTIC"),
    ("SELECT a FROM S WHERE a > ▸:limit", "UNKNOWN_PARAMETER"),
    ("SELECT a ▸[ROWS 5] FROM S", "BAD_WINDOW"),
    ("SELECT a ▸[RANGE 5] FROM S [RANGE 5]", "BAD_WINDOW"),
    ("SELECT S.a FROM S ▸[RANGE 1, WA ts], T [ROWS 5]", "BAD_WINDOW"),
    ("SELECT S.a FROM S [ROWS 5], ▸T", "BAD_WINDOW"),
    ("SELECT S.a FROM S [RANGE 5, WA ts], ▸T", "BAD_WINDOW"),
    ("SELECT S.a FROM S ▸[RANGE 5], T [RANGE 5]", "BAD_WINDOW"),
    ("SELECT S.a FROM S [RANGE 5, WA ts, SLIDE ▸5], T [RANGE 5, WA ts]", "BAD_WINDOW"),
    ("SELECT S.a FROM S, ▸T WHERE S.a = T.a", "NO_WINDOW"),
    ("SELECT S.a FROM S, ▸T, U WHERE S.ts = T.ts", "NO_WINDOW"),
    ("SELECT S.a FROM S [RANGE 5, WA ts], T ▸[RANGE 5, WA at]", "BAD_WINDOW"),
    ("SELECT ▸ts FROM S, T WHERE S.ts = T.ts", "AMBIGUOUS_FIELD"),
    ("SELECT a AS n, ▸b AS N FROM S", "DUPLICATE_FIELD"),
    ("SELECT a, ts, ▸a FROM S", "DUPLICATE_FIELD"),
    ("SELECT *, ▸S.a FROM S", "DUPLICATE_FIELD"),
    ("SELECT a FROM S ▸LIMIT 3", "BAD_QUERY"),
    ("SELECT a FROM S WHERE a = ▸= 3", "SYNTAX_ERROR"),
    ("SELECT a FROM S WHERE ▸b LIKE 'x\\\\y'", "BAD_PATTERN"),
]


@pytest.mark.parametrize(("marked", "code"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(marked: str, code: str) -> None:
    sql = marked.replace("▸", "")
    with pytest.raises(NetworkError) as raised:
        read(sql)
    before = marked.partition("▸")[0]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert raised.value.code == code
    assert raised.value.where == f"line {line}, column {column}"
    if "U WHERE" not in sql:
        with pytest.raises(NetworkError) as other:
            compile_query("q", sql, ARCS, PROGRESS)
        assert str(raised.value) == str(other.value)


@pytest.mark.parametrize(
    ("predicate", "type"),
    [
        ("a = ▸'abc'", "int"),
        ("a > 1 AND NOT (a <> ▸'x')", "int"),
        ("at < ▸'2024-02-30'", "timestamp"),
        ("a BETWEEN '1' AND ▸'y'", "int"),
        ("b = 'x' AND a IN ('1', ▸'z')", "int"),
        ("at NOT IN ('2024-02-28',\n ▸'2024-02-30')", "timestamp"),
    ],
)
@pytest.mark.parametrize("window", ["", " [RANGE 5, WA ts]"])
def test_text_that_is_no_value_of_the_type_is_a_mistake(
    predicate: str, type: str, window: str
) -> None:
    items = "count(*)" if window else "a"
    read("SELECT a FROM S WHERE a = '5' OR a IN ('7')")  # what looks alike is read in a shorter way
    before = f"SELECT {items} FROM S{window} WHERE {predicate.partition('▸')[0]}"
    sql = f"SELECT {items} FROM S{window} WHERE {predicate.replace('▸', '')}"
    with pytest.raises(NetworkError, match=f"expected a value of type {type}, found '") as raised:
        read_shared_aggregate(sql, ARCS, PROGRESS) if window else read(sql)
    assert raised.value.code == "TYPE_MISMATCH"
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert raised.value.where == f"line {line}, column {column}"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT count(*) FROM S [RANGE 5, WA ts]", "aggregates"),
        ("SELECT a FROM S [RANGE 5, WA ts] GROUP BY a", "aggregates"),
        ("SELECT DISTINCT ts FROM S", "DISTINCT"),
        ("SELECT a FROM S UNION S", "UNION"),
        ("SELECT S.a FROM S, tab WHERE S.a = tab.k", "tables"),
        ("SELECT a FROM S WHERE at > '12:00'", "no date"),
        ("SELECT xxhash64(a) FROM S", "xxhash64"),
    ],
)
def test_what_an_eddy_does_not_run(sql: str, reason: str) -> None:
    scope = Scope(lambda *_: Type("bigint"), {"tab": Schema.parse("k int")})
    with pytest.raises(NotShared, match=re.escape(reason)):
        read(sql, scope=scope)


# Python functions


def test_python_functions_stand_anywhere() -> None:
    functions = {
        "Score": PythonFunction("Score", lambda x, y: x, Type("double")),
        "ok": Type("boolean"),
    }
    sql = "SELECT score(z, a) AS s FROM S WHERE ok(b) AND NOT OK(b) AND SCORE(z, a) * 2 > 1"
    found = read(sql, functions=functions)
    assert [[(a.attribute.text, a.op) for a in c] for c in found.template.sources[0].clauses] == [
        [("ok(b)", "=")],
        [("ok(b)", "=")],
        [("score(z, a) * 2", ">")],
    ]
    assert found.constants == (True, False, 1.0)
    attribute = found.template.items[0].attribute
    assert (attribute.text, attribute.costly, attribute.fields) == ("score(z, a)", True, ("z", "a"))
    with pytest.raises(NetworkError, match="UNKNOWN_FIELD: line 1, column 14: there is no field x"):
        read("SELECT score(x, a) AS s FROM S", functions=functions)
    with pytest.raises(NetworkError, match="boolean"):
        read("SELECT a FROM S WHERE score(z, a)", functions=functions)
