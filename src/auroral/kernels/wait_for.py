"""WaitFor on one bucket: tuples are stored until a signal with equal keys comes [4 §4.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.arrivals import ended_at
from auroral.kernels.grouping import Ids, match_groups
from auroral.kernels.joining.pairs import expanded
from auroral.kernels.joining.sides import key_numbers
from auroral.kernels.kernel import NEVER, Context, Emitted
from auroral.kernels.ordering import joined, moments, sub_bytes, whole
from auroral.kernels.resample import PairArgument
from auroral.kernels.stored import conformed, renewed, stored_schema, tuples, with_sub
from auroral.kernels.units import Mask
from auroral.kernels.windowing.timeouts import REACHED, leaving, with_reached

_PAIRS = 1_000_000
"""For how many pairs at once the rest of a predicate is computed."""
Types = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class WaitForKernel:
    """Hold tuples of the first input for tuples of the second one that have equal `keys`.

    State are the tuples that wait (`held`), and those of them that a signal has released since
    `held` was written anew (`released`).
    """

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    fields: tuple[str, ...]
    """What leaves of a held tuple."""
    types: Types
    """The columns of held tuples."""
    timeout_us: int
    matches: PairArgument | None = None
    """The whole predicate, unless equal keys say all of it."""
    late: bool = False
    """Whether somebody reads what is discarded."""

    def tables(self) -> Mapping[str, pa.Schema]:
        kinds = dict(self.types)
        keys = [(name, kinds[name]) for name in dict.fromkeys(self.keys[0])]
        return {
            "held": stored_schema([*self.types, (REACHED, pa.int64())]),
            "released": stored_schema(keys),
        }

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        new, signals = (with_reached(with_sub(table), context) for table in inputs)
        schemas = self.tables()
        old, released = (conformed(state[name], schemas[name]) for name in ("held", "released"))
        alive = leaving(old, self.timeout_us, context) >= context.first
        alive &= ~_listed(old, released)
        kept = tuples(old, old.schema)
        kept = kept if alive.all() else kept.filter(pa.array(alive))
        rows = pa.concat_tables([kept, tuples(new, old.schema)]).combine_chunks()
        signal = self._first_signals(rows, signals)
        matched = signal >= 0
        released_at = np.asarray(whole(signals["_seq"]), np.int64)[signal[matched]]
        over, ended = leaving(rows, self.timeout_us, context), ended_at(context)
        discarded_at = np.where(matched, NEVER, np.minimum(over, ended))
        discarded = discarded_at < NEVER
        emitted = Emitted({"": self._leaving(rows, matched, released_at)})
        if self.late:
            emitted.ports["late"] = self._leaving(rows, discarded, discarded_at[discarded])
        timed_out = int((discarded & (over <= ended)).sum())
        counts = {"timeout": timed_out, "ended": int(discarded.sum()) - timed_out}
        emitted.late = {reason: count for reason, count in counts.items() if count}
        stays = ~matched & ~discarded
        emitted.held = int(stays.sum())
        self._store(emitted, old, released, alive, matched, stays, rows)
        return emitted

    def _first_signals(self, rows: pa.Table, signals: pa.Table) -> Ids:
        """For each tuple the first signal that releases it, or −1.

        Signals are in order of arrival. Those of a tuple's own moment come after it.
        """
        (own, other), _ = key_numbers([rows, signals], self.keys)
        count = signals.num_rows
        first = np.searchsorted(_column(signals, "_seq"), _column(rows, "_seq"))
        # The clock never goes back, so later signals were reached later.
        last = np.searchsorted(
            _column(signals, REACHED), _column(rows, REACHED) + self.timeout_us, side="right"
        )
        order = np.argsort(other, kind="stable")
        places = other[order] * count + order
        begin = np.searchsorted(places, own * count + first)
        end = np.searchsorted(places, own * count + np.maximum(first, last))
        end = np.where(own < 0, begin, end)
        if self.matches is not None:
            return self._first_matching(self.matches, rows, signals, order, begin, end)
        found = np.full(rows.num_rows, -1, np.int64)
        some = end > begin
        found[some] = order[begin[some]]
        return found

    def _first_matching(
        self,
        matches: PairArgument,
        rows: pa.Table,
        signals: pa.Table,
        order: Ids,
        begin: Ids,
        end: Ids,
    ) -> Ids:
        """The first of the signals order[begin] … order[end − 1] for which the predicate holds."""
        found = np.full(rows.num_rows, -1, np.int64)
        waiting, width = np.flatnonzero(end > begin), 1
        begin = begin.copy()
        while len(waiting):
            now, later = waiting[:_PAIRS], waiting[_PAIRS:]
            upto = np.minimum(begin[now] + min(width, max(_PAIRS // len(now), 1)), end[now])
            at, place = expanded(begin[now], upto)
            holds = _computed(matches, rows, now[at], signals, order[place])
            some, first = np.unique(at[holds], return_index=True)
            found[now[some]] = order[place[holds][first]]
            begin[now] = upto
            now = now[(found[now] < 0) & (upto < end[now])]
            waiting = np.concatenate([now, later])
            width *= 2  # mostly one of the first signals matches
        return found

    def _leaving(self, rows: pa.Table, which: Mask, when: Ids) -> pa.Table:
        """Tuples that leave at some moments; those of one moment in order of arrival."""
        taken = rows.filter(pa.array(which))
        sub = joined(moments(_column(taken, "_seq")), sub_bytes(taken))
        hidden = {"_seq": pa.array(when, pa.int64()), "_ts": taken["_ts"], "_sub": sub}
        return pa.table(hidden | {name: taken[name] for name in self.fields})

    def _store(
        self,
        emitted: Emitted,
        old: pa.Table,
        released: pa.Table,
        alive: Mask,
        matched: Mask,
        stays: Mask,
        rows: pa.Table,
    ) -> None:
        """Put what changes into the step's state; the tuples in `rows` are alive or new."""
        count = int(alive.sum())
        live = alive.copy()
        live[alive] = stays[:count]
        changed = renewed(old, live, rows.slice(count).filter(pa.array(stays[count:])))
        if changed is not None:
            emitted.state["held"] = changed
        if isinstance(changed, pa.Table):
            if released.num_rows:
                emitted.state["released"] = released.slice(0, 0)
            return
        gone = tuples(rows.slice(0, count).filter(pa.array(matched[:count])), released.schema)
        listed = renewed(released, np.ones(released.num_rows, bool), gone)
        if listed is not None:
            emitted.state["released"] = listed


def _computed(
    matches: PairArgument, rows: pa.Table, at: Ids, signals: pa.Table, found: Ids
) -> Mask:
    """For which pairs the predicate holds."""
    sides = ((rows, at, matches.left), (signals, found, matches.right))
    pairs = {
        name: table[column].take(pa.array(chosen))
        for table, chosen, columns in sides
        for column, name in columns
    }
    # A table without columns has no rows: a predicate may name none.
    pairs = pairs or {"_pair": pa.array(at)}
    holds = pc.fill_null(matches.compute(pa.table(pairs)), False)
    return np.asarray(holds.to_numpy(zero_copy_only=False), bool)


def _listed(rows: pa.Table, others: pa.Table) -> Mask:
    """Which rows are the same tuples as some of the others."""
    if not others.num_rows:
        return np.zeros(rows.num_rows, bool)
    names = ["_seq", "_sub"]
    columns = [table.select(names).columns for table in (rows, others)]
    own, other, count = match_groups(columns[0], rows.num_rows, columns[1], others.num_rows)
    found = np.zeros(count, bool)
    found[other] = True
    return found[own]


def _column(table: pa.Table, name: str) -> Ids:
    return np.asarray(whole(table[name]), np.int64)
