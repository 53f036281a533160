"""The tuples of a step as an aggregate sees them: values, groups, and the progress they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from auroral.kernels.emission import ended
from auroral.kernels.grouping import Ids, group_keys
from auroral.kernels.kernel import Context
from auroral.kernels.ordering import whole
from auroral.kernels.units import Mask, alike, numbers, stored, stored_type
from auroral.kernels.windowing.closing import GroupProgress, Inferred, marked
from auroral.kernels.windowing.numbering import Numbering, number_groups
from auroral.kernels.windowing.slack import (
    Carried,
    SlackThresholds,
    by_group,
    carried_lists,
    counted,
    ranks,
    thresholds,
)
from auroral.kernels.windowing.valued import WindowInput
from auroral.kernels.windowing.windows import REACHED, WindowBatch
from auroral.progress.lowwater import GroupedLowWater, JointLowWater, LowWater, Values, minimum

if TYPE_CHECKING:
    from auroral.kernels.aggregate import AggregateKernel

State = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Observed:
    """Tuples with the progress they meet, windows with their groups, and what to remember."""

    arrived: WindowInput
    windows: WindowBatch
    progress: GroupProgress
    state: Mapping[str, pa.Table]


def observe(
    kernel: AggregateKernel, tuples: pa.Table, windows: WindowBatch, state: State, context: Context
) -> Observed:
    """Find the groups of tuples and windows and the progress of each."""
    if kernel.on is None:
        return _by_count(kernel, tuples, windows, state, context)
    if kernel.slack is None:
        return _by_marks(kernel, tuples, windows, context)
    if kernel.align_first:
        return _aligned(kernel, tuples, windows, state, context)
    return _by_slack(kernel, tuples, windows, state, context)


def groups_schema(kernel: AggregateKernel) -> pa.Schema:
    """What is remembered of each group."""
    fields = [(name, kernel.kinds[name]) for name in kernel.by]
    if kernel.on is None:
        return pa.schema([*fields, ("count", pa.int64())])
    kind = stored_type(kernel.kinds[kernel.on])
    origin = [("origin", kind)] if kernel.align_first else []
    return pa.schema([*fields, ("largest", pa.list_(kind)), *origin])


def by_columns(kernel: AggregateKernel, tuples: pa.Table) -> tuple[pa.Array, ...]:
    """The columns that make groups; -0.0 is shown as 0.0."""
    return tuple(_plain(whole(tuples[name]), kernel.kinds[name]) for name in kernel.by)


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    column = column if column.type == kind else column.cast(kind)
    if not pa.types.is_floating(kind):
        return column
    values = np.asarray(column.fill_null(0.0)) + kind.to_pandas_dtype()(0.0)
    return pa.array(values, kind, mask=np.asarray(column.is_null()), from_pandas=False)


def _arrived(
    kernel: AggregateKernel, tuples: pa.Table, on: Values, by: tuple[pa.Array, ...]
) -> WindowInput:
    seq = np.asarray(whole(tuples["_seq"]), np.int64)
    entered = np.asarray(whole(tuples["_ts"]), np.int64)
    base = 1 if kernel.on is None else 0
    timed = kernel.timeout_us is not None
    reached = np.asarray(whole(tuples[REACHED]), np.int64) if timed else np.empty(0, np.int64)
    return WindowInput(tuples, seq, entered, reached, on, by, None, base)


def _numbered(
    groups: pa.Table | None, windows: WindowBatch, by: Sequence[pa.Array], rows: int
) -> Numbering:
    known = [] if groups is None else [[whole(c) for c in groups.columns[: len(by)]]]
    lengths = [] if groups is None else [groups.num_rows]
    return number_groups([*known, windows.by, by], [*lengths, len(windows), rows])


def _by_marks(
    kernel: AggregateKernel, tuples: pa.Table, windows: WindowBatch, context: Context
) -> Observed:
    on, _ = numbers(tuples[kernel.on])
    arrived = _arrived(kernel, tuples, on, by_columns(kernel, tuples))
    mark = _mark(kernel, context)
    if not isinstance(mark, GroupedLowWater | JointLowWater) and kernel.opens is None:
        none = np.empty(0, np.int64)
        return Observed(arrived, windows, marked(mark, none, arrived.seq, context), {})
    numbering = _numbered(None, windows, arrived.by, len(on))
    of_windows, of_rows = numbering.parts
    named = [numbering.by[kernel.by.index(name)] for name in kernel.by_mark]
    keys: Sequence[tuple[Any, ...]] = [()] * numbering.count
    if named and isinstance(mark, GroupedLowWater):
        keys = group_keys(named, np.arange(numbering.count))
    value = numbers(named[0]) if isinstance(mark, JointLowWater) else None
    progress = marked(mark, of_rows, arrived.seq, context, keys, value)
    arrived = replace(arrived, group=of_rows)
    return Observed(arrived, replace(windows, group=of_windows), progress, {})


def _mark(kernel: AggregateKernel, context: Context) -> LowWater | GroupedLowWater | JointLowWater:
    """What the input promises of the groups that windows have."""
    mark = context.marks[0] if context.marks else LowWater()
    if kernel.by_mark or isinstance(mark, LowWater):
        return mark
    if isinstance(mark, JointLowWater):
        return mark.alone
    return minimum([mark.others, *mark.groups.values()])


def _by_count(
    kernel: AggregateKernel, tuples: pa.Table, windows: WindowBatch, state: State, context: Context
) -> Observed:
    by = by_columns(kernel, tuples)
    groups = state["groups"]
    numbering = _numbered(groups, windows, by, tuples.num_rows)
    _, of_windows, of_rows = numbering.parts
    count = np.zeros(numbering.count, np.int64)
    count[: groups.num_rows] = np.asarray(whole(groups["count"]), np.int64)
    number = count[of_rows] + ranks(of_rows, numbering.count) + 1
    arrived = replace(_arrived(kernel, tuples, number, by), group=of_rows)
    progress = Inferred(counted(of_rows, number, numbering.count), arrived.seq, context)
    count += np.bincount(of_rows, minlength=numbering.count)
    after = pa.table([*numbering.by, pa.array(count)], schema=groups_schema(kernel))
    changed = {"groups": after} if tuples.num_rows else {}
    return Observed(arrived, replace(windows, group=of_windows), progress, changed)


def _by_slack(
    kernel: AggregateKernel, tuples: pa.Table, windows: WindowBatch, state: State, context: Context
) -> Observed:
    assert kernel.slack is not None
    on, _ = numbers(tuples[kernel.on])
    by = by_columns(kernel, tuples)
    numbering = _numbered(state["groups"], windows, by, len(on))
    _, of_windows, of_rows = numbering.parts
    carried = Carried.of(whole(state["groups"]["largest"]), numbering.count)
    running = thresholds(of_rows, on, carried, kernel.slack)
    arrived = replace(_arrived(kernel, tuples, on, by), group=of_rows)
    progress = Inferred(running, arrived.seq, context)
    changed = {"groups": _groups(kernel, numbering, running)} if len(on) else {}
    return Observed(arrived, replace(windows, group=of_windows), progress, changed)


def _groups(kernel: AggregateKernel, numbering: Numbering, running: SlackThresholds) -> pa.Table:
    kind = stored_type(kernel.kinds[str(kernel.on)])
    columns = [*numbering.by, carried_lists(running, kind)]
    return pa.table(columns, schema=groups_schema(kernel))


def _aligned(
    kernel: AggregateKernel, tuples: pa.Table, windows: WindowBatch, state: State, context: Context
) -> Observed:
    """Windows start at each group's first tuple in sorted order; until it is known tuples wait."""
    assert kernel.slack is not None
    held = state["held"]
    arrived_now = tuples.select(held.column_names).cast(held.schema)
    tuples = pa.concat_tables([held, arrived_now]).combine_chunks()
    on, _ = numbers(tuples[kernel.on])
    by = by_columns(kernel, tuples)
    numbering = _numbered(state["groups"], windows, by, len(on))
    _, of_windows, of_rows = numbering.parts
    carried = Carried.of(whole(state["groups"]["largest"]), numbering.count)
    running = thresholds(of_rows, on, carried, kernel.slack)
    seq = np.asarray(whole(tuples["_seq"]), np.int64)
    origins = _origins(state["groups"], running, of_rows, on, seq, context)
    ready = np.flatnonzero(origins.known[of_rows])
    waiting = np.flatnonzero(~origins.known[of_rows])
    some = tuples.take(pa.array(ready))
    arrived = replace(
        _arrived(kernel, some, on[ready], by_columns(kernel, some)),
        group=of_rows[ready],
        base=origins.values[of_rows[ready]],
        origins=origins.values,
        since=origins.since,
    )
    progress = Inferred(running, seq, context, ready)
    groups = _groups_aligned(kernel, numbering, running, origins)
    changed = {}
    if len(arrived_now) or ended(context):
        changed = {"groups": groups, "held": tuples.take(pa.array(waiting))}
    return Observed(arrived, replace(windows, group=of_windows), progress, changed)


@dataclass(frozen=True)
class _Origins:
    """Where each group's windows are counted from, if known, and since which moment."""

    values: Values
    known: Mask
    since: Ids


def _origins(
    groups: pa.Table, running: SlackThresholds, group: Ids, on: Values, seq: Ids, context: Context
) -> _Origins:
    old, known = numbers(groups["origin"])
    more = running.groups - len(old)
    known = np.append(known, np.zeros(more, bool))
    row = running.first_known()
    found = ~known & (row >= 0)
    after = running.after()[0][row[found]]
    values, on, after = alike([np.append(old, np.zeros(more, old.dtype)), on, after])
    since = np.zeros(running.groups, np.int64)
    values[found] = after
    since[found] = seq[row[found]]
    known |= found
    if context.ended is not None and ended(context) and not known.all():
        order = np.argsort(on, kind="stable")
        order = order[by_group(group[order], running.groups)]
        first = order[np.searchsorted(group[order], np.flatnonzero(~known))]
        values[~known] = on[first]
        since[~known] = context.ended
        known[:] = True
    return _Origins(values, known, since)


def _groups_aligned(
    kernel: AggregateKernel, numbering: Numbering, running: SlackThresholds, origins: _Origins
) -> pa.Table:
    # Tuples that wait are counted when they are let in, with what arrives then.
    counted_in = tuple(np.where(origins.known, codes, 0) for codes in running.largest)
    kind = stored_type(kernel.kinds[str(kernel.on)])
    largest = carried_lists(replace(running, largest=counted_in), kind)
    origin = stored(np.where(origins.known, origins.values, 0), kind)
    masked = origin.filter(pa.array(origins.known)).take(
        pa.array(np.cumsum(origins.known) - 1, mask=~origins.known)
    )
    return pa.table([*numbering.by, largest, masked], schema=groups_schema(kernel))
