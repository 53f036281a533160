"""Statements of boxes: what they may say, and what each database is given."""

from __future__ import annotations

import pytest

import auroral as au
from auroral.network.types import Schema
from auroral.sql.queries.statements import select_schema
from auroral.tables.statements import (
    BoxStatement,
    box_statement,
    postgres_batch,
    postgres_text,
    sqlite_text,
)

TABLES = {
    "accounts": Schema.parse("vid int, balance double, At timestamp"),
    "cars": Schema.parse("vid int, kind string"),
}
INPUT = Schema.parse("vid int, toll double")


def statement(sql: str) -> BoxStatement:
    columns = select_schema(sql, TABLES, INPUT) if sql.startswith("SELECT") else None
    return box_statement("b", sql, TABLES, INPUT, columns)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT balance FROM accounts; DELETE FROM accounts", "BAD_STATEMENT"),
        ("SELECT balance FROM accounts; SELECT 1", "BAD_STATEMENT"),
        ("DROP TABLE accounts", "BAD_STATEMENT"),
        ("ATTACH 'other.db' AS other", "SYNTAX_ERROR"),
        ("PRAGMA writable_schema = 1", "BAD_STATEMENT"),
        ("SELECT sql FROM sqlite_master", "UNKNOWN_TABLE"),
        ("SELECT rolname FROM pg_catalog.pg_authid", "BAD_STATEMENT"),
        ("SELECT balance FROM main.accounts", "BAD_STATEMENT"),
        ("SELECT balance FROM other.accounts", "BAD_STATEMENT"),
        ("SELECT payload FROM _auroral_steps", "UNKNOWN_TABLE"),
        ("SELECT pg_read_file('secrets') AS s FROM accounts", "UNKNOWN_FUNCTION"),
        ("SELECT balance FROM accounts, pg_ls_dir('.') AS f", "UNKNOWN_FUNCTION"),
        ("SELECT balance FROM accounts, pragma_table_info('x') AS f", "UNKNOWN_FUNCTION"),
        ("SELECT load_extension('x') AS s FROM accounts", "UNKNOWN_FUNCTION"),
        ("SELECT readfile('x') AS s FROM accounts", "UNKNOWN_FUNCTION"),
        ("SELECT random() AS r FROM accounts", "UNKNOWN_FUNCTION"),
        ("SELECT current_timestamp AS now FROM accounts", "UNKNOWN_FUNCTION"),
        ("SELECT balance INTO copied FROM accounts", "BAD_STATEMENT"),
        ("SELECT balance FROM accounts FOR UPDATE", "BAD_STATEMENT"),
        ("SELECT balance FROM accounts TABLESAMPLE SYSTEM (10)", "BAD_STATEMENT"),
        ("WITH d AS (DELETE FROM accounts RETURNING vid) SELECT vid FROM d", "BAD_STATEMENT"),
        ("SELECT rowid FROM accounts", "UNKNOWN_FIELD"),
        ("SELECT ctid FROM accounts", "UNKNOWN_FIELD"),
        ("SELECT toll FROM accounts", "UNKNOWN_FIELD"),
        ("SELECT balance FROM accounts WHERE vid = :wid", "UNKNOWN_FIELD"),
        ("SELECT balance FROM accounts WHERE vid = ?", "BAD_STATEMENT"),
        ("SELECT balance FROM accounts WHERE vid = $1", "BAD_STATEMENT"),
        ("UPDATE accounts SET balance = 0", "BAD_STATEMENT"),
    ],
)
def test_a_read_reaches_nothing_but_its_tables(sql: str, code: str) -> None:
    net = au.Network("confined")
    net.table("accounts", TABLES["accounts"])
    stream = net.stream("s", INPUT)
    with pytest.raises(au.NetworkError) as refused:
        stream.read(sql, name="r")
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT balance FROM accounts", "BAD_STATEMENT"),
        ("INSERT OR ROLLBACK INTO accounts VALUES (1, 2, NULL)", "BAD_STATEMENT"),
        ("UPDATE accounts SET balance = 0 RETURNING vid", "BAD_STATEMENT"),
        ("UPDATE accounts SET balance = pg_sleep(1)", "UNKNOWN_FUNCTION"),
        ("INSERT INTO accounts SELECT * FROM others", "UNKNOWN_TABLE"),
        ("DELETE FROM _auroral_steps", "UNKNOWN_TABLE"),
        ("COPY accounts TO 'stolen'", "BAD_STATEMENT"),
        ("COPY accounts FROM PROGRAM 'id'", "BAD_STATEMENT"),
        ("VACUUM INTO 'stolen.db'", "BAD_STATEMENT"),
        ("UPDATE accounts SET balance = 0; COMMIT", "BAD_STATEMENT"),
        ("UPDATE accounts SET money = 0", "UNKNOWN_FIELD"),
    ],
)
def test_an_update_reaches_nothing_but_its_tables(sql: str, code: str) -> None:
    net = au.Network("confined")
    net.table("accounts", TABLES["accounts"])
    stream = net.stream("s", INPUT)
    with pytest.raises(au.NetworkError) as refused:
        stream.update(sql, name="u", vid="vid")
    assert refused.value.code == code


def test_names_are_quoted_and_parameters_bound() -> None:
    update = statement(
        "INSERT INTO accounts (VID, balance) VALUES (:vid, :toll) ON CONFLICT (vid)"
        " DO UPDATE SET balance = accounts.Balance + excluded.balance -- more"
    )
    assert sqlite_text(update) == (
        'INSERT INTO "accounts" ("vid", "balance") VALUES (?1, ?2) ON CONFLICT("vid")'
        ' DO UPDATE SET "balance" = "accounts"."balance" + excluded."balance"'
    )
    assert postgres_text(update) == (
        'INSERT INTO "accounts" ("vid", "balance")'
        " VALUES (CAST($1 AS INT), CAST($2 AS DOUBLE PRECISION))"
        ' ON CONFLICT("vid") DO UPDATE SET "balance" = "accounts"."balance" + excluded."balance"'
    )


def test_rows_are_in_a_total_order_and_columns_are_listed() -> None:
    select = statement("SELECT * FROM cars c WHERE vid = :vid ORDER BY kind DESC LIMIT 3")
    assert sqlite_text(select) == (
        'SELECT c."vid", c."kind" FROM "cars" AS c WHERE "vid" = ?1'
        ' ORDER BY "kind" DESC NULLS FIRST, 1 ASC, 2 ASC LIMIT 3'
    )
    several = postgres_batch(select)
    assert several.startswith(
        "SELECT _given.n, c1, c2 FROM unnest($1::integer[]) WITH ORDINALITY AS _given(p1, n)"
        ' CROSS JOIN LATERAL (SELECT *, row_number() OVER () FROM (SELECT c."vid", c."kind"'
    )
    assert '"vid" = _given.p1 ORDER BY' in several
    assert "generate_series(1, $1::bigint)" in postgres_batch(statement("SELECT vid FROM cars"))


def test_times_are_written_as_columns_of_sqlite_have_them() -> None:
    late = statement("SELECT vid FROM accounts WHERE at >= TIMESTAMP '2024-05-01 12:00:00+02:00'")
    assert "'2024-05-01 10:00:00.000000'" in sqlite_text(late)
    with pytest.raises(au.NetworkError, match="BAD_STATEMENT"):
        sqlite_text(statement("UPDATE accounts SET at = CAST(:vid AS timestamp)"))
    with pytest.raises(au.NetworkError, match="SQLite has no MERGE"):
        sqlite_text(
            statement(
                "MERGE INTO accounts USING cars ON cars.vid = accounts.vid WHEN MATCHED THEN DELETE"
            )
        )
