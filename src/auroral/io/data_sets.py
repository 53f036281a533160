"""The rows of stored data sets: Parquet and CSV files, tables in SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pyarrow as pa

from auroral.errors import AuroralError, NetworkError, RunError, UsageError, list_existing, masked
from auroral.io.open import open_source
from auroral.io.rows import RowReader
from auroral.network.types import Schema

_BATCH_ROWS = 50_000
_CONNECT_S = 10
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql://"
Kind = Literal["parquet", "csv", "sqlite", "postgresql"]


@dataclass(frozen=True)
class StoredAddress:
    """Where a data set is stored.

    >>> StoredAddress.parse("csv:prices.csv")
    StoredAddress(kind='csv', place='prices.csv', table='')
    >>> StoredAddress.parse("sqlite:///shop.db#prices")
    StoredAddress(kind='sqlite', place='shop.db', table='prices')
    """

    kind: Kind
    place: str
    """A path, or the URL of a database."""
    table: str = ""

    @staticmethod
    def parse(text: str) -> StoredAddress:
        files: tuple[Kind, ...] = ("parquet", "csv")
        for kind in files:
            if text.startswith(f"{kind}:") and text != f"{kind}:":
                return StoredAddress(kind, text.removeprefix(f"{kind}:"))
        table = urlsplit(text).fragment
        place = text.removesuffix(f"#{table}")
        if table and place.startswith(_SQLITE) and place != _SQLITE:
            return StoredAddress("sqlite", place.removeprefix(_SQLITE), table)
        if table and place.startswith(_POSTGRESQL):
            return StoredAddress("postgresql", place, table)
        raise NetworkError(
            "BAD_STORE",
            "expected parquet:PATH, csv:PATH, sqlite:///FILE#TABLE or postgresql://…#TABLE,"
            f" found {text!r}",
        )

    def __str__(self) -> str:
        """For people: without a password."""
        if self.kind in ("parquet", "csv"):
            return f"{self.kind}:{self.place}"
        place = f"{_SQLITE}{self.place}" if self.kind == "sqlite" else masked(self.place)
        return f"{place}#{self.table}"


def read_data_set(
    name: str, address: StoredAddress, schema: Schema, root: Path
) -> Iterator[pa.Table]:
    """All rows of a data set in the order in which they are stored, some at a time.

    Only the columns of the schema are read. Relative paths are below `root`. A data set that is
    not there (`NO_DATA_SET`) or does not fit its schema (`BAD_DATA_SET`) is an error.
    """
    if address.kind in ("parquet", "csv"):
        return _files(name, address, schema, root)
    if address.kind == "sqlite":
        return _sqlite(name, address, schema, root)
    return _postgresql(name, address, schema)


def _files(name: str, address: StoredAddress, schema: Schema, root: Path) -> Iterator[pa.Table]:
    path = Path(root, address.place)
    if not path.exists():
        raise UsageError("NO_DATA_SET", f"there is no file or directory {path}")
    spec: dict[str, Any] = {"format": address.kind, "path": str(path), "extra": "ignore"}
    if path.is_dir():
        spec["once"] = True
    try:
        source = open_source(name, spec, schema)
        with contextlib.closing(source):
            while not source.exhausted:
                chunk = source.poll(_BATCH_ROWS)
                if chunk is None:
                    continue
                if chunk.dead:
                    letter = chunk.dead[0]
                    line = f" line {letter.line}:" if letter.line is not None else ""
                    raise _unfit(f"{letter.place}:{line} {letter.reason}")
                yield chunk.tuples
    except UsageError as error:
        if error.code == "HEADER_MISMATCH":
            raise _unfit(error.message) from None
        raise


def _sqlite(name: str, address: StoredAddress, schema: Schema, root: Path) -> Iterator[pa.Table]:
    path = Path(root, address.place)
    if not path.is_file():
        raise UsageError("NO_DATA_SET", f"there is no database {path}")
    booleans = [n for n, field in enumerate(schema) if field.type.name == "boolean"]
    table = _quoted(address.table)
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as db:
            found = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            _require_columns(address, found, schema)
            names = ", ".join(_quoted(column) for column in schema.names)
            rows = db.execute(f"SELECT {names} FROM {table}")
            while batch := rows.fetchmany(_BATCH_ROWS):
                yield _fitted(name, schema, [_with_booleans(row, booleans) for row in batch])
    except sqlite3.Error as error:
        raise RunError("BAD_DATA_SET", f"{address}: {error}") from None


def _with_booleans(row: Sequence[Any], at: Sequence[int]) -> tuple[Any, ...]:
    """SQLite has no booleans: they are 0 and 1."""
    if not at:
        return tuple(row)
    values = list(row)
    for number in at:
        if values[number] in (0, 1):
            values[number] = bool(values[number])
    return tuple(values)


def _postgresql(name: str, address: StoredAddress, schema: Schema) -> Iterator[pa.Table]:
    try:
        psycopg: Any = import_module("psycopg")
    except ImportError:
        raise UsageError(
            "MISSING_PACKAGE",
            "data sets in PostgreSQL need psycopg",
            hint="pip install 'auroral[postgresql]'",
        ) from None
    sql = import_module("psycopg.sql")
    table = sql.Identifier(*address.table.split("."))
    try:
        with psycopg.connect(address.place, connect_timeout=_CONNECT_S) as connection:
            with connection.cursor() as asking:
                asking.execute("SELECT to_regclass(%s)", (table.as_string(connection),))
                if asking.fetchone() == (None,):
                    raise _no_table(address)
                asking.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(table))
                _require_columns(address, [column.name for column in asking.description], schema)
            wanted = sql.SQL(", ").join(map(sql.Identifier, schema.names))
            with connection.cursor(name="auroral") as rows:  # the server keeps what is to come
                rows.execute(sql.SQL("SELECT {} FROM {}").format(wanted, table))
                while batch := rows.fetchmany(_BATCH_ROWS):
                    yield _fitted(name, schema, batch)
    except psycopg.OperationalError as error:
        raise RunError("NO_DATA_SET", f"cannot read {address}: {_first_line(error)}") from None
    except psycopg.Error as error:
        raise RunError("BAD_DATA_SET", f"{address}: {_first_line(error)}") from None


def _require_columns(address: StoredAddress, found: Sequence[str], schema: Schema) -> None:
    if not found:
        raise _no_table(address)
    missing = [name for name in schema.names if name not in found]
    if missing:
        raise _unfit(f"{address} has no column {', '.join(missing)}; {list_existing(found)}")


def _no_table(address: StoredAddress) -> AuroralError:
    return UsageError("NO_DATA_SET", f"there is no table {address.table} in {address}")


def _fitted(name: str, schema: Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    chunk = RowReader(name, schema).read_rows(rows)
    if chunk.dead:
        raise _unfit(f"{chunk.dead[0].reason}: {chunk.dead[0].row}")
    return chunk.tuples


def _unfit(reason: str) -> AuroralError:
    return UsageError("BAD_DATA_SET", f"the data set does not fit its schema: {reason}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
