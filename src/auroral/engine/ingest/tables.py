"""Static tables: their rows as they were when the state was made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.disk import disk_errors, make_directory, sync_directory
from auroral.engine.tables.live import open_store
from auroral.errors import (
    AuroralError,
    NetworkError,
    RunError,
    UsageError,
    closest,
    list_existing,
)
from auroral.io.rows import RowReader
from auroral.network.declarations import Table, require_store
from auroral.network.environment import store_of
from auroral.network.network import Network
from auroral.storage.segment import encode, write_file


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


def _stored(network: Network, name: str, table: Table) -> pa.Table:
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
    database = open_store(network, store, network.directory or Path(), power=False)
    try:
        return database.rows(name, table)
    except AuroralError as error:
        raise type(error)(error.code, error.message, where=where, hint=error.hint) from None
    finally:
        database.close()


def require_readable(network: Network, name: str) -> None:
    """Refuse a store that cannot be one."""
    store = store_of(network, name)
    if store is not None:
        try:
            require_store(store)
        except NetworkError as error:
            raise network.locate(error, "tables", name) from None


def require_tables(given: Mapping[str, Any], network: Network) -> None:
    """Refuse rows for a table that is not declared."""
    for name in given:
        if name not in network.tables:
            raise UsageError(
                "UNKNOWN_TABLE",
                f"there is no table {name}; {list_existing(network.tables)}",
                hint=closest(name, network.tables),
            )
