"""Dedup on one bucket: drop tuples whose keys equal those of a remembered tuple [3 §5.4]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import InputOrder, OrderedArrivals, late_port
from auroral.kernels.grouping import Ids, match_groups
from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.steps import mark_of
from auroral.kernels.stored import conformed, renewed, stored_schema, with_sub
from auroral.kernels.units import numbers
from auroral.kernels.windowing.slack import by_group


@dataclass(frozen=True)
class DedupKernel:
    """Remembers each tuple that passed until progress exceeds its `on`."""

    on: str
    by: tuple[str, ...]
    slack: int | None
    keys: tuple[str, ...]
    fields: tuple[str, ...]
    types: tuple[tuple[str, pa.DataType], ...]
    late_fields: tuple[str, ...] = ()
    by_mark: tuple[str, ...] = ()

    def tables(self) -> Mapping[str, pa.Schema]:
        kinds = dict(self.types)
        names = dict.fromkeys((*self.keys, self.on, *self._order.groups))
        columns = [(name, kinds[name]) for name in names]
        tables = {"remembered": stored_schema(columns, hidden=False)}
        return tables | (
            {} if self.slack is None else {"seen": self._order.seen_schema(self.types)}
        )

    @property
    def _order(self) -> InputOrder:
        return InputOrder(self.on, self.by, self.slack, self.by_mark)

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        new = with_sub(inputs[0])
        old = conformed(state["remembered"], self.tables()["remembered"])
        arrivals = OrderedArrivals.of(
            self._order, new, state.get("seen"), mark_of(context, 0), context, old
        )
        values = numbers(old[self.on])[0]
        until = arrivals.first_to_see(arrivals.also_group, values)
        rows = np.flatnonzero(arrivals.counts)
        passing = rows[self._passes(new, rows, old, until, arrivals)]
        passed = new.take(passing)
        stays = arrivals.passing(arrivals.also_group, values) >= context.last
        kept = arrivals.passing(arrivals.group[passing], arrivals.values[passing]) >= context.last
        changed = renewed(old, stays, passed.filter(pa.array(kept)))
        emitted = {"": passed.select(["_seq", "_ts", "_sub", *self.fields])}
        return Emitted(
            emitted | late_port("late", new, arrivals, self.late_fields or None),
            ({} if changed is None else {"remembered": changed})
            | ({} if arrivals.seen is None else {"seen": arrivals.seen}),
            arrivals.late_counts() | _counted(len(rows) - len(passing)),
            held=int(stays.sum() + kept.sum()),
        )

    def _passes(
        self, new: pa.Table, rows: Ids, old: pa.Table, until: Ids, arrivals: OrderedArrivals
    ) -> Ids:
        """Which of the rows pass."""
        remembered = np.flatnonzero(until > 0)
        some, before = new.select(self.keys).take(rows), old.select(self.keys).take(remembered)
        ids, known, count = match_groups(some.columns, len(rows), before.columns, len(remembered))
        free = np.zeros(count, np.int64)
        free[known] = until[remembered]
        forgotten = arrivals.first_to_see(arrivals.group[rows], arrivals.values[rows])
        return first_of_each(ids, rows, np.maximum(forgotten, rows + 1), free)


def _counted(duplicates: int) -> dict[str, int]:
    return {"duplicate": duplicates} if duplicates else {}


def first_of_each(ids: Ids, rows: Ids, forgotten: Ids, free: Ids) -> Ids:
    """Which tuples pass, if each suppresses later ones of its key until it is forgotten.

    `rows` are their positions, ascending; `forgotten` is the position from which on a tuple no
    longer suppresses others; `free` is, by key, the first position at which no tuple of an earlier
    step suppresses the key.

    >>> until = np.array([2, 3, 4, 5])
    >>> first_of_each(np.zeros(4, int), np.arange(4), until, np.array([0])).tolist()
    [0, 2]
    """
    if not len(rows):
        return rows
    order = by_group(ids, len(free))
    key, span = ids[order], int(rows[-1]) + 2
    places = key * span + rows[order]
    none = len(rows)

    def first_from(keys: Ids, place: Ids) -> Ids:
        at = np.searchsorted(places, keys * span + np.minimum(place, span - 1))
        inside = at < none
        return np.where(inside & (key[np.minimum(at, none - 1)] == keys), at, none)

    jump = np.append(first_from(key, forgotten[order]), none)
    reached = np.zeros(none + 1, bool)
    reached[first_from(np.arange(len(free)), free)] = True
    # Who follows whom is a forest of chains; each round looks twice as far along them.
    while (ahead := jump[np.flatnonzero(reached)]).min() < none:
        reached[ahead] = True
        jump = jump[jump]
    return np.sort(order[reached[:none]])
