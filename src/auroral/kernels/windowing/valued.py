"""Tuples and their windows, for windows over values and over tuple numbers.

Every tuple makes a pair with each of its windows. A pair counts if the window is open when the
tuple arrives; a closed window that is still remembered is revised by it; otherwise the tuple came
too late for that window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.choice import Accumulators
from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.units import Mask, roomy
from auroral.kernels.windowing.closing import GroupProgress, timed_out
from auroral.kernels.windowing.numbering import number_windows
from auroral.kernels.windowing.windows import WindowBatch, WindowGrid
from auroral.progress.lowwater import Values


@dataclass(frozen=True)
class Rules:
    """What an aggregate over values asks of its windows."""

    grid: WindowGrid
    functions: Accumulators
    inferred: bool
    """Whether a tuple below its group's threshold counts nowhere."""
    history: Any
    timeout_us: int | None


@dataclass(frozen=True)
class WindowInput:
    """A step's tuples that can be given to windows, in order of arrival within each group."""

    tuples: pa.Table
    seq: Ids
    entered: Ids
    reached: Ids
    """When each reached the box, µs; nothing where windows do not time out."""
    on: Values
    by: tuple[pa.Array, ...]
    group: Ids | None
    """Numbers of their groups; None where progress does not ask for groups."""
    base: Values | int
    """Where windows are counted from."""
    origins: Values | None = None
    """Where the windows of each group are counted from, if each has its own."""
    since: Ids | None = None
    """The moment from which the windows of each group have been known, if not always."""

    def ends(self, grid: WindowGrid, windows: WindowBatch) -> Values:
        """Where windows end."""
        own = self.base if self.origins is None else self.origins[windows.group]
        return grid.ends(windows.start, own)


@dataclass(frozen=True)
class WindowMembership:
    """Rows with windows they belong to, in order of rows."""

    row: Ids
    start: Values
    end: Values
    fits: Mask
    """The window was not closed by progress, and the row not below its threshold."""
    over: Mask
    """Progress had closed the window when the row arrived."""

    def take(self, chosen: Mask) -> WindowMembership:
        if chosen.all():
            return self
        start, end = self.start[chosen], self.end[chosen]
        return WindowMembership(self.row[chosen], start, end, self.fits[chosen], self.over[chosen])


@dataclass(frozen=True)
class Assigned:
    """The windows of a step, and what its rows do to them."""

    windows: WindowBatch
    row: Ids
    slot: Ids
    """The window of each pair."""
    counts: Mask
    revises: Mask
    closing: Ids
    """The moment each window closes; NEVER: not in this step."""
    late: Ids
    outside: Ids


def assign(
    rules: Rules,
    arrived: WindowInput,
    windows: WindowBatch,
    progress: GroupProgress,
    context: Context,
) -> Assigned:
    """Give rows to windows and find when windows close."""
    lengths = [rules.grid.size, rules.grid.advance, rules.history]
    on, start = roomy([arrived.on, windows.start], lengths)
    before, known = progress.before()
    tardy = np.asarray(known & (on < before), bool) if rules.inferred else np.zeros(len(on), bool)
    every = _pairs(rules, on, arrived.base, (before, known), tardy)
    pairs = _worth_keeping(rules, every, before, known)
    older = len(windows)
    windows, slot = _enlisted(rules, arrived, replace(windows, start=start), pairs)
    closing = progress.reaching(windows.group, arrived.ends(rules.grid, windows))
    counts, revises = pairs.fits, np.zeros(len(slot), bool)
    moments = arrived.seq[pairs.row]
    if rules.timeout_us is not None:
        windows, stop = _timeouts(rules, arrived, windows, older, pairs, slot, context)
        counts = counts & (moments <= stop[slot])
        closing = np.minimum(closing, stop)
    closing = np.where(windows.closed < NEVER, windows.closed, closing)
    if rules.history is not None:
        revises = ~counts & (pairs.over | (closing[slot] < moments))
    late, outside = _left_out(tardy, every.row, pairs.row[counts | revises])
    assigned = Assigned(windows, pairs.row, slot, counts, revises, closing, late, outside)
    return assigned if rules.history is None else _settled(assigned, older, moments)


def _pairs(
    rules: Rules, on: Values, base: Values | int, mark: tuple[Values, Mask], tardy: Mask
) -> WindowMembership:
    rows, start = rules.grid.pairs(on, base)
    before, known = mark
    if rows is None:
        rows, ends = np.arange(len(on)), rules.grid.ends(start, base)
        over = np.asarray(known & (before >= ends), bool)
        return WindowMembership(rows, start, ends, ~over & ~tardy, over)
    ends = rules.grid.ends(start, base if isinstance(base, int) else base[rows])
    over = np.asarray(known[rows] & (before[rows] >= ends), bool)
    return WindowMembership(rows, start, ends, ~over & ~tardy[rows], over)


def _worth_keeping(
    rules: Rules, pairs: WindowMembership, before: Values, known: Mask
) -> WindowMembership:
    """Pairs whose window is open, or remembered."""
    if rules.history is None:
        return pairs.take(pairs.fits)
    forgotten = pairs.end + rules.history
    remembered = ~known[pairs.row] | np.asarray(before[pairs.row] < forgotten, bool)
    return pairs.take(pairs.fits | remembered)


def _enlisted(
    rules: Rules, arrived: WindowInput, windows: WindowBatch, pairs: WindowMembership
) -> tuple[WindowBatch, Ids]:
    """Number the pairs' windows and add the new ones."""
    all_rows = len(pairs.row) == len(arrived.seq) and np.array_equal(
        pairs.row, np.arange(len(arrived.seq))
    )
    if arrived.group is None:
        known: Sequence[pa.Array] = windows.by
        columns = arrived.by
    else:
        known, columns = [pa.array(windows.group)], (pa.array(arrived.group),)
    if not all_rows:
        columns = tuple(column.take(pa.array(pairs.row)) for column in columns)
    slot, made = number_windows((known, windows.start), (columns, pairs.start))
    return windows.then(_new(rules, arrived, pairs.start[made], pairs.row[made])), slot


def _new(rules: Rules, arrived: WindowInput, start: Values, rows: Ids) -> WindowBatch:
    taken = pa.array(rows)
    none = np.empty(0, np.int64)
    return WindowBatch(
        start,
        tuple(column.take(taken) for column in arrived.by),
        arrived.entered[rows],
        tuple(rules.functions.fresh(len(rows))),
        none if arrived.group is None else arrived.group[rows],
        none if rules.timeout_us is None else arrived.reached[rows],
        np.full(len(rows), NEVER, np.int64),
        np.zeros(len(rows), bool),
    )


def _timeouts(
    rules: Rules,
    arrived: WindowInput,
    windows: WindowBatch,
    older: int,
    pairs: WindowMembership,
    slot: Ids,
    context: Context,
) -> tuple[WindowBatch, Ids]:
    """The moment from which each window takes nothing more, whatever progress does."""
    assert rules.timeout_us is not None
    fitting = np.flatnonzero(pairs.fits)
    first = np.full(len(windows), NEVER, np.int64)
    np.minimum.at(first, slot[fitting], fitting)
    made = older + np.flatnonzero(first[older:] < NEVER)
    rows = pairs.row[first[made]]
    began, opened = windows.began.copy(), np.zeros(len(windows), np.int64)
    began[made], opened[made] = arrived.reached[rows], arrived.seq[rows]
    if arrived.since is not None:
        opened = np.maximum(opened, arrived.since[windows.group])
    due = timed_out(context.clock, began + rules.timeout_us, context)
    stop = np.maximum(due, opened)
    stop[older:][first[older:] == NEVER] = NEVER
    stop = np.where(windows.closed < NEVER, windows.closed, stop)
    return replace(windows, began=began), stop


def _left_out(tardy: Mask, inside: Ids, used: Ids) -> tuple[Ids, Ids]:
    """Rows that came too late, and rows that no window holds."""
    in_use, held = np.zeros(len(tardy), bool), np.zeros(len(tardy), bool)
    in_use[used] = True
    held[inside] = True
    late = np.flatnonzero((held | tardy) & ~in_use)
    return late, np.flatnonzero(~held & ~tardy)


def _settled(assigned: Assigned, older: int, moments: Ids) -> Assigned:
    """Close the windows that only late tuples made; drop those that got nothing at all."""
    windows, slot = assigned.windows, assigned.slot
    counted = np.arange(len(windows)) < older
    counted[slot[assigned.counts]] = True
    first = np.full(len(windows), NEVER, np.int64)
    np.minimum.at(first, slot[assigned.revises], moments[assigned.revises])
    closing = np.where(counted, assigned.closing, first)
    windows = replace(windows, sent=np.where(counted, windows.sent, True))
    used = counted | (first < NEVER)
    if used.all():
        return replace(assigned, windows=windows, closing=closing)
    number = np.cumsum(used) - 1
    kept = np.flatnonzero(used[slot])
    return Assigned(
        windows.take(np.flatnonzero(used)),
        assigned.row[kept],
        number[slot[kept]],
        assigned.counts[kept],
        assigned.revises[kept],
        closing[used],
        assigned.late,
        assigned.outside,
    )
