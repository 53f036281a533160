"""Windows that a predicate opens: tuples come in sorted order, one window is open at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.accumulators.choice import Accumulators
from auroral.kernels.emission import HIDDEN, EmissionBuilder, late_table
from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.ordering import joined, moments, sortable, sub_bytes, whole
from auroral.kernels.units import Mask, alike
from auroral.kernels.windowing.closing import timed_out, within
from auroral.kernels.windowing.observing import State, by_columns
from auroral.kernels.windowing.release import ReleasedTuples, release
from auroral.kernels.windowing.windows import REACHED, WindowBatch, columns_of

if TYPE_CHECKING:
    from auroral.kernels.aggregate import AggregateKernel


@dataclass(frozen=True)
class Taken:
    """What a step leaves: windows to remember, tuples that wait, and what was left out."""

    windows: WindowBatch
    waiting: pa.Table
    late: list[pa.Table]
    """Tuples that came too late, as they leave; without fields if none is asked for."""
    outside: int
    changed: bool
    """Whether the windows or the waiting tuples are others than before."""
    state: dict[str, pa.Table]


def take_in_order(
    kernel: AggregateKernel,
    functions: Accumulators,
    tuples: pa.Table,
    windows: WindowBatch,
    state: State,
    output: EmissionBuilder,
    context: Context,
) -> Taken:
    """Open windows, add tuples to them, emit those that close."""
    released = release(kernel, tuples, windows, state, context)
    opening = _opening(kernel, released)
    slot, all_windows = _opened(kernel, functions, released, opening)
    done = _superseded(kernel, released, opening, all_windows, context)
    closing, stop = done, np.full(len(done), NEVER, np.int64)
    if kernel.timeout_us is not None:
        stop = _stops(kernel.timeout_us, released, opening, all_windows, context)
        closing = np.minimum(done, stop)
    inside = (slot >= 0) & _below_end(kernel, released, all_windows, slot, opening)
    counts = inside & (released.moment <= np.append(stop, NEVER)[slot])
    folded = _folded(kernel, functions, released, all_windows, slot, np.flatnonzero(counts))
    going = np.flatnonzero((closing < NEVER) & ~folded.sent)
    emitted = folded.take(going)
    output.emit(emitted, closing[going], after=emitted.tie[0] if len(going) else None)
    sent = folded.sent | (closing < NEVER)
    kept = replace(folded, closed=closing, sent=sent).take(np.flatnonzero(done == NEVER))
    late = [late_table(released.late, np.arange(released.late.num_rows), kernel.fields)]
    late.append(_late(kernel, released, np.flatnonzero(inside & ~counts)))
    changed = bool(len(tuples) or len(slot) or len(going) or len(kept) < len(windows))
    outside = int((~inside).sum())
    return Taken(kept, released.waiting, late, outside, changed, released.state)


def _opening(kernel: AggregateKernel, released: ReleasedTuples) -> Ids:
    """Which released tuples open a window."""
    flags = whole(released.tuples[str(kernel.opens)]).fill_null(False)
    return np.flatnonzero(np.asarray(flags, bool))


def _opened(
    kernel: AggregateKernel, functions: Accumulators, released: ReleasedTuples, opening: Ids
) -> tuple[Ids, WindowBatch]:
    """The window each tuple finds open (-1: none), and all windows, the new ones last."""
    older = released.windows
    current = np.full(released.groups, -1, np.int64)
    current[older.group] = np.arange(len(older))
    latest = np.searchsorted(opening, np.arange(len(released.on)), side="right") - 1
    owner = np.append(released.group[opening], -1)
    mine = owner[latest] == released.group
    slot = np.where(mine, latest + len(older), current[released.group])
    return slot, older.then(_new(kernel, functions, released, opening))


def _new(
    kernel: AggregateKernel, functions: Accumulators, released: ReleasedTuples, opening: Ids
) -> WindowBatch:
    some = released.tuples.take(pa.array(opening))
    seq = np.asarray(whole(some["_seq"]), np.int64)
    entered = np.asarray(whole(some["_ts"]), np.int64)
    timed = kernel.timeout_us is not None
    began = np.asarray(whole(some[REACHED]), np.int64) if timed else np.empty(0, np.int64)
    return WindowBatch(
        released.on[opening],
        by_columns(kernel, some),
        entered,
        tuple(functions.fresh(len(opening))),
        released.group[opening],
        began,
        np.full(len(opening), NEVER, np.int64),
        np.zeros(len(opening), bool),
        (joined(moments(seq), sub_bytes(some)),),
    )


def _superseded(
    kernel: AggregateKernel,
    released: ReleasedTuples,
    opening: Ids,
    windows: WindowBatch,
    context: Context,
) -> Ids:
    """When each window is over: the next one opens, its size is reached, or the end comes."""
    older = len(released.windows)
    position = np.append(np.full(older, -1, np.int64), opening)
    begins = np.searchsorted(released.group, np.arange(released.groups))
    after = np.where(position < 0, begins[windows.group], position + 1)
    following = np.append(opening, len(released.on))
    following = following[np.searchsorted(opening, after)]
    done = np.minimum(NEVER, _moment_of(released, windows.group, following))
    if kernel.size is not None:
        reached = _first_beyond(kernel, released, windows)
        done = np.minimum(done, _moment_of(released, windows.group, np.maximum(reached, after)))
        if kernel.on is None or kernel.slack is None:
            passed = released.progress.reaching(windows.group, windows.start + kernel.size)
            began = np.append(released.moment, 0)[position]
            done = np.minimum(done, np.where(passed < NEVER, np.maximum(passed, began), NEVER))
    return within(done, context)


def _moment_of(released: ReleasedTuples, group: Ids, position: Ids) -> Ids:
    """When the tuple at a position goes, if it is of the group; else NEVER."""
    owner = np.append(released.group, -1)[position]
    return np.where(owner == group, np.append(released.moment, NEVER)[position], NEVER)


def _first_beyond(kernel: AggregateKernel, released: ReleasedTuples, windows: WindowBatch) -> Ids:
    """The first released tuple of each window's group at or above the window's end."""
    ends = windows.start + kernel.size
    on, wanted = alike([released.on, ends])
    ranked = np.unique(on)
    span = len(ranked) + 1
    keys = released.group * span + np.searchsorted(ranked, on)
    return np.searchsorted(keys, windows.group * span + np.searchsorted(ranked, wanted))


def _stops(
    timeout_us: int, released: ReleasedTuples, opening: Ids, windows: WindowBatch, context: Context
) -> Ids:
    """When each window times out."""
    older = len(released.windows)
    began = np.append(np.zeros(older, np.int64), released.moment[opening])
    due = np.maximum(timed_out(context.clock, windows.began + timeout_us, context), began)
    return np.where(windows.closed < NEVER, windows.closed, due)


def _below_end(
    kernel: AggregateKernel, released: ReleasedTuples, windows: WindowBatch, slot: Ids, opening: Ids
) -> Mask:
    """Which tuples are below the end of their window; what opens one is in it."""
    if kernel.size is None or not len(windows):
        return np.ones(len(slot), bool)
    below = np.asarray(released.on < (windows.start + kernel.size)[slot], bool)
    below[opening] = True
    return below


def _folded(
    kernel: AggregateKernel,
    functions: Accumulators,
    released: ReleasedTuples,
    windows: WindowBatch,
    slot: Ids,
    rows: Ids,
) -> WindowBatch:
    if not len(rows):
        return windows
    oldest = windows.oldest.copy()
    entered = np.asarray(whole(released.tuples["_ts"]), np.int64)
    np.minimum.at(oldest, slot[rows], entered[rows])
    arguments = columns_of(kernel.arguments, released.tuples, rows)
    states = functions.fold(list(windows.states), arguments, slot[rows])
    return replace(windows, oldest=oldest, states=tuple(states))


def _late(kernel: AggregateKernel, released: ReleasedTuples, rows: Ids) -> pa.Table:
    """Tuples whose window timed out before they were taken: they leave when that is known."""
    table = late_table(released.tuples, rows, kernel.fields)
    own = joined(moments(np.asarray(whole(table["_seq"]), np.int64)), whole(table["_sub"]))
    place = own
    if kernel.on is not None:
        place = joined(sortable([released.tuples[kernel.on].take(pa.array(rows))]), own)
    cause = released.cause.take(pa.array(rows))
    sub = pc.coalesce(cause, place)
    hidden = [pa.array(released.moment[rows]), table["_ts"], sub]
    return pa.table(
        [*hidden, *(table[name] for name in kernel.fields)],
        names=[*(name for name, _ in HIDDEN), *kernel.fields],
    )
