"""Where kept history begins: which moment the oldest tuple has that a bound still wants.

Tuples of one moment stay together, so a beginning is a moment. From it on everything on the arc is
seen, as a query that was registered at that moment sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.progress.values import column_marks
from auroral.storage import Segment

ReadColumns = Callable[[Segment, list[str]], pa.Table]
"""Reads some columns of a segment."""
ENTRY = "_ts"
"""The hidden field by which time is kept on an arc that makes no progress."""


def latest_rows(segments: Sequence[Segment], rows: int, before: int, read: ReadColumns) -> int:
    """The moment of the oldest of the latest `rows` tuples before a moment; 0 if there are fewer.

    Only segments around that moment are read.
    """
    held = sorted((s for s in segments if s.file and s.first < before), key=lambda s: -s.first)
    count, known, taken = 0, 0, {}
    for at, segment in enumerate(held):
        if segment.last >= before:
            moments = _moments(segment, read)
            taken[segment.id] = moments[moments < before]
        count += len(taken[segment.id]) if segment.id in taken else segment.rows
        if count >= rows:
            known = at + 1
            break
    if not known:
        return 0
    low = held[known - 1].first
    around = [s for s in held[known:] if s.last >= low] + [held[known - 1]]
    high = max(s.last for s in around)
    near = [s for s in held if s.first <= high and s.last >= low]
    moments = np.concatenate([taken.get(s.id, _moments(s, read)) for s in near])
    moments = np.sort(moments[moments >= low])
    beyond = {s.id for s in near}
    above = sum(
        len(taken[s.id]) if s.id in taken else s.rows for s in held[:known] if s.id not in beyond
    )
    return int(moments[len(moments) + above - rows])


def first_reaching(
    segments: Sequence[Segment],
    attribute: str,
    value: Any,
    span: tuple[int, int],
    read: ReadColumns,
) -> int | None:
    """The moment of the first tuple in a span whose attribute is at or above a value."""
    begins, before = span
    found: int | None = None
    for segment in sorted((s for s in segments if s.file), key=lambda s: s.first):
        if segment.first >= (before if found is None else found):
            break
        if segment.last < begins or not may_reach(segment, attribute, value):
            continue
        table = read(segment, ["_seq", attribute])
        values, known = column_marks(table[attribute])
        moments = table["_seq"].to_numpy()
        within = (moments >= begins) & (moments < before)
        chosen = moments[known & (values >= value) & within]
        if len(chosen):
            least = int(chosen.min())
            found = least if found is None else min(found, least)
    return found


def may_reach(segment: Segment, attribute: str, value: Any) -> bool:
    """Whether a segment may have tuples whose attribute is at or above a value."""
    if attribute == ENTRY:
        return True
    bounds = segment.bounds.get(attribute)
    return bounds is not None and bool(bounds[1] >= value)


def _moments(segment: Segment, read: ReadColumns) -> Any:
    return read(segment, ["_seq"])["_seq"].to_numpy()
