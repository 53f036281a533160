"""Results of queries: from logs that many queries share to what each one asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.continuous.sharing.aggregate_reading import ReadAggregate
from auroral.continuous.sharing.template import Template
from auroral.eddy.families import MemberRun
from auroral.eddy.lineage import Lineage
from auroral.eddy.registered import Ids, RegisteredQuery
from auroral.network.types import HIDDEN

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """What one reader sees of a log: `rows` turns each segment into results."""

    log: str
    schema: pa.Schema
    """The fields of `rows`."""
    since: int
    rows: Callable[[pa.Table], pa.Table]
    finish: Callable[[pa.Table], pa.Table] = lambda table: table
    """Makes of the results of all segments what whoever dequeues them gets."""


def query_view(entry: RegisteredQuery, member: int | None = None) -> View:
    """The results of a query, or of one member of a family."""
    schema = entry.schema().arrow()

    def rows(table: pa.Table) -> pa.Table:
        found = rows_of(lineage_of(table), entry.first + (member or 0))
        members = np.full(len(found), member or 0)
        return _projected(entry.read, entry.constants, table, found, members, schema)

    return View(entry.log, schema, entry.since, rows)


def family_view(chunks: Sequence[RegisteredQuery], runs: Sequence[MemberRun], key: str) -> View:
    """The results of all members of a family, each with its key in front."""
    keys = chunks[0].keys
    assert keys is not None
    fields = chunks[0].schema().arrow()
    name = key if key not in fields.names else f"{key}_"
    schema = pa.schema([pa.field(name, keys.type), *fields])

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
        return by_query(made, np.concatenate(asked)) if is_windowed(chunks) else made

    return View(chunks[0].log, schema, min(entry.since for entry in chunks), rows)


def is_windowed(chunks: Sequence[RegisteredQuery]) -> bool:
    """Whether results are of windows."""
    return isinstance(chunks[0].read, ReadAggregate)


def by_query(made: pa.Table, ids: Ids) -> pa.Table:
    """Results of one window and group as their queries were added.

    Queries for whom other tuples count have results of their own there, in an order that how the
    tuples came decides.
    """
    keys = {name: made[name] for name in ("_seq", "_sub") if name in made.column_names}
    order = [(name, "ascending") for name in (*keys, "id")]
    return made.take(pc.sort_indices(pa.table({**keys, "id": ids}), sort_keys=order))


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
            columns.append(column_of(taken, pa.field(name, field.type)))
    return pa.Table.from_arrays(columns, names=[*hidden, *schema.names])


def column_of(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column of the log; a segment from before somebody wanted it has none."""
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    return table[field.name].cast(field.type)
