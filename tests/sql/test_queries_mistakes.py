"""What is wrong with a query is said with its place: line and column of its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral import Network
from auroral.continuous.boxing.compiler import query_schema
from auroral.errors import NetworkError
from auroral.network.types import Schema

from .queries import PRINTED, compiled

ARCS = {
    "S": Schema.parse("ts bigint, a int, b string"),
    "T": Schema.parse("ts bigint, a int, c double"),
    "U": Schema.parse("x double, y double"),
    "Vans": Schema.parse("at timestamp"),
}
PROGRESS = {"S": ("ts",), "T": ("ts",)}

# `▸` stands where the error must point.
MISTAKES = [
    ("SELECT ▸x FROM S", "UNKNOWN_FIELD", "a, b, ts"),
    ("SELECT a FROM ▸R", "UNKNOWN_STREAM", "S, T, U"),
    ("SELECT ▸R.* FROM S", "UNKNOWN_STREAM", "R"),
    ("SELECT ▸R.a FROM S", "UNKNOWN_STREAM", "there are S"),
    ("SELECT S.▸x FROM S", "UNKNOWN_FIELD", "a, b, ts"),
    ("SELECT a FROM S WHERE b = ▸Syn", "UNKNOWN_FIELD", "'Syn'"),
    ("SELECT a FROM S WHERE ▸a", "TYPE_MISMATCH", "boolean"),
    ("SELECT a FROM S WHERE a > 1 AND ▸a + 1 AND b = 'x'", "TYPE_MISMATCH", ""),
    ("SELECT a,\n  ▸a + length(a, 2) FROM S", "", "length"),
    ("SELECT ▸a, count(*) FROM S [RANGE 1 min]", "NOT_AGGREGATED", "first(a)"),
    ("SELECT count(*) + ▸a FROM S [RANGE 1 min]", "NOT_AGGREGATED", "group by it"),
    ("SELECT ▸a FROM S GROUP BY b", "NOT_AGGREGATED", "a"),
    ("SELECT ▸* FROM S [RANGE 1 min] GROUP BY b", "NOT_AGGREGATED", ""),
    ("SELECT b FROM S GROUP BY ▸x", "UNKNOWN_FIELD", ""),
    ("SELECT count(*) FROM S [RANGE 1 min] GROUP BY ▸count(a)", "BAD_QUERY", "not aggregates"),
    ("SELECT count(*) FROM S [RANGE 1 min] HAVING ▸count(*)", "TYPE_MISMATCH", ""),
    ("SELECT b, count(*) FROM S GROUP BY ▸b", "NO_WINDOW", "there are ts"),
    ("SELECT ▸count(*) FROM S", "NO_WINDOW", "RANGE"),
    ("SELECT y, count(*) FROM U [WA y] GROUP BY ▸y", "BAD_QUERY", "double"),
    ("SELECT count(*) FROM U ▸[RANGE 1 min]", "BAD_WINDOW", "none is declared"),
    ("SELECT count(*) FROM S [RANGE 1 min, WA ▸b + 1]", "BAD_WINDOW", "a field after WA"),
    ("SELECT count(*) FROM S ▸[RANGE 1 min, WA b]", "BAD_ORDER", "string"),
    ("SELECT count(*) FROM S ▸[RANGE 1500 ms]", "BAD_WINDOW", "whole number"),
    ("SELECT count(*) FROM S [RANGE ▸1 parsec]", "BAD_DURATION", "parsec"),
    ("SELECT a FROM S [RANGE 1 min, ▸HOP 2 min]", "BAD_WINDOW", "RANGE, ROWS, SLIDE, WA"),
    ("SELECT a FROM S [RANGE 1 min, ▸RANGE 2 min]", "BAD_WINDOW", "twice"),
    ("SELECT a FROM S [▸RANGE, WA ts]", "BAD_WINDOW", "a value"),
    ("SELECT a FROM S ▸[RANGE 1 min", "SYNTAX_ERROR", "never closed"),
    ("SELECT a FROM S [ROWS 5, WA ▸ts]", "BAD_WINDOW", "not both"),
    ("SELECT a FROM S [ROWS 5, RANGE ▸1 min]", "BAD_WINDOW", "not both"),
    ("SELECT count(*) FROM S [ROWS ▸0]", "BAD_WINDOW", "number of rows"),
    ("SELECT count(*) FROM S ▸[RANGE 99999999999999999999]", "BAD_WINDOW", "at most"),
    ("SELECT count(*) FROM S [RANGE ▸99999999999999999999 s]", "BAD_DURATION", "too long"),
    ("SELECT count(*) FROM S ▸[RANGE 5, SLIDE 99999999999999999999]", "BAD_WINDOW", "at most"),
    ("SELECT count(*) FROM S [ROWS ▸99999999999999999999]", "BAD_WINDOW", "too many"),
    ("SELECT count(*) FROM S [ROWS 5, SLIDE ▸99999999999999999999]", "BAD_WINDOW", "too many"),
    (
        "SELECT S.a FROM S [ROWS 5], T [ROWS ▸99999999999999999999] WHERE S.a = T.a",
        "BAD_WINDOW",
        "too many",
    ),
    ("SELECT count(*) FROM S [SLIDE ▸1 min]", "BAD_WINDOW", "RANGE or ROWS"),
    ("SELECT count(*) ▸[ROWS 5] FROM S", "BAD_WINDOW", "after FROM"),
    ("SELECT count(*) FROM S UNION S ▸[ROWS 5]", "BAD_WINDOW", "enter the system"),
    ("SELECT count(*) ▸[RANGE 5] FROM S [RANGE 5]", "BAD_WINDOW", "already"),
    ("SELECT a FROM S WHERE a > 1 ▸[RANGE 5]", "BAD_WINDOW", "after a stream"),
    (
        "SELECT S.a FROM S ▸[RANGE 1, WA ts], T [ROWS 5]",
        "BAD_WINDOW",
        "of all its streams or of none",
    ),
    ("SELECT a FROM S ▸WHERE", "SYNTAX_ERROR", "something is missing after WHERE"),
    ("SELECT a FROM S WHERE a ▸>", "SYNTAX_ERROR", "something is missing after >"),
    ("SELECT a FROM S WHERE a ▸IS", "SYNTAX_ERROR", "something is missing after IS"),
    ("SELECT a ▸FROM", "SYNTAX_ERROR", "expected a stream after FROM"),
    ("SELECT a FROM S WHERE (a > ▸1", "SYNTAX_ERROR", "expected )"),
    ("SELECT S.a FROM S [ROWS 5], ▸T", "BAD_WINDOW", "of all its streams or of none"),
    ("SELECT S.a FROM S [RANGE 5], ▸T", "BAD_WINDOW", "needs a RANGE too"),
    ("SELECT S.a FROM S [RANGE 5, SLIDE ▸5], T [RANGE 5]", "BAD_WINDOW", "every tuple"),
    ("SELECT S.a FROM S, ▸T", "NO_WINDOW", "S.ts, T.ts"),
    ("SELECT S.a FROM S, ▸T WHERE S.a = T.a", "NO_WINDOW", "near each other"),
    ("SELECT ▸ts FROM S, T WHERE S.ts = T.ts", "AMBIGUOUS_FIELD", "S.ts"),
    ("SELECT S.a FROM S [ROWS 5], ▸S [ROWS 5] WHERE S.a = 1", "DUPLICATE_NAME", "S AS other"),
    ("SELECT X.a FROM S X [ROWS 5], ▸T AS x [ROWS 5]", "DUPLICATE_NAME", "called x"),
    ("SELECT S.a FROM S, T, ▸U", "BAD_QUERY", "two streams at most"),
    ("SELECT S.a FROM S ▸LEFT JOIN T ON S.ts = T.ts", "BAD_QUERY", "LEFT"),
    ("SELECT a AS n, ▸b AS N FROM S", "DUPLICATE_FIELD", "AS"),
    ("SELECT a FROM ▸S UNION U", "SCHEMA_MISMATCH", "U has"),
    ("SELECT a FROM S\nORDER BY a", "BAD_QUERY", "ORDER"),
    ("SELECT a FROM S\n▸ORDER BY a", "BAD_QUERY", "never end"),
    ("SELECT a FROM S ▸LIMIT 3", "BAD_QUERY", "LIMIT"),
    ("▸WITH x AS (SELECT 1) SELECT a FROM S", "BAD_QUERY", ""),
    ("SELECT a FROM (▸SELECT a FROM S)", "BAD_QUERY", "another query"),
    ("SELECT a FROM S WHERE a IN (▸SELECT a FROM T)", "BAD_QUERY", "another query"),
    ("SELECT a FROM S UNION ▸SELECT a FROM T", "BAD_QUERY", "unite streams"),
    ("SELECT a FROM S WHERE a > 1 ▸WHERE a > 2", "SYNTAX_ERROR", "twice"),
    ("SELECT ▸DISTINCT a FROM S", "BAD_QUERY", "there are ts"),
    ("SELECT ▸DISTINCT count(*) FROM S [RANGE 5]", "BAD_QUERY", "distinct already"),
    ("SELECT a FROM S WHERE a = ▸= 3", "SYNTAX_ERROR", ""),
    ("SELECT a FROM S WHERE b = ▸'x", "SYNTAX_ERROR", "never closed"),
    ("SELECT ▸sum(b, a) FROM S [RANGE 5]", "WRONG_ARITY", "sum takes 1 argument, found 2"),
    ("SELECT a FROM S WHERE ▸avg(a) > 3", "AGGREGATE", "WA at] GROUP BY k HAVING avg(x) > 3"),
    ("SELECT ▸row_number() OVER (ORDER BY ts) AS n FROM S", "WINDOW_FUNCTION", "WA at] GROUP BY"),
    ("SELECT count(*) FROM S GROUP BY ▸window(ts, '1 min')", "WINDOW_FUNCTION", "[RANGE 1 minute"),
    ("SELECT at FROM Vans WHERE ▸at - 30 < at", "TYPE_MISMATCH", "INTERVAL 30 SECONDS"),
    ("SELECT ▸at + 30 AS later FROM Vans", "TYPE_MISMATCH", "INTERVAL 30 SECONDS"),
    ("SELECT at FROM ▸VANS", "UNKNOWN_STREAM", "did you mean Vans?"),
    ("SELECT a FROM S WHERE ▸raise_error(b)", "UNSUPPORTED_EXPRESSION", "raise_error is not"),
    ("SELECT ▸assert_true(a > 1) AS x FROM S", "UNSUPPORTED_EXPRESSION", "assert_true is not"),
    ("▸SELECT 1", "BAD_QUERY", "FROM"),
    ("▸FROM S", "BAD_QUERY", "SELECT"),
    ("▸SELECT FROM S", "BAD_QUERY", "what to select"),
    ("SELECT a▸, FROM S", "SYNTAX_ERROR", ""),
    ("▸SELCT a FROM S", "SYNTAX_ERROR", "begins with SELECT, not with SELCT (did you mean SELECT"),
    ("▸a FROM S", "SYNTAX_ERROR", "a query begins with SELECT, not with a"),
    ("▸UPDATE S SET a = 1", "BAD_QUERY", "UPDATE"),
    ("SELECT a ▸FROM", "SYNTAX_ERROR", ""),
    ("▸", "BAD_STATEMENT", "one statement"),
]


@pytest.mark.parametrize(("marked", "code", "said"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(marked: str, code: str, said: str) -> None:
    sql = marked.replace("▸", "")
    with pytest.raises(NetworkError) as raised:
        query_schema(sql, ARCS, PROGRESS)
    error = raised.value
    assert error.code == code or not code
    assert said in str(error)
    assert "\n" not in str(error)
    if "▸" in marked:
        before = marked.partition("▸")[0]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        assert error.where == f"line {line}, column {column}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM S [RANGE 5, WA nope]",
        "SELECT S.a FROM S [RANGE 5, WA nope], T [RANGE 5] WHERE S.a = T.a",
    ],
)
def test_no_text_stands_in_a_window(sql: str) -> None:
    with pytest.raises(NetworkError, match=r"UNKNOWN_FIELD.*there is no field nope") as raised:
        query_schema(sql, ARCS, PROGRESS)
    assert raised.value.hint is None


@pytest.mark.parametrize(
    "sql", ["SELECT\n(\nFROM", "a\n+\n", "'\n", "[", "SELECT [", "FROM [", ";"]
)
def test_nonsense_is_one_line_with_a_place(sql: str) -> None:
    with pytest.raises(NetworkError) as raised:
        query_schema(sql, ARCS, PROGRESS)
    assert "\n" not in str(raised.value)
    assert str(raised.value.where).startswith("line ")


def test_the_file_and_the_query_are_named(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(
        "network: n\nstreams:\n  S: {schema: {a: int}}\nqueries:\n  ok: SELECT a FROM S\n"
        "  bad: |\n    SELECT a\n    FROM S WHERE x > 1\n"
    )
    with pytest.raises(NetworkError) as raised:
        Network.load(file).check()
    assert raised.value.where == f"{file}:6, query bad, line 2, column 14"


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(PRINTED)),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["", "(", "[", ",", "as", "'"]))),
    st.integers(0, 60),
)
def test_a_broken_query_is_refused_in_words_or_means_something(
    name: str, changes: list[tuple[int, str]], cut: int
) -> None:
    words = re.findall(r"\w+|\S", PRINTED[name])
    for at, word in changes[:3]:
        words[at % len(words)] = word
    sql = " ".join(words[: len(words) - cut % 7])
    try:
        schema = compiled(sql).schema
    except NetworkError as error:
        assert str(error.where).startswith("line ")  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert len(schema)
