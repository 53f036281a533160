"""BSort on one bucket: per group, the least of slack + 1 tuples leaves [1 §5.2.2.1]."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import InputOrder, OrderedArrivals, late_port
from auroral.kernels.grouping import Ids, group_ids
from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.ordering import joined, moments, sortable, sub_bytes
from auroral.kernels.steps import mark_of
from auroral.kernels.stored import (
    HIDDEN,
    conformed,
    in_arrival_order,
    renewed,
    stored_schema,
    tuples,
    with_sub,
)
from auroral.kernels.units import numbers
from auroral.kernels.windowing.slack import by_group

_PASSES = 32
"""Beyond so many passes over all rows, one heap per group is faster."""

_DRIVEN_OUT, _LEFT = b"\x01", b"\x02"
"""At the moment of the end: tuples that others drove out come before those that were left."""


@dataclass(frozen=True)
class BSortKernel:
    """Sort with a buffer of `slack` tuples per group, or, without slack, release what marks pass.

    Without `on` tuples leave in order of arrival.
    """

    on: str | None
    by: tuple[str, ...]
    slack: int | None
    fields: tuple[str, ...]
    types: tuple[tuple[str, pa.DataType], ...]
    late_fields: tuple[str, ...] = ()
    by_mark: tuple[str, ...] = ()

    def tables(self) -> Mapping[str, pa.Schema]:
        if self.on is None and self.slack is None:
            return {}
        if self.slack is None:
            return {"held": stored_schema(self.types)}
        return {"held": pa.schema([*HIDDEN, *self.types])}

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        if self.on is None and self.slack is None:
            names = ["_seq", "_ts", "_sub", *self.fields]
            return Emitted({"": with_sub(inputs[0]).select(names)}, held=0)
        held = conformed(state["held"], self.tables()["held"])
        if self.slack is None:
            return self._punctuated(inputs[0], held, context)
        return self._buffered(inputs[0], in_arrival_order(held), context)

    def _buffered(self, new: pa.Table, held: pa.Table, context: Context) -> Emitted:
        assert self.slack is not None
        rows = pa.concat_tables([held, conformed(with_sub(new), held.schema)]).combine_chunks()
        stored = held.num_rows
        leaver = np.full(rows.num_rows, -1, np.int64)
        touched = self._touched(rows, stored)
        leaver[touched] = _least_leaves(
            *self._ranked(rows, touched), np.asarray(touched), self.slack
        )
        full = np.flatnonzero(leaver >= 0)
        out = leaver[full]
        emitted = [self._leaving(rows, out, rows.take(full))]
        stays = np.ones(rows.num_rows, bool)
        stays[out] = False
        rest = rows.filter(pa.array(stays)) if len(out) else rows
        if context.ended is not None and context.ended < context.last:
            left = self._released(rest, np.full(rest.num_rows, context.ended))
            at_end = np.asarray(emitted[0]["_seq"]) == context.ended
            first = np.where(at_end, _DRIVEN_OUT, b"")
            emitted = [_behind(first, emitted[0]), _behind(np.full(rest.num_rows, _LEFT), left)]
            rest = rest.slice(0, 0)
        changed = {"held": rest} if new.num_rows or rest.num_rows != stored else {}
        return Emitted({"": pa.concat_tables(emitted)}, changed, held=rest.num_rows)

    def _touched(self, rows: pa.Table, stored: int) -> Ids:
        """Rows of groups in which a tuple arrives; the other groups do not change."""
        ids, first = group_ids([rows[name] for name in self.by], rows.num_rows)
        arrives = np.zeros(len(first), bool)
        arrives[ids[stored:]] = True
        return np.flatnonzero(arrives[ids])

    def _ranked(self, rows: pa.Table, touched: Ids) -> tuple[Ids, Ids]:
        """Groups of rows, and their order by group, `on` and arrival."""
        names = self.by if self.on is None else (self.on, *self.by)
        some = rows.select(names).take(touched)
        ids, first = group_ids([some[name] for name in self.by], len(touched))
        if self.on is None:
            return ids, by_group(ids, len(first))
        values, known = numbers(some[self.on])
        order = np.argsort(values, kind="stable")  # NaN comes last
        if not known.all():
            order = np.concatenate([np.flatnonzero(~known), order[known[order]]])
        return ids, order[by_group(ids[order], len(first))]

    def _leaving(self, rows: pa.Table, out: Ids, cause: pa.Table) -> pa.Table:
        """Tuples that leave at the moment of the tuple that filled the buffer."""
        leaving = rows.select(["_ts", *self.fields]).take(out)
        hidden = {"_seq": cause["_seq"], "_ts": leaving["_ts"], "_sub": cause["_sub"]}
        return pa.table(hidden | {name: leaving[name] for name in self.fields})

    def _released(self, rows: pa.Table, when: Ids) -> pa.Table:
        """Tuples that leave at a moment at which none arrives, in order of (`on`, arrival)."""
        arrival = moments(rows["_seq"])
        sub = joined(arrival, sub_bytes(rows))
        if self.on is not None:
            sub = joined(sortable([rows[self.on]]), sub)
        hidden = {"_seq": pa.array(when, pa.int64()), "_ts": rows["_ts"], "_sub": sub}
        return pa.table(hidden | {name: rows[name] for name in self.fields})

    def _punctuated(self, new: pa.Table, held: pa.Table, context: Context) -> Emitted:
        new = with_sub(new)
        assert self.on is not None
        order = InputOrder(self.on, (), None, self.by_mark)
        arrivals = OrderedArrivals.of(order, new, None, mark_of(context, 0), context, held)
        fresh = tuples(new, held.schema).filter(pa.array(arrivals.counts))
        before = arrivals.passing(arrivals.also_group, numbers(held[self.on])[0])
        after = arrivals.passing(arrivals.group, arrivals.values)[arrivals.counts]
        when = np.concatenate([before, after])
        leaves = pa.array((when >= context.first) & (when < context.last))
        rows = pa.concat_tables([tuples(held, held.schema), fresh]).filter(leaves)
        out = self._released(rows, when[np.asarray(leaves)])
        stays = before >= context.last
        changed = renewed(held, stays, fresh.filter(pa.array(after >= context.last)))
        return Emitted(
            {"": out} | late_port("late", new, arrivals, self.late_fields or None),
            {} if changed is None else {"held": changed},
            arrivals.late_counts(),
            held=int((when >= context.last).sum()),
        )


def _behind(first: Any, emitted: pa.Table) -> pa.Table:
    """The same tuples, ordered within their moment by other bytes first."""
    sub = joined(pa.array(first, pa.binary()), sub_bytes(emitted))
    return emitted.set_column(emitted.column_names.index("_sub"), "_sub", sub)


def _least_leaves(ids: Ids, order: Ids, rows: Ids, slack: int) -> Ids:
    """For each row, in order of arrival, the row that leaves when it arrives; -1: none.

    `order` sorts by group, value and arrival. A row's place in it is unique, and places of one
    group lie between those of the one before and the one after; so a running maximum over rows
    laid out by group and arrival never reaches from a group into the next.
    """
    n = len(ids)
    if not n or slack == 0:
        return rows
    places = np.empty(n, np.int64)
    places[order] = np.arange(1, n + 1)
    groups = int(ids.max()) + 1
    arrival = by_group(ids, groups)
    starts = np.searchsorted(ids[arrival], np.arange(groups))
    empty = starts[ids[arrival]]  # below the places of the group: nothing is there
    find = _bubble if slack <= _PASSES else _heap
    places = find(places[arrival], starts, slack)
    found = np.full(n, -1, np.int64)
    some = places > empty
    found[arrival[some]] = rows[order[places[some] - 1]]
    return found


def _bubble(places: Ids, starts: Ids, slack: int) -> Ids:
    """Each pass keeps the greatest value so far and passes the others on, as bubble sort does."""
    for _ in range(slack):
        greatest = np.maximum.accumulate(places)
        carried = np.empty_like(places)
        carried[1:] = greatest[:-1]
        carried[starts] = starts
        places = np.minimum(places, carried)
    return places


def _heap(places: Ids, starts: Ids, slack: int) -> Ids:
    """The same with a heap per group."""
    found = np.empty_like(places)
    ends = [*starts[1:].tolist(), len(places)]
    for start, end in zip(starts.tolist(), ends, strict=True):
        heap = [start] * min(slack, end - start)
        if len(heap) < slack:
            found[start:end] = start
            continue
        found[start:end] = [heapq.heappushpop(heap, at) for at in places[start:end].tolist()]
    return found
