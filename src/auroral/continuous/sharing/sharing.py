"""Declared queries, read against a network: which an eddy can share, what each gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from auroral.continuous.analysis import QueryTree, Surroundings, asked
from auroral.continuous.boxing.compiler import CompiledQuery, compile_query
from auroral.continuous.boxing.progress import progressing, promised
from auroral.continuous.boxing.tables import require_unchanged_tables
from auroral.continuous.functions import Named, PythonFunction
from auroral.continuous.sharing.aggregate_reading import (
    AggregateShape,
    ReadAggregate,
    read_aggregate_family,
    read_shared_aggregate,
)
from auroral.continuous.sharing.families import ReadFamily, parameters
from auroral.continuous.sharing.reading import (
    NotShared,
    TemplateReader,
    constants_table,
    family_constants,
)
from auroral.continuous.sharing.template import Template
from auroral.errors import NetworkError
from auroral.network.box import Scope
from auroral.network.check import TypedArc, not_revisable
from auroral.network.endpoints import late_readers
from auroral.network.function import signature_of
from auroral.network.network import Network
from auroral.network.parameters import odd_value
from auroral.network.point_names import point_arcs, with_points_resolved
from auroral.network.queries import Family, Query, parameter_types
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import relied_on
from auroral.sql.expressions.lexer import tokens
from auroral.sql.queries.arc_names import with_arcs_renamed
from auroral.sql.queries.from_clause import arc_name
from auroral.sql.queries.queries import read_query


@dataclass(frozen=True)
class Shared:
    """A query or family as an eddy takes it: one row of constants for each member."""

    read: Template | ReadAggregate
    constants: pa.Table
    keys: pa.ChunkedArray | None = None


class QueryReader:
    """Reads the queries of a network."""

    def __init__(
        self, network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str], scope: Scope
    ):
        network = with_points_resolved(network)
        self._network = network
        self._points = point_arcs(network)
        self._schemas = {name: arc.schema for name, arc in arcs.items()}
        self._progress = progressing(network, arcs, order)
        self._revised = {name: arc.revised_by for name, arc in arcs.items() if arc.revised_by}
        self._functions = python_functions(network)
        self._counted = [name for name, stream in network.streams.items() if not stream.routed]
        """The streams whose tuples all enter, so that rows can be counted as they arrive."""
        self._scope = scope
        self._reader = TemplateReader(
            self._schemas,
            self._progress,
            scope=scope,
            streams=self._counted,
            functions=self._functions,
        )
        self._families: dict[tuple[str, Schema], tuple[Template | ReadAggregate, ReadFamily]] = {}
        """Texts of families by the types of their parameters: rows come one by one."""
        self._in_order = network.engine.order == "enforce"
        self._promised = promised(network, arcs, order)

    def shared(self, name: str, query: Query) -> Shared:
        """A query for an eddy; NotShared if it needs boxes of its own."""
        query = self._over_arcs(query)
        try:
            if self._in_order and not isinstance(query, Family):
                raise NotShared("order is enforced")
            if late_readers(self._network, name):
                self._require_late(name, query)
                raise NotShared("its late tuples are read")
            found = self._family(query) if isinstance(query, Family) else self._one(query)
            results_schema(query, found)
            if isinstance(found.read, ReadAggregate) or found.read.join is not None:
                self._require_final(query)
            return found
        except NetworkError as error:
            raise self._network.locate(error, "queries", name) from None

    def _require_late(self, name: str, query: Query) -> None:
        """Refuse to read late tuples of what cannot run as boxes."""
        joins = len(read_query(query.sql).sources)
        if isinstance(query, Family) or joins > 2:
            what = "a family" if isinstance(query, Family) else f"a join of {joins} streams"
            raise NetworkError(
                "BAD_QUERY",
                f"the late tuples of {name} are counted, but cannot be read: it is {what}",
                hint="queries over one stream have an arc q.late, those over two q.left_late and"
                " q.right_late",
            )

    def late_schemas(self, name: str, query: Query) -> dict[str, Schema]:
        """The arcs of a query's late tuples, if somebody reads one."""
        if not late_readers(self._network, name):
            return {}
        found = self.compiled(name, query).late
        return {f"{name}.{port}": schema for port, (_, schema) in found.items()}

    def compiled(self, name: str, query: Query) -> CompiledQuery:
        """The boxes of a query that no eddy takes."""
        query = self._over_arcs(query)
        try:
            compiled = compile_query(
                name,
                query.sql,
                self._schemas,
                self._progress,
                scope=self._scope,
                streams=self._counted,
            )
            if not all(box.passes_revisions for box in compiled.boxes.values()):
                self._require_final(query)
            require_unchanged_tables(self._network, compiled.boxes.values())
            return compiled
        except NetworkError as error:
            raise self._network.locate(error, "queries", name) from None

    def asked(
        self, name: str, query: Query
    ) -> tuple[QueryTree, Mapping[str, PythonFunction]] | None:
        """What a query says that only an eddy can run, and the functions it may call.

        None if boxes can run it: it joins at most two streams and calls no Python function.
        """
        query = self._over_arcs(query)
        if len(read_query(query.sql).sources) <= 2 and not self._called(query.sql):
            return None
        around = Surroundings(
            self._schemas, self._progress, self._scope, self._counted, self._functions
        )
        try:
            return asked(query.sql, around), self._functions
        except NotShared:
            return None  # boxes will say what they cannot do
        except NetworkError as error:
            raise self._network.locate(error, "queries", name) from None

    def only_selects(self, query: Query) -> bool:
        """Whether a query takes each tuple of one arc as it comes; False if it cannot be told."""
        try:
            return self._reader.read(self._over_arcs(query).sql).template.join is None
        except (NotShared, NetworkError):
            return False

    def schema(self, name: str, query: Query) -> Schema:
        """The fields of a query's results, those of a family behind its key."""
        try:
            found = self.shared(name, query)
        except NotShared as why:
            self.require_boxable(name, query, str(why))
            return self.compiled(name, query).schema
        return results_schema(query, found)

    def require_boxable(self, name: str, query: Query, why: str) -> None:
        """Refuse what only an eddy can do."""
        place = self._network.place("queries", name)
        try:
            self._require_no_function(query.sql)
        except NetworkError as error:
            raise error.at(place) from None
        if isinstance(query, Family):
            raise NetworkError("BAD_QUERY", f"a family cannot have this query: {why}", where=place)
        if query.results != "keep":
            raise NetworkError(
                "BAD_QUERY", f"the results of this query cannot only be counted: {why}", where=place
            )

    def _require_no_function(self, sql: str) -> None:
        """Refuse functions in Python where only Spark evaluates expressions."""
        own = self._called(sql)
        if own:
            raise NetworkError(
                "BAD_QUERY",
                f"{own[0]} is a function in Python, and this is no query that can call one",
                hint="they stand in WHERE and SELECT of queries that select or join and share work",
            )

    def _require_final(self, query: Query) -> None:
        """Refuse arcs that carry corrections, where a query remembers what it has read."""
        for source in read_query(query.sql).sources:
            for arc in (self._scope.arc(arc_name(piece)) for piece in source.arcs):
                if arc in self._revised:
                    raise not_revisable("the query", arc, self._revised[arc])

    def _called(self, sql: str) -> list[str]:
        """The Python functions that a query calls."""
        called = {word.text for word, after in pairwise(tokens(sql)) if after.text == "("}
        return [function for function in self._functions if function.lower() in called]

    def _one(self, query: Query) -> Shared:
        try:
            read = self._reader.read(query.sql)
        except NotShared:
            self._require_no_function(query.sql)
            found = read_shared_aggregate(
                query.sql,
                self._schemas,
                self._progress,
                scope=self._scope,
                streams=self._counted,
            )
            self._require_one_mark(found.shape)
            return Shared(found, _rows(found.constants_table(), 1))
        return Shared(read.template, _rows(constants_table(read.template, [read.constants]), 1))

    def _require_one_mark(self, shape: AggregateShape) -> None:
        """Panes close for all groups together; boxes can close each by a mark of its own."""
        mark = relied_on(self._promised[shape.arc], shape.on, shape.by)
        if not isinstance(mark, LowWater):
            raise NotShared(f"progress of {shape.arc} on {shape.on} differs from group to group")

    def _over_arcs(self, query: Query) -> Query:
        """The query over arcs, where it names connection points."""
        sql = with_arcs_renamed(query.sql, self._points)
        return query if sql == query.sql else query.model_copy(update={"sql": sql})

    def shown(self, query: Family) -> set[str]:
        """The parameters that the results of a family show."""
        sql = with_arcs_renamed(query.sql, self._points)
        found, family = self._family_read(sql, query.table(self._network.directory))
        slots = {slot for item in found.items for slot in item.attribute.slots}
        return {name for slot in slots for name in parameters(family.slots[slot])}

    def _family(self, query: Family) -> Shared:
        table = query.table(self._network.directory)
        found, family = self._family_read(query.sql, table)
        constants = _rows(family_constants(family, table), table.num_rows)
        return Shared(found, constants, table[query.key])

    def _family_read(
        self, sql: str, table: pa.Table
    ) -> tuple[Template | ReadAggregate, ReadFamily]:
        key = sql, parameter_types(table)
        if key not in self._families:
            try:
                self._families[key] = self._read_family(*key)
            except NetworkError as error:
                raise _explained(error, table) from None
        return self._families[key]

    def _read_family(self, sql: str, types: Schema) -> tuple[Template | ReadAggregate, ReadFamily]:
        found: Template | ReadAggregate
        try:
            family = self._reader.read_family(sql, types)
            found = family.template
        except NotShared:
            self._require_no_function(sql)
            found, family = read_aggregate_family(
                sql,
                self._schemas,
                self._progress,
                columns=types,
                scope=self._scope,
                streams=self._counted,
            )
            self._require_one_mark(found.shape)
        for item in found.items:
            slots = item.attribute.slots
            if slots and item.attribute.text != f":{slots[0]}":
                raise NetworkError(
                    "BAD_QUERY",
                    f"in SELECT a parameter stands by itself; {item.name} computes with one",
                    hint="select the parameter, as in :limit AS limit, and compute afterwards",
                )
        return found, family


def _explained(error: NetworkError, values: pa.Table) -> NetworkError:
    """The error; if a parameter has the wrong type, with the value that may have made it so."""
    if error.code != "TYPE_MISMATCH":
        return error
    named = {name.lower() for name in re.findall(r":(\w+) is string", error.message)}
    odd = {name: odd_value(values[name]) for name in values.column_names if name.lower() in named}
    hint = "; ".join(f"column {name}: {found}" for name, found in odd.items() if found)
    return NetworkError(error.code, error.message, where=error.where, hint=hint or error.hint)


def _rows(constants: pa.Table, count: int) -> pa.Table:
    """A table that has its rows although there may be no constants."""
    return constants if constants.num_columns else pa.table({"none": pa.nulls(count)})


def results_schema(query: Query, shared: Shared) -> Schema:
    """The fields of results, those of a family behind its key."""
    fields = shared.read.schema()
    if not isinstance(query, Family):
        return fields
    key = parameter_types(pa.table({query.key: shared.keys})).fields[0]
    if key.name in fields:
        raise NetworkError(
            "DUPLICATE_FIELD",
            f"the results have a field {key.name} besides the key",
            hint="name it otherwise with AS",
        )
    return Schema((key, *fields.fields))


def python_functions(network: Network) -> dict[str, PythonFunction]:
    """The functions that queries may call."""
    found = {}
    for name, declared in network.functions.items():
        try:
            loaded = declared.target(network.directory, network.imports)
            returns = declared.type(network.directory, imports=network.imports)
        except NetworkError as error:
            raise network.locate(error, "functions", name) from None
        udf = declared.udf
        called = Named(udf, network.directory) if isinstance(udf, str) else udf
        signature = None if loaded is None else signature_of(loaded)
        found[name] = PythonFunction(name, called, returns, signature)
    return found
