"""Closed windows that late tuples change come out again [4 §5.1].

Each late tuple makes an emission of its own. To find many at once a window is copied: the first
copy takes one late tuple, the second two, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from auroral.kernels.emission import EmissionBuilder
from auroral.kernels.grouping import Ids
from auroral.kernels.ordering import sub_bytes
from auroral.kernels.windowing.valued import Assigned, WindowInput
from auroral.kernels.windowing.windows import WindowBatch, columns_of

_COPIES = 32


def revise(
    windows: WindowBatch,
    assigned: Assigned,
    arrived: WindowInput,
    arguments: Sequence[Sequence[str]],
    output: EmissionBuilder,
) -> WindowBatch:
    """Fold late tuples in and emit the windows after each of them."""
    rows, slot = assigned.row[assigned.revises], assigned.slot[assigned.revises]
    order = np.argsort(slot, kind="stable")
    rows = rows[order]
    touched, slot = np.unique(slot[order], return_inverse=True)
    rank = np.arange(len(slot)) - np.searchsorted(slot, slot)
    # A user's function is called no more often than there are tuples.
    copies = 1 if any(call.name == "udf" for call in output.functions.calls) else _COPIES
    some = windows.take(touched)
    for number in range(int(rank.max()) // copies + 1):
        chosen = np.flatnonzero(rank // copies == number)
        some = _round(some, rows, slot, chosen, rank[chosen] % copies, arrived, arguments, output)
    untouched = np.ones(len(windows), bool)
    untouched[touched] = False
    return windows.take(np.flatnonzero(untouched)).then(some)


def _round(
    windows: WindowBatch,
    rows: Ids,
    slot: Ids,
    chosen: Ids,
    earlier: Ids,
    arrived: WindowInput,
    arguments: Sequence[Sequence[str]],
    output: EmissionBuilder,
) -> WindowBatch:
    """One copy for each chosen pair, which takes `earlier` pairs of its window before it too."""
    copies = windows.take(slot[chosen])
    copy = np.repeat(np.arange(len(chosen)), earlier + 1)
    ends = np.cumsum(earlier + 1)
    pair = np.arange(len(copy)) - np.repeat(ends - 1, earlier + 1) + chosen[copy]
    oldest = copies.oldest.copy()
    np.minimum.at(oldest, copy, arrived.entered[rows[pair]])
    folded = columns_of(arguments, arrived.tuples, rows[pair])
    states = output.functions.fold(list(copies.states), folded, copy)
    copies = replace(copies, oldest=oldest, states=tuple(states))
    # Tuples of one moment may revise the same window: their own order tells them apart.
    after = sub_bytes(arrived.tuples).take(pa.array(rows[chosen]))
    output.emit(copies, arrived.seq[rows[chosen]], revises=True, after=after)
    latest = np.arange(len(windows))
    latest[slot[chosen]] = len(windows) + np.arange(len(chosen))
    return windows.then(copies).take(latest)
