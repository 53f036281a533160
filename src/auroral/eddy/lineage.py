"""Lineage: which queries each tuple may still satisfy (Madden et al. 2002, section 2.2).

Queries that many tuples satisfy are kept as bitmaps, the others as lists of ids.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from auroral.eddy import positional
from auroral.eddy.bitmap import BitmapBlock, BitmapSelection, Ids, Pairs, any_bit, distinct, mask_of

__all__ = ["BitmapBlock", "Lineage"]

Offsets = NDArray[np.int64]

_ARROW_BYTES = 1 << 30
"""A column's values in one batch: its offsets have 32 bits."""


@dataclass(frozen=True)
class Lineage:
    """For each of `rows` tuples the ids of the queries of one kind it may still satisfy."""

    rows: int
    blocks: tuple[BitmapBlock, ...]
    offsets: Offsets
    """int64[rows + 1]: the ids outside blocks of row r are ids[offsets[r] : offsets[r + 1]]."""
    ids: Ids
    """Ascending within a row, and none of them in a block."""

    @staticmethod
    def none(rows: int) -> Lineage:
        """No tuple satisfies anything."""
        return Lineage(rows, (), np.zeros(rows + 1, np.int64), np.empty(0, np.int32))

    @staticmethod
    def from_pairs(rows: int, row_index: NDArray[np.integer[Any]], ids: Ids) -> Lineage:
        """From (row, id) pairs in any order; repeated pairs count once."""
        pairs = (row_index.astype(np.int64) << 32) | ids
        if len(pairs) and not (pairs[1:] > pairs[:-1]).all():
            pairs = distinct(pairs)
        return _sparse(rows, (), pairs)

    @staticmethod
    def from_dense(ids: Ids, matrix: NDArray[np.bool_]) -> Lineage:
        """From a bool[rows, len(ids)] matrix."""
        bits = np.packbits(matrix, axis=1, bitorder="little")
        block = BitmapBlock(np.asarray(ids, np.int32), bits)
        return Lineage(len(matrix), (block,), np.zeros(len(matrix) + 1, np.int64), _NO_IDS)

    def alive(self) -> NDArray[np.bool_]:
        """Which tuples have a query left."""
        alive = np.diff(self.offsets) > 0
        for block in self.blocks:
            alive |= any_bit(block.words)
        return alive

    def touching(self, ids: Ids) -> NDArray[np.bool_]:
        """Which tuples have one of those queries left."""
        found = np.zeros(self.rows, bool)
        for block in self.blocks:
            mine = np.isin(block.ids, ids)
            if mine.any():
                words = block.words
                found |= BitmapSelection.of(mask_of(mine, words.shape[1])).any_bit(words)
        rows = _pairs(self.offsets, self.ids) >> 32
        found[rows[np.isin(self.ids, ids)]] = True
        return found

    def take(self, indices: NDArray[np.integer[Any]]) -> Lineage:
        """Rows by index, also more than once."""
        blocks = tuple(
            BitmapBlock.of_words(b.ids, b.words.take(indices, axis=0)) for b in self.blocks
        )
        starts = self.offsets[indices]
        offsets = _offsets(self.offsets[1:][indices] - starts)
        at = np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
        return Lineage(len(indices), blocks, offsets, self.ids[at])

    def counts(self) -> tuple[Ids, NDArray[np.int64]]:
        """How many tuples may satisfy each query, ascending by id; those with none are left out."""
        ids = [block.ids for block in self.blocks]
        counts = [positional.counts(b.words)[: len(b.ids)] for b in self.blocks]
        listed, often = np.unique(self.ids, return_counts=True)
        all_ids = np.concatenate([*ids, listed])
        all_counts = np.concatenate([*counts, often])
        used = np.flatnonzero(all_counts)
        used = used[np.argsort(all_ids[used], kind="stable")]
        return all_ids[used], all_counts[used]

    def lists(self) -> tuple[Offsets, Ids]:
        """All ids of each row, ascending, as offsets and ids."""
        if not self.blocks:
            return self.offsets, self.ids
        whole = _sparse(self.rows, (), self.pairs())
        return whole.offsets, whole.ids

    def pairs(self) -> Pairs:
        """Every (row, id) there is, ascending."""
        parts = [block.pairs() for block in self.blocks]
        if len(self.ids) or not parts:
            parts.append(_pairs(self.offsets, self.ids))
        if len(parts) == 1 and (not self.blocks or _ascending(self.blocks[0].ids)):
            return parts[0]
        pairs = np.concatenate(parts)
        pairs.sort()
        return pairs

    def intersect(self, other: Lineage) -> Lineage:
        """The queries both have, row by row."""
        blocks: list[BitmapBlock] = []
        mine, theirs = list(self.blocks), list(other.blocks)
        for block in self.blocks:
            for twin in theirs:
                if block.ids is twin.ids or np.array_equal(block.ids, twin.ids):
                    blocks.append(BitmapBlock.of_words(block.ids, block.words & twin.words))
                    mine = [b for b in mine if b is not block]
                    theirs = [b for b in theirs if b is not twin]
                    break
        left = Lineage(self.rows, tuple(mine), self.offsets, self.ids).pairs()
        right = Lineage(other.rows, tuple(theirs), other.offsets, other.ids).pairs()
        both = np.intersect1d(left, right, assume_unique=True)
        return _sparse(self.rows, tuple(blocks), both)

    def without(self, ids: Ids) -> Lineage:
        """Without those queries."""
        blocks: list[BitmapBlock] = []
        for block in self.blocks:
            kept = ~np.isin(block.ids, ids)
            if kept.all():
                blocks.append(block)
            elif kept.any():
                words = block.words
                blocks.append(
                    BitmapBlock.of_words(block.ids, words & mask_of(kept, words.shape[1]))
                )
        kept = ~np.isin(self.ids, ids)
        if kept.all():
            return Lineage(self.rows, tuple(blocks), self.offsets, self.ids)
        pairs = _pairs(self.offsets, self.ids)[kept]
        return _sparse(self.rows, tuple(blocks), pairs)

    def smaller(self) -> Lineage:
        """The same as bitmaps or lists, whichever takes fewer bytes."""
        blocks: list[BitmapBlock] = []
        lists = [_pairs(self.offsets, self.ids)]
        for block in self.blocks:
            counts = positional.counts(block.words)[: len(block.ids)]
            used = np.flatnonzero(counts)
            if int(counts.sum()) * 4 < self.rows * -(-len(used) // 8) + 4 * len(used):
                lists.append(block.pairs())
            elif len(used) <= len(block.ids) * 7 // 8:
                blocks.append(_dense(self.rows, block.pairs()))
            elif len(used):
                blocks.append(block)
        pairs = np.concatenate(lists)
        if len(lists) > 1:
            pairs.sort()
        ids = distinct(pairs & 0x7FFFFFFF)
        if self.rows * -(-len(ids) // 8) + 4 * len(ids) < len(pairs) * 4:
            blocks.append(_dense(self.rows, pairs))
            pairs = pairs[:0]
        return _sparse(self.rows, tuple(blocks), pairs)

    def to_arrow(self) -> pa.Table:
        """Columns `_ids` and `_bits`, the bits' ids in the schema's metadata; see `from_arrow`."""
        bits = np.concatenate(
            [np.empty((self.rows, 0), np.uint8), *(b.bits for b in self.blocks)], axis=1
        )
        # Blocks end on whole bytes: -1 stands for the bits no query has.
        ids = [np.append(b.ids, np.full(-len(b.ids) % 8, -1, np.int32)) for b in self.blocks]
        metadata = {b"ids": np.concatenate([_NO_IDS, *ids]).astype("<i4").tobytes()}
        schema = pa.schema([("_ids", pa.list_(pa.int32())), ("_bits", pa.binary())], metadata)
        per_row = (bits.nbytes + self.ids.nbytes) // max(1, self.rows) + 1
        longest = int(np.diff(self.offsets).max(initial=0)) * 4 + bits.shape[1] + 1
        step = max(1, _ARROW_BYTES // max(per_row, longest))
        batches = [
            _batch(self, bits[at : at + step], at, schema) for at in range(0, self.rows, step)
        ]
        return pa.Table.from_batches(batches, schema)

    @staticmethod
    def from_arrow(table: pa.Table) -> Lineage:
        """Read what `to_arrow` gave; further columns do not matter."""
        stored = (table.schema.metadata or {}).get(b"ids", b"")
        ids = np.frombuffer(stored, "<i4").astype(np.int32)
        width = len(ids) // 8
        bits = np.zeros((table.num_rows, width), np.uint8)
        sizes: list[NDArray[np.int64]] = []
        found: list[Ids] = []
        at = 0
        for batch in table.select(["_ids", "_bits"]).to_batches():
            lists, packed = batch.column(0), batch.column(1)
            ends = lists.offsets.to_numpy()
            lengths = np.diff(ends).astype(np.int64)
            lengths[lists.is_null().to_numpy(zero_copy_only=False)] = 0
            sizes.append(lengths)
            found.append(lists.flatten().to_numpy())
            valid = packed.is_valid().to_numpy(zero_copy_only=False)
            bits[at : at + len(packed)][valid] = _rows(packed.drop_null(), width)
            at += len(packed)
        offsets = _offsets(np.concatenate([np.empty(0, np.int64), *sizes]))
        return Lineage(
            table.num_rows, tuple(_cut(ids, bits)), offsets, np.concatenate([_NO_IDS, *found])
        )


_NO_IDS: Ids = np.empty(0, np.int32)


def _offsets(sizes: NDArray[np.int64]) -> Offsets:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _pairs(offsets: Offsets, ids: Ids) -> Pairs:
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
    return (rows << 32) | ids


def _sparse(rows: int, blocks: tuple[BitmapBlock, ...], pairs: Pairs) -> Lineage:
    if not len(pairs):
        return Lineage(rows, blocks, np.zeros(rows + 1, np.int64), _NO_IDS)
    sizes = np.bincount(pairs >> 32, minlength=rows)
    return Lineage(rows, blocks, _offsets(sizes), (pairs & 0x7FFFFFFF).astype(np.int32))


def _dense(rows: int, pairs: Pairs) -> BitmapBlock:
    ids = distinct(pairs & 0x7FFFFFFF).astype(np.int32)
    bit = np.searchsorted(ids, (pairs & 0x7FFFFFFF).astype(np.int32))
    width = -(-len(ids) // 64)
    flat = np.zeros(rows * width * 8, np.uint8)
    np.bitwise_or.at(
        flat, (pairs >> 32) * (width * 8) + (bit >> 3), (1 << (bit & 7)).astype(np.uint8)
    )
    return BitmapBlock.of_words(ids, flat.view(np.uint64).reshape(rows, width))


def _ascending(ids: Ids) -> bool:
    return bool((ids[1:] > ids[:-1]).all())


def _batch(lineage: Lineage, bits: NDArray[np.uint8], at: int, schema: pa.Schema) -> pa.RecordBatch:
    ends = lineage.offsets[at : at + len(bits) + 1]
    lists = pa.ListArray.from_arrays(
        pa.array((ends - ends[0]).astype(np.int32)), pa.array(lineage.ids[ends[0] : ends[-1]])
    )
    set_ = bits.any(axis=1)
    offsets = _offsets(np.where(set_, bits.shape[1], 0)).astype(np.int32)
    validity = np.packbits(set_, bitorder="little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(bits[set_])]
    packed = pa.Array.from_buffers(pa.binary(), len(bits), buffers)
    return pa.RecordBatch.from_arrays([lists, packed], schema=schema)


def _rows(packed: pa.Array, width: int) -> NDArray[np.uint8]:
    """Binary values, all of one width, as a matrix."""
    if not len(packed):
        return np.empty((0, width), np.uint8)
    _, offsets, data = packed.buffers()
    start = np.frombuffer(offsets, np.int32)[packed.offset]
    return np.frombuffer(data, np.uint8, len(packed) * width, start).reshape(-1, width)


def _cut(ids: Ids, bits: NDArray[np.uint8]) -> Iterable[BitmapBlock]:
    """Blocks as they were before their bits were laid side by side."""
    gaps = np.flatnonzero((ids[:-1] < 0) & (ids[1:] >= 0)) + 1
    bounds = [0, *(int(g) for g in gaps), len(ids)]
    for start, end in itertools.pairwise(bounds):
        part = ids[start:end]
        part = part[part >= 0]
        if len(part):
            yield BitmapBlock(part, np.ascontiguousarray(bits[:, start // 8 : end // 8]))
