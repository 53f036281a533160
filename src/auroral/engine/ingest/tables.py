"""Static tables: their rows as they were when the state was made."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.disk import disk_errors, make_directory, sync_directory
from auroral.errors import NetworkError, RunError, UsageError, closest, list_existing
from auroral.io.rows import RowReader
from auroral.network.declarations import Table, require_store
from auroral.network.environment import store_of
from auroral.network.network import Network
from auroral.storage.segment import encode, write_file

_SQLITE = "sqlite:///"


def snapshot(
    network: Network, name: str, directory: Path, given: Mapping[str, Any], *, sync: bool
) -> Path:
    """A file with the rows of a table, columns `f0`, `f1`, …; made once, so that a restart sees
    what the first run saw.
    """
    path = directory / "tables" / f"{name}.parquet"
    if not path.exists():
        table = network.tables[name]
        rows = given[name] if name in given else _stored(network, name, table)
        chunk = RowReader(name, table.schema_).read(rows)
        if chunk.dead:
            raise RunError("BAD_TABLE", chunk.dead[0].reason, where=f"table {name}")
        columns = [f"f{n}" for n in range(len(table.schema_))]
        data: pa.Table = chunk.tuples.rename_columns(columns)
        with disk_errors(path):
            make_directory(path.parent, sync=sync)
            write_file(path, encode(data), sync=sync)
            if sync:
                sync_directory(path.parent)
    return path


def _stored(network: Network, name: str, table: Table) -> list[dict[str, Any]]:
    """The rows in the table's store."""
    where = network.place("tables", name)
    store = store_of(network, name)
    if store is None:
        raise UsageError(
            "NO_STORE",
            f"the table {name} has no store, and its rows are not given",
            where=where,
            hint="add store: sqlite:///path, or pass Engine(tables={name: rows})",
        )
    require_readable(network, name)
    path = (network.directory or Path()) / store.removeprefix(_SQLITE)
    if not path.exists():
        raise UsageError("NO_STORE", f"there is no database {path}", where=where)
    names = table.schema_.names
    quoted = ", ".join('"{}"'.format(column.replace('"', '""')) for column in names)
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            found = database.execute(f'SELECT {quoted} FROM "{name}" ORDER BY rowid').fetchall()
    except sqlite3.Error as error:
        raise RunError("BAD_TABLE", f"{path}: {error}", where=f"table {name}") from None
    return [dict(zip(names, row, strict=True)) for row in found]


def require_readable(network: Network, name: str) -> None:
    """Refuse a table in a store that this version does not read."""
    store = store_of(network, name)
    if store is not None and not store.startswith(_SQLITE):
        try:
            require_store(store)
        except NetworkError as error:
            raise network.locate(error, "tables", name) from None
        kind = store.partition(":")[0]
        raise UsageError(
            "STORE_NOT_SUPPORTED",
            f"this version reads tables from sqlite:///…, not from {kind}",
            where=network.place("tables", name),
            hint="pass its rows as Engine(tables={…}), or leave it out",
        )


def require_tables(given: Mapping[str, Any], network: Network) -> None:
    """Refuse rows for a table that is not declared."""
    for name in given:
        if name not in network.tables:
            raise UsageError(
                "UNKNOWN_TABLE",
                f"there is no table {name}; {list_existing(network.tables)}",
                hint=closest(name, network.tables),
            )
