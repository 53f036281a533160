"""What waits for a superbox, told from the segments of its logs without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auroral.scheduling.superboxes import Superbox
from auroral.storage import Segment


@dataclass(frozen=True)
class WaitingTuples:
    """What a superbox could take now."""

    rows: int
    """About so many tuples; 0 only if there are none."""
    first: int
    """The moment of the oldest."""
    last: int
    """All that waits is before this moment."""
    bytes: int = 0
    resident: float = 1.0
    """The share of it that is in memory."""


def waiting_tuples(
    held: Sequence[Segment], head: int, bound: int, resident: float = 1.0
) -> WaitingTuples:
    """What waits from moment `head` to before `bound`; `held` are segments that reach into that.

    >>> segment = Segment(1, "reports", "reports-1", 100, 800, 0, 1, 100, 101)
    >>> waiting_tuples([segment], 31, 81)
    WaitingTuples(rows=50, first=31, last=81, bytes=400, resident=1.0)
    """
    shares = [segment.share_within(head, bound) for segment in held]
    rows = sum(s.rows * share for s, share in zip(held, shares, strict=True))
    some = any(s.rows and share for s, share in zip(held, shares, strict=True))
    first = max(min((s.first for s in held), default=head), head)
    return WaitingTuples(
        max(round(rows), int(some)),
        first,
        max(bound, first + 1),
        round(sum(s.bytes * share for s, share in zip(held, shares, strict=True))),
        resident,
    )


def needs_no_job(superbox: Superbox, waiting: WaitingTuples | None) -> bool:
    """Whether a superbox has moments to pass that brought it nothing."""
    if waiting is None or superbox.stateful or superbox.tables:
        return False
    return not (waiting.rows and superbox.boxes)
