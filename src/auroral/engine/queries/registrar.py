"""Reading queries for a running network: what an eddy can run, and what needs boxes of its own."""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from auroral.continuous.boxing.in_order import in_order
from auroral.continuous.sharing.families import retyped
from auroral.continuous.sharing.reading import NotShared
from auroral.continuous.sharing.sharing import QueryReader, Shared, results_schema
from auroral.eddy.registered import RegisteredQuery
from auroral.engine.lifecycle.standalone import StandaloneQuery
from auroral.errors import NetworkError, UsageError
from auroral.network.box import Resolver
from auroral.network.check import type_arcs, what_boxes_see
from auroral.network.declarations import Output
from auroral.network.endpoints import late_readers
from auroral.network.network import Network
from auroral.network.queries import Family, Query
from auroral.network.types import Schema


class Registrar:
    """Reads queries against the arcs of a network."""

    def __init__(self, network: Network, resolver: Resolver | None = None):
        self._resolver = resolver
        self._checked: dict[str, tuple[Query, Shared]] = {}
        """What was read of the network's own queries, until they are registered."""
        self.serve(network)

    def serve(self, network: Network) -> None:
        """Read queries against another network from now on."""
        self._network = network
        arcs, order = type_arcs(network, network.boxes, self._resolver)
        seen = what_boxes_see(network, self._resolver)
        self._reader = QueryReader(network, arcs, order, seen)
        self._checked.clear()

    def check(self, network: Network, *_: Any) -> dict[str, Schema]:
        """The schemas of a network's queries; what is read of them is read once."""
        found = {name: self._schema(name, query) for name, query in network.queries.items()}
        for name, query in network.queries.items():
            found |= self._reader.late_schemas(name, query)
        return found

    def registered(self) -> None:
        """Forget what was read and is not needed: an earlier run has these queries."""
        self._checked.clear()

    def _schema(self, name: str, query: Query) -> Schema:
        try:
            found = self._reader.shared(name, query)
        except NotShared:
            return self._reader.schema(name, query)
        self._checked[name] = query, found
        return results_schema(query, found)

    def query(self, name: str, given: Any) -> Query:
        """A query as it may be given: text, keys as in a file, or declared."""
        return self._network.declared_query(name, given)

    def require_name(self, name: str) -> None:
        """Refuse a name that no query can have."""
        self._network.require_query_name(name)

    def require_removable(self, name: str) -> None:
        """Refuse to remove a query while outputs of the network read its late tuples."""
        readers = late_readers(self._network, name)
        if readers:
            raise UsageError(
                "HAS_OUTPUT",
                f"{name} cannot be removed or replaced: {', '.join(readers)} reads its late tuples",
                hint="start again without that output, with another state directory",
            )

    def read(
        self, queries: Mapping[str, Query]
    ) -> tuple[list[RegisteredQuery], list[StandaloneQuery]]:
        """Queries for eddies, and those that need boxes; a mistake says which query, and where."""
        entries: list[RegisteredQuery] = []
        standalone: list[StandaloneQuery] = []
        for name, query in queries.items():
            try:
                entries.append(self.entry(name, query))
            except NotShared as why:
                self._reader.require_boxable(name, query, str(why))
                standalone.append(self.standalone(name, query))
        return entries, standalone

    def standalone(self, name: str, query: Query) -> StandaloneQuery:
        """A query that needs boxes; it has no id yet."""
        compiled = self._reader.compiled(name, query)
        arc, late = compiled.output, compiled.late
        if self._network.engine.order == "enforce":
            plain = copy.copy(self._network)
            plain.queries = {}
            plain.boxes = {**self._network.boxes, **compiled.boxes}
            read = {name: arc} | {port: own for port, (own, _) in late.items()}
            plain.outputs = {n: Output.model_validate({"from": a}) for n, a in read.items()}
            outputs = in_order(plain).outputs
            arc = outputs[name].from_
            late = {port: (outputs[port].from_, schema) for port, (_, schema) in late.items()}
        return StandaloneQuery(name, query, arc, compiled.schema, late)

    def entry(self, name: str, query: Query) -> RegisteredQuery:
        """A query or a family as an eddy takes it; it has no ids yet."""
        checked, found = self._checked.get(name, (None, None))
        if found is None or checked is None or not _is_same(checked, query):
            found = self._reader.shared(name, query)
        return RegisteredQuery(name, query, 0, found.read, found.constants, found.keys)

    def more(
        self, name: str, family: Family, rows: Any, fields: Schema, keys: pa.DataType
    ) -> RegisteredQuery:
        """More members of a family, with results and keys of the types that the others have."""
        directory = self._network.directory
        try:
            given = family.with_values(rows, directory)
        except NetworkError as error:
            raise self._network.locate(error, "queries", name) from None
        entry = self.entry(name, given)
        if entry.schema().fields != fields.fields[1:]:
            given = self._retyped(name, given, family)
            entry = self.entry(name, given)
        assert entry.keys is not None
        if entry.keys.type == keys:
            return entry
        table, key = given.table(directory), family.key
        try:
            table = table.set_column(table.column_names.index(key), key, entry.keys.cast(keys))
        except pa.ArrowException:
            problem = f"the keys of {name} are {keys}, those of the rows {entry.keys.type}"
            raise NetworkError("BAD_VALUES", problem) from None
        return self.entry(name, family.with_values(table))

    def _retyped(self, name: str, given: Family, family: Family) -> Family:
        """Members that show what they are given in the types in which others show it."""
        directory, shown = self._network.directory, self._reader.shown(given)
        try:
            table = retyped(given.table(directory), shown, family.types(directory))
        except NetworkError as error:
            raise self._network.locate(error, "queries", name) from None
        return family.with_values(table)

    def schema(self, name: str, given: Any) -> Schema:
        """The fields of the results of a query, as it may be given."""
        return self._reader.schema(name, self.query(name, given))

    def declaration_fingerprint(self, query: Query) -> str:
        """What a network says of a query, to be compared with what another says."""
        document: dict[str, Any] = {"sql": query.sql, "results": query.results}
        if isinstance(query, Family):
            table = query.table(self._network.directory)
            document |= {"key": query.key, "values": fingerprint(table)}
        return json.dumps(document, sort_keys=True)


def _is_same(one: Query, other: Query) -> bool:
    """Whether queries say the same; values of families are not looked at."""
    plain = not isinstance(one, Family) and not isinstance(other, Family)
    return one is other or (plain and (one.sql, one.results) == (other.sql, other.results))


def fingerprint(table: pa.Table) -> str:
    """A short text that two tables with the same rows have in common."""
    crc = 0
    for batch in table.combine_chunks().to_batches():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        crc = zlib.crc32(sink.getvalue(), crc)
    return f"{table.num_rows} rows, {crc:08x}"
