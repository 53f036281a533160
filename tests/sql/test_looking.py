"""Which SELECTs over kept history and tables are let through, and what becomes of them."""

from __future__ import annotations

import pytest

from auroral.errors import UsageError
from auroral.sql.queries.looking import checked_select, makes_much

NAMES = ("recent", "accounts")


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT * FROM recent", ["recent"]),
        ("SELECT r.t FROM Recent r JOIN accounts a ON r.sid = a.vid", ["recent", "accounts"]),
        ("WITH x AS (SELECT t FROM recent) SELECT max(t) FROM x", ["recent"]),
        ("SELECT t FROM recent UNION ALL SELECT vid FROM accounts", ["recent", "accounts"]),
        ("SELECT 1 AS one", []),
        ("SELECT from_xml('<a/>', 'a INT') AS one", []),
        ("SELECT (SELECT max(t) FROM recent) AS t", ["recent"]),
    ],
)
def test_declared_names_are_read(sql: str, read: list[str]) -> None:
    assert checked_select(sql, NAMES)[1] == read


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM other", "UNKNOWN_TABLE"),
        ("SELECT * FROM parquet.`/etc/passwd`", "UNKNOWN_TABLE"),
        ("SELECT * FROM csv.`/etc/passwd`", "UNKNOWN_TABLE"),
        ("SELECT * FROM default.recent", "UNKNOWN_TABLE"),
        ("SELECT * FROM read_files('/etc')", "BAD_STATEMENT"),
        ("SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')", "BAD_STATEMENT"),
        ("SELECT * FROM range(10)", "UNKNOWN_TABLE"),
        ("SELECT reflect('java.lang.System', 'exit', 1) FROM recent", "BAD_STATEMENT"),
        ("SELECT java_method('java.lang.System', 'getenv') FROM recent", "BAD_STATEMENT"),
        ("SELECT t FROM recent; DROP TABLE accounts", "BAD_STATEMENT"),
        ("SELECT TRANSFORM(t) USING 'cat' FROM recent", "BAD_STATEMENT"),
        ("DELETE FROM recent", "BAD_STATEMENT"),
        ("INSERT INTO recent VALUES (1)", "BAD_STATEMENT"),
        ("CREATE TABLE x AS SELECT * FROM recent", "BAD_STATEMENT"),
        ("DROP TABLE recent", "BAD_STATEMENT"),
        ("SET spark.x = 1", "BAD_STATEMENT"),
        ("ADD JAR '/tmp/x.jar'", "BAD_STATEMENT"),
        ("SELECT FROM WHERE", "SYNTAX_ERROR"),
        (
            "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
            "BAD_STATEMENT",
        ),
        ("SELECT to_char(t, '9999') FROM recent", "BAD_STATEMENT"),
        ("", "BAD_STATEMENT"),
        ("WITH x AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM x", "UNKNOWN_TABLE"),
        ("SELECT (SELECT max(value) FROM text.`/etc/passwd`) FROM recent", "UNKNOWN_TABLE"),
    ],
)
def test_everything_else_is_refused(sql: str, code: str) -> None:
    with pytest.raises(UsageError) as raised:
        checked_select(sql, NAMES)
    assert raised.value.code == code, raised.value


@pytest.mark.parametrize(
    ("sql", "much"),
    [
        ("SELECT max(t) FROM recent WHERE t > '2026-01-01'", False),
        ("SELECT 'a' || 'b'", True),
        ("SELECT space(3)", True),
        ("SELECT rpad('a', 3)", True),
        ("SELECT size(sequence(1, 3))", True),
        ("SELECT array_repeat('a', 3)", True),
        ("WITH x AS (SELECT repeat('a', 3) AS y) SELECT length(y) FROM x", True),
        ("SELECT format_string('%9d', 1)", True),
    ],
)
def test_what_can_make_large_values_is_known(sql: str, much: bool) -> None:
    assert makes_much(checked_select(sql, NAMES)[0]) is much
