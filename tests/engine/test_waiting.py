"""How many tuples wait, told from segments alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from auroral.engine.runtime.waiting import waiting_tuples
from auroral.storage import Segment


def segment(first: int, last: int, rows: int) -> Segment:
    file = f"s-{first}" if rows else None
    return Segment(first, "s", file, rows, 8 * rows, 0, first, last, last + 1)


def test_segments_count_by_what_is_between_head_and_bound() -> None:
    held = [segment(1, 100, 100), segment(101, 200, 50)]
    assert waiting_tuples(held, 31, 201).rows == 70 + 50
    assert waiting_tuples(held, 31, 151).rows == 70 + 25
    assert waiting_tuples(held, 31, 151).bytes == 8 * (70 + 25)
    assert waiting_tuples(held, 201, 300).rows == 0


def test_tuples_that_there_may_be_are_never_taken_for_none() -> None:
    assert waiting_tuples([segment(1, 1000, 3)], 1000, 1001).rows == 1
    assert waiting_tuples([segment(1, 1000, 3)], 1, 2).rows == 1
    assert waiting_tuples([segment(1, 1000, 0)], 1, 2000).rows == 0


@given(
    st.lists(st.integers(1, 60), unique=True, min_size=1), st.integers(1, 60), st.integers(1, 60)
)
def test_no_tuples_are_told_only_if_there_are_none(
    moments: list[int], head: int, length: int
) -> None:
    bound = head + length
    held = [segment(min(moments), max(moments), len(moments))]
    there = sum(head <= moment < bound for moment in moments)
    assert waiting_tuples(held, head, bound).rows > 0 or not there
    if head <= min(moments) and max(moments) < bound:
        assert waiting_tuples(held, head, bound).rows == there
