"""The types of aggregates, and of what SELECTs give."""

# ruff: noqa: E501  (a case a line)

from __future__ import annotations

import pytest

from auroral import NetworkError, Schema
from auroral.network.types import Type
from auroral.sql.aggregates.analysis import analyze_aggregate
from auroral.sql.queries.statements import parameters_of, require_update, select_schema

SCHEMA = Schema.parse(
    "i int, l bigint, f float, d double, m decimal(8,2), s string, b boolean, t timestamp"
)


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("count(*)", "bigint"),
        ("count(DISTINCT s)", "bigint"),
        ("count(i, s)", "bigint"),
        ("count_if(i > 3)", "bigint"),
        ("sum(i)", "bigint"),
        ("sum(f)", "double"),
        ("sum(m)", "decimal(18,2)"),
        ("sum(s)", "double"),
        ("avg(i)", "double"),
        ("avg(m)", "decimal(12,6)"),
        ("min(t)", "timestamp"),
        ("max(s)", "string"),
        ("first(m)", "decimal(8,2)"),
        ("last(s, true)", "string"),
        ("max_by(s, i)", "string"),
        ("stddev(i)", "double"),
        ("corr(i, d)", "double"),
        ("median(i)", "double"),
        ("percentile(i, 0.5)", "double"),
        ("percentile(i, array(0.5, 0.9))", "array<double>"),
        ("bool_and(b)", "boolean"),
        ("bit_or(i)", "int"),
        ("collect_list(s)", "array<string>"),
        ("sum(i) / count(*)", "double"),
        ("max(i) - min(i)", "int"),
        ("cast(sum(i * 2) AS string)", "string"),
        ("CASE WHEN count(*) > 3 THEN max(d) ELSE 0 END", "double"),
        ("round(avg(d), 2)", "double"),
    ],
)
def test_type(text: str, type: str) -> None:
    assert str(analyze_aggregate(text, SCHEMA).type) == type


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("i", "NOT_AGGREGATED"),
        ("sum(i) + l", "NOT_AGGREGATED"),
        ("42", "NOT_AGGREGATED"),
        ("upper(s)", "NOT_AGGREGATED"),
        ("sum(sum(i))", "AGGREGATE"),
        ("sum(rand())", "NON_DETERMINISTIC"),
        ("sum(b)", "TYPE_MISMATCH"),
        ("avg(t)", "TYPE_MISMATCH"),
        ("bit_and(d)", "TYPE_MISMATCH"),
        ("count_if(i)", "TYPE_MISMATCH"),
        ("bool_or(i)", "TYPE_MISMATCH"),
        ("sum()", "WRONG_ARITY"),
        ("sum(i, l)", "WRONG_ARITY"),
        ("max_by(s)", "WRONG_ARITY"),
        ("corr(i)", "WRONG_ARITY"),
        ("max_by(s, x)", "UNKNOWN_FIELD"),
        ("sum(x)", "UNKNOWN_FIELD"),
        ("sum(nosuch(i))", "UNKNOWN_FUNCTION"),
        ("nosuch(sum(i))", "UNKNOWN_FUNCTION"),
        ("aveg(i)", "UNKNOWN_FUNCTION"),
        ("coutn(*)", "UNKNOWN_FUNCTION"),
        ("hll_sketch_agg(i)", "UNKNOWN_FUNCTION"),
        ("max(NULL)", "UNTYPED_NULL"),
        ("sum(i", "SYNTAX_ERROR"),
        ("", "EMPTY_EXPRESSION"),
        ("row_number() OVER (ORDER BY i)", "WINDOW_FUNCTION"),
        ("abs(" * 3000 + "sum(i)" + ")" * 3000, "SYNTAX_ERROR"),
    ],
)
def test_refused(text: str, code: str) -> None:
    with pytest.raises(NetworkError) as raised:
        analyze_aggregate(text, SCHEMA)
    assert raised.value.code == code


def test_what_only_spark_knows_is_asked() -> None:
    asked: list[str] = []

    def resolver(text: str, schema: Schema) -> Type:
        asked.append(text)
        return Type("binary")

    for text in ("hll_sketch_agg(i)", "nosuch(sum(i))", "sum(nosuch(i))"):
        found = analyze_aggregate(text, SCHEMA, resolver=resolver)
        assert (str(found.type), found.fields) == ("binary", ("i",))
    assert len(asked) == 3


def test_groups_may_stand_alone() -> None:
    assert str(analyze_aggregate("i + count(*)", SCHEMA, groups=("I",)).type) == "bigint"
    assert analyze_aggregate("max(l) + i", SCHEMA, groups=("i",)).fields == ("i", "l")


TABLES = {
    "accounts": Schema.parse("vid int, balance double"),
    "owners": Schema.parse("vid int, name string"),
}
INPUT = Schema.parse("vid int, toll decimal(8,2)")


@pytest.mark.parametrize(
    ("sql", "schema"),
    [
        ("SELECT * FROM accounts", "vid int, balance double"),
        ("SELECT accounts.* FROM accounts", "vid int, balance double"),
        ("SELECT a.balance FROM accounts a WHERE a.vid = :vid", "balance double"),
        ("SELECT balance - :toll AS rest FROM accounts", "rest double"),
        ("SELECT count(*) AS n, sum(balance) FROM accounts", "n bigint, column_2 double"),
        ("SELECT name FROM accounts JOIN owners USING (vid) ORDER BY name", "name string"),
        ("SELECT balance AS b FROM accounts ORDER BY b LIMIT 1", "b double"),
        ("select BALANCE from accounts", "BALANCE double"),
    ],
)
def test_select(sql: str, schema: str) -> None:
    found = select_schema(sql, TABLES, INPUT)
    assert str(found).lower() == schema.lower()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT nothing FROM accounts", "UNKNOWN_FIELD"),
        ("SELECT balance FROM accounts WHERE id = :vid", "UNKNOWN_FIELD"),
        ("SELECT balance FROM acounts", "UNKNOWN_TABLE"),
        ("SELECT 1", "BAD_STATEMENT"),
        ("DELETE FROM accounts", "BAD_STATEMENT"),
        ("SELECT vid FROM accounts; SELECT vid FROM owners", "BAD_STATEMENT"),
        ("", "BAD_STATEMENT"),
        ("SELECT vid, VID FROM accounts", "DUPLICATE_FIELD"),
        ("SELECT FROM WHERE", "SYNTAX_ERROR"),
        ("SELECT 'x FROM accounts", "SYNTAX_ERROR"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM accounts", "SYNTAX_ERROR"),
    ],
)
def test_select_refused(sql: str, code: str) -> None:
    with pytest.raises(NetworkError) as raised:
        select_schema(sql, TABLES, INPUT)
    assert raised.value.code == code


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE accounts SET balance = balance - :toll WHERE vid = :vid",
        "INSERT INTO accounts (vid, balance) VALUES (:vid, 0)",
        "INSERT INTO accounts VALUES (:vid, 0) ON CONFLICT (vid) DO UPDATE SET balance = excluded.balance",
        "DELETE FROM accounts WHERE vid = :vid",
    ],
)  # fmt: skip
def test_update(sql: str) -> None:
    require_update(sql, TABLES)
    assert set(parameters_of(sql)) <= {"vid", "toll"}


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT vid FROM accounts", "BAD_STATEMENT"),
        ("UPDATE accounts SET blance = 1", "UNKNOWN_FIELD"),
        ("INSERT INTO accounts (vid, blance) VALUES (1, 2)", "UNKNOWN_FIELD"),
        ("DELETE FROM acounts", "UNKNOWN_TABLE"),
        ("DROP TABLE accounts", "BAD_STATEMENT"),
    ],
)
def test_update_refused(sql: str, code: str) -> None:
    with pytest.raises(NetworkError) as raised:
        require_update(sql, TABLES)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (":b, :a", ("b", "a")),
        (":a2, :a", ("a2", "a")),
        (":a, :a", ("a",)),
        ("a::int, :b::int", ("b",)),
        ("':no'", ()),
    ],
)
def test_parameters(sql: str, found: tuple[str, ...]) -> None:
    assert parameters_of(f"SELECT {sql} FROM t") == found


@pytest.mark.parametrize("sql", ["?", "%s", "$1", "%(a)s"])
def test_parameters_refused(sql: str) -> None:
    with pytest.raises(NetworkError, match=":name"):
        parameters_of(f"SELECT a FROM t WHERE a = {sql}")
