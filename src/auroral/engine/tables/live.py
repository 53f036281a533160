"""The tables that boxes read and update while a network runs: their databases, opened once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.boxes import Read, Update
from auroral.boxes.table_write import TableWrite
from auroral.continuous.boxing.tables import with_lookups
from auroral.errors import NetworkError, RunError, UsageError, closest, list_existing
from auroral.ids import PartBoxId
from auroral.io.rows import RowReader
from auroral.network.declarations import Table
from auroral.network.environment import store_of
from auroral.network.network import Network
from auroral.sql.queries.statements import table_statement
from auroral.storage import Change, Store
from auroral.tables.postgres import PostgresTables
from auroral.tables.sqlite import SqliteTables
from auroral.tables.statements import BoxStatement
from auroral.tables.store import TableStore
from auroral.tables.values import in_key_order

SQLITE = "sqlite:///"
_OWN = "tables.db"
_STATE = "state id"
"""The entry of the manifest by which databases know the state directory."""


class LiveTables:
    """The databases of a running network."""

    def __init__(self, store: Store, given: Mapping[str, Any]):
        """`given` are the first rows of tables that are made here."""
        self._store = store
        self._given = given
        self._databases: dict[str, TableStore] = {}
        self._ensured: dict[str, TableStore] = {}
        """By table."""
        self._declared: dict[str, Table] = {}
        """As they were when their databases were asked for them."""
        self._state: str | None = None

    @property
    def state(self) -> str:
        """The identity of the state directory."""
        if self._state is None:
            self._state = self._store.manifest.meta(_STATE)
        if self._state is None:
            self._state = uuid.uuid4().hex
            self._store.commit(Change(meta={_STATE: self._state}))
        return self._state

    def open(self, network: Network, statements: Sequence[BoxStatement]) -> TableStore:
        """The database of some statements, with their tables and ready to run them."""
        tables = dict.fromkeys(table for one in statements for table in one.found.tables)
        require_one_store(network, list(tables))
        for name in tables:
            declared = network.tables[name]
            if name not in self._ensured or self._declared[name] != declared:
                self._declared[name] = declared
                database = self._database(network, name)
                database.ensure(name, declared, self._first_rows(network, name))
                self._ensured[name] = database
        database = self._ensured[next(iter(tables))]
        if any(one.writes for one in statements):
            database.remember_steps()
        for one in statements:
            try:
                database.prepare(one)
            except NetworkError as error:
                raise network.locate(error, "boxes", PartBoxId.owner(one.box)) from None
        return database

    def rows(self, network: Network, name: str) -> pa.Table:
        """The rows of a table as they are now."""
        if name not in network.tables:
            raise UsageError(
                "UNKNOWN_TABLE",
                f"there is no table {name}; {list_existing(network.tables)}",
                hint=closest(name, network.tables),
            )
        declared = network.tables[name]
        if name in self._ensured:
            return self._ensured[name].rows(name, declared)
        given = self._first_rows(network, name)
        if store_of(network, name) is None or given is not None:
            rows = given if given is not None else declared.schema_.arrow().empty_table()
            return in_key_order(rows, declared.key)
        return self._database(network, name).rows(name, declared)

    def where(self, name: str) -> str | None:
        """Which database a table is in, if boxes use it."""
        return self._ensured[name].where if name in self._ensured else None

    def close(self) -> None:
        for database in self._databases.values():
            if not self._store.durable and self._state is not None:
                database.forget(self._state)
            database.close()

    def _database(self, network: Network, name: str) -> TableStore:
        address = store_of(network, name) or ""
        if address not in self._databases:
            self._databases[address] = open_store(
                network, address, self._store.directory / _OWN, power=self._store.power
            )
        return self._databases[address]

    def _first_rows(self, network: Network, name: str) -> pa.Table | None:
        if name not in self._given:
            return None
        chunk = RowReader(name, network.tables[name].schema_).read(self._given[name])
        if chunk.dead:
            raise RunError("BAD_TABLE", chunk.dead[0].reason, where=f"table {name}")
        return chunk.tuples


def open_store(network: Network, address: str, own: Path, *, power: bool) -> TableStore:
    """A database by its address; without one, `own`."""
    if not address:
        return SqliteTables(own, power=power, private=True)
    if address.startswith(SQLITE):
        path = (network.directory or Path()) / address.removeprefix(SQLITE)
        return SqliteTables(path, power=power)
    return PostgresTables(address)


def require_usable_tables(network: Network) -> None:
    """Refuse, before anything runs, what boxes cannot do with the tables of a network."""
    plain = with_lookups(network)
    for name, box in plain.boxes.items():
        if isinstance(box, Read | Update | TableWrite):
            tables = table_statement(box.sql, plain.tables).tables
            try:
                require_one_store(plain, tables)
            except UsageError as error:
                raise error.at(plain.place("boxes", PartBoxId.owner(name))) from None


def require_one_store(network: Network, tables: Sequence[str]) -> None:
    """Refuse tables of several databases in one statement, or that boxes use together."""
    stores = {store_of(network, name) or "" for name in tables}
    if len(stores) > 1:
        raise UsageError(
            "STORES_DIFFER",
            f"statements use {', '.join(tables)} together, but these are in different stores",
            where=network.place("tables", tables[-1]),
            hint="keep them in one store, or use one table per statement",
        )
