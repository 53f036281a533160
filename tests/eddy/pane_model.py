"""Queries that share panes beside each query alone: the same events for both."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from auroral.continuous.sharing.aggregate_reading import (
    ReadAggregate,
    SharedCall,
    read_shared_aggregate,
)
from auroral.eddy.lineage import Lineage
from auroral.eddy.panes.step import AggregateGroup, results_schema, step
from auroral.kernels.accumulators.choice import CallSpec
from auroral.kernels.aggregate import AggregateKernel
from auroral.kernels.kernel import Appended, Context
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.sql.expressions.expression import evaluator

SCHEMA = Schema.parse(
    "ts bigint, sym string, region int, price double, n bigint, cost decimal(6,2)"
)
ARCS = {"S": SCHEMA}
HIDDEN = [("_seq", pa.int64()), ("_ts", pa.int64()), ("_sub", pa.binary())]
Row = dict[str, Any]


@dataclass
class Query:
    """A query with a predicate as Python has it; it sees moments from `since` up to `until`."""

    id: int
    read: ReadAggregate
    satisfied: Callable[[Row], bool]
    since: int = 0
    until: int | None = None


@dataclass
class Made:
    """What came out for each query: rows in order, tuples left out by reason."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    late: dict[int, dict[str, int]] = field(default_factory=dict)


@cache
def read(calls: str, window: str, keys: str = "", where: str = "") -> ReadAggregate:
    """A query by its parts."""
    text = f"SELECT {calls} FROM S [{window}, WA ts]"
    text += f" WHERE {where}" if where else ""
    text += f" GROUP BY {keys}" if keys else ""
    return read_shared_aggregate(text, ARCS, {})


def as_table(rows: Sequence[Row], schema: Schema = SCHEMA) -> pa.Table:
    kinds = [*HIDDEN, *((field.name, field.type.arrow()) for field in schema.fields)]
    columns = [pa.array([row[name] for row in rows], kind) for name, kind in kinds]
    return pa.table(columns, names=[name for name, _ in kinds])


def group_of(queries: Iterable[Query]) -> AggregateGroup:
    live = list(queries)
    calls = {call: None for query in live for call in query.read.calls}
    return AggregateGroup(
        "aggregate",
        live[0].read.shape,
        tuple(sorted(calls, key=lambda call: call.name)),
        {query.id: (query.read.size, query.read.advance) for query in live},
        {query.id: query.since for query in live},
    )


def lineage_of(rows: Sequence[Row], queries: Sequence[Query], dense: Sequence[int] = ()) -> Lineage:
    """Which queries are satisfied; those of `dense` as a bitmap."""
    some = [query for query in queries if query.id in dense]
    matrix = np.array([[q.satisfied(row) for q in some] for row in rows], bool)
    bits = Lineage.from_dense(
        np.array([q.id for q in some], np.int32), matrix.reshape(len(rows), len(some))
    )
    pairs = [
        (at, query.id)
        for at, row in enumerate(rows)
        for query in queries
        if query.id not in dense and query.satisfied(row)
    ]
    lists = Lineage.from_pairs(
        len(rows),
        np.array([at for at, _ in pairs], np.int64),
        np.array([q for _, q in pairs], np.int32),
    )
    return Lineage(len(rows), bits.blocks if some else (), lists.offsets, lists.ids)


def shared(
    rows: Sequence[Row],
    queries: Sequence[Query],
    mark: LowWater,
    cuts: Sequence[int],
    ended: int | None,
    dense: Sequence[int] = (),
    parquet: bool = False,
) -> Made:
    """All queries together, in steps that end before each of `cuts`."""
    made, state, first = Made(), dict[str, pa.Table](), 0
    for last in cuts:
        live = [q for q in queries if q.since < last and (q.until is None or q.until >= last)]
        if not live:
            first = last
            continue
        group = pickle.loads(pickle.dumps(group_of(live)))
        here = [row for row in rows if first <= row["_seq"] < last]
        context = Context(first, last, (), None, ended)
        seen = mark.since(max(first - 1, 0)).until(last)
        found = step(group, as_table(here), lineage_of(here, live, dense), state, seen, context)
        found.results.validate(full=True)
        assert found.results.schema.equals(results_schema(group))
        for name, changed in found.state.items():
            state[name] = stored(state.get(name), changed)
            state[name].validate(full=True)
        state = {k: through_parquet(table) for k, table in state.items()} if parquet else state
        assert found.held <= (state["panes"].num_rows if state else 0)
        _collect(made, found.results, found.lineage, {q.id: q.read.calls for q in live})
        for reason, counts in found.late.items():
            for query, count in counts.items():
                own = made.late.setdefault(query, {})
                own[reason] = own.get(reason, 0) + count
        first = last
    if ended is not None and state and live:
        assert not state["panes"].num_rows
        assert not state["classes"].num_rows
    for own_rows in made.rows.values():
        own_rows.sort(key=lambda row: (row["_seq"], row["_sub"]))
    return made


def stored(old: pa.Table | None, changed: pa.Table | Appended) -> pa.Table:
    """State as the next step reads it, in any order."""
    table = changed.table if isinstance(changed, Appended) else changed
    return (
        pa.concat_tables([table, old])
        if isinstance(changed, Appended) and old is not None
        else table
    )


def through_parquet(table: pa.Table) -> pa.Table:
    """The table as it is read from a file that others have written."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False)
    return pq.read_table(buffer)


def _collect(
    made: Made, results: pa.Table, lineage: Lineage, calls: dict[int, tuple[SharedCall, ...]]
) -> None:
    offsets, ids = lineage.lists()
    for at, row in enumerate(results.to_pylist()):
        for query in ids[offsets[at] : offsets[at + 1]].tolist():
            names = {call.name for call in calls[query]}
            own = {k: v for k, v in row.items() if not k.startswith("agg_") or k in names}
            made.rows.setdefault(query, []).append(own)


def alone(query: Query, rows: Sequence[Row], mark: LowWater, last: int, ended: int | None) -> Made:
    """One query by the kernel of the aggregate box, fed with what it may see."""
    shape, calls = query.read.shape, query.read.calls
    kinds = {field.name: field.type.arrow() for field in SCHEMA.fields}
    computed = [a for call in calls for a in call.arguments if a.field is None]
    kinds |= {argument.text: argument.type.arrow() for argument in computed}
    kernel = AggregateKernel(
        on=shape.on,
        by=shape.by,
        slack=None,
        size=query.read.size,
        advance=query.read.advance,
        start_type=kinds[shape.on],
        calls=tuple(CallSpec.of(call.call) for call in calls),
        arguments=tuple(tuple(one.text for one in call.arguments) for call in calls),
        types=tuple(kinds.items()),
    )
    if query.until is not None and query.until < last:
        last, ended = query.until, None
    mine = [row for row in rows if query.since <= row["_seq"] < last and query.satisfied(row)]
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    context = Context(0, last, (mark.until(last),), None, ended)
    table = as_table(mine)
    for text in {argument.text for argument in computed}:
        values = [evaluator(text, SCHEMA)(row) for row in mine]
        table = table.append_column(text, pa.array(values, kinds[text]))
    found = kernel.step([table], state, context)
    names = {"start": shape.on, **{f"agg{at}": call.name for at, call in enumerate(calls)}}
    listed = [
        {names.get(name, name): value for name, value in row.items()}
        for row in found.ports[""].to_pylist()
    ]
    listed.sort(key=lambda row: (row["_seq"], row["_sub"]))
    late = {reason: count for reason, count in found.late.items() if count}
    return Made({query.id: listed} if listed else {}, {query.id: late} if late else {})
