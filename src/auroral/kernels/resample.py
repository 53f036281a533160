"""Resample on one bucket: for each left tuple and right group, the right tuples nearby.

[1 §5.2.2.4]. A left tuple is stored until the right's progress has passed its window; a right tuple
is stored as long as it lies in the window of a left tuple that is stored or may still arrive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.accumulators.choice import Accumulators, CallSpec
from auroral.kernels.accumulators.window_function import NO_RESULT
from auroral.kernels.arrivals import NUMBER, InputOrder, OrderedArrivals
from auroral.kernels.grouping import Ids, group_ids
from auroral.kernels.joining.pairs import expanded
from auroral.kernels.joining.sides import (
    SIDES,
    BandProgress,
    OtherSide,
    note_progress,
    note_timeouts,
)
from auroral.kernels.kernel import NEVER, Context, Emitted
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
from auroral.kernels.units import Mask, numbers
from auroral.kernels.windowing.timeouts import REACHED, leaving, meeting, with_reached
from auroral.progress.lowwater import Values

Pair = tuple[tuple[str, ...], tuple[str, ...]]


class PairArgument(Protocol):
    """An argument that is computed from a left and a right tuple, for many pairs at once."""

    @property
    def left(self) -> tuple[tuple[str, str], ...]:
        """The left columns it needs, and what it calls them."""

    @property
    def right(self) -> tuple[tuple[str, str], ...]:
        """The right columns it needs, and what it calls them."""

    def compute(self, pairs: pa.Table) -> pa.Array:
        """Its values for a table of these columns, under its own names."""


Types = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class ResampleKernel:
    """Compute `calls` over the right tuples with left.on − within <= right.on <= left.on + within.

    `within` is in units of marks of the left attribute; `NUMBER` stands for the arrival number.
    Late tuples carry `fields`. With `timeout_us` a tuple is held no longer than that.
    """

    on: tuple[str, str]
    by: Pair
    slack: tuple[int | None, int | None]
    within: int | float
    calls: tuple[CallSpec, ...]
    arguments: tuple[tuple[str, ...], ...]
    on_type: pa.DataType
    types: tuple[Types, Types]
    fields: Pair = ((), ())
    late: tuple[bool, bool] = (False, False)
    by_mark: Pair = ((), ())
    timeout_us: int | None = None
    constants: tuple[str, ...] = ()
    """Left columns that come out, as `l_<name>`."""
    paired: tuple[PairArgument, ...] = ()
    """Arguments that are computed of a left and a right tuple; named `p0`, `p1`, …"""

    def tables(self) -> Mapping[str, pa.Schema]:
        left, right = self._kinds(0), self._kinds(1)
        names = dict.fromkeys((self.on[1], *self.by[1], *self.by_mark[1]))
        names |= dict.fromkeys(name for call in self.arguments for name in call if name in right)
        names |= dict.fromkeys(name for argument in self.paired for name, _ in argument.right)
        reached = [] if self.timeout_us is None else [(REACHED, pa.int64())]
        found = {
            "left": stored_schema([(name, left[name]) for name in self._kept_of_left()] + reached),
            "right": stored_schema([*((name, right[name]) for name in names), *reached]),
        }
        for side, name in enumerate(SIDES):
            if self._order(side).inferred:
                found[f"{name}_seen"] = self._order(side).seen_schema(self.types[side])
        return found

    def _kinds(self, side: int) -> dict[str, pa.DataType]:
        return {**dict(self.types[side]), NUMBER: pa.int64()}

    def _kept_of_left(self) -> list[str]:
        names = [self.on[0], *self.constants]
        names += [name for argument in self.paired for name, _ in argument.left]
        return list(dict.fromkeys(names))

    def _order(self, side: int) -> InputOrder:
        return InputOrder(self.on[side], self.by[side], self.slack[side], self.by_mark[side])

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        new = [with_sub(table) for table in inputs]
        if self.timeout_us is not None:
            new = [with_reached(table, context) for table in new]
        schemas = self.tables()
        old = [in_arrival_order(conformed(state[name], schemas[name])) for name in SIDES]
        arrivals, progress = [], []
        for side, name in enumerate(SIDES):
            order, mark = self._order(side), mark_of(context, side)
            seen, also = state.get(f"{name}_seen"), old[1] if side else None
            arrivals.append(OrderedArrivals.of(order, new[side], seen, mark, context, also))
            progress.append(arrivals[side].of_all(order, mark))
        new = [
            arrivals[side].numbered(new[side]) if self._order(side).numbered else new[side]
            for side in (0, 1)
        ]
        kinds = [self._kinds(side)[self.on[side]] for side in (0, 1)]
        band = BandProgress.of(kinds, (self.within, self.within), progress)
        timeout_us = self.timeout_us
        left = Lefts.of(self.on[0], new[0], old[0], arrivals[0], band, timeout_us)
        right = Rights.of(self.on[1], new[1], old[1], arrivals[1], band, timeout_us)
        if not set(self.by_mark[1]) <= set(self.by[1]):
            # A group may get tuples of any mark: all of them must have passed.
            least = InputOrder(self.on[1], self.by[1], self.slack[1])
            right = right.judged_by(
                OrderedArrivals.of(least, new[1], None, mark_of(context, 1), context)
            )
        emitted = Emitted()
        emitted.ports[""] = self._windows(left, right, emitted)
        emitted.held = left.store(old[0], band, emitted) + right.store(old[1], left, band, emitted)
        if self.timeout_us is not None:
            others = [
                OtherSide(self._order(n), new[n], arrivals[n], mark_of(context, n), context)
                for n in (0, 1)
            ]
            note_timeouts(emitted, 0, left.on, left.high, left.leaves, band, others[1])
            note_timeouts(emitted, 1, right.on, right.on, right.leaves, band, others[0])
        for side in (0, 1):
            fields = self.fields[side] if self.late[side] else None
            note_progress(emitted, side, new[side], arrivals[side], fields)
        return emitted

    def _windows(self, left: Lefts, right: Rights, emitted: Emitted) -> pa.Table:
        """A tuple for each left tuple and group that is complete now and has a window."""
        lefts, rights = left.completed(right)
        slot, groups = self._slots(right, lefts, rights)
        at, of = lefts[groups], rights[groups]
        functions = Accumulators(self.calls)
        given = self._arguments(left, right, lefts, rights)
        arguments = [[given[name] for name in names] for names in self.arguments]
        state = functions.fold(functions.fresh(len(groups)), arguments, slot)
        results, failures = functions.final(state)
        oldest = left.column("_ts")[at]
        np.minimum.at(oldest, slot, right.column("_ts")[rights])
        seq = left.column("_seq")[at]
        when = right.progress.passing(right.group[of], left.high[at])
        when = np.maximum(seq, np.minimum(when, left.leaves[at]))
        by = [_plain(right.rows[name].combine_chunks().take(pa.array(of))) for name in self.by[1]]
        sub = joined(moments(seq), sub_bytes(left.rows).take(pa.array(at)), sortable(by))
        on = left.rows[self.on[0]].combine_chunks().take(pa.array(at)).cast(self.on_type)
        more = [left.rows[name].combine_chunks().take(pa.array(at)) for name in self.constants]
        columns = [pa.array(when), pa.array(oldest), sub, *by, on, *more, *results]
        return _without_failed(pa.table(columns, schema=self._schema()), failures, emitted)

    def _arguments(
        self, left: Lefts, right: Rights, lefts: Ids, rights: Ids
    ) -> dict[str, pa.Array]:
        """What the functions take of each pair: columns of the right, and computed ones."""
        rows = pa.array(rights)
        names = dict.fromkeys(name for call in self.arguments for name in call)
        found = {
            name: right.rows[name].combine_chunks().take(rows)
            for name in names
            if name in right.rows.column_names
        }
        for at, argument in enumerate(self.paired):
            columns = {n: left.rows[c].take(pa.array(lefts)) for c, n in argument.left}
            columns |= {n: right.rows[c].take(rows) for c, n in argument.right}
            found[f"p{at}"] = argument.compute(pa.table(columns))
        return found

    def _slots(self, right: Rights, lefts: Ids, rights: Ids) -> tuple[Ids, Ids]:
        """Number pairs by left tuple and group; also where each number comes first."""
        group, _ = group_ids([right.rows[name] for name in self.by[1]], right.rows.num_rows)
        return group_ids([pa.array(lefts), pa.array(group[rights])], len(lefts))

    def _schema(self) -> pa.Schema:
        kinds = dict(self.types[1])
        by = [(name, kinds[name]) for name in self.by[1]]
        computed = [(f"agg{at}", call.returns) for at, call in enumerate(self.calls)]
        left = self._kinds(0)
        constants = [(f"l_{name}", left[name]) for name in self.constants]
        return pa.schema([*HIDDEN, *by, ("on", self.on_type), *constants, *computed])


@dataclass(frozen=True)
class Rights:
    """Right tuples in order of arrival, and the progress that completes windows of their groups."""

    rows: pa.Table
    old: int
    on: Values
    group: Ids
    progress: OrderedArrivals
    """In the units of `on`."""
    leaves: Ids
    """When the time of each is over."""

    @staticmethod
    def of(
        on: str,
        new: pa.Table,
        old: pa.Table,
        arrivals: OrderedArrivals,
        band: BandProgress,
        timeout_us: int | None,
    ) -> Rights:
        fresh = tuples(new, old.schema).filter(pa.array(arrivals.counts))
        values = [numbers(old[on])[0], arrivals.values[arrivals.counts]]
        group = np.concatenate([arrivals.also_group, arrivals.group[arrivals.counts]])
        rows = pa.concat_tables([tuples(old, old.schema), fresh]).combine_chunks()
        return Rights(
            rows,
            old.num_rows,
            np.concatenate([band.units.column(1, each) for each in values]),
            group,
            arrivals.in_units(partial(band.units.column, 1)),
            _leaving(rows, timeout_us, arrivals.context),
        )

    def judged_by(self, progress: OrderedArrivals) -> Rights:
        """The same tuples, all in the one group of another progress."""
        progress = progress.in_units(self.progress.convert) if self.progress.convert else progress
        return replace(self, group=np.zeros_like(self.group), progress=progress)

    def column(self, name: str) -> Ids:
        return np.array(self.rows[name], np.int64)

    def store(self, old: pa.Table, left: Lefts, band: BandProgress, emitted: Emitted) -> int:
        """Store what windows may still need; how many tuples are held then."""
        lasts = self.leaves == NEVER
        needed = (lasts & ~band.dead(1, self.on, self.on, 1)) | left.waits_for(self)
        fresh = self.rows.slice(self.old).filter(pa.array(needed[self.old :]))
        changed = renewed(old, needed[: self.old], fresh)
        if changed is not None:
            emitted.state["right"] = changed
        return int(needed.sum())


@dataclass(frozen=True)
class Lefts:
    """Left tuples whose windows may not all be complete: the stored ones first."""

    rows: pa.Table
    old: int
    on: Values
    low: Values
    high: Values
    alive: Mask
    """Which tuples of the state are among `rows`."""
    leaves: Ids
    """When the time of each is over."""
    timeout_us: int | None

    @staticmethod
    def of(
        on: str,
        new: pa.Table,
        old: pa.Table,
        arrivals: OrderedArrivals,
        band: BandProgress,
        timeout_us: int | None,
    ) -> Lefts:
        before = band.units.column(0, numbers(old[on])[0])
        alive = ~band.dead(0, before, band.bounds(before)[1], 0)
        alive &= _leaving(old, timeout_us, arrivals.context) >= arrivals.context.first
        kept = tuples(old, old.schema).filter(pa.array(alive))
        fresh = tuples(new, old.schema).filter(pa.array(arrivals.counts))
        after = band.units.column(0, arrivals.values[arrivals.counts])
        values = np.concatenate([before[alive], after])
        rows = pa.concat_tables([kept, fresh]).combine_chunks()
        leaves = _leaving(rows, timeout_us, arrivals.context)
        low, high = band.bounds(values)
        return Lefts(rows, kept.num_rows, values, low, high, alive, leaves, timeout_us)

    def column(self, name: str) -> Ids:
        return np.array(self.rows[name], np.int64)

    def completed(self, right: Rights) -> tuple[Ids, Ids]:
        """Left and right tuples of windows that this step completes, by progress or timeout."""
        pairs = [self._passed(right, stored=stored) for stored in (True, False)]
        lefts, rights = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
        if self.timeout_us is None:
            return lefts, rights
        first = self._progress_comes_first(right, lefts, rights)
        over = self._sorted(np.flatnonzero(self.leaves < NEVER))
        others, at = expanded(*self._range(over, right))
        timed = ~self._progress_comes_first(right, over[at], others)
        lefts = np.concatenate([lefts[first], over[at[timed]]])
        rights = np.concatenate([rights[first], others[timed]])
        met = meeting((self.rows, right.rows), (lefts, rights), self.timeout_us)
        return lefts[met], rights[met]

    def _progress_comes_first(self, right: Rights, lefts: Ids, rights: Ids) -> Mask:
        """Of which pairs progress completes the window, not the timeout."""
        passed = right.progress.passing(right.group[rights], self.high[lefts])
        return np.asarray(passed <= self.leaves[lefts])

    def _passed(self, right: Rights, stored: bool) -> tuple[Ids, Ids]:
        """The pairs of windows that progress completes in this step, the right ones in order."""
        rows = np.arange(len(self.on))
        order = self._sorted(rows[: self.old] if stored else rows[self.old :])
        begin, end = self._range(order, right)
        highs = self.high[order]
        end = np.minimum(end, right.progress.below(highs, after=True)[right.group])
        if stored:
            begin = np.maximum(begin, right.progress.below(highs, after=False)[right.group])
        rights, at = expanded(begin, end)
        return order[at], rights

    def waits_for(self, right: Rights) -> Mask:
        """Which right tuples a window that is not complete after the step has."""
        order = self._sorted(np.flatnonzero(self.leaves == NEVER))
        begin, end = self._range(order, right)
        begin = np.maximum(begin, right.progress.below(self.high[order], after=True)[right.group])
        waited = np.asarray(begin < end)
        if self.timeout_us is not None:
            # Of those whose time is over, only windows that had them before still do.
            over = np.flatnonzero(waited & (right.leaves < NEVER))
            at, found = expanded(begin[over], end[over])
            pair = (order[found], over[at])
            met = meeting((self.rows, right.rows), pair, self.timeout_us)
            waited[over] = False
            waited[pair[1][met]] = True
        return waited

    def store(self, old: pa.Table, band: BandProgress, emitted: Emitted) -> int:
        """Store what is not complete; how many tuples are held then."""
        keep = ~band.dead(0, self.on, self.high, 1) & (self.leaves == NEVER)
        stays = self.alive.copy()
        stays[self.alive] = keep[: self.old]
        fresh = self.rows.slice(self.old).filter(pa.array(keep[self.old :]))
        changed = renewed(old, stays, fresh)
        if changed is not None:
            emitted.state["left"] = changed
        return int(keep.sum())

    def _sorted(self, rows: Ids) -> Ids:
        return rows[np.argsort(self.on[rows], kind="stable")]

    def _range(self, order: Ids, right: Rights) -> tuple[Ids, Ids]:
        """Where in `order` those are that have each right tuple in their window."""
        begin = np.searchsorted(self.high[order], right.on, side="left")
        return begin, np.searchsorted(self.low[order], right.on, side="right")


def _leaving(rows: pa.Table, timeout_us: int | None, context: Context) -> Ids:
    if timeout_us is None:
        return np.full(rows.num_rows, NEVER, np.int64)
    return leaving(rows, timeout_us, context)


def _plain(column: pa.Array) -> pa.Array:
    """A grouping column for output: -0.0 becomes 0.0."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.add(column, pa.scalar(0.0, column.type))


def _without_failed(table: pa.Table, failures: dict[int, str], emitted: Emitted) -> pa.Table:
    """A window whose function failed is a dead letter."""
    if not failures:
        return table
    names = table.column_names[len(HIDDEN) : table.column_names.index("on") + 1]
    for index, reason in sorted(failures.items()):
        if reason == NO_RESULT:
            continue
        shown = table.select(names).slice(index, 1).to_pylist()[0]
        emitted.dead.append((reason, json.dumps(shown, default=str, ensure_ascii=False)))
    fine = np.ones(table.num_rows, bool)
    fine[list(failures)] = False
    return table.filter(pa.array(fine))
