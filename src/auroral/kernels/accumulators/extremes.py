"""The least and the greatest value, the first and the last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import (
    Ints,
    from_keys,
    integers,
    keys,
    present_rows,
    ranks,
    valid,
)
from auroral.kernels.accumulators.segments import Segments, last_known
from auroral.kernels.accumulators.sums import zeros

State = Sequence[pa.Array]

_LEAST, _GREATEST = np.int64(-(2**63)), np.int64(2**63 - 1)


class NarrowExtreme:
    """The least or the greatest value of a type that has 64-bit keys (see `is_narrow`)."""

    def __init__(self, type: pa.DataType, *, greatest: bool):
        self.types = (type,)
        self._operation = np.maximum if greatest else np.minimum
        self._start = _LEAST if greatest else _GREATEST

    def fresh(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, self.types[0])]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        seen = valid(state[0])
        best = np.where(seen, keys(state[0]), self._start)
        self._operation.at(best, slot, keys(column))
        seen = seen.copy()
        seen[slot] = True
        return [from_keys(best, seen, self.types[0])]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        (column,), rows = present_rows(columns, np.arange(len(slot)))
        segments = Segments.of(slot[rows])
        before = np.where(valid(state[0]), keys(state[0]), self._start)[segments.windows]
        best = segments.accumulated(self._operation, before, keys(column))
        return rows, from_keys(best, np.ones(len(rows), bool), self.types[0])


class ExtremeBy:
    """The first argument of the row whose last argument is the least or the greatest.

    Among rows with equal last arguments it takes the first. With two arguments this is `min_by` or
    `max_by`; with one it is `min` or `max` of values that have no 64-bit keys, such as strings.
    """

    def __init__(self, arguments: Sequence[pa.DataType], *, greatest: bool):
        self._greatest = greatest
        self.types = (*arguments, pa.bool_())

    def fresh(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, type) for type in self.types[:-1]] + [zeros(n, pa.bool_())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        columns, slot = present_rows(columns, slot, nulls=columns[-1:])
        if not len(slot):
            return list(state)
        touched, local = np.unique(slot, return_inverse=True)
        seen = integers(state[-1]) != 0
        had = touched[seen[touched]]
        # The best rows so far come first: they arrived before all new rows.
        old = [column.take(pa.array(had)) for column in state[:-1]]
        both = [pa.concat_arrays(pair) for pair in zip(old, columns, strict=True)]
        owner = np.concatenate((np.flatnonzero(seen[touched]), local))
        winner = _first_of_best(ranks(both[-1]), owner, len(touched), self._greatest)
        choice = np.arange(len(seen))
        choice[touched] = len(seen) + winner
        picked = pa.array(choice)
        seen = seen.copy()
        seen[touched] = True
        new = [
            pa.concat_arrays([column, more]).take(picked)
            for column, more in zip(state[:-1], both, strict=True)
        ]
        return [*new, pa.array(seen)]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        rows = present_rows(columns, np.arange(len(slot)), nulls=columns[-1:])[1]
        segments, taken = Segments.of(slot[rows]), pa.array(rows)
        windows = pa.array(segments.windows)
        seen = (integers(state[-1]) != 0)[segments.windows]
        # What was best before has the number of its segment, rows come after all of those.
        old = len(segments.starts)
        rank = ranks(pa.concat_arrays([state[-2].take(windows), columns[-1].take(taken)]))
        rank = rank if self._greatest else ~rank  # which reverses the order
        before = np.where(seen, rank[:old], _LEAST)
        best = segments.accumulated(np.maximum, before, rank[old:])
        previous = np.concatenate(([0], best[:-1]))[: len(best)]
        previous[segments.starts] = before
        better = rank[old:] > previous
        better[segments.starts[~seen]] = True
        winner = np.where(better, old + np.arange(len(rows)), -1)
        kept = segments.firsts & ~better
        winner[kept] = segments.spread(np.arange(old))[kept]
        choice = winner[last_known(winner >= 0)]
        values = pa.concat_arrays([state[0].take(windows), columns[0].take(taken)])
        return rows, values.take(pa.array(choice))


def _first_of_best(rank: Ints, owner: Ints, owners: int, greatest: bool) -> Ints:
    """The first row of the greatest (or the least) rank of each owner."""
    best = np.full(owners, _LEAST if greatest else _GREATEST)
    (np.maximum if greatest else np.minimum).at(best, owner, rank)
    rows = np.flatnonzero(rank == best[owner])[::-1]
    winner = np.empty(owners, dtype=np.int64)
    winner[owner[rows]] = rows  # of repeated owners the last assigned stays, the first row
    return winner


class FirstLastAccumulator:
    """The first or the last value in order of arrival."""

    def __init__(self, type: pa.DataType, ignore_nulls: bool, *, is_first: bool):
        self._is_first = is_first
        self._ignore_nulls = ignore_nulls
        self.types = (type, pa.bool_())

    def fresh(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, self.types[0]), zeros(n, pa.bool_())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        if self._ignore_nulls:
            columns, slot = present_rows(columns, slot)
        seen = integers(state[1]) != 0
        choice = np.arange(len(seen))
        rows = len(seen) + np.arange(len(slot))
        if self._is_first:
            fresh = ~seen[slot]
            choice[slot[fresh][::-1]] = rows[fresh][::-1]
        else:
            choice[slot] = rows
        seen = seen.copy()
        seen[slot] = True
        values = pa.concat_arrays([state[0], columns[0]])
        return [values.take(pa.array(choice)), pa.array(seen)]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        rows = np.arange(len(slot))
        if self._ignore_nulls:
            columns, rows = present_rows(columns, rows)
        if not self._is_first:
            return rows, columns[0]
        segments = Segments.of(slot[rows])
        old, seen = len(segments.starts), (integers(state[1]) != 0)[segments.windows]
        choice = np.where(seen, np.arange(old), old + segments.starts)
        values = pa.concat_arrays([state[0].take(pa.array(segments.windows)), columns[0]])
        return rows, values.take(pa.array(segments.spread(choice)))
