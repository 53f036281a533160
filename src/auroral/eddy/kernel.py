"""The eddy's kernel: one pass over a train for all continuous queries of some arcs.

Grouped filters find the lineage of every tuple; tuples that satisfy a query go on to the query's
results, to the SteMs or to the panes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.continuous.functions import PythonFunction
from auroral.continuous.sharing.template import Attribute
from auroral.eddy.filters.index import CompiledQueries, Matched, match, sampled
from auroral.eddy.filters.trial import tried
from auroral.eddy.lineage import Lineage
from auroral.eddy.ownership import Mask, keys_of, places_of
from auroral.eddy.panes.step import AggregateGroup
from auroral.eddy.panes.step import step as step_panes
from auroral.eddy.parts import Snapshot, load_parts
from auroral.eddy.registered import COUNT, SELECT, Ids, log_of
from auroral.eddy.report import Report
from auroral.eddy.routes.probing import Orders
from auroral.eddy.stems.lineages import aligned, encoding
from auroral.eddy.stems.step import NewTuples, step_stems
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.eddy.version import Version
from auroral.kernels.kernel import Context, Emitted
from auroral.network.types import HIDDEN
from auroral.progress.lowwater import LowWater
from auroral.storage.segment import read_file

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Turn:
    """The driver's decisions for one step of an eddy, apart from its queries."""

    version: Version
    orders: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)
    """By arc, for each chunk of its tuples, the order of the filters."""
    probes: Orders = field(default_factory=dict)
    """For each join, in which order its new tuples probe the SteMs."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """How many tuples of an arc came before this step."""
    marks: Mapping[tuple[str, str], LowWater] = field(default_factory=dict)
    """By arc and attribute."""
    home: str = ""
    """Where the state lies: what a process remembers of it is remembered under this name."""
    sampled: bool = False
    """Whether samples of values are wanted."""
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By arc whose orders are to be tried, what a visit of each filter costs."""
    bucket: int = 0
    buckets: int = 1
    together: bool = True
    """Whether one task does all buckets."""

    def at(self, bucket: int, buckets: int, *, together: bool) -> Turn:
        """The same for one of several buckets."""
        return replace(self, bucket=bucket, buckets=buckets, together=together)


@dataclass(frozen=True)
class EddyKernel:
    """All continuous queries of some arcs at work on one bucket."""

    arcs: tuple[str, ...]
    fields: tuple[Mapping[str, str], ...]
    """For each arc, the kernel's column of each field."""
    functions: Mapping[str, PythonFunction] = field(default_factory=dict)

    def tables(self) -> Mapping[str, pa.Schema]:
        return {}

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, Any], context: Context
    ) -> Emitted:
        """Process a step; the kernel gets the files of its state and reads those it needs."""
        turn = context.extra
        assert isinstance(turn, Turn)
        tables = {
            arc: _named(table, names)
            for arc, table, names in zip(self.arcs, inputs, self.fields, strict=True)
        }
        return _BucketStep(self, turn, context, state).run(tables)


class _BucketStep:
    """One bucket's share of a step."""

    def __init__(
        self,
        kernel: EddyKernel,
        turn: Turn,
        context: Context,
        state: Mapping[str, Sequence[str]],
    ):
        self._kernel = kernel
        self._turn = turn
        self._version = turn.version
        self._context = context
        self._state = state
        self._emitted = Emitted()
        self._report = Report()

    def run(self, tables: Mapping[str, pa.Table]) -> Emitted:
        arrived: dict[str, NewTuples] = {}
        for arc, table in tables.items():
            if self._turn.bucket == 0:  # every bucket is given the same
                self._report.arrived[arc] = table.num_rows
                self._see(arc, TupleColumns(table, self._kernel.functions))
            own = self._own(arc, table)
            rows: Rows | None = None
            mine = table
            if own is not None:
                none = np.zeros(table.num_rows, bool)
                rows = np.flatnonzero(np.logical_or.reduce([none, *own.values()]))
                own = {kind: mask[rows] for kind, mask in own.items()}
                mine = table if len(rows) == table.num_rows else table.take(pa.array(rows))
            columns = TupleColumns(mine, self._kernel.functions)
            matched = self._match(arc, columns, own)
            self._select(arc, mine, columns, matched)
            if self._version.joins:
                arrived[arc] = self._arrived(arc, table, mine, matched, rows)
            for group in self._version.aggregates:
                if group.shape.arc == arc:
                    self._aggregate(group, mine, matched, None if own is None else own[group.name])
        if self._version.joins:
            self._join(arrived)
        self._emitted.note = self._report.document()
        return self._emitted

    # ── whose tuples ──

    def _own(self, arc: str, table: pa.Table) -> dict[str, Mask] | None:
        """For each kind that asks, which tuples are this bucket's; None if there is no other."""
        turn = self._turn
        if turn.buckets == 1:
            return None
        asking = {kind for part in self._parts(arc) for kind in part.kinds}
        selections = [kind for kind in (SELECT, COUNT) if kind in asking]
        keys = keys_of(self._version, arc)
        places = places_of(table, keys, selections, turn.buckets, together=turn.together)
        return {kind: np.asarray(place == turn.bucket) for kind, place in places.items()}

    def _parts(self, name: str) -> list[CompiledQueries]:
        return load_parts(self._version.filters.get(name, Snapshot()).paths)

    # ── filters ──

    def _match(
        self, name: str, columns: TupleColumns, own: Mapping[str, Mask] | None = None
    ) -> Matched:
        """The lineage of tuples of an arc, or of a group's joined tuples."""
        snapshot = self._version.filters.get(name, Snapshot())
        orders = self._turn.orders.get(name, ())
        parts = self._parts(name)
        matched = match(parts, snapshot.removed, columns, orders, own=own, counted=(COUNT,))
        self._report.visit(name, matched.visits)
        for (_, query), (tuples, reason) in matched.errors.items():
            self._report.fail(query, tuples, reason)
        if name in self._turn.costs and columns.rows:
            costs = self._turn.costs[name]
            order = tried(parts, snapshot.removed, columns, own or {}, costs)
            self._report.route(name, columns.rows, order)
        return matched

    def _see(self, name: str, tuples: TupleColumns) -> None:
        """Report the tuples that go through filters, in this bucket or in others."""
        self._report.see(name, tuples.rows)
        if self._turn.sampled and tuples.rows:
            self._report.samples[name] = sampled(self._parts(name), tuples)

    def _select(self, arc: str, table: pa.Table, columns: TupleColumns, matched: Matched) -> None:
        """Select-project queries: count what they match, keep what they want."""
        if COUNT in matched.counts:
            self._report.count(matched.counts[COUNT])
        if SELECT in matched.lineages:
            lineage = matched.lineages[SELECT]
            self._report.count(lineage.counts())
            self._keep((arc, SELECT), table, columns, lineage)

    def _keep(
        self,
        key: tuple[str, str],
        table: pa.Table,
        columns: TupleColumns,
        lineage: Lineage,
    ) -> None:
        """Emit the tuples that some query wants, with what it computes of them."""
        counted = self._version.counted
        lineage = lineage.without(counted) if len(counted) else lineage
        alive = np.flatnonzero(lineage.alive())
        if not len(alive):
            return
        lineage = lineage.take(alive).smaller() if len(alive) < lineage.rows else lineage.smaller()
        names = [*(n for n in HIDDEN if n in table.column_names), *self._version.copied[key]]
        kept = table.select(list(dict.fromkeys(names))).take(pa.array(alive))
        for attribute, queries in self._version.computed.get(key, {}).items():
            values = self._computed(attribute, queries, columns, lineage, alive)
            kept = kept.append_column(attribute.text, values)
        for name, column in zip(("_ids", "_bits"), lineage.to_arrow().columns, strict=True):
            kept = kept.append_column(name, column)
        metadata = lineage.to_arrow().schema.metadata
        self._emitted.ports[log_of(*key)] = kept.replace_schema_metadata(metadata)

    def _computed(
        self, attribute: Attribute, queries: Ids, columns: TupleColumns, lineage: Lineage, at: Rows
    ) -> pa.Array:
        """A field of results, evaluated for the tuples whose queries have it."""
        wanted = lineage.touching(queries)
        found = columns.evaluate(attribute, at[wanted])
        if found.failed is not None and found.failed.any():
            failed = lineage.take(np.flatnonzero(wanted)[found.failed])
            for query, tuples in zip(*failed.counts(), strict=True):
                if query in queries:
                    self._report.fail(int(query), int(tuples), found.reason or "failed")
        places = np.full(len(at), -1, np.int64)
        places[wanted] = np.arange(int(wanted.sum()))
        return found.values.take(pa.array(places, mask=~wanted))

    # ── joins and aggregates ──

    def _arrived(
        self, arc: str, whole: pa.Table, mine: pa.Table, matched: Matched, rows: Rows | None
    ) -> NewTuples:
        """Tuples with their lineage in each join; empty in joins of another bucket."""
        moments = np.asarray(whole["_seq"], np.int64)
        return NewTuples(mine, matched.lineages, self._turn.numbers.get(arc, 0), moments, rows)

    def _join(self, arrived: Mapping[str, NewTuples]) -> None:
        """Let new tuples probe the SteMs; what is joined goes through filters of its own."""
        state = {name: _stored(files) for name, files in self._state.items() if files}
        made = step_stems(
            self._version.joins,
            arrived,
            state,
            self._turn.marks,
            self._context,
            lambda group, joined, lineage: self._decide(group.name, joined, lineage),
            orders=self._turn.probes,
            first_chunk=self._turn.bucket,
            cached_as=(self._turn.home, self._turn.bucket),
        )
        for group in self._version.joins:
            if group.name in made.results:
                table, lineage = made.results[group.name]
                self._report.count(lineage.counts())
                columns = TupleColumns(table, self._kernel.functions)
                self._keep((group.shape.arcs[0], group.name), table, columns, lineage)
        self._emitted.state |= made.state
        for reasons in made.late.values():
            for reason, tuples in reasons.items():
                self._emitted.late[reason] = self._emitted.late.get(reason, 0) + tuples
        self._report.held |= {f"stem {arc}": held for arc, held in made.held.items()}
        arcs = {group.name: group.shape.arcs for group in self._version.joins}
        for prober, probes in made.probes.items():
            self._report.probe(arcs[prober[0]], prober, probes)

    def _decide(self, group: str, made: pa.Table, lineage: Lineage) -> Lineage:
        """Who is satisfied by joined tuples or aggregates: windows of joins, HAVING."""
        columns = TupleColumns(made, self._kernel.functions)
        self._see(group, columns)
        found = self._match(group, columns)
        decided = found.lineages.get(group)
        return (
            Lineage.none(lineage.rows)
            if decided is None
            else lineage.intersect(aligned(decided, encoding([lineage])))
        )

    def _aggregate(
        self, group: AggregateGroup, table: pa.Table, matched: Matched, own: Mask | None
    ) -> None:
        """Count tuples in panes and close windows."""
        names = {key: f"{key}:{group.name}" for key in ("panes", "classes")}
        state = {
            key: _stored(self._state[name]) for key, name in names.items() if self._state.get(name)
        }
        lineage = matched.lineages.get(group.name) or Lineage.none(table.num_rows)
        if own is not None:
            mine = np.flatnonzero(own)
            table, lineage = table.take(pa.array(mine)), lineage.take(mine)
        shape = group.shape
        mark = self._turn.marks.get((shape.arc, shape.on), LowWater())
        made = step_panes(group, table, lineage, state, mark, self._context)
        self._emitted.state |= {names[key]: changed for key, changed in made.state.items()}
        for reason, by_query in made.late.items():
            for query, tuples in by_query.items():
                self._report.leave(query, reason, tuples)
        self._report.held[f"panes {group.name}"] = made.held
        if made.results.num_rows:
            lineage = self._decide(group.name, made.results, made.lineage)
            self._report.count(lineage.counts())
            columns = TupleColumns(made.results, self._kernel.functions)
            self._keep((shape.arc, group.name), made.results, columns, lineage)


def _named(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """The kernel's columns under the names of their fields."""
    fields = {column: name for name, column in columns.items()}
    return table.rename_columns([fields.get(name, name) for name in table.column_names])


def _stored(files: Sequence[str]) -> pa.Table:
    return pa.concat_tables([read_file(file) for file in files], promote_options="permissive")
