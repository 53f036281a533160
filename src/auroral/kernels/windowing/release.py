"""Tuples of each group in sorted order: held until nothing can come before them.

With slack n a group holds n tuples, and each that arrives in time lets the least of n + 1 go. As
tuples below the threshold are late, tuples go in order of (value, arrival): the j-th in that order
with the (j + n)-th arrival. Without slack a tuple goes when the mark has passed it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.ordering import sub_bytes, whole
from auroral.kernels.units import alike, numbers
from auroral.kernels.windowing.closing import GroupProgress, within
from auroral.kernels.windowing.observing import Observed, State, by_columns, observe
from auroral.kernels.windowing.slack import by_group
from auroral.kernels.windowing.windows import WindowBatch
from auroral.progress.lowwater import Values

if TYPE_CHECKING:
    from auroral.kernels.aggregate import AggregateKernel


@dataclass(frozen=True)
class ReleasedTuples:
    """Tuples that go in this step: by group, each group's in order; and those that wait."""

    tuples: pa.Table
    on: Values
    group: Ids
    moment: Ids
    """When each goes."""
    cause: pa.Array
    """`_sub` of the tuple that made it go; NULL if progress or the end did."""
    windows: WindowBatch
    """The windows of earlier steps, with the numbers of their groups."""
    groups: int
    progress: GroupProgress
    waiting: pa.Table
    late: pa.Table
    """Tuples that came when later ones had gone."""
    state: dict[str, pa.Table]


def release(
    kernel: AggregateKernel, tuples: pa.Table, windows: WindowBatch, state: State, context: Context
) -> ReleasedTuples:
    """Find what goes, and when."""
    held = state["held"]
    tuples = tuples.select(held.column_names).cast(held.schema)
    observed, of_held = _observed(kernel, tuples, held, windows, state, context)
    arrived, progress = observed.arrived, observed.progress
    assert arrived.group is not None
    before, known = progress.before()
    fits = ~np.asarray(known & (arrived.on < before), bool)
    some = tuples.filter(pa.array(fits))
    every = pa.concat_tables([held, some]).combine_chunks()
    group = np.concatenate([of_held, arrived.group[fits]])
    on = arrived.on[fits]
    on = on if kernel.on is None else np.concatenate(alike([numbers(held[kernel.on])[0], on]))
    groups = int(max(group.max(initial=-1), observed.windows.group.max(initial=-1))) + 1
    order = np.argsort(on, kind="stable")
    order = order[by_group(group[order], groups)]
    moment, cause = _moments(kernel, every, on, group, order, len(of_held), progress, context)
    going = np.flatnonzero(moment < NEVER)
    waiting = np.sort(order[moment == NEVER])
    return ReleasedTuples(
        every.take(pa.array(order[going])),
        on[order[going]],
        group[order[going]],
        moment[going],
        sub_bytes(every).take(pa.array(cause[going], mask=cause[going] < 0)),
        observed.windows,
        groups,
        progress,
        every.take(pa.array(waiting)),
        tuples.filter(pa.array(~fits)),
        dict(observed.state),
    )


def _observed(
    kernel: AggregateKernel,
    tuples: pa.Table,
    held: pa.Table,
    windows: WindowBatch,
    state: State,
    context: Context,
) -> tuple[Observed, Ids]:
    """What arrives, with groups numbered for windows and held tuples too."""
    of_held = by_columns(kernel, held)
    by = zip(windows.by, of_held, strict=True)
    both = WindowBatch(
        np.zeros(len(windows) + held.num_rows, np.int64),
        tuple(pa.concat_arrays(list(columns)) for columns in by),
        np.empty(0, np.int64),
        (),
    )
    observed = observe(kernel, tuples, both, state, context)
    of_windows, of_tuples = np.split(observed.windows.group, [len(windows)])
    return replace(observed, windows=replace(windows, group=of_windows)), of_tuples


def _moments(
    kernel: AggregateKernel,
    every: pa.Table,
    on: Values,
    group: Ids,
    order: Ids,
    held: int,
    progress: GroupProgress,
    context: Context,
) -> tuple[Ids, Ids]:
    """When tuples go, in order; and the tuple that made them go, -1 if none did."""
    seq = np.asarray(whole(every["_seq"]), np.int64)
    if kernel.on is None:
        return seq[order], order
    if kernel.slack is None:
        return progress.passing(group[order], on[order]), np.full(len(order), -1, np.int64)
    cause = _causes(kernel.slack, group, order, held)
    moment = within(np.full(len(order), NEVER, np.int64), context)
    return np.where(cause < 0, moment, np.append(seq, NEVER)[cause]), cause


def _causes(slack: int, group: Ids, order: Ids, held: int) -> Ids:
    """Each arrival lets one of its group go, once there are more than `slack`."""
    groups = int(group.max(initial=-1)) + 1
    arrivals = held + by_group(group[held:], groups)
    first = np.searchsorted(group[arrivals], np.arange(groups + 1))
    waited = np.bincount(group[:held], minlength=groups)
    owner = group[order]
    place = np.arange(len(order)) - np.searchsorted(owner, owner)
    number = first[owner] + place + slack - waited[owner]
    return np.where(
        number < first[owner + 1], np.append(arrivals, -1)[np.minimum(number, len(arrivals))], -1
    )
