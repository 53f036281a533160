"""Tables in PostgreSQL, through psycopg and its pool of connections."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from auroral.errors import NetworkError, RunError, UsageError, masked
from auroral.network.declarations import Table
from auroral.network.types import Field, Type
from auroral.tables.sqlite import python_values
from auroral.tables.statements import (
    POSTGRES_TYPES,
    BoxStatement,
    postgres_batch,
    postgres_text,
    postgres_type,
)
from auroral.tables.store import (
    STEPS,
    Batch,
    BoxProgress,
    StatementRun,
    StoreUnavailableError,
    changed_under_us,
)
from auroral.tables.values import table_of

if TYPE_CHECKING:
    import psycopg

_CONNECT_S = 5
_FREE_S = 2
"""How long to wait for a connection of the pool, which may be trying to connect anew."""
_CONNECTIONS = 4
_LONG_RUN = 8
"""Runs of a box of at least so many tuples go as one statement, or one pipeline."""
_MOST_AT_ONCE = 5_000
_OF_VALUES = ("22", "23", "44", "P0")
"""Classes of errors that the values of a tuple cause."""
_OF_STATEMENTS = ("0A", "3D", "3F", "42")
"""Classes of errors that mean that a statement does not fit the database."""
_FITTING: Mapping[str, tuple[str, ...]] = {
    "boolean": ("boolean",),
    "tinyint": ("smallint", "integer", "bigint", "numeric"),
    "smallint": ("smallint", "integer", "bigint", "numeric"),
    "int": ("integer", "bigint", "numeric"),
    "bigint": ("bigint", "numeric"),
    "float": ("real", "double precision"),
    "double": ("double precision",),
    "decimal": ("numeric",),
    "string": ("text", "character varying"),
    "binary": ("bytea",),
    "date": ("date",),
    "timestamp": ("timestamp with time zone",),
    "timestamp_ntz": ("timestamp without time zone",),
}


class PostgresTables:
    """One PostgreSQL database."""

    def __init__(self, url: str):
        self._url = url
        try:
            self._psycopg: Any = import_module("psycopg")
            self._pooling: Any = import_module("psycopg_pool")
        except ImportError:
            raise UsageError(
                "MISSING_PACKAGE",
                "tables in PostgreSQL need psycopg",
                hint="pip install 'auroral[postgresql]'",
            ) from None
        logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # we say it ourselves
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        self._pool: Any = None
        self._texts: dict[str, tuple[str, str]] = {}

    @property
    def where(self) -> str:
        return masked(self._url)

    # ── tables ──

    def ensure(self, name: str, table: Table, rows: pa.Table | None) -> None:
        with self._told(f"table {name}"), self._connection() as connection:
            found = self._columns(connection, name)
            if found:
                self._require_fit(name, table, found)
                return
            with connection.transaction():
                connection.execute(_created(name, table))
                if rows is not None and rows.num_rows:
                    names = ", ".join(_quoted(field.name) for field in table.schema_)
                    values, failed = _bound(list(table.schema_), rows)
                    for reason in failed.values():
                        raise RunError("BAD_TABLE", reason, where=f"table {name}")
                    places = ", ".join(f"${n}" for n in range(1, len(table.schema_) + 1))
                    text = f"INSERT INTO {_quoted(name)} ({names}) VALUES ({places})"
                    connection.cursor().executemany(text, values)

    def _columns(self, connection: psycopg.Connection[Any], name: str) -> dict[str, str]:
        found = connection.execute(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
            " WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"
            " ORDER BY attnum",
            (_quoted(name),),
        )
        return dict(found.fetchall())

    def _require_fit(self, name: str, table: Table, found: Mapping[str, str]) -> None:
        """Refuse a table that was there and has not the declared columns."""
        for field in table.schema_:
            if found.get(field.name) not in _FITTING.get(field.type.name, ()):
                there = ", ".join(f"{column} {type}" for column, type in found.items())
                raise UsageError(
                    "BAD_TABLE",
                    f"the table {name} of {self.where} has the columns {there}; declared are"
                    f" {table.schema_}",
                    where=f"table {name}",
                    hint="declare the table as it is, or give it another name or store",
                )

    def rows(self, name: str, table: Table) -> pa.Table:
        names = ", ".join(_quoted(field.name) for field in table.schema_)
        order = ", ".join(_quoted(key) for key in table.key) or names
        text = f"SELECT {names} FROM {_quoted(name)} ORDER BY {order}"
        with self._told(f"table {name}"), self._connection() as connection:
            found = connection.execute(text).fetchall()
        return table_of(found, table.schema_, name)

    # ── statements ──

    def prepare(self, statement: BoxStatement) -> None:
        texts = (
            postgres_text(statement),
            "" if statement.writes else postgres_batch(statement),
        )
        with self._told(f"box {statement.box}"), self._connection() as connection:
            for text in filter(None, texts):
                try:
                    connection.execute(f"PREPARE _auroral_check AS {text}")
                except self._psycopg.Error as error:
                    if (error.sqlstate or "")[:2] not in (*_OF_STATEMENTS, *_OF_VALUES):
                        raise
                    problem = f"PostgreSQL does not accept the statement: {_first_line(error)}"
                    place = f"box {statement.box}"
                    raise NetworkError("BAD_STATEMENT", problem, where=place) from None
                connection.execute("DEALLOCATE _auroral_check")
        self._texts[statement.box] = texts

    def parameters(self, statement: BoxStatement, tuples: pa.Table) -> Batch:
        fields = [Field(name, type) for name, type in statement.parameters]
        values, failed = _bound(fields, tuples)
        return Batch(statement, values, failures=failed)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool) -> Iterator[PostgresTransaction]:
        try:
            with self._connection() as connection, connection.transaction():
                mode = "READ WRITE" if writes else "ISOLATION LEVEL REPEATABLE READ READ ONLY"
                connection.execute(f"SET TRANSACTION {mode}")
                if writes:
                    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
                yield PostgresTransaction(connection, self._texts, self._psycopg.Error)
        except self._psycopg.Error as error:
            raise self._explained(error) from None

    def remember_steps(self) -> None:
        with self._told(STEPS), self._connection() as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {STEPS} (state text, box text, first bigint NOT NULL,"
                " done_before bigint NOT NULL, payload bytea NOT NULL, PRIMARY KEY (state, box))"
            )

    def forget(self, state: str) -> None:
        errors = (self._psycopg.Error, StoreUnavailableError)
        with contextlib.suppress(*errors), self._connection() as connection:
            connection.execute(f"DELETE FROM {STEPS} WHERE state = $1", (state,))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close(timeout=1)
            self._pool = None

    # ── connections ──

    @contextlib.contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        pool = self._opened()
        try:
            connection = pool.getconn(timeout=_FREE_S)
        except (self._pooling.PoolTimeout, self._pooling.PoolClosed) as error:
            self.close()
            raise StoreUnavailableError(f"{self.where}: {error}") from None
        try:
            yield connection
        finally:
            with contextlib.suppress(self._pooling.PoolClosed, self._psycopg.Error):
                pool.putconn(connection)

    def _opened(self) -> Any:
        """The pool; made anew after a failure, when the database answers."""
        if self._pool is None:
            try:
                self._psycopg.connect(self._url, connect_timeout=_CONNECT_S).close()
            except self._psycopg.Error as error:
                raise StoreUnavailableError(f"{self.where}: {_first_line(error)}") from None
            self._pool = self._pooling.ConnectionPool(
                self._url,
                min_size=0,
                max_size=_CONNECTIONS,
                open=True,
                timeout=_CONNECT_S,
                check=self._pooling.ConnectionPool.check_connection,
                configure=self._configure,
                kwargs={
                    "autocommit": True,
                    "prepare_threshold": 0,
                    "cursor_factory": self._psycopg.RawCursor,
                    "connect_timeout": _CONNECT_S,
                    "application_name": "auroral",
                    "keepalives_idle": 10,
                    "tcp_user_timeout": 20_000,
                },
            )
        return self._pool

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        numeric = import_module("psycopg.types.numeric")
        connection.adapters.register_dumper(int, numeric.Int8Dumper)
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("SET client_min_messages TO warning")
        connection.execute("SET lock_timeout TO '10s'")

    @contextlib.contextmanager
    def _told(self, where: str) -> Iterator[None]:
        """What goes wrong while the engine starts, or looks, is an error in words."""
        try:
            yield
        except StoreUnavailableError as error:
            problem = f"cannot reach the database: {error}"
            raise RunError("STORE_UNREACHABLE", problem, where=where) from None
        except self._psycopg.Error as error:
            problem = f"{self.where}: {_first_line(error)}"
            raise RunError("BAD_TABLE", problem, where=where) from None

    def _explained(self, error: psycopg.Error) -> Exception:
        reason = _first_line(error)
        if (error.sqlstate or "")[:2] in (*_OF_STATEMENTS, *_OF_VALUES):
            return changed_under_us(self.where, reason)
        self.close()
        return StoreUnavailableError(f"{self.where}: {reason}")


class PostgresTransaction:
    """A transaction of PostgreSQL."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        texts: Mapping[str, tuple[str, str]],
        error: type[psycopg.Error],
    ):
        self._connection = connection
        self._texts = texts
        self._error = error

    def applied(self, state: str, box: str) -> BoxProgress | None:
        text = f"SELECT first, done_before, payload FROM {STEPS} WHERE state = $1 AND box = $2"
        row = self._connection.execute(text, (state, box)).fetchone()
        return BoxProgress(*row) if row is not None else None

    def record(self, state: str, boxes: Mapping[str, BoxProgress]) -> None:
        self._connection.cursor().executemany(
            f"INSERT INTO {STEPS} VALUES ($1, $2, $3, $4, $5) ON CONFLICT (state, box) DO UPDATE"
            " SET first = excluded.first, done_before = excluded.done_before,"
            " payload = excluded.payload",
            [(state, box, one.first, one.done_before, one.payload) for box, one in boxes.items()],
        )

    def run(self, batches: Sequence[Batch], runs: Sequence[StatementRun]) -> None:
        """Long runs go as one statement or one pipeline; short ones together in a pipeline."""
        mixed: list[tuple[int, int]] = []
        for run in runs:
            waiting = [
                (run.batch, at)
                for at in range(run.first, run.last)
                if at not in batches[run.batch].failures
            ]
            if len(waiting) < _LONG_RUN:
                mixed += waiting
                continue
            self._all(batches, mixed)
            mixed = []
            self._all(batches, waiting)
        self._all(batches, mixed)

    def _all(self, batches: Sequence[Batch], tuples: Sequence[tuple[int, int]]) -> None:
        for first in range(0, len(tuples), _MOST_AT_ONCE):
            self._some(batches, tuples[first : first + _MOST_AT_ONCE])

    def _some(self, batches: Sequence[Batch], tuples: Sequence[tuple[int, int]]) -> None:
        """Run the statements of tuples; if one fails, find it by halves. Each half is in order."""
        try:
            with self._connection.transaction():
                found = self._sent(batches, tuples)
        except self._error as error:
            if (error.sqlstate or "")[:2] not in _OF_VALUES:
                raise
            if len(tuples) == 1:
                ((batch, at),) = tuples
                batches[batch].failures[at] = _first_line(error)
                return
            half = len(tuples) // 2
            self._some(batches, tuples[:half])
            self._some(batches, tuples[half:])
            return
        for batch, at, rows in found:
            batches[batch].rows += rows
            batches[batch].owners += [at] * len(rows)

    def _sent(
        self, batches: Sequence[Batch], tuples: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int, list[Any]]]:
        """The rows that tuples gave, by batch and number."""
        numbers = {batch for batch, _ in tuples}
        if len(tuples) == 1:
            ((number, at),) = tuples
            return self._single(number, at, batches[number])
        if len(numbers) > 1 or len(tuples) < _LONG_RUN:
            return self._piped(batches, tuples)
        batch = batches[numbers.pop()]
        single, several = self._texts[batch.statement.box]
        parameters = [batch.parameters[at] for _, at in tuples]
        if batch.statement.writes:
            self._connection.cursor().executemany(single, parameters)
            return []
        given: list[Any] = [list(values) for values in zip(*parameters, strict=True)]
        rows = self._connection.execute(several, given or [len(tuples)]).fetchall()
        return [(tuples[n - 1][0], tuples[n - 1][1], [tuple(row)]) for n, *row in rows]

    def _single(self, number: int, at: int, batch: Batch) -> list[tuple[int, int, list[Any]]]:
        text = self._texts[batch.statement.box][0]
        cursor = self._connection.execute(text, batch.parameters[at])
        return [] if batch.statement.writes else [(number, at, cursor.fetchall())]

    def _piped(
        self, batches: Sequence[Batch], tuples: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int, list[Any]]]:
        """Send all statements, and then take what came of them."""
        cursors = []
        with self._connection.pipeline():
            for number, at in tuples:
                batch = batches[number]
                cursor = self._connection.cursor()
                cursor.execute(self._texts[batch.statement.box][0], batch.parameters[at])
                if not batch.statement.writes:
                    cursors.append((number, at, cursor))
        return [(number, at, cursor.fetchall()) for number, at, cursor in cursors]


def _bound(
    fields: Sequence[Field], tuples: pa.Table
) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
    """The values of fields of tuples as psycopg takes them; why some cannot be bound."""
    failed: dict[int, str] = {}
    columns = []
    for field in fields:
        values = python_values(tuples[field.name], field, failed)
        if field.type.name == "string":
            for at, value in enumerate(values):
                if value is not None and "\0" in value:
                    failed.setdefault(at, f"{field.name}: PostgreSQL has no NUL in texts")
        columns.append(values)
    return list(zip(*columns, strict=True)) if columns else [()] * tuples.num_rows, failed


def _created(name: str, table: Table) -> str:
    """The statement that makes a table; texts compare as their bytes do, as in Spark."""
    keys = {key.lower() for key in table.key}
    columns = [
        f"{_quoted(field.name)} {_column(field.type)}"
        + (" NOT NULL" if field.name.lower() in keys else "")
        for field in table.schema_
    ]
    if table.key:
        names = [table.schema_.field(key).name for key in table.key]
        columns.append(f"PRIMARY KEY ({', '.join(map(_quoted, names))})")
    return f"CREATE TABLE {_quoted(name)} ({', '.join(columns)})"


def _column(type: Type) -> str:
    if type.name != "decimal" and type.name not in POSTGRES_TYPES:
        raise NetworkError("TYPE_NOT_SUPPORTED", f"a table cannot have a column of type {type}")
    return postgres_type(type) + (' COLLATE "C"' if type.name == "string" else "")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
