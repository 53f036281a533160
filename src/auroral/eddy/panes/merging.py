"""Aggregates whose partial results can be merged.

Merging partial results in any order and grouping gives the same result to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from auroral.continuous.sharing.aggregate_reading import SharedCall
from auroral.eddy.panes.exact_sums import ExactAverage, ExactSum
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.kernels.accumulators.choice import extreme
from auroral.kernels.accumulators.columns import (
    Ints,
    column_of,
    decimals,
    integers,
    is_decimal,
    unscaled,
    whole,
)
from auroral.kernels.accumulators.spec import Accumulator, CallSpec
from auroral.kernels.accumulators.sums import (
    Bits,
    Count,
    CountIf,
    DecimalAverage,
    DecimalSum,
    IntegerSum,
)
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS, AccumulatorKind

State = Sequence[pa.Array]


class Mergeable(Accumulator, Protocol):
    """An accumulator whose states can be merged."""

    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        """The states of n windows: merge state row[i] into window slot[i]."""


class _Counted(Count):
    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        return [_summed(state[0], row, slot, n)]


class _CountedIf(CountIf):
    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        return [_summed(state[0], row, slot, n)]


class _Folded:
    """An accumulator whose state can be folded like an argument: it is a value, NULL if empty."""

    def __init__(self, inner: Accumulator):
        self._inner = inner
        self.types = inner.types
        self.fresh, self.fold, self.final = inner.fresh, inner.fold, inner.final

    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        return self._inner.fold(self._inner.fresh(n), [state[0].take(pa.array(row))], slot)


class _DecimalSummed(DecimalSum):
    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        return _merged_decimals(self, state, row, slot, n)


class _DecimalAveraged(DecimalAverage):
    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        return _merged_decimals(self, state, row, slot, n)


def _merged_decimals(
    sums: DecimalSum, state: State, row: Ints, slot: Ints, n: int
) -> list[pa.Array]:
    total, _, over = sums.fold(sums.fresh(n), [state[0].take(pa.array(row))], slot)
    counts, times = _summed(state[1], row, slot, n), _summed(state[2], row, slot, n)
    if integers(times).any() or integers(over).any():
        total, over = _normal(total, integers(over) + integers(times))
    return [total, counts, over]


def _normal(total: pa.Array, over: Ints) -> tuple[pa.Array, pa.Array]:
    """Normalise sums of total + over · 10^digits, so that `over` is 0 for all that fit."""
    limit = 10**total.type.precision
    exact = [t + o * limit for t, o in zip(unscaled(total), over.tolist(), strict=True)]
    times = [abs(value) // limit * (-1 if value < 0 else 1) for value in exact]
    rest = [value - many * limit for value, many in zip(exact, times, strict=True)]
    return decimals(rest, total.type), pa.array(times, pa.int64())


def _summed(column: pa.Array, row: Ints, slot: Ints, n: int) -> pa.Array:
    total = np.zeros(n, np.int64)
    np.add.at(total, slot, integers(column)[row])
    return column_of(total, None, pa.int64())


def _sum(spec: CallSpec) -> Mergeable:
    (of,) = spec.arguments
    if is_decimal(of):
        return _DecimalSummed(of)
    return _Folded(IntegerSum()) if pa.types.is_integer(of) else ExactSum()


def _average(spec: CallSpec) -> Mergeable:
    (of,) = spec.arguments
    return _DecimalAveraged(of, spec.returns) if is_decimal(of) else ExactAverage()


MERGEABLE_MAKERS: Mapping[AccumulatorKind, Callable[[CallSpec], Mergeable]] = {
    "count": lambda _: _Counted(),
    "count_if": lambda _: _CountedIf(),
    "sum": _sum,
    "try_sum": _sum,
    "average": _average,
    "least": lambda spec: _Folded(extreme(spec, greatest=False)),
    "greatest": lambda spec: _Folded(extreme(spec, greatest=True)),
    "bits": lambda spec: _Folded(Bits(spec.name, spec.arguments[0])),
}
"""What makes the accumulator of a call, by kind, for functions that the table says can merge."""


@dataclass(frozen=True)
class _One:
    """A call, what accumulates it, and the columns of its state."""

    call: SharedCall
    accumulator: Mergeable
    names: tuple[str, ...]


class Partials:
    """Several calls side by side; a state is a column for each name of `fields`."""

    def __init__(self, calls: Sequence[SharedCall]):
        self._each = [_one(call) for call in calls]

    def fields(self) -> list[pa.Field]:
        """The columns of a state."""
        return [
            pa.field(name, type)
            for one in self._each
            for name, type in zip(one.names, one.accumulator.types, strict=True)
        ]

    def returns(self) -> list[pa.Field]:
        """The results, called by the names of the calls."""
        return [pa.field(one.call.name, one.call.call.type.arrow()) for one in self._each]

    def loaded(self, columns: Mapping[str, pa.Array], n: int) -> dict[str, pa.Array]:
        """States stored before the calls changed; calls that are new begin with empty states."""
        found: dict[str, pa.Array] = {}
        for one in self._each:
            if not all(name in columns for name in one.names):
                found.update(zip(one.names, one.accumulator.fresh(n), strict=True))
            else:
                found |= {name: whole(columns[name]) for name in one.names}
        return found

    def fold(self, tuples: TupleColumns, slot: Ints, n: int) -> dict[str, pa.Array]:
        """The states of n windows that hold these tuples: row i is in window slot[i]."""
        found: dict[str, pa.Array] = {}
        for one in self._each:
            columns = [tuples.evaluate(argument).values for argument in one.call.arguments]
            kept, own = slot, one.accumulator
            if one.call.call.where is not None:
                mask = integers(columns.pop()) != 0
                columns = [column.filter(pa.array(mask)) for column in columns]
                kept = slot[mask]
            state = own.fresh(n)
            state = own.fold(state, columns, kept) if len(kept) else state
            found.update(zip(one.names, state, strict=True))
        return found

    def merge(
        self, state: Mapping[str, pa.Array], row: Ints, slot: Ints, n: int
    ) -> dict[str, pa.Array]:
        """The states of n windows: merge state row[i] into window slot[i]."""
        found: dict[str, pa.Array] = {}
        for one in self._each:
            own = [state[name] for name in one.names]
            found.update(zip(one.names, one.accumulator.merge(own, row, slot, n), strict=True))
        return found

    def final(self, state: Mapping[str, pa.Array]) -> list[pa.Array]:
        """One column per call."""
        return [one.accumulator.final([state[name] for name in one.names]) for one in self._each]


def _one(call: SharedCall) -> _One:
    maker = MERGEABLE_MAKERS[AGGREGATE_FUNCTIONS[call.call.name].accumulator]
    accumulator = maker(CallSpec.of(call.call))
    names = tuple(f"{call.name}_{at}" for at in range(len(accumulator.types)))
    return _One(call, accumulator, names)
