"""Trains: how many tuples a superbox takes in one step (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

DEFAULT_TRAIN = 1_000_000


class SegmentRun(Protocol):
    """What is known of a segment."""

    @property
    def rows(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def complete_before(self) -> int: ...


def train_end(waiting: Sequence[SegmentRun], head: int, complete: int, limit: int) -> int:
    """The moment before which a train ends: at most `limit` tuples from `head` on.

    Ends where segments end if it can, so that files need not be cut; every moment brings one
    tuple at most, so a cut at head + limit is never too long.
    """
    held: dict[int, int] = {complete: 0}
    for run in waiting:
        if run.last >= head:
            held[run.complete_before] = held.get(run.complete_before, 0) + run.rows
    end = head
    rows = 0
    for border in sorted(held):
        rows += held[border]
        if rows > limit:
            break
        end = border
    if end > head:
        return min(end, complete)
    start = min((run.first for run in waiting if run.last >= head), default=head)
    return min(max(start, head) + limit, complete)
