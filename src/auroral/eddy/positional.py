"""How often each bit of a bitmap's rows is set: a population count by position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_BYTES = 1 << 17
"""What one adder reads of each of its inputs, at most: all of them have to stay in the cache."""
_ROWS = 1 << 10
_LANES = np.uint64(0x0101010101010101)


def counts(words: Words) -> NDArray[np.int64]:
    """For each of the 64 · width bits of a row, in how many rows it is set."""
    rows, width = words.shape
    if rows < 256 or not width:
        return _by_lanes(words)
    counter = Counter(width, -(-rows // 64))
    counter.add(words)
    return counter.total()


class Counter:
    """The same of rows that come some at a time.

    Carry-save adders (Harley and Seal) over sixteen slabs of rows at a time: five operations a
    word, where adding bit by bit would take 24. What they carry is counted likewise.
    """

    def __init__(self, width: int, most: int = _ROWS):
        fitting = max(1, min(most, _ROWS, _BYTES // (max(width, 1) * 8)))
        self._slab = 1 << (fitting.bit_length() - 1)
        """Rows; a power of two, so that chunks of tuples are whole rounds."""
        self._adders = _Adders(self._slab, width)
        self._carried = np.empty((16, self._slab, width), np.uint64)
        """The sixteens of rounds that `_next` has not got yet."""
        self._waiting = 0
        self._next: Counter | None = None
        self._rest = np.zeros(width * 64, np.int64)

    def add(self, words: Words) -> None:
        """Count more rows; it goes best if they come in thousands."""
        slab, width = self._slab, words.shape[1]
        whole = len(words) // (16 * slab) * 16 * slab
        for start in range(0, whole, 16 * slab):
            slabs = words[start : start + 16 * slab].reshape(16, slab, width)
            self._adders.sixteen(slabs, self._carried[self._waiting])
            self._waiting += 1
            if self._waiting == 16:
                self._next = self._next or Counter(width, slab)
                self._next.add(self._carried.reshape(16 * slab, width))
                self._waiting = 0
        self._rest += _by_lanes(words[whole:])

    def total(self) -> NDArray[np.int64]:
        """The counts of all rows so far."""
        found = self._adders.total() + self._rest
        for carried in self._carried[: self._waiting]:
            found += _by_lanes(carried) << 4
        return found if self._next is None else found + (self._next.total() << 4)


class _Adders:
    """Ones, twos, fours and eights of what was added so far, one of each per bit of a slab."""

    def __init__(self, slab: int, width: int):
        self.planes = np.zeros((4, slab, width), np.uint64)
        self.ones, self.twos, self.fours, self.eights = self.planes
        self.scratch = np.empty((8, slab, width), np.uint64)

    def sixteen(self, slabs: Words, carry: Words) -> None:
        """Add sixteen slabs; `carry` takes the sixteens."""
        eights = self.scratch[6:8]
        for half in range(2):
            fours = self.scratch[4:6]
            for quarter in range(2):
                twos = self.scratch[2:4]
                for pair in range(2):
                    at = half * 8 + quarter * 4 + pair * 2
                    self._add(self.ones, slabs[at], slabs[at + 1], twos[pair])
                self._add(self.twos, twos[0], twos[1], fours[quarter])
            self._add(self.fours, fours[0], fours[1], eights[half])
        self._add(self.eights, eights[0], eights[1], carry)

    def _add(self, kept: Words, left: Words, right: Words, carry: Words) -> None:
        half, both = self.scratch[0], self.scratch[1]
        np.bitwise_xor(kept, left, out=half)
        np.bitwise_and(kept, left, out=both)
        np.bitwise_xor(half, right, out=kept)
        np.bitwise_and(half, right, out=half)
        np.bitwise_or(half, both, out=carry)

    def total(self) -> NDArray[np.int64]:
        """The counts of what was not carried."""
        found = _by_lanes(self.ones)
        for weight, plane in enumerate(self.planes[1:], 1):
            found += _by_lanes(plane) << weight
        return found


def _by_lanes(words: Words) -> NDArray[np.int64]:
    """Eight bits of a word at a time, each in a byte of its own, which overflows after 255 rows."""
    rows, width = words.shape
    total = np.zeros((width, 8, 8), np.int64)
    if not rows or not width:
        return total.reshape(width * 64)
    groups = -(-rows // 255)
    height = rows // groups
    part = words[: height * groups].reshape(height, groups * width)
    rest = words[height * groups :]
    for bit in range(8):
        shift = np.uint64(bit)
        lanes = ((part >> shift) & _LANES).sum(axis=0, dtype=np.uint64)
        total[:, :, bit] = (
            lanes.view(np.uint8).reshape(groups, width, 8).sum(axis=0, dtype=np.int64)
        )
        if len(rest):
            lanes = (rest >> shift) & _LANES
            total[:, :, bit] += (
                lanes.view(np.uint8).reshape(-1, width, 8).sum(axis=0, dtype=np.int64)
            )
    return total.reshape(width * 64)
