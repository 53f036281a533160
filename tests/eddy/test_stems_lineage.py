"""Lineages of stored tuples say the same however they are put together."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auroral.eddy.lineage import Lineage
from auroral.eddy.stems.lineages import aligned, encoding, in_words, masked, stacked

from .stem_driving import encoded

SETS = st.lists(st.sets(st.integers(0, 90).map(lambda n: n * 7), max_size=9), max_size=6)
HOW = st.sampled_from(["lists", "bits", "half", "reversed"])


def sets_of(lineage: Lineage) -> list[set[int]]:
    offsets, ids = lineage.lists()
    rows = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert rows == [sorted(set(row)) for row in rows]
    listed = set(lineage.ids.tolist())
    for block in lineage.blocks:
        assert block.words.shape == (lineage.rows, -(-len(block.ids) // 64))
        assert not listed & set(block.ids.tolist())
    return [set(row) for row in rows]


def made(sets: list[set[int]], how: str, more: set[int]) -> Lineage:
    ids = sorted(set().union(more, *sets))
    return encoded([sorted(own) for own in sets], ids, how)


@given(SETS, HOW, SETS, HOW, st.sets(st.integers(0, 600), max_size=70))
def test_aligned_and_stacked(
    one: list[set[int]], how: str, other: list[set[int]], as_: str, more: set[int]
) -> None:
    first, second = made(one, how, more), made(other, as_, set())
    like = encoding([second])
    again = aligned(first, like)
    assert sets_of(again) == one
    assert not like or [block.ids.tolist() for block in again.blocks] == [i.tolist() for i in like]
    assert sets_of(stacked([first, second, first])) == [*one, *other, *one]
    assert sets_of(in_words(first)) == one


@given(SETS, HOW, st.integers(0, 63))
def test_masked(sets: list[set[int]], how: str, bits: int) -> None:
    kept = np.array([bool(bits >> n & 1) for n in range(len(sets))], bool)
    expected = [own if keep else set() for own, keep in zip(sets, kept, strict=True)]
    assert sets_of(masked(made(sets, how, set()), kept)) == expected


def test_bitmaps_that_would_be_too_large_are_not_made() -> None:
    few = Lineage.from_pairs(200_000, np.array([3]), np.array([5], np.int32))
    like = (np.arange(5000, dtype=np.int32),)
    assert aligned(few, like) is few
    dense = Lineage.from_dense(like[0], np.ones((3, 5000), bool))
    assert stacked([few, dense]).rows == 200_003
