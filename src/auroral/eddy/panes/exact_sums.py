"""Exact sums and averages of doubles, which do not depend on the order of addition.

A sum is kept exactly, as a whole number of the least double (2^-1074) in limbs of 32 bits, and
rounded once, at the end. So partial sums can be merged in any order and give the same to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.kernels.accumulators.columns import (
    Floats,
    Ints,
    column_of,
    floats,
    integers,
    present_rows,
)
from auroral.kernels.accumulators.sums import zeros

State = Sequence[pa.Array]

_LIMB = 32
_MASK = np.int64(2**_LIMB - 1)
_LEAST = -1074
"""The power of two of the least double."""
_AT_ONCE = 16_384
_NAN, _UP, _DOWN = 1, 2, 4
"""Bits for the values that are not finite: NaN, infinity, minus infinity."""


@dataclass
class Limbs:
    """Whole numbers: number i is the sum of values[j, i] · 2^(32 (base + j))."""

    base: int
    values: Ints
    """int64[limbs, numbers]; of size 2^32 at most."""

    @staticmethod
    def zero(n: int) -> Limbs:
        return Limbs(0, np.zeros((0, n), np.int64))

    @staticmethod
    def summed(values: Floats, slot: Ints, n: int) -> Limbs:
        """Add up doubles in n numbers."""
        size = np.abs(values)
        some = size[size > 0]
        if not len(some):
            return Limbs.zero(n)
        least, most = (
            int(_place(bound.view(np.int64)[()]) >> 5) for bound in (some.min(), some.max())
        )
        height = most - least + 4
        total = np.zeros(height * n, np.int64)
        for at in range(0, len(values), _AT_ONCE):  # what the cache holds
            bits = values[at : at + _AT_ONCE].view(np.int64)
            place = _place(bits)
            mantissa = bits & (2**52 - 1)
            mantissa[bits << 1 >> 53 != 0] |= 2**52
            mantissa[bits < 0] *= -1
            index = np.maximum((place >> 5) - least, 0) * n + slot[at : at + _AT_ONCE]
            place &= 31
            low, high = (mantissa & _MASK) << place, (mantissa >> _LIMB) << place
            np.add.at(total, index, low & _MASK)
            index += n
            np.add.at(total, index, (low >> _LIMB) + (high & _MASK))
            index += n
            np.add.at(total, index, high >> _LIMB)
        return Limbs(least, total.reshape(height, n)).normal()

    def normal(self) -> Limbs:
        """Carry between limbs, and drop limbs that are zero or only repeat the sign."""
        values, base = self.values, self.base
        _carry(values)
        top = len(values)
        while top > 1 and (values[top - 1] == values[top - 1] >> 63).all():
            values[top - 2] += values[top - 1] << _LIMB
            top -= 1
        bottom = 0
        while bottom < top and not values[bottom].any():
            bottom += 1
        return Limbs(base + bottom, values[bottom:top])

    def merged(self, row: Ints, slot: Ints, n: int) -> Limbs:
        """Add up numbers: number row[i] goes to slot[i] of n."""
        total = np.zeros((len(self.values) + 1, n), np.int64)
        for limb, sums in zip(self.values, total, strict=False):
            np.add.at(sums, slot, limb[row])
        return Limbs(self.base, total).normal()

    def plus(self, other: Limbs) -> Limbs:
        """The sums of numbers."""
        base = min(self.base, other.base)
        top = max(one.base + len(one.values) for one in (self, other))
        total = np.zeros((top - base + 1, self.values.shape[1]), np.int64)
        for one in (self, other):
            total[one.base - base : one.base - base + len(one.values)] += one.values
        return Limbs(base, total).normal()

    def rounded(self) -> Floats:
        """The nearest doubles, half to even; infinite beyond the greatest."""
        n = self.values.shape[1]
        if not len(self.values):
            return np.zeros(n)
        # Three zero limbs below, two above: all that is looked at is there.
        size = np.zeros((len(self.values) + 5, n), np.int64)
        size[3:-2] = self.values
        _carry(size)
        negative = size[-1] < 0
        size = np.where(negative, -size, size)
        _carry(size)
        some = size != 0
        high = len(size) - 1 - np.argmax(some[::-1], axis=0)
        high = np.maximum(high, 3)
        at = np.arange(n)
        first, second, third = (size[high - k, at].astype(np.uint64) for k in range(3))
        below = np.cumsum(some, axis=0)[high - 3, at] > 0
        room = np.uint64(_LIMB) - np.frexp(first.astype(np.float64))[1].astype(np.uint64)
        word = ((first << np.uint64(_LIMB)) | second) << room
        word |= third >> (np.uint64(_LIMB) - room)
        below |= (third << room) & np.uint64(_MASK) != 0
        word |= below.astype(np.uint64)
        power = _LIMB * (self.base + high - 3 - 1) + _LEAST - room.astype(np.int64)
        with np.errstate(over="ignore"):
            found: Floats = np.ldexp(word.astype(np.float64), power)
        return np.where(negative, -found, found)


class ExactSum:
    """The exact sum of doubles, rounded once at the end; NULL if there are none."""

    types = (pa.int32(), pa.list_(pa.int64()), pa.int8(), pa.int64())
    """The limbs' base, the limbs, what is not finite, the count."""

    def fresh(self, n: int) -> list[pa.Array]:
        return [*_columns(Limbs.zero(n)), zeros(n, pa.int8()), zeros(n, pa.int64())]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        (column,), slot = present_rows(columns, slot)
        values, kept = floats(column), slot
        odd = np.zeros(len(state[0]), np.int8)
        finite = np.isfinite(values)
        if not finite.all():
            kinds = np.where(np.isnan(values), _NAN, np.where(values > 0, _UP, _DOWN))
            np.bitwise_or.at(odd, slot[~finite], kinds[~finite].astype(np.int8))
        n = len(state[0])
        if not finite.all():
            values, kept = values[finite], slot[finite]
        total = Limbs.summed(values, kept, n)
        if integers(state[3]).any():
            total = total.plus(_limbs(state))
        counts = integers(state[3]) + np.bincount(slot, minlength=n)
        return _state(total, odd | _odd(state), counts)

    def merge(self, state: State, row: Ints, slot: Ints, n: int) -> list[pa.Array]:
        """Add up states: state row[i] goes to slot[i] of n."""
        odd, counts = np.zeros(n, np.int8), np.zeros(n, np.int64)
        if _odd(state).any():
            np.bitwise_or.at(odd, slot, _odd(state)[row])
        np.add.at(counts, slot, integers(state[3])[row])
        return _state(_limbs(state).merged(row, slot, n), odd, counts)

    def final(self, state: State) -> pa.Array:
        return column_of(self._totals(state), integers(state[3]) > 0, pa.float64())

    def _totals(self, state: State) -> Floats:
        total = _limbs(state).rounded()
        odd = _odd(state)
        if odd.any():
            total = np.where(odd == _UP, np.inf, np.where(odd == _DOWN, -np.inf, total))
            total = np.where((odd & _NAN != 0) | (odd == _UP | _DOWN), np.nan, total)
        return total


class ExactAverage(ExactSum):
    """The exact sum, rounded, divided by the count."""

    def final(self, state: State) -> pa.Array:
        counts = integers(state[3])
        with np.errstate(all="ignore"):
            return column_of(self._totals(state) / counts, counts > 0, pa.float64())


def _carry(values: Ints) -> None:
    """Carry what exceeds 32 bits to the next limb; the last limb keeps the sign."""
    for j in range(len(values) - 1):
        values[j + 1] += values[j] >> _LIMB
        values[j] &= _MASK


def _place(bits: Any) -> Any:
    """The exponent of each double's last mantissa bit, relative to the least double."""
    return np.maximum(((bits >> 52) & 2047) - 1, 0)


def _limbs(state: State) -> Limbs:
    """The sums of a state."""
    lists = state[1]
    n, bases = len(lists), integers(state[0])
    ends = lists.offsets.to_numpy().astype(np.int64)
    lengths = np.diff(ends)
    some = lengths > 0
    if not some.any():
        return Limbs.zero(n)
    base = int(bases[some].min())
    total = np.zeros((int((bases + lengths)[some].max()) - base, n), np.int64)
    owner = np.repeat(np.arange(n), lengths)
    within = np.arange(len(owner)) - np.repeat(ends[:-1] - ends[0], lengths)
    total[bases[owner] - base + within, owner] = integers(lists.flatten())
    return Limbs(base, total)


def _state(limbs: Limbs, odd: npt.NDArray[np.int8], counts: Ints) -> list[pa.Array]:
    return [*_columns(limbs), pa.array(odd), column_of(counts, None, pa.int64())]


def _columns(limbs: Limbs) -> list[pa.Array]:
    height, n = limbs.values.shape
    offsets = pa.array(np.arange(n + 1, dtype=np.int32) * np.int32(height))
    flat = pa.array(np.ascontiguousarray(limbs.values.T).ravel())
    return [
        pa.array(np.full(n, limbs.base, np.int32)),
        pa.ListArray.from_arrays(offsets, flat, type=pa.list_(pa.int64())),
    ]


def _odd(state: State) -> npt.NDArray[np.int8]:
    return integers(state[2]).astype(np.int8)
