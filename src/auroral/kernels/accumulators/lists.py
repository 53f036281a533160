"""Accumulators that keep the values of all rows: DISTINCT, lists, sets, percentiles, modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import (
    Ints,
    codes,
    column_of,
    floats,
    one_zero,
    present_rows,
    ranks,
)
from auroral.kernels.accumulators.segments import stepwise
from auroral.kernels.accumulators.spec import Accumulator, RunningAccumulator

State = Sequence[pa.Array]


def empty_lists(n: int, type: pa.DataType) -> pa.Array:
    offsets = pa.array(np.zeros(n + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], type), type=pa.list_(type))


def lengths(lists: pa.Array) -> Ints:
    offsets: Ints = lists.offsets.to_numpy().astype(np.int64)
    return np.diff(offsets)


def owners(lists: pa.Array) -> Ints:
    """For each element the number of the list it is in."""
    return np.repeat(np.arange(len(lists)), lengths(lists))


def appended(lists: pa.Array, values: pa.Array, slot: Ints) -> pa.Array:
    """Append value i to list slot[i], in order of arrival."""
    if not len(values):
        return lists
    old, added = lengths(lists), np.bincount(slot, minlength=len(lists))
    order, elements = np.argsort(slot, kind="stable"), lists.flatten()
    ends = np.cumsum(old + added)
    starts = ends - old - added
    pick = np.empty(len(elements) + len(values), dtype=np.int64)
    pick[_spread(starts, old)] = np.arange(len(elements))
    pick[_spread(starts + old, added)] = len(elements) + order
    both = pa.concat_arrays([elements, values]).take(pa.array(pick))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, both, type=lists.type)


def _spread(starts: Ints, sizes: Ints) -> Ints:
    """The numbers start, start + 1, … for each start, as many as its size."""
    found: Ints = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return found + np.arange(len(found))


class CollectAccumulator:
    """`collect_list`, and `collect_set` in order of first appearance; NULLs are left out."""

    def __init__(self, type: pa.DataType, returns: pa.DataType, once: bool = False):
        self.types = (pa.list_(type),)
        self._returns = returns
        self._once = once

    def fresh(self, n: int) -> list[pa.Array]:
        return [empty_lists(n, self.types[0].value_type)]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        if self._once:
            column, slot = unseen(state[0], one_zero(column), slot)
        return [appended(state[0], column, slot)]

    def final(self, state: State) -> pa.Array:
        lists = state[0]
        offsets = pa.array(lists.offsets.to_numpy() - lists.offsets[0].as_py())
        return pa.ListArray.from_arrays(offsets, lists.flatten(), type=self._returns)


class Percentile(CollectAccumulator):
    """Percentiles by linear interpolation, of doubles."""

    def __init__(self, fractions: Any, returns: pa.DataType):
        super().__init__(pa.float64(), returns)
        self._fractions = fractions

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        return [appended(state[0], column_of(floats(column), None, pa.float64()), slot)]

    def final(self, state: State) -> pa.Array:
        (lists,) = state
        values, sizes = floats(lists.flatten()), lengths(lists)
        values = values[np.lexsort((values, owners(lists)))]
        starts, some = np.cumsum(sizes) - sizes, sizes > 0
        several = isinstance(self._fractions, tuple)
        fractions = self._fractions if several else (self._fractions,)
        found = [_interpolated(values, starts[some], sizes[some], each) for each in fractions]
        if not several:
            return _placed(found[0], some)
        flat = column_of(np.stack(found, axis=1).reshape(-1), None, pa.float64())
        ends = np.cumsum(np.where(some, len(fractions), 0))
        offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
        mask = pa.array(~some)
        return pa.ListArray.from_arrays(offsets, flat, type=self._returns, mask=mask)


def _interpolated(values: Any, starts: Ints, sizes: Ints, fraction: float) -> Any:
    position = (sizes - 1) * fraction
    lower, higher = np.floor(position), np.ceil(position)
    low = values[starts + lower.astype(np.int64)]
    high = values[starts + higher.astype(np.int64)]
    with np.errstate(all="ignore"):
        between = (higher - position) * low + (position - lower) * high
    return np.where((lower == higher) | (low == high), low, between)


def _placed(values: Any, some: Any) -> pa.Array:
    full = np.zeros(len(some))
    full[some] = values
    return column_of(full, some, pa.float64())


class Mode(CollectAccumulator):
    """The most frequent value; the least one if several are equally frequent."""

    def __init__(self, type: pa.DataType):
        super().__init__(type, type)

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        return [appended(state[0], one_zero(column), slot)]

    def final(self, state: State) -> pa.Array:
        (lists,) = state
        values, owner = lists.flatten(), owners(lists)
        if not len(values):
            return pa.nulls(len(lists), self._returns)
        rank = np.unique(ranks(values), return_inverse=True)[1]
        key = owner * (int(rank.max()) + 1) + rank
        _, first, count = np.unique(key, return_index=True, return_counts=True)
        order = np.lexsort((rank[first], -count, owner[first]))
        best = first[order]
        choice = np.full(len(lists), -1)
        choice[owner[best][::-1]] = best[::-1]
        return values.take(pa.array(choice, mask=choice < 0))


def unseen(lists: pa.Array, values: pa.Array, slot: Ints) -> tuple[pa.Array, Ints]:
    """The rows whose value is neither in their list yet nor in an earlier row for the same list."""
    rows = unseen_rows(lists, values, slot)
    return values.take(pa.array(rows)), slot[rows]


def unseen_rows(lists: pa.Array, values: pa.Array, slot: Ints) -> Ints:
    """The numbers of these rows."""
    if not len(values):
        return np.zeros(0, np.int64)
    touched, local = np.unique(slot, return_inverse=True)
    old = lists.take(pa.array(touched))
    both = pa.concat_arrays([old.flatten(), values])
    owner = np.concatenate((owners(old), local))
    code = codes(both.flatten() if pa.types.is_struct(both.type) else [both])
    _, first = np.unique(owner * (int(code.max()) + 1) + code, return_index=True)
    return np.sort(first[first >= len(both) - len(values)]) - (len(both) - len(values))


class Distinct:
    """Apply another accumulator to each distinct combination of arguments, by first appearance."""

    def __init__(self, inner: Accumulator, arguments: Sequence[pa.DataType]):
        self._inner = inner
        self._element = pa.struct([(f"a{at}", type) for at, type in enumerate(arguments)])
        self.types = (pa.list_(self._element),)

    def fresh(self, n: int) -> list[pa.Array]:
        return [empty_lists(n, self._element)]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        return [appended(state[0], *unseen(state[0], self._elements(columns), slot))]

    def final(self, state: State) -> pa.Array:
        return self._inner.final(self._folded(state[0]))

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        elements = self._elements(columns)
        rows = unseen_rows(state[0], elements, slot)
        new = elements.take(pa.array(rows)).flatten()
        before, where = self._folded(state[0]), slot[rows]
        if not isinstance(self._inner, RunningAccumulator):
            return rows, stepwise(self._inner, before, new, where)
        changing, values = self._inner.running(before, new, where)
        return rows[changing], values

    def _elements(self, columns: State) -> pa.Array:
        return pa.StructArray.from_arrays(
            [one_zero(column) for column in columns], fields=list(self._element)
        )

    def _folded(self, lists: pa.Array) -> list[pa.Array]:
        """The state of the inner accumulator."""
        start = self._inner.fresh(len(lists))
        return self._inner.fold(start, lists.flatten().flatten(), owners(lists))
