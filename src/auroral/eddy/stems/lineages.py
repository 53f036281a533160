"""Mask, concatenate and align the lineages of stored tuples, so that they intersect fast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from auroral.eddy.bitmap import BitmapBlock, Ids
from auroral.eddy.lineage import Lineage
from auroral.kernels.units import Mask

_UNPACKED = 1 << 24
"""How many bits are unpacked at a time."""
_ROOM = 1 << 26
"""Bitmaps up to this many bytes are made whatever lists would take."""


def masked(lineage: Lineage, kept: Mask) -> Lineage:
    """Clear the lineage of the tuples outside a mask."""
    if kept.all():
        return lineage
    rows = np.flatnonzero(kept)
    sizes = np.where(kept, np.diff(lineage.offsets), 0)
    offsets = np.zeros(lineage.rows + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    blocks = []
    for block in lineage.blocks:
        words = np.zeros_like(block.words)
        words[rows] = block.words[rows]
        blocks.append(BitmapBlock.of_words(block.ids, words))
    ids = lineage.ids[np.repeat(kept, np.diff(lineage.offsets))]
    return Lineage(lineage.rows, tuple(blocks), offsets, ids)


def stacked(lineages: Sequence[Lineage]) -> Lineage:
    """Concatenate lineages."""
    some = [lineage for lineage in lineages if lineage.rows]
    if len(some) < 2:
        return some[0] if some else Lineage.none(0)
    like = encoding([max(some, key=lambda lineage: lineage.rows)])
    some = [aligned(lineage, like) for lineage in some]
    if not all(_is_like(lineage, like) for lineage in some):
        some = [_listed(lineage) for lineage in some]
        like = ()
    blocks = tuple(
        BitmapBlock.of_words(ids, np.concatenate([each.blocks[n].words for each in some]))
        for n, ids in enumerate(like)
    )
    sizes = np.concatenate([np.diff(each.offsets) for each in some])
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return Lineage(len(sizes), blocks, offsets, np.concatenate([each.ids for each in some]))


def encoding(lineages: Sequence[Lineage]) -> tuple[Ids, ...]:
    """The queries in bitmaps of the largest of some lineages."""
    largest = max(lineages, key=lambda each: each.rows if each.blocks else -1, default=None)
    return () if largest is None else tuple(block.ids for block in largest.blocks)


def aligned(lineage: Lineage, like: tuple[Ids, ...]) -> Lineage:
    """The same with bitmaps of those queries, so that an intersection is one AND.

    If that took far more memory it stays as it is.
    """
    if _is_like(lineage, like):
        return lineage
    if not like:
        return lineage
    size = lineage.rows * sum(-(-len(ids) // 64) * 8 for ids in like)
    used = lineage.ids.nbytes + sum(block.words.nbytes for block in lineage.blocks)
    if size > _ROOM and size > 4 * used:
        return lineage
    owner = np.repeat(np.arange(lineage.rows), np.diff(lineage.offsets))
    listed = np.ones(len(lineage.ids), bool)
    blocks, foreign = [], [np.ones(len(block.ids), bool) for block in lineage.blocks]
    for ids in like:
        words = np.zeros((lineage.rows, -(-len(ids) // 64)), np.uint64)
        for block, left in zip(lineage.blocks, foreign, strict=True):
            own, target = _common(block.ids, ids)
            left[own] = False
            _copy_bits(block, own, target, words)
        own, target = _common_values(lineage.ids, ids)
        listed[own] = False
        flat = words.view(np.uint8)
        np.bitwise_or.at(flat, (owner[own], target >> 3), (1 << (target & 7)).astype(np.uint8))
        blocks.append(BitmapBlock.of_words(ids, words))
    rest = Lineage.from_pairs(lineage.rows, owner[listed], lineage.ids[listed])
    others = [_only(b, left) for b, left in zip(lineage.blocks, foreign, strict=True)]
    left_over = [block for block in others if block is not None]
    if left_over:
        none = np.zeros(lineage.rows + 1, np.int64)
        pairs = Lineage(lineage.rows, tuple(left_over), none, lineage.ids[:0]).pairs()
        both = np.concatenate([pairs, rest.pairs()])
        rest = Lineage.from_pairs(lineage.rows, both >> 32, (both & 0x7FFFFFFF).astype(np.int32))
    return Lineage(lineage.rows, tuple(blocks), rest.offsets, rest.ids)


def in_words(lineage: Lineage) -> Lineage:
    """The same with whole words at hand, which taking rows would else copy again and again."""
    blocks = tuple(
        BitmapBlock.of_words(b.ids, np.ascontiguousarray(b.words)) for b in lineage.blocks
    )
    return Lineage(lineage.rows, blocks, lineage.offsets, lineage.ids)


def _is_like(lineage: Lineage, like: tuple[Ids, ...]) -> bool:
    return len(lineage.blocks) == len(like) and all(
        block.ids is ids or np.array_equal(block.ids, ids)
        for block, ids in zip(lineage.blocks, like, strict=True)
    )


def _listed(lineage: Lineage) -> Lineage:
    offsets, ids = lineage.lists()
    return Lineage(lineage.rows, (), offsets, ids)


def _only(block: BitmapBlock, kept: Mask) -> BitmapBlock | None:
    """A bitmap of some of the queries; None if there are none."""
    if kept.all():
        return block
    own = np.flatnonzero(kept)
    if not len(own):
        return None
    words = np.zeros((len(block.words), -(-len(own) // 64)), np.uint64)
    _copy_bits(block, own, np.arange(len(own)), words)
    return BitmapBlock.of_words(block.ids[own], words)


def _common(one: Ids, other: Ids) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    _, own, target = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return own, target


def _common_values(values: Ids, ids: Ids) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Which of some values are among ids, and where."""
    order = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids, values, sorter=order), max(len(ids) - 1, 0))
    target = order[at] if len(ids) else at
    own = np.flatnonzero(ids[target] == values) if len(ids) else np.zeros(0, np.intp)
    return own, target[own]


def _copy_bits(
    block: BitmapBlock,
    own: npt.NDArray[np.intp],
    target: npt.NDArray[np.intp],
    words: npt.NDArray[np.uint64],
) -> None:
    """Set the bits `target` of each row where the block has the bits `own`."""
    if not len(own):
        return
    source, flat = block.words.view(np.uint8), words.view(np.uint8)
    step = max(1, _UNPACKED // (64 * max(words.shape[1], block.words.shape[1])))
    for start in range(0, len(words), step):
        bits = np.unpackbits(source[start : start + step], axis=1, bitorder="little")
        made = np.zeros((len(bits), words.shape[1] * 64), np.uint8)
        made[:, target] = bits[:, own]
        flat[start : start + step] |= np.packbits(made, axis=1, bitorder="little")
