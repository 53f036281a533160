"""Tables in SQLite."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.disk import PRIVATE_FILE
from auroral.errors import NetworkError, RunError, UsageError
from auroral.network.declarations import Table
from auroral.network.types import Field, Schema
from auroral.tables.sqlite_values import (
    COLLATION,
    column_check,
    column_type,
    compare_decimals,
    fits,
    to_sqlite,
)
from auroral.tables.statements import BoxStatement, sqlite_text
from auroral.tables.store import (
    STEPS,
    Batch,
    BoxProgress,
    StatementRun,
    StoreUnavailableError,
    changed_under_us,
)
from auroral.tables.values import table_of

_BUSY_S = 5.0
_STATEMENTS = 256
_CHANGED = ("no such table", "no such column", "has no column", "has changed")


class SqliteTables:
    """One SQLite database, in a file or in memory."""

    def __init__(self, path: Path | None, *, power: bool = False, private: bool = False):
        """With `power` a transaction is on the disk when it ends; only we read a `private` file."""
        self._path = path
        self._power = power
        self._private = private
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._texts: dict[str, str] = {}

    @property
    def where(self) -> str:
        return str(self._path) if self._path is not None else "memory"

    # ── tables ──

    def ensure(self, name: str, table: Table, rows: pa.Table | None) -> None:
        with self._lock, self._told(f"table {name}"):
            database = self._connected(create=True)
            found = database.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
            if found:
                self._require_fit(name, table, {str(n).lower(): str(t) for _, n, t, *_ in found})
                return
            with _transaction(database, "BEGIN IMMEDIATE"):
                database.execute(_created(name, table))
                if rows is not None and rows.num_rows:
                    self._fill(database, name, table.schema_, rows)

    def _require_fit(self, name: str, table: Table, found: Mapping[str, str]) -> None:
        """Refuse a table that was there and has not the declared columns."""
        for field in table.schema_:
            column_type(field.type)
            declared = found.get(field.name.lower())
            if declared is None or not fits(field.type, declared):
                there = ", ".join(f"{column} {type}".strip() for column, type in found.items())
                raise UsageError(
                    "BAD_TABLE",
                    f"the table {name} of {self.where} has the columns {there}; declared are"
                    f" {table.schema_}",
                    where=f"table {name}",
                    hint="declare the table as it is, or give it another name or store",
                )

    def _fill(
        self, database: sqlite3.Connection, name: str, schema: Schema, rows: pa.Table
    ) -> None:
        places = ", ".join("?" * len(schema))
        values, failed = _bound(list(schema), rows)
        if failed:
            raise RunError("BAD_TABLE", next(iter(failed.values())), where=f"table {name}")
        database.executemany(f"INSERT INTO {_quoted(name)} VALUES ({places})", values)

    def rows(self, name: str, table: Table) -> pa.Table:
        names = ", ".join(_quoted(field.name) for field in table.schema_)
        order = ", ".join(map(_quoted, table.key)) or "rowid"
        text = f"SELECT {names} FROM {_quoted(name)} ORDER BY {order}"
        with self._told(f"table {name}"), self._reading() as database:
            found = database.execute(text).fetchall()
        return table_of(found, table.schema_, name)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own, which waits for no step; in memory there is one only."""
        if self._path is None:
            with self._lock:
                yield self._connected()
            return
        if not self._path.exists():
            raise UsageError("NO_STORE", f"there is no database {self._path}")
        with contextlib.closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as database:
            database.create_collation(COLLATION, compare_decimals)
            yield database

    # ── statements ──

    def prepare(self, statement: BoxStatement) -> None:
        text = sqlite_text(statement)
        with self._lock, self._told(f"box {statement.box}"):
            try:
                nothing = [None] * len(statement.parameters)
                self._connected().execute(f"EXPLAIN {text}", nothing).fetchall()
            except sqlite3.OperationalError as error:
                if _is_passing(error):
                    raise
                problem = f"SQLite does not accept the statement: {error}"
                raise NetworkError("BAD_STATEMENT", problem, where=f"box {statement.box}") from None
        self._texts[statement.box] = text

    def parameters(self, statement: BoxStatement, tuples: pa.Table) -> Batch:
        fields = [Field(name, type) for name, type in statement.parameters]
        values, failed = _bound(fields, tuples)
        return Batch(statement, values, failures=failed)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool) -> Iterator[SqliteTransaction]:
        with self._lock, self._unavailable():
            database = self._connected()
            with _transaction(database, "BEGIN IMMEDIATE" if writes else "BEGIN"):
                yield SqliteTransaction(database, self._texts)

    def remember_steps(self) -> None:
        with self._lock, self._told(STEPS):
            self._connected().execute(
                f"CREATE TABLE IF NOT EXISTS {STEPS} (state TEXT NOT NULL, box TEXT NOT NULL,"
                " first INTEGER NOT NULL, done_before INTEGER NOT NULL, payload BLOB NOT NULL,"
                " PRIMARY KEY (state, box))"
            )

    def forget(self, state: str) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error, StoreUnavailableError):
            self._connected().execute(f"DELETE FROM {STEPS} WHERE state = ?", (state,))

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    # ── the connection ──

    def _connected(self, *, create: bool = False) -> sqlite3.Connection:
        """The connection; anew if the file is another than it was."""
        if self._database is not None and self._inode == self._found_inode():
            return self._database
        self.close()
        new = self._path is None or not self._path.exists()
        if new and not create:
            raise StoreUnavailableError(f"there is no database {self._path}")
        if self._path is not None and new:
            if not self._path.parent.is_dir():
                raise UsageError("NO_STORE", f"there is no directory {self._path.parent}")
            mode = PRIVATE_FILE if self._private else 0o666
            os.close(os.open(self._path, os.O_CREAT | os.O_CLOEXEC, mode))
        database = sqlite3.connect(
            self._path or ":memory:",
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
        try:
            database.create_collation(COLLATION, compare_decimals)
            if new and self._path is not None:
                database.execute("PRAGMA journal_mode=WAL")
            database.execute(f"PRAGMA synchronous={'FULL' if self._power else 'NORMAL'}")
            database.execute("PRAGMA case_sensitive_like=ON")
            database.execute("PRAGMA foreign_keys=ON")
        except BaseException:
            database.close()
            raise
        self._database, self._inode = database, self._found_inode()
        return database

    def _found_inode(self) -> int | None:
        """Which file it is; None in memory. One that is gone is none that was."""
        if self._path is None:
            return None
        try:
            return self._path.stat().st_ino
        except OSError:
            return -1

    @contextlib.contextmanager
    def _told(self, where: str) -> Iterator[None]:
        """What goes wrong while the engine starts, or looks, is an error in words."""
        try:
            yield
        except (sqlite3.Error, OSError, StoreUnavailableError) as error:
            raise RunError("BAD_TABLE", f"{self.where}: {error}", where=where) from None

    @contextlib.contextmanager
    def _unavailable(self) -> Iterator[None]:
        """A database that is locked, full or gone is one to wait for."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: sqlite3.Error) -> Exception:
        if isinstance(error, sqlite3.OperationalError) and _is_passing(error):
            return StoreUnavailableError(f"{self.where}: {error}")
        return changed_under_us(self.where, str(error))


class SqliteTransaction:
    """A transaction of SQLite."""

    def __init__(self, database: sqlite3.Connection, texts: Mapping[str, str]):
        self._database = database
        self._texts = texts

    def applied(self, state: str, box: str) -> BoxProgress | None:
        text = f"SELECT first, done_before, payload FROM {STEPS} WHERE state = ? AND box = ?"
        row = self._database.execute(text, (state, box)).fetchone()
        return BoxProgress(*row) if row is not None else None

    def record(self, state: str, boxes: Mapping[str, BoxProgress]) -> None:
        self._database.executemany(
            f"INSERT OR REPLACE INTO {STEPS} VALUES (?, ?, ?, ?, ?)",
            [(state, box, one.first, one.done_before, one.payload) for box, one in boxes.items()],
        )

    def run(self, batches: Sequence[Batch], runs: Sequence[StatementRun]) -> None:
        for run in runs:
            batch = batches[run.batch]
            if batch.statement.writes:
                self._write(batch, run)
            else:
                self._read(batch, run)

    def _read(self, batch: Batch, run: StatementRun) -> None:
        text, execute = self._texts[batch.statement.box], self._database.execute
        parameters, rows, owners = batch.parameters, batch.rows, batch.owners
        for at in range(run.first, run.last):
            if batch.failures and at in batch.failures:
                continue
            try:
                found = execute(text, parameters[at]).fetchall()
            except sqlite3.Error as error:
                batch.failures[at] = self._reason(error)
                continue
            if found:
                rows += found
                owners += [at] * len(found)

    def _write(self, batch: Batch, run: StatementRun) -> None:
        """Run the statements of many tuples; a tuple that fails changes nothing."""
        text = self._texts[batch.statement.box]
        if run.last - run.first == 1:
            self._write_one(batch, text, run.first)
            return
        waiting = [at for at in range(run.first, run.last) if at not in batch.failures]
        parameters, done = batch.parameters, 0
        while done < len(waiting):
            taken = _CountedParameters(parameters[at] for at in islice(waiting, done, None))
            try:
                self._database.executemany(text, taken)
            except sqlite3.Error as error:
                done += taken.count
                batch.failures[waiting[done - 1]] = self._reason(error)
            else:
                return

    def _write_one(self, batch: Batch, text: str, at: int) -> None:
        if at not in batch.failures:
            try:
                self._database.execute(text, batch.parameters[at])
            except sqlite3.Error as error:
                batch.failures[at] = self._reason(error)

    def _reason(self, error: sqlite3.Error) -> str:
        """Why a tuple has failed; what is not its fault is raised."""
        passing = isinstance(error, sqlite3.OperationalError) and _is_passing(error)
        changed = any(words in str(error) for words in _CHANGED)
        if passing or changed or not self._database.in_transaction:
            raise error
        return str(error)


class _CountedParameters:
    """Counts what is taken of an iterator."""

    def __init__(self, values: Iterator[tuple[Any, ...]]):
        self._values = values
        self.count = 0

    def __iter__(self) -> _CountedParameters:
        return self

    def __next__(self) -> tuple[Any, ...]:
        found = next(self._values)
        self.count += 1
        return found


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection, begin: str) -> Iterator[None]:
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _is_passing(error: sqlite3.OperationalError) -> bool:
    """Whether an error is of the database's place, not of a statement: it may go away."""
    return (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_ERROR


def _bound(
    fields: Sequence[Field], tuples: pa.Table
) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
    """The values of fields of tuples as SQLite takes them; why some cannot be bound."""
    failed: dict[int, str] = {}
    columns = []
    for field in fields:
        convert = to_sqlite(field.type)
        values = python_values(tuples[field.name], field, failed)
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        columns.append(values)
    return list(zip(*columns, strict=True)) if columns else [()] * tuples.num_rows, failed


def python_values(values: pa.ChunkedArray, field: Field, failed: dict[int, str]) -> list[Any]:
    """A column as Python has it; a date that Python cannot represent is a failure of its tuple."""
    try:
        found: list[Any] = values.to_pylist()
    except (ValueError, OverflowError):
        found = []
        for at, value in enumerate(values):
            try:
                found.append(value.as_py())
            except (ValueError, OverflowError) as error:
                found.append(None)
                failed.setdefault(at, f"{field.name}: {error}")
    return found


def _created(name: str, table: Table) -> str:
    """The statement that makes a table."""
    keys = {key.lower() for key in table.key}
    columns = []
    for field in table.schema_:
        quoted = _quoted(field.name)
        fitting = column_check(quoted, field.type)
        if field.name.lower() in keys:
            column = f"{quoted} {column_type(field.type)} NOT NULL CHECK ({fitting})"
        else:
            column = f"{quoted} {column_type(field.type)} CHECK ({quoted} IS NULL OR {fitting})"
        columns.append(column)
    if table.key:
        columns.append(f"PRIMARY KEY ({', '.join(map(_quoted, table.key))})")
    ending = " WITHOUT ROWID" if table.key else ""
    return f"CREATE TABLE {_quoted(name)} ({', '.join(columns)}){ending}"


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


__all__ = ["SqliteTables", "SqliteTransaction", "python_values"]
