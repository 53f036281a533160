"""Counts, sums and averages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import (
    Bools,
    Ints,
    column_of,
    floats,
    integers,
    present_rows,
    valid,
)

State = Sequence[pa.Array]


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


class CountIf(Count):
    """Rows whose argument is true."""

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        return [_added_counts(state[0], slot[integers(columns[0]) != 0])]


class IntegerSum:
    """The sum of whole numbers, which wraps round; NULL before the first."""

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


class TryIntegerSum:
    """The sum of whole numbers, NULL for good once it does not fit."""

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
    """The sum of doubles from left to right, which starts at 0.0; NULL before the first."""

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


class Average:
    """The sum as doubles, by the count."""

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


class Bits:
    """`bit_and`, `bit_or` and `bit_xor`; NULL before the first."""

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


def _with(seen: Bools, slot: Ints) -> Bools:
    """What was seen before, and these."""
    found = seen.copy()
    found[slot] = True
    return found
