"""Bitmaps of queries: blocks of lineage, and masks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Pairs = NDArray[np.int64]
"""Row and id as one number, row first, so that sorting sorts by row and then by id."""

_TELLING = 16
_STEP = 1 << 22
"""How many words of a bitmap are unpacked at a time."""


@dataclass(frozen=True)
class BitmapBlock:
    """Some queries as a bitmap: a row per tuple, a bit per query."""

    ids: Ids
    bits: NDArray[np.uint8]
    """uint8[rows, ceil(k / 8)]; query j is bit j & 7 of byte j >> 3, bits past the last are 0."""
    padded: NDArray[np.uint64] | None = field(default=None, repr=False, compare=False)
    """The same bits in whole words, if they are at hand; see `words`."""

    @staticmethod
    def of_words(ids: Ids, words: NDArray[np.uint64]) -> BitmapBlock:
        """From uint64[rows, ceil(k / 64)], C-contiguous, whose bits past the last are 0."""
        return BitmapBlock(ids, words.view(np.uint8)[:, : -(-len(ids) // 8)], words)

    @property
    def words(self) -> NDArray[np.uint64]:
        """uint64[rows, ceil(k / 64)]; a copy unless the width in bytes allows a view."""
        if self.padded is not None:
            return self.padded
        rows, width = self.bits.shape
        if width % 8 == 0 and self.bits.flags.c_contiguous:
            return self.bits.view(np.uint64)
        padded = np.zeros((rows, -(-width // 8) * 8), np.uint8)
        padded[:, :width] = self.bits
        return padded.view(np.uint64)

    def pairs(self) -> Pairs:
        """Every set bit, by rows; within a row in the order of `ids`."""
        words = self.words
        ids = np.zeros(words.shape[1] * 64, np.int64)
        ids[: len(self.ids)] = self.ids
        found: list[Pairs] = []
        step = max(1, _STEP // max(1, words.shape[1]))
        for start in range(0, len(words), step):
            row, bit = set_bits(words[start : start + step])
            found.append(((row + start) << 32) | ids[bit])
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return BitmapBlock, (self.ids, np.ascontiguousarray(self.bits))


def set_bits(words: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and number of every bit that is set, in order."""
    used = np.flatnonzero(words)
    row, column = np.divmod(used, words.shape[1])
    bytes_ = words.reshape(-1)[used].view(np.uint8)
    at = np.flatnonzero(np.unpackbits(bytes_, bitorder="little").view(bool))
    word = at >> 6
    return row[word], (column << 6)[word] | (at & 63)


@dataclass(frozen=True)
class BitmapSelection:
    """A subset of the queries of a bitmap, used to select rows."""

    mask: NDArray[np.uint64]
    order: tuple[int, ...]
    """The words it has bits in; those with few bits, which tell little, come last."""

    @staticmethod
    def of(mask: NDArray[np.uint64]) -> BitmapSelection:
        used = np.flatnonzero(mask)
        used = used[np.argsort(np.bitwise_count(mask[used]) < _TELLING, kind="stable")]
        return BitmapSelection(mask, tuple(used.tolist()))

    def any_bit(self, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which rows have one of the bits set.

        Most rows have such a bit in the first words, so only the others are read further.
        """
        if not self.order:
            return np.zeros(len(words), bool)
        found: NDArray[np.bool_] = (words[:, self.order[0]] & self.mask[self.order[0]]) != 0
        if len(self.order) == 1 or found.all():
            return found
        left = np.flatnonzero(~found)
        at = 1
        while at < len(self.order) and len(left):
            some = self.order[at : at + (1 if at < 8 else 16)]
            at += len(some)
            if len(some) == 1:
                hit = (words[left, some[0]] & self.mask[some[0]]) != 0
            else:
                hit = (words[left[:, None], some] & self.mask[list(some)]).any(axis=1)
            found[left[hit]] = True
            left = left[~hit]
        return found


def any_bit(words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which rows have a bit set."""
    return BitmapSelection.of(np.full(words.shape[1], ~np.uint64(0))).any_bit(words)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different values, ascending; by sorting, which is several times faster than hashing."""
    if len(values) < 2:
        return values
    values = np.sort(values)
    fresh = np.empty(len(values), bool)
    fresh[0] = True
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    return values if fresh.all() else values[fresh]


def mask_of(kept: NDArray[np.bool_], width: int) -> NDArray[np.uint64]:
    """A mask as the bits of one row of `width` words."""
    padded = np.zeros(width * 64, bool)
    padded[: len(kept)] = kept
    return np.packbits(padded, bitorder="little").view(np.uint64)
