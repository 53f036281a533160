"""Running values: what a window has accumulated after each of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.kernels.accumulators.columns import Bools, Ints
from auroral.kernels.accumulators.spec import Accumulator

_LONG = 64
"""From so many rows on, a window is accumulated by itself; shorter ones are all at once."""


@dataclass(frozen=True)
class Segments:
    """Rows that are sorted by window, and where the rows of each window begin."""

    slot: Ints
    starts: Ints
    sizes: Ints

    @staticmethod
    def of(slot: Ints) -> Segments:
        """The segments of rows whose windows do not decrease."""
        first = np.ones(len(slot), bool)
        first[1:] = slot[1:] != slot[:-1]
        starts = np.flatnonzero(first)
        return Segments(slot, starts, np.diff(np.append(starts, len(slot))))

    @property
    def windows(self) -> Ints:
        """The window of each segment."""
        return self.slot[self.starts]

    @property
    def firsts(self) -> Bools:
        """Which rows are the first of their window."""
        found = np.zeros(len(self.slot), bool)
        found[self.starts] = True
        return found

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The value of each segment for each of its rows."""
        return np.repeat(values, self.sizes)

    def counts(self) -> Ints:
        """1, 2, 3 … in each segment."""
        found: Ints = np.arange(1, len(self.slot) + 1) - self.spread(self.starts)
        return found

    def totals(self, initial: Ints, values: Ints) -> Ints:
        """Running sums of integers, which wrap round; `initial` has one for each segment."""
        total = np.cumsum(values, dtype=np.int64)
        before = np.concatenate(([0], total))[self.starts]
        found: Ints = total + self.spread(initial - before)
        return found

    def accumulated(
        self, operation: np.ufunc, initial: npt.NDArray[Any], values: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """Apply an operation to the value so far and each row, strictly from row to row."""
        found = np.empty_like(values)
        for at in np.flatnonzero(self.sizes >= _LONG).tolist():
            start, end = self.starts[at], self.starts[at] + self.sizes[at]
            row_by_row = np.concatenate((initial[at : at + 1], values[start:end]))
            found[start:end] = operation.accumulate(row_by_row)[1:]
        short = np.flatnonzero(self.sizes < _LONG)
        short = short[np.argsort(-self.sizes[short], kind="stable")]
        current, turn = initial[short], 0
        while True:
            # The longest come first, so that those with another row are a prefix.
            count = int(np.searchsorted(-self.sizes[short], -turn, side="left"))
            if not count:
                return found
            rows = self.starts[short[:count]] + turn
            current = operation(current[:count], values[rows])
            found[rows] = current
            turn += 1


def last_known(known: Bools) -> Ints:
    """For each row the last one up to it that is known; the first must be."""
    return np.maximum.accumulate(np.where(known, np.arange(len(known)), 0))


def stepwise(
    one: Accumulator, state: Sequence[pa.Array], columns: Sequence[pa.Array], slot: Ints
) -> pa.Array:
    """The value after each row: the first rows of all windows at once, then the second, …

    For functions that have no faster way. Rows are sorted by window.
    """
    segments = Segments.of(slot)
    order = np.argsort(-segments.sizes, kind="stable")
    starts, sizes = segments.starts[order], segments.sizes[order]
    current = [column.take(pa.array(segments.windows[order])) for column in state]
    values: list[pa.Array] = []
    rows: list[Ints] = []
    for turn in range(int(sizes.max(initial=0))):
        count = int(np.searchsorted(-sizes, -turn, side="left"))
        rows.append(starts[:count] + turn)
        taken = [column.take(pa.array(rows[-1])) for column in columns]
        current = one.fold([column.slice(0, count) for column in current], taken, np.arange(count))
        values.append(one.final(current))
    if not values:
        return one.final(one.fresh(0))
    back = np.empty(len(slot), np.int64)
    back[np.concatenate(rows)] = np.arange(len(slot))
    return pa.concat_arrays(values).take(pa.array(back))
