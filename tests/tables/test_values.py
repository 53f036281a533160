"""Values in databases: there and back as they were, and kept out where they do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auroral as au
from auroral.network.declarations import Table
from auroral.network.types import Schema
from auroral.sql.queries.statements import select_schema
from auroral.tables.postgres import PostgresTables
from auroral.tables.sqlite import SqliteTables
from auroral.tables.statements import BoxStatement, box_statement
from auroral.tables.store import Batch, StatementRun, TableStore
from benchmarks.postgres_server import PostgresServer

TYPES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(15,4)": st.decimals(-(10**11) + 1, 10**11 - 1, places=4),
    "decimal(38,10)": st.decimals(-(10**27), 10**27, places=10),
    "decimal(38,0)": st.decimals(-(10**37), 10**37, places=0),
    "decimal(18,0)": st.decimals(-(10**18) + 1, 10**18 - 1, places=0),
    "string": st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    "binary": st.binary(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
}
NAMES = {kind: f"c{n}" for n, kind in enumerate(TYPES)}
SCHEMA = Schema.parse({"k": "int", **{name: kind for kind, name in NAMES.items()}})
TABLE = Table.model_validate({"schema": SCHEMA, "key": ["k"]})
EVERY = {"every": SCHEMA}

Open = Callable[[], TableStore]


@pytest.fixture(params=["sqlite", "postgresql"])
def open_database(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "sqlite":
        return lambda: SqliteTables(None)
    server: PostgresServer = request.getfixturevalue("postgres")
    return lambda: PostgresTables(server.fresh())


def prepared(database: TableStore, sql: str, input: Schema = SCHEMA) -> BoxStatement:
    columns = select_schema(sql, EVERY, input) if sql.startswith("SELECT") else None
    statement = box_statement("b", sql, EVERY, input, columns)
    database.prepare(statement)
    return statement


def done(database: TableStore, statement: BoxStatement, tuples: pa.Table) -> Batch:
    batch = database.parameters(statement, tuples)
    with database.transaction(writes=True) as transaction:
        transaction.run([batch], [StatementRun(0, 0, tuples.num_rows)])
    return batch


def printed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that compare as they print; SQLite gives -0.0 back as 0.0, which is equal to it."""
    return [
        {n: repr(v + 0.0) if isinstance(v, float) else v for n, v in row.items()} for row in rows
    ]


ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | TYPES[kind] for kind, name in NAMES.items()}),
    min_size=1,
    max_size=20,
)


def test_values_come_back_as_they_were(open_database: Open) -> None:
    database = open_database()
    database.ensure("every", TABLE, None)
    names = ", ".join(SCHEMA.names)
    places = ", ".join(f":{name}" for name in SCHEMA.names)
    insert = prepared(database, f"INSERT INTO every ({names}) VALUES ({places})")
    read = prepared(database, "SELECT * FROM every WHERE k = :k")
    clear = prepared(database, "DELETE FROM every")

    @settings(max_examples=30)
    @given(ROWS)
    def there_and_back(rows: list[dict[str, Any]]) -> None:
        given = [{"k": at, **row} for at, row in enumerate(rows)]
        tuples = pa.Table.from_pylist(given, SCHEMA.arrow())
        database.prepare(clear)
        done(database, clear, tuples.slice(0, 1))
        database.prepare(insert)
        assert not done(database, insert, tuples).failures
        database.prepare(read)
        found, owners = done(database, read, tuples).result()
        assert owners.to_pylist() == list(range(len(rows)))
        assert printed(found.to_pylist()) == printed(tuples.to_pylist())
        assert printed(database.rows("every", TABLE).to_pylist()) == printed(tuples.to_pylist())

    there_and_back()
    database.close()


NAN = [0.5, math.nan, -math.inf, math.inf, None, 0.0]


def test_nan_is_greater_than_all_and_equal_to_itself(open_database: Open) -> None:
    database = open_database()
    schema = Schema.parse("k int, x double")
    table = Table.model_validate({"schema": schema, "key": ["k"]})
    rows = [{"k": k, "x": x} for k, x in enumerate(NAN)]
    database.ensure("numbers", table, pa.Table.from_pylist(rows, schema.arrow()))

    def found(sql: str) -> list[Any]:
        given = pa.Table.from_pylist([{"k": 0, "x": math.nan}], schema.arrow())
        columns = select_schema(sql, {"numbers": schema}, schema)
        statement = box_statement("b", sql, {"numbers": schema}, schema, columns)
        database.prepare(statement)
        return list(done(database, statement, given).result()[0].to_pydict()["k"])

    assert found("SELECT k FROM numbers WHERE x = :x") == [1]
    assert found("SELECT k FROM numbers WHERE x < :x") == [0, 2, 3, 5]
    assert found("SELECT k FROM numbers WHERE x IS NOT NULL ORDER BY x") == [2, 5, 0, 3, 1]
    database.close()


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint"])
def test_a_number_that_does_not_fit_fails_alone(open_database: Open, kind: str) -> None:
    database = open_database()
    schema = Schema.parse({"k": "int", "n": kind})
    table = Table.model_validate({"schema": schema, "key": ["k"]})
    most = {"tinyint": 127, "smallint": 2**15 - 1, "int": 2**31 - 1, "bigint": 2**63 - 1}[kind]
    rows = [{"k": k, "n": n} for k, n in enumerate([most, 1, None])]
    database.ensure("every", table, pa.Table.from_pylist(rows, schema.arrow()))
    sql = "UPDATE every SET n = n + 1 WHERE k = :k"
    statement = box_statement("b", sql, {"every": schema}, schema, None)
    database.prepare(statement)
    batch = done(database, statement, pa.Table.from_pylist(rows * 10, schema.arrow()))
    wide = kind == "tinyint" and isinstance(database, PostgresTables)  # it has no type so small
    assert set(batch.failures) == ({*()} if wide else {*range(0, 30, 3)})
    if not wide:
        found = database.rows("every", table).to_pylist()
        assert [row["n"] for row in found] == [most, 11, None]
    database.close()


def test_what_a_database_cannot_keep_is_refused(tmp_path: Path) -> None:
    database = SqliteTables(tmp_path / "a.db")
    for kind in ("map<int,int>", "array<int>", "struct<a:int>"):
        table = Table.model_validate({"schema": {"k": kind}})
        with pytest.raises(au.NetworkError, match="TYPE_NOT_SUPPORTED"):
            database.ensure("t", table, None)
    database.close()


def test_texts_cannot_leave_their_place(open_database: Open) -> None:
    database = open_database()
    schema = Schema.parse("k string, n int")
    table = Table.model_validate({"schema": schema, "key": ["k"]})
    texts = [
        "'); DROP TABLE every; --",
        "' OR '1' = '1",
        '"; DELETE FROM every; --',
        "$1",
        "?1",
        ":k",
        "%s",
        "%(k)s",
        "\\",
        "E'\\''",
        "x'00'",
        "",
        "NaN",
    ]
    rows = pa.Table.from_pylist([{"k": k, "n": n} for n, k in enumerate(texts)], schema.arrow())
    database.ensure("every", table, rows)
    for sql, wanted in (
        ("SELECT n FROM every WHERE k = :k", list(range(len(texts)))),
        ("SELECT n FROM every WHERE k LIKE '100%' OR n = :n", list(range(len(texts)))),
    ):
        columns = select_schema(sql, {"every": schema}, schema)
        statement = box_statement("b", sql, {"every": schema}, schema, columns)
        database.prepare(statement)
        found, _ = done(database, statement, rows).result()
        assert found.to_pydict()["n"] == wanted
    assert database.rows("every", table).num_rows == len(texts)
    database.close()


def test_what_a_database_gives_must_fit_the_declaration(tmp_path: Path) -> None:
    database = SqliteTables(None)
    schema = Schema.parse("k int, d date, n int")
    loose = Table.model_validate({"schema": "k int, d string, n string", "key": ["k"]})
    rows = [{"k": 1, "d": "soon", "n": "7"}, {"k": 2, "d": "2024-05-01", "n": "x"}]
    database.ensure("t", loose, pa.Table.from_pylist(rows, loose.schema_.arrow()))
    sql = "SELECT d, n FROM t WHERE k = :k"
    columns = Schema.parse("d date, n int")
    statement = box_statement("b", sql, {"t": schema}, schema, columns)
    database.prepare(statement)
    given = [{"k": k, "d": date(2024, 1, 1), "n": 1} for k in (1, 2, 3)]
    batch = done(database, statement, pa.Table.from_pylist(given, schema.arrow()))
    found, _ = batch.result()
    assert found.num_rows == 0
    assert batch.failures == {
        0: "d: expected date, found 'soon'",
        1: "n: expected int, found 'x'",
    }


def test_a_decimal_that_was_computed_has_its_places() -> None:
    database = SqliteTables(None)
    schema = Schema.parse("k int, d decimal(10,2)")
    table = Table.model_validate({"schema": schema, "key": ["k"]})
    rows = pa.Table.from_pylist([{"k": 1, "d": Decimal("0.10")}], schema.arrow())
    database.ensure("t", table, rows)
    sql = "UPDATE t SET d = d + 0.2 WHERE k = :k"
    statement = box_statement("b", sql, {"t": schema}, schema, None)
    database.prepare(statement)
    done(database, statement, rows)
    assert database.rows("t", table).to_pylist() == [{"k": 1, "d": Decimal("0.30")}]


def test_long_decimals_compare_by_value(open_database: Open) -> None:
    database = open_database()
    schema = Schema.parse("d decimal(30,2)")
    table = Table.model_validate({"schema": schema, "key": ["d"]})
    texts = ["9.50", "10.00", "-3.00", "123456789012345678901234.56", "123456789012345678901234.57"]
    rows = pa.Table.from_pylist([{"d": Decimal(text)} for text in texts], schema.arrow())
    database.ensure("t", table, rows)
    for sql, wanted in (
        ("SELECT d AS e FROM t WHERE d = :d", texts),
        ("SELECT count(*) AS n FROM t WHERE d < :d", [1, 2, 0, 3, 4]),
        ("SELECT count(*) AS n FROM t WHERE :d > 9.6", [0, 5, 0, 5, 5]),
    ):
        columns = select_schema(sql, {"t": schema}, schema)
        statement = box_statement("b", sql, {"t": schema}, schema, columns)
        database.prepare(statement)
        found, owners = done(database, statement, rows).result()
        values = dict(zip(owners.to_pylist(), found.column(0).to_pylist(), strict=True))
        assert [str(values.get(at)) for at in range(len(texts))] == [str(one) for one in wanted]
    insert = box_statement("i", "INSERT INTO t VALUES (:d)", {"t": schema}, schema, None)
    database.prepare(insert)
    again = pa.Table.from_pylist([{"d": Decimal("10")}], schema.arrow())
    assert done(database, insert, again).failures, "it is the same number"
    database.close()


def test_times_beyond_python_fail_alone() -> None:
    database = SqliteTables(None)
    schema = Schema.parse("k int, at timestamp")
    table = Table.model_validate({"schema": schema, "key": ["k"]})
    database.ensure("t", table, None)
    sql = "INSERT INTO t VALUES (:k, :at)"
    statement = box_statement("b", sql, {"t": schema}, schema, None)
    database.prepare(statement)
    at = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    batch = done(database, statement, pa.table({"k": pa.array([1, 2], pa.int32()), "at": at}))
    assert list(batch.failures) == [1]
    assert database.rows("t", table).to_pylist() == [
        {"k": 1, "at": datetime(1970, 1, 1, tzinfo=UTC)}
    ]
