"""Counts, sums and averages of integers, doubles and decimals; bitwise operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.accumulators.columns import (
    Bools,
    Ints,
    column_of,
    decimals,
    floats,
    integers,
    present_rows,
    unscaled,
    valid,
    words,
)
from auroral.kernels.accumulators.segments import Segments, stepwise

State = Sequence[pa.Array]

_SAFE = 2**62
_PLACES = 39
"""Spark first rounds a quotient of decimals to this many digits after the point."""


def zeros(n: int, type: pa.DataType) -> pa.Array:
    return column_of(np.zeros(n, dtype=np.int64), None, type)


def _added_counts(counts: pa.Array, slot: Ints) -> pa.Array:
    return column_of(integers(counts) + np.bincount(slot, minlength=len(counts)), None, pa.int64())


class Count:
    """Rows without NULLs among the arguments."""

    types = (pa.int64(),)

    def fresh(self, n: int) -> list[pa.Array]:
        return [zeros(n, pa.int64())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        return [_added_counts(state[0], present_rows(columns, slot)[1])]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        rows = self._counted(columns, np.arange(len(slot)))
        segments = Segments.of(slot[rows])
        counts = segments.counts() + integers(state[0])[segments.slot]
        return rows, column_of(counts, None, pa.int64())

    def _counted(self, columns: State, rows: Ints) -> Ints:
        return present_rows(columns, rows)[1]


class CountIf(Count):
    """Rows whose argument is true."""

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        return [_added_counts(state[0], self._counted(columns, slot))]

    def _counted(self, columns: State, rows: Ints) -> Ints:
        counted: Ints = rows[integers(columns[0]) != 0]
        return counted


class IntegerSum:
    """The sum of integers, which wraps round; NULL if there are none."""

    types = (pa.int64(),)

    def fresh(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, pa.int64())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        seen = valid(state[0])
        total = np.where(seen, integers(state[0]), 0)
        np.add.at(total, slot, integers(column))
        return [column_of(total, _with(seen, slot), pa.int64())]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        (column,), rows = present_rows(columns, np.arange(len(slot)))
        segments = Segments.of(slot[rows])
        before = np.where(valid(state[0]), integers(state[0]), 0)[segments.windows]
        return rows, column_of(segments.totals(before, integers(column)), None, pa.int64())


class TryIntegerSum:
    """The sum of integers; once it overflows it stays NULL."""

    types = (pa.int64(), pa.bool_())

    def fresh(self, n: int) -> list[pa.Array]:
        return [zeros(n, pa.int64()), zeros(n, pa.bool_())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        fits, values = valid(state[0]), integers(column)
        total = np.where(fits, integers(state[0]), 0)
        greatest = np.abs(total.astype(float)).max(initial=0) if len(total) else 0
        if greatest + np.abs(values.astype(float)).sum() < 2.0**62:
            np.add.at(total, slot, values)
        else:
            for at, value in zip(slot.tolist(), values.tolist(), strict=True):
                added = int(total[at]) + value
                if -(2**63) <= added < 2**63:
                    total[at] = added if fits[at] else 0
                else:
                    fits[at] = False
        seen = _with(integers(state[1]) != 0, slot)
        return [column_of(total, fits, pa.int64()), pa.array(seen)]

    def final(self, state: State) -> pa.Array:
        present = valid(state[0]) & (integers(state[1]) != 0)
        return column_of(integers(state[0]), present, pa.int64())


class FloatSum:
    """The sum of doubles, added from left to right to 0.0; NULL if there are none."""

    types = (pa.float64(),)

    def fresh(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, pa.float64())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        seen = valid(state[0])
        total = np.where(seen, floats(state[0]), 0.0)
        with np.errstate(all="ignore"):
            np.add.at(total, slot, floats(column))
        return [column_of(total, _with(seen, slot), pa.float64())]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        (column,), rows = present_rows(columns, np.arange(len(slot)))
        segments = Segments.of(slot[rows])
        before = np.where(valid(state[0]), floats(state[0]), 0.0)[segments.windows]
        with np.errstate(all="ignore"):
            totals = segments.accumulated(np.add, before, floats(column))
        return rows, column_of(totals, None, pa.float64())


class Average:
    """The sum as a double, divided by the count."""

    types = (pa.float64(), pa.int64())

    def fresh(self, n: int) -> list[pa.Array]:
        return [zeros(n, pa.float64()), zeros(n, pa.int64())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        total = floats(state[0]).copy()
        with np.errstate(all="ignore"):
            np.add.at(total, slot, floats(column))
        return [column_of(total, None, pa.float64()), _added_counts(state[1], slot)]

    def final(self, state: State) -> pa.Array:
        counts = integers(state[1])
        with np.errstate(all="ignore"):
            return column_of(floats(state[0]) / counts, counts > 0, pa.float64())

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        (column,), rows = present_rows(columns, np.arange(len(slot)))
        segments = Segments.of(slot[rows])
        with np.errstate(all="ignore"):
            totals = segments.accumulated(
                np.add, floats(state[0])[segments.windows], floats(column)
            )
        counts = segments.counts() + integers(state[1])[segments.slot]
        after = [column_of(totals, None, pa.float64()), column_of(counts, None, pa.int64())]
        return rows, self.final(after)


class DecimalSum:
    """The exact sum of decimals; NULL if the final sum has too many digits.

    The state is (total, count, over): the sum is total + over · 10^digits. A sum of fewer than 38
    digits has ten more than its arguments, so `over` can differ from 0 only with 38 digits.
    """

    def __init__(self, of: pa.DataType):
        self._type = pa.decimal128(min(of.precision + 10, 38), of.scale)
        self._limit = 10**self._type.precision
        self.types = (self._type, pa.int64(), pa.int64())

    def fresh(self, n: int) -> list[pa.Array]:
        return [zeros(n, type) for type in self.types]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        counts = integers(state[1]) + np.bincount(slot, minlength=len(state[1]))
        added = self._narrow(state, column, slot)
        total, over = added if added is not None else self._wide(state, column, slot)
        return [total, column_of(counts, None, pa.int64()), over]

    def _narrow(
        self, state: State, column: pa.Array, slot: Ints
    ) -> tuple[pa.Array, pa.Array] | None:
        """The new totals by 64-bit arithmetic; None if it might overflow."""
        if not self._has_room(state, column):
            return None
        total = integers(state[0]).copy()
        np.add.at(total, slot, integers(column))
        return column_of(total, None, self._type), state[2]

    def _has_room(self, state: State, column: pa.Array) -> bool:
        """Whether no sum of the totals and these values can leave 64 bits, or the type."""
        totals, _, over = state
        if integers(over).any() or not _is_narrow(totals) or not _is_narrow(column):
            return False
        most = _greatest(integers(totals)) + len(column) * _greatest(integers(column))
        return bool(most < min(_SAFE, self._limit))

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        (column,), rows = present_rows(columns, np.arange(len(slot)))
        if not self._has_room(state, column):
            return rows, stepwise(self, state, [column], slot[rows])
        segments = Segments.of(slot[rows])
        totals = segments.totals(integers(state[0])[segments.windows], integers(column))
        counts = segments.counts() + integers(state[1])[segments.slot]
        after = [
            column_of(totals, None, self._type),
            column_of(counts, None, pa.int64()),
            zeros(len(rows), pa.int64()),
        ]
        return rows, self.final(after)

    def _wide(self, state: State, column: pa.Array, slot: Ints) -> tuple[pa.Array, pa.Array]:
        totals, over = state[0], integers(state[2]).copy()
        touched, local = np.unique(slot, return_inverse=True)
        old = zip(unscaled(totals.take(pa.array(touched))), over[touched].tolist(), strict=True)
        found = [total + times * self._limit for total, times in old]
        for at, value in zip(local.tolist(), unscaled(column), strict=True):
            found[at] += value
        # Round towards zero, so that `over` is 0 for all sums that fit the type.
        times = [abs(total) // self._limit * (-1 if total < 0 else 1) for total in found]
        rest = [total - many * self._limit for total, many in zip(found, times, strict=True)]
        over[touched] = times
        choice = np.arange(len(totals))
        choice[touched] = len(totals) + np.arange(len(touched))
        both = pa.concat_arrays([totals, decimals(rest, self._type)])
        return both.take(pa.array(choice)), column_of(over, None, pa.int64())

    def final(self, state: State) -> pa.Array:
        return pc.if_else(pa.array(_fits(state)), state[0], pa.scalar(None, self._type))


class DecimalAverage(DecimalSum):
    """The exact sum divided by the count, rounded half up."""

    def __init__(self, of: pa.DataType, returns: pa.DataType):
        super().__init__(of)
        self._returns = returns

    def final(self, state: State) -> pa.Array:
        counts, fits = integers(state[1]), _fits(state)
        quick = self._quick(integers(state[0]), counts) if _is_narrow(state[0]) else None
        if quick is not None:
            return column_of(quick, fits, self._returns)
        all_values = zip(unscaled(state[0]), counts.tolist(), fits.tolist(), strict=True)
        found = [self._quotient(total, n) if some else None for total, n, some in all_values]
        return decimals(found, self._returns)

    def _quick(self, total: Ints, counts: Ints) -> Ints | None:
        """All quotients by 64-bit arithmetic; None if it might overflow or rounds differently."""
        more = 10 ** (self._returns.scale - self._type.scale)
        most = 2 * _greatest(total) * more + _greatest(counts)
        if most >= min(_SAFE, 10**self._returns.precision) or self._returns.scale > 22:
            return None
        below = np.maximum(counts, 1)
        size: Ints = (2 * np.abs(total) * more + below) // (2 * below)
        return np.where(total < 0, -size, size)

    def _quotient(self, total: int, count: int) -> int | None:
        """Rounded to 39 places and then to the scale, as Spark does."""
        first = _half_up(total * 10 ** (_PLACES - self._type.scale), count)
        found = _half_up(first, 10 ** (_PLACES - self._returns.scale))
        return found if abs(found) < 10**self._returns.precision else None


def _fits(state: State) -> Bools:
    """Which windows have a sum that fits its type."""
    some: Bools = integers(state[1]) > 0
    within: Bools = integers(state[2]) == 0
    return some & within


def _greatest(values: Ints) -> int:
    """The greatest absolute value."""
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))


def _half_up(above: int, below: int) -> int:
    found = (2 * abs(above) + below) // (2 * below)
    return -found if above < 0 else found


def _is_narrow(column: pa.Array) -> bool:
    """Whether all unscaled values fit 64 bits."""
    if column.type.precision <= 18:
        return True
    low, high = words(column)
    return bool(((high == low >> 63) | ~valid(column)).all())


class Bits:
    """`bit_and`, `bit_or` and `bit_xor`; NULL if there are no values."""

    def __init__(self, name: str, type: pa.DataType):
        self.types = (type,)
        self._operation = getattr(np, f"bitwise_{name.removeprefix('bit_')}")
        self._start = -1 if name == "bit_and" else 0

    def fresh(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, self.types[0])]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        seen = valid(state[0])
        total = np.where(seen, integers(state[0]), self._start)
        self._operation.at(total, slot, integers(column))
        return [column_of(total, _with(seen, slot), self.types[0])]

    def final(self, state: State) -> pa.Array:
        return state[0]

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        (column,), rows = present_rows(columns, np.arange(len(slot)))
        segments = Segments.of(slot[rows])
        before = np.where(valid(state[0]), integers(state[0]), self._start)[segments.windows]
        found = segments.accumulated(self._operation, before, integers(column))
        return rows, column_of(found, None, self.types[0])


def _with(seen: Bools, slot: Ints) -> Bools:
    """`seen` with the windows of `slot` added."""
    found = seen.copy()
    found[slot] = True
    return found
