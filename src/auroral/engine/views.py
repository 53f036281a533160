"""Results of queries: from logs that many queries share to what each one asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.continuous.aggregate_reading import ReadAggregate
from auroral.continuous.template import Template
from auroral.eddy.entry import Entry, Ids
from auroral.eddy.families import runs_of
from auroral.eddy.lineage import Lineage
from auroral.network.types import HIDDEN

Rows = npt.NDArray[np.int64]
QUERIES = "queries"
"""The column of `dequeue_all` with the names of the queries."""


@dataclass(frozen=True)
class View:
    """What one reader sees of a log: `rows` turns each segment into results."""

    log: str
    schema: pa.Schema
    since: int
    rows: Callable[[pa.Table], pa.Table]


def query_view(entry: Entry, member: int | None = None) -> View:
    """The results of a query, or of one member of a family."""
    schema = entry.schema().arrow()

    def rows(table: pa.Table) -> pa.Table:
        found = rows_of(lineage_of(table), entry.first + (member or 0))
        members = np.full(len(found), member or 0)
        return _projected(entry.read, entry.constants, table, found, members, schema)

    return View(entry.log, schema, entry.since, rows)


def family_view(chunks: Sequence[Entry], key: str) -> View:
    """The results of all members of a family, each with its key in front."""
    keys = chunks[0].keys
    assert keys is not None
    fields = chunks[0].schema().arrow()
    name = key if key not in fields.names else f"{key}_"
    schema = pa.schema([pa.field(name, keys.type), *fields])
    runs = runs_of(chunks)

    def rows(table: pa.Table) -> pa.Table:
        parts, asked = [], []
        offsets, ids = lineage_of(table).lists()
        for run in runs:
            own, members = run.of(ids)
            found = np.searchsorted(offsets, own, side="right") - 1
            part = _projected(run.read, run.constants, table, found, members, fields)
            at = len([n for n in HIDDEN if n in part.column_names])
            parts.append(part.add_column(at, schema.field(0), run.keys.take(pa.array(members))))
            asked.append(ids[own])
        made = pa.concat_tables(parts)
        windows = isinstance(chunks[0].read, ReadAggregate)
        return _by_member(made, np.concatenate(asked)) if windows else made

    return View(chunks[0].log, schema, min(entry.since for entry in chunks), rows)


def _by_member(made: pa.Table, ids: Ids) -> pa.Table:
    """Results of one window and group as their members were added.

    Members for whom other tuples count have results of their own there, in an order that how the
    tuples came decides.
    """
    keys = {name: made[name] for name in ("_seq", "_sub") if name in made.column_names}
    order = [(name, "ascending") for name in (*keys, "id")]
    return made.take(pc.sort_indices(pa.table({**keys, "id": ids}), sort_keys=order))


def together_view(
    chunks: Sequence[Entry], names: Callable[[Ids], pa.Array], taken: Callable[[Entry], int]
) -> View:
    """One row for each tuple, with a list of the queries it satisfies.

    What a query has `taken` by itself before a moment is not given again.
    """
    chunks = sorted(chunks, key=lambda entry: entry.first)
    fields = _shared_fields(chunks)
    schema = pa.schema([*fields.values(), pa.field(QUERIES, pa.list_(pa.string()))])
    firsts = np.array([entry.first for entry in chunks])
    lasts = np.array([entry.first + entry.count for entry in chunks])
    heads = np.array([max(taken(entry), entry.since) for entry in chunks])

    def rows(table: pa.Table) -> pa.Table:
        offsets, ids = lineage_of(table).lists()
        moments = np.repeat(table["_seq"].to_numpy(), np.diff(offsets))
        at = np.maximum(np.searchsorted(firsts, ids, side="right") - 1, 0)
        keep = (ids >= firsts[at]) & (ids < lasts[at]) & (moments >= heads[at])
        sizes = np.add.reduceat(np.append(keep, 0), offsets[:-1]) if len(offsets) > 1 else keep
        sizes = np.where(np.diff(offsets) > 0, sizes, 0)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(ends), names(ids[keep]))
        hidden = [n for n in HIDDEN if n in table.column_names]
        part = table.select(hidden)
        for column, field in fields.items():
            part = part.append_column(field, _column(table, pa.field(column, field.type)))
        part = part.append_column(schema.field(QUERIES), lists)
        return part.filter(pa.array(sizes > 0))

    return View(chunks[0].log, schema, min(entry.since for entry in chunks), rows)


def _shared_fields(chunks: Sequence[Entry]) -> dict[str, pa.Field]:
    """The columns of the log that some of the queries select, and the fields they become.

    A column is called as all queries that select it call it, otherwise as the log does.
    """
    names: dict[str, set[str]] = {}
    types: dict[str, pa.DataType] = {}
    for entry in {id(e.read): e for e in chunks}.values():
        for item in entry.read.items:
            attribute = item.attribute
            if not attribute.slots:
                column = attribute.field or attribute.text
                names.setdefault(column, set()).add(item.name)
                types[column] = attribute.type.arrow()
    called = {column: found.pop() if len(found) == 1 else column for column, found in names.items()}
    while twice := [name for name, n in Counter([QUERIES, *called.values()]).items() if n > 1]:
        # Columns differ in their own names; only one of them may be called as the list is.
        own = {column: column if column != QUERIES else f"{QUERIES}_" for column in called}
        called |= {column: own[column] for column, name in called.items() if name in twice}
    return {column: pa.field(name, types[column]) for column, name in called.items()}


def lineage_of(table: pa.Table) -> Lineage:
    return Lineage.from_arrow(table)


def rows_of(lineage: Lineage, query: int) -> Rows:
    """The tuples that satisfy one query."""
    found = []
    for block in lineage.blocks:
        for bit in np.flatnonzero(block.ids == query):
            found.append(np.flatnonzero(block.bits[:, bit >> 3] >> (bit & 7) & 1))
    listed = np.flatnonzero(lineage.ids == query)
    found.append(np.searchsorted(lineage.offsets, listed, side="right") - 1)
    return np.sort(np.concatenate(found))


def _projected(
    read: Template | ReadAggregate,
    constants: pa.Table,
    table: pa.Table,
    rows: Rows,
    members: Rows,
    schema: pa.Schema,
) -> pa.Table:
    """Some tuples as a query's result, behind their hidden columns."""
    taken = table.take(pa.array(rows))
    hidden = [name for name in HIDDEN if name in table.column_names]
    columns = [taken[name] for name in hidden]
    for item, field in zip(read.items, schema, strict=True):
        if item.attribute.slots:
            values = constants[str(item.attribute.slots[0])]
            columns.append(values.take(pa.array(members)).cast(field.type))
        else:
            name = item.attribute.field or item.attribute.text
            columns.append(_column(taken, pa.field(name, field.type)))
    return pa.Table.from_arrays(columns, names=[*hidden, *schema.names])


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column of the log; a segment from before somebody wanted it has none."""
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    return table[field.name].cast(field.type)
