"""How often each bit of a bitmap's rows is set: a population count by position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_BYTES = 1 << 19
"""What one round of adders reads, at most: it has to stay in the cache."""
_LANES = np.uint64(0x0101010101010101)


def counts(words: Words) -> NDArray[np.int64]:
    """For each of the 64 · width bits of a row, in how many rows it is set.

    Carry-save adders (Harley and Seal) over sixteen slabs of rows at a time: five operations a
    word, where adding bit by bit would take 24.
    """
    rows, width = words.shape
    if rows < 256 or not width:
        return _by_lanes(words)
    slab = max(1, min(_BYTES // (width * 128), -(-rows // 64), rows // 16))
    planes = np.zeros((4, slab, width), np.uint64)
    rounds = rows // (16 * slab)
    sixteens = np.empty((rounds, slab, width), np.uint64)
    adders = _Adders(planes, np.empty((8, slab, width), np.uint64))
    for number in range(rounds):
        start = number * 16 * slab
        part = words[start : start + 16 * slab].reshape(16, slab, width)
        adders.sixteen(part, sixteens[number])
    total = counts(sixteens.reshape(rounds * slab, width)) << 4
    for weight in range(4):
        total += _by_lanes(planes[weight]) << weight
    total += _by_lanes(words[rounds * 16 * slab :])
    return total


class _Adders:
    """Ones, twos, fours and eights of what was added so far, one of each per bit of a slab."""

    def __init__(self, planes: Words, scratch: Words):
        self.ones, self.twos, self.fours, self.eights = planes
        self.scratch = scratch

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
