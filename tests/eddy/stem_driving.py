"""Run SteMs over events cut into steps, their state carried along as files would carry it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from auroral.continuous.sharing.template import JoinShape
from auroral.eddy.lineage import Lineage
from auroral.eddy.routes.probing import Orders
from auroral.eddy.stems.step import JoinGroup, NewTuples, step_stems
from auroral.kernels.kernel import Appended, Context
from auroral.progress.lowwater import LowWater

from .nway_model import JoinQuery, Row


@dataclass
class Ran:
    """What all steps together made."""

    results: dict[JoinShape, list[Row]] = field(default_factory=dict)
    late: dict[str, dict[str, int]] = field(default_factory=dict)
    held: list[dict[str, int]] = field(default_factory=list)
    stored: list[dict[str, int]] = field(default_factory=list)
    appends: int = 0


def run(
    queries: Sequence[JoinQuery],
    arcs: Mapping[str, Sequence[Row]],
    types: Mapping[str, Mapping[str, pa.DataType]],
    cuts: Sequence[int],
    *,
    marks: Mapping[tuple[str, str], LowWater] | None = None,
    ended: int | None = None,
    encodings: Sequence[str] = ("lists",),
    parquet: bool = False,
    cached_as: Any = None,
    orders: Orders | None = None,
    dropped: bool = False,
) -> Ran:
    """Run moments 0 … cuts[-1] − 1 in steps that end before each of `cuts`."""
    ran, marks = Ran(), marks or {}
    state: dict[str, pa.Table] = {}
    tables = {arc: as_table(rows, types[arc]) for arc, rows in arcs.items()}
    first = 0
    for number, last in enumerate(cuts):
        live = [query for query in queries if query.there(first)]
        groups = groups_of(live)
        arrived = {}
        for arc, rows in arcs.items():
            arrived[arc] = _arrived(
                arc,
                rows,
                tables[arc],
                first,
                last,
                live,
                groups,
                encodings[number % len(encodings)],
            )
            if dropped:
                arrived[arc] = _without_dead(arrived[arc])
        seen = {of: mark.since(max(first - 1, 0)) for of, mark in marks.items()}
        context = Context(first, last, (), None, ended)
        by_shape = {group.name: group.shape for group in groups}

        def decide(group: JoinGroup, table: pa.Table, lineage: Lineage) -> Lineage:
            return _decided([q for q in live if q.shape == group.shape], table, lineage)  # noqa: B023

        made = step_stems(
            groups, arrived, state, seen, context, decide, orders=orders, cached_as=cached_as
        )
        for name, (table, lineage) in made.results.items():
            table.validate(full=True)
            assert lineage.alive().all()
            ran.results.setdefault(by_shape[name], []).extend(_plain(table, lineage))
        for arc, counts in made.late.items():
            for why, count in counts.items():
                held = ran.late.setdefault(arc, {})
                held[why] = held.get(why, 0) + count
        for name, changed in made.state.items():
            table = changed.table if isinstance(changed, Appended) else changed
            assert not isinstance(changed, Appended) or table.num_rows
            ran.appends += isinstance(changed, Appended)
            table.validate(full=True)
            table = _through_parquet(table) if parquet else table.replace_schema_metadata(None)
            if isinstance(changed, Appended) and name in state:
                table = pa.concat_tables([state[name], table], promote_options="permissive")
            # Nobody promises in which order stored rows are read.
            state[name] = table.take(pa.array(np.arange(len(table))[::-1])) if parquet else table
        ran.held.append(made.held)
        ran.stored.append({name: table.num_rows for name, table in state.items()})
        first = last
    for rows in ran.results.values():
        rows.sort(key=lambda row: (row["_seq"], row["_sub"]))
    return ran


def groups_of(live: Sequence[JoinQuery]) -> list[JoinGroup]:
    """The groups of the queries that are there, with the largest windows of them."""
    made = []
    for shape in sorted({query.shape for query in live}, key=repr):
        same = [query for query in live if query.shape == shape]
        made.append(
            JoinGroup(
                name=group_name(shape),
                shape=shape,
                fields=tuple(("v",) for _ in shape.arcs),
                rows=tuple(map(max, zip(*(query.rows for query in same), strict=True))),
                bands=tuple(
                    tuple(map(max, zip(*of, strict=True)))
                    for of in zip(*(query.bands for query in same), strict=True)
                ),
                since=min(query.since for query in same),
            )
        )
    return made


def group_name(shape: JoinShape) -> str:
    """A name for the queries of one shape."""
    return "join~" + "".join(c for c in repr(shape) if c.isalnum())


def _arrived(
    arc: str,
    rows: Sequence[Row],
    table: pa.Table,
    first: int,
    last: int,
    live: Sequence[JoinQuery],
    groups: Sequence[JoinGroup],
    encoding: str,
) -> NewTuples:
    at = [n for n, row in enumerate(rows) if first <= row["_seq"] < last]
    start = at[0] if at else sum(row["_seq"] < first for row in rows)
    some = rows[start : start + len(at)]
    lineages = {}
    for group in groups:
        for place, of in enumerate(group.shape.arcs):
            if of == arc:
                same = [query for query in live if query.shape == group.shape]
                sets = [[q.id for q in same if q.sees(row, place)] for row in some]
                lineages[group.places[place]] = encoded(sets, [q.id for q in same], encoding)
    return NewTuples(table.slice(start, len(at)), lineages, start)


def encoded(sets: Sequence[Sequence[int]], ids: Sequence[int], how: str) -> Lineage:
    """Those ids of each row: `lists`, `bits`, `reversed` bits, or the `half` of either."""
    bits = {"lists": [], "bits": ids, "reversed": ids[::-1], "half": ids[::2]}[how]
    pairs = [(n, id) for n, own in enumerate(sets) for id in own if id not in bits]
    rows = np.array([n for n, _ in pairs], np.int64)
    lists = Lineage.from_pairs(len(sets), rows, np.array([id for _, id in pairs], np.int32))
    if not bits:
        return lists
    matrix = np.array([[id in own for id in bits] for own in sets], bool)
    dense = Lineage.from_dense(np.array(bits, np.int32), matrix.reshape(len(sets), len(bits)))
    return Lineage(len(sets), dense.blocks, lists.offsets, lists.ids)


def _without_dead(arrived: NewTuples) -> NewTuples:
    """Only the tuples that someone wants, as an eddy may hand them on."""
    alive = np.zeros(arrived.table.num_rows, bool)
    for lineage in arrived.lineages.values():
        alive |= lineage.alive()
    rows = np.flatnonzero(alive)
    return NewTuples(
        arrived.table.take(pa.array(rows)),
        {name: lineage.take(rows) for name, lineage in arrived.lineages.items()},
        arrived.first_number,
        np.asarray(arrived.table["_seq"], np.int64),
        rows,
    )


def _decided(queries: Sequence[JoinQuery], table: pa.Table, lineage: Lineage) -> Lineage:
    """Each query's own windows, and its predicate on the whole (of `v` alone)."""
    offsets, ids = lineage.lists()
    by_id = {query.id: query for query in queries}
    rows = table.to_pylist()
    pairs = []
    for n, row in enumerate(rows):
        for id in ids[offsets[n] : offsets[n + 1]].tolist():
            query = by_id[id]
            places = range(len(query.shape.arcs))
            parts = [{"v": row[f"s{p}.v"]} for p in places]
            if query.whole(parts) and _windowed(query, row):
                pairs.append((n, id))
    at = np.array([n for n, _ in pairs], np.int64)
    return Lineage.from_pairs(len(rows), at, np.array([id for _, id in pairs], np.int32))


def _windowed(query: JoinQuery, row: Row) -> bool:
    count = len(query.shape.arcs)
    if query.shape.kind == "rows":
        return all(0 <= row[f"#age{p}"] < query.rows[p] for p in range(count))
    return all(
        -query.bands[j][i] <= row[f"#diff{i}_{j}"] <= query.bands[i][j]
        for i in range(count)
        for j in range(i + 1, count)
    )


def _plain(table: pa.Table, lineage: Lineage) -> list[Row]:
    offsets, ids = lineage.lists()
    count = sum(name.startswith("s") for name in table.column_names)
    return [
        {
            "_seq": row["_seq"],
            "_ts": row["_ts"],
            "_sub": row["_sub"],
            "parts": [row[f"s{p}.v"] for p in range(count)],
            "queries": ids[offsets[n] : offsets[n + 1]].tolist(),
        }
        for n, row in enumerate(table.to_pylist())
    ]


def as_table(rows: Sequence[Row], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Tuples of an arc, with the hidden columns; `_sub` only if a tuple has one."""
    hidden = {"_seq": pa.int64(), "_ts": pa.int64()}
    if any(row["_sub"] for row in rows):
        hidden["_sub"] = pa.binary()
    kinds = hidden | dict(types)
    return pa.table({n: pa.array([row[n] for row in rows], kind) for n, kind in kinds.items()})


def _through_parquet(table: pa.Table) -> pa.Table:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False)  # as if others had written it
    return pq.read_table(buffer)
