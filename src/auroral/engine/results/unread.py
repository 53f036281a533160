"""What a reader of a log has not taken: found with the locks held, read without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from auroral.engine.results.batches import NOTHING, steps_of
from auroral.engine.results.views import View
from auroral.engine.runtime.train import cut
from auroral.errors import StateError
from auroral.spark.plans.plan import in_order
from auroral.storage import Segment, Store

Batches = Iterator[tuple[int, pa.Table]]
"""Tuples step by step, each with the moment before which they lie."""


class SegmentsRetiredError(Exception):
    """Segments were merged or dropped before they were read: find out anew what is unread."""


@dataclass(frozen=True)
class Unread:
    """The steps from a moment on, as far as they are complete."""

    view: View
    head: int
    steps: Sequence[tuple[int, Sequence[Segment]]]
    """Segments, each group with the moment before which its tuples lie."""

    def batches(self, store: Store) -> Batches:
        """Read step by step; only one step is in memory."""
        for complete_before, group in self.steps:
            # Compaction may have put what was delivered together with what was not.
            tables = [
                self.view.rows(cut(_table(store, segment), self.head, complete_before))
                for segment in group
                if segment.file
            ]
            whole = pa.concat_tables(tables, promote_options="default") if tables else NOTHING
            yield complete_before, in_order(whole)


def find_unread(store: Store, view: View, head: int, complete: int) -> Unread:
    """What lies between the moment `head` and the moment `complete`."""
    steps = []
    for complete_before, group in steps_of(store.segments(view.log, head)):
        last = min(complete_before, complete)
        if last <= head:
            break
        steps.append((last, group))
    return Unread(view, head, steps)


def _table(store: Store, segment: Segment, columns: list[str] | None = None) -> pa.Table:
    try:
        return store.table(segment, columns)
    except StateError:
        if store.holds(segment):
            raise
        raise SegmentsRetiredError from None


class Backlog:
    """Since when tuples wait that a reader has not taken."""

    def __init__(self, store: Store):
        self._store = store
        self._known: dict[str, tuple[int, int, int]] = {}
        """By reader: a segment, the moment it was asked for, and the time of its first tuple."""

    def oldest_us(self, reader: str, log: str, head: int) -> int | None:
        """The time of the first tuple of a log at a moment or later; None if there is none."""
        for segment in self._store.segments(log, head):
            known = self._known.get(reader)
            if known is not None and known[:2] == (segment.id, head):
                return known[2]
            found = self._first(segment, head)
            if found is not None:
                self._known[reader] = segment.id, head, found
                return found
        self._known.pop(reader, None)
        return None

    def _first(self, segment: Segment, head: int) -> int | None:
        if not segment.file:
            return None
        try:
            table = _table(self._store, segment, ["_seq", "_ts"])
        except SegmentsRetiredError:
            return None
        times = table["_ts"].to_numpy()[table["_seq"].to_numpy() >= head]
        return int(times.min()) if len(times) else None
