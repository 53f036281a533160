"""Lineage says the same whichever way it is encoded."""

from __future__ import annotations

import itertools
import pickle
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from auroral.eddy import positional
from auroral.eddy.bitmap import BitmapSelection, any_bit
from auroral.eddy.lineage import BitmapBlock, Lineage

Sets = list[set[int]]


def _lineage(sets: Sets, cuts: list[list[int]]) -> Lineage:
    """Those ids of each row, with the ids of `cuts` in blocks of their own."""
    blocks = []
    for ids in cuts:
        matrix = np.array([[i in row for i in ids] for row in sets], bool).reshape(
            len(sets), len(ids)
        )
        blocks.append(Lineage.from_dense(np.array(ids, np.int32), matrix).blocks[0])
    blocked = {i for ids in cuts for i in ids}
    pairs = [(r, i) for r, row in enumerate(sets) for i in row if i not in blocked]
    rows = np.array([r for r, _ in pairs], np.int64)
    sparse = Lineage.from_pairs(len(sets), rows, np.array([i for _, i in pairs], np.int32))
    return Lineage(len(sets), tuple(blocks), sparse.offsets, sparse.ids)


def _sets(lineage: Lineage) -> Sets:
    offsets, ids = lineage.lists()
    rows = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert rows == [sorted(set(row)) for row in rows]
    assert offsets.dtype == np.int64
    assert ids.dtype == np.int32
    for block in lineage.blocks:
        assert block.bits.shape == (lineage.rows, -(-len(block.ids) // 8))
    return [set(row) for row in rows]


@st.composite
def lineages(draw: st.DrawFn, rows: int | None = None) -> tuple[Sets, Lineage]:
    rows = draw(st.integers(0, 12)) if rows is None else rows
    ids = st.integers(0, 150)
    sets = draw(st.lists(st.sets(ids, max_size=20), min_size=rows, max_size=rows))
    cuts: list[list[int]] = []
    pool = draw(st.permutations(range(151)))
    for size in draw(st.lists(st.sampled_from([1, 7, 8, 15, 64, 65]), max_size=3)):
        if size <= len(pool):
            cuts.append(pool[:size])
            pool = pool[size:]
    return sets, _lineage(sets, cuts)


@st.composite
def twins(draw: st.DrawFn) -> tuple[tuple[Sets, Lineage], tuple[Sets, Lineage]]:
    rows = draw(st.integers(0, 8))
    left, right = draw(lineages(rows)), draw(lineages(rows))
    if draw(st.booleans()):
        right = right[0], _lineage(right[0], [b.ids.tolist() for b in left[1].blocks])
    return left, right


@given(lineages(), st.data())
def test_reading(case: tuple[Sets, Lineage], data: st.DataObject) -> None:
    sets, lineage = case
    assert _sets(lineage) == sets
    assert lineage.alive().tolist() == [bool(row) for row in sets]
    ids, counts = lineage.counts()
    every = sorted({i for row in sets for i in row})
    assert ids.tolist() == every
    assert counts.tolist() == [sum(i in row for row in sets) for i in every]
    assert ids.dtype == np.int32
    assert counts.dtype == np.int64
    indices = data.draw(st.lists(st.integers(0, len(sets) - 1))) if sets else []
    taken = lineage.take(np.array(indices, np.int64))
    assert _sets(taken) == [sets[i] for i in indices]


@given(twins())
def test_intersect(case: tuple[tuple[Sets, Lineage], tuple[Sets, Lineage]]) -> None:
    (left, one), (right, other) = case
    assert _sets(one.intersect(other)) == [a & b for a, b in zip(left, right, strict=True)]


@given(lineages(), st.sets(st.integers(0, 150)))
def test_without(case: tuple[Sets, Lineage], gone: set[int]) -> None:
    sets, lineage = case
    ids = np.array(sorted(gone), np.int32)
    assert lineage.touching(ids).tolist() == [bool(row & gone) for row in sets]
    left = lineage.without(ids)
    assert _sets(left) == [row - gone for row in sets]


@given(lineages())
def test_encodings(case: tuple[Sets, Lineage]) -> None:
    sets, lineage = case
    small = lineage.smaller()
    assert _sets(small) == sets
    assert _bytes(small) <= _bytes(lineage)
    table = lineage.to_arrow()
    assert table.schema.names == ["_ids", "_bits"]
    assert table.schema.field("_ids").type == pa.list_(pa.int32())
    assert table.schema.field("_bits").type == pa.binary()
    assert _sets(Lineage.from_arrow(table)) == sets
    assert _sets(Lineage.from_arrow(table.slice(1))) == sets[1:]
    assert _sets(pickle.loads(pickle.dumps(lineage, 5))) == sets


def _bytes(lineage: Lineage) -> int:
    return lineage.ids.nbytes + sum(b.bits.nbytes + b.ids.nbytes for b in lineage.blocks)


def test_parquet_keeps_it() -> None:
    sets = [{1, 70}, set(), {2, 3, 999}]
    lineage = _lineage(sets, [[1, 2, 3], [70]])
    file = BytesIO()
    pq.write_table(lineage.to_arrow(), file)
    read = Lineage.from_arrow(pq.read_table(file))
    assert _sets(read) == sets
    assert [b.ids.tolist() for b in read.blocks] == [[1, 2, 3], [70]]


def test_none() -> None:
    assert _sets(Lineage.none(2)) == [set(), set()]
    assert not Lineage.none(2).alive().any()


def test_repeated_pairs_count_once() -> None:
    rows = np.array([1, 0, 1, 1])
    lineage = Lineage.from_pairs(2, rows, np.array([5, 6, 5, 4], np.int32))
    assert _sets(lineage) == [{6}, {4, 5}]


def test_smaller_changes_the_encoding() -> None:
    many = _lineage([set(range(100))] * 10, [])
    assert many.smaller().blocks
    few = _lineage([{1}] + [set()] * 99, [list(range(100))])
    assert not few.smaller().blocks


@given(st.integers(0, 2000), st.integers(0, 3), st.integers(0, 10))
def test_positional_counts(rows: int, width: int, seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 2**64, (rows, width), dtype=np.uint64)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    assert (positional.counts(words) == bits.sum(axis=0, dtype=np.int64)).all()


@given(st.lists(st.integers(0, 40_000), max_size=4), st.integers(0, 3), st.integers(0, 10))
def test_positional_counts_of_rows_that_come_bit_by_bit(
    sizes: list[int], width: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    counter = positional.Counter(width, 8)
    expected = np.zeros(width * 64, np.int64)
    for rows in sizes:
        words = draw.integers(0, 2**64, (rows, width), dtype=np.uint64)
        counter.add(words)
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        expected += bits.sum(axis=0, dtype=np.int64)
        assert (counter.total() == expected).all()


@given(st.integers(0, 50), st.integers(1, 40), st.integers(0, 10))
def test_any_bit(rows: int, width: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    words = draw.integers(0, 4, (rows, width), dtype=np.uint64)
    words[draw.random((rows, width)) < 0.95] = 0
    mask = draw.integers(0, 4, width, dtype=np.uint64)
    assert any_bit(words).tolist() == (words != 0).any(axis=1).tolist()
    assert (
        BitmapSelection.of(mask).any_bit(words).tolist() == (words & mask != 0).any(axis=1).tolist()
    )


def test_words_of_any_width() -> None:
    for width in (1, 8, 9):
        bits = np.arange(2 * width, dtype=np.uint8).reshape(2, width)
        block = BitmapBlock(np.arange(width * 8, dtype=np.int32), bits)
        assert (block.words.view(np.uint8)[:, :width] == bits).all()
