"""Following results without taking them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from auroral.engine.debug.pins import PinnedSegment, pin, together
from auroral.engine.results.batches import visible
from auroral.engine.results.views import View
from auroral.engine.runtime.train import Train, cut
from auroral.storage import Change, Store

MOST_ROWS = 100_000
MOST_BYTES = 64 << 20
_MOST_BATCHES = 256
"""A follower that is further behind loses the oldest batches."""


@dataclass(frozen=True)
class FollowedBatch:
    """What one step has written."""

    view: View
    pins: Sequence[PinnedSegment]
    rows: int
    bytes: int


class Follower:
    """What an output gives from now on, without taking it; made by `Engine.follow`.

    If the reader is slow, the oldest batches are dropped and counted: at most `most_rows` rows and
    `most_bytes` bytes wait, and the newest batch always does.
    """

    def __init__(
        self,
        output: str,
        since: int,
        leave: Callable[[Follower], None],
        *,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
    ):
        self.output = output
        self.dropped = 0
        """How many rows were dropped because the reader was slow."""
        self.closed = False
        self._position = since
        self._leave = leave
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._waiting: deque[FollowedBatch] = deque()
        self._changed = threading.Condition()
        self._complete = since
        """The moment before which everything is there."""
        self._carried: tuple[View, pa.Table] | None = None
        """Rows of moments of which not all are there."""

    # ── for the reader ──

    def next(self, timeout_s: float | None = None) -> pa.Table | None:
        """What has come since the last call; None if nothing comes within `timeout_s` seconds.

        Without a time it waits until something comes or the follower is closed.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            batches, complete = self._take(deadline)
            table = self._rows(batches, complete)
            if table is not None:
                return table
            if not batches:
                return None

    def _take(self, deadline: float | None) -> tuple[list[FollowedBatch], int]:
        """What waits, and the moment before which everything is there."""
        with self._changed:
            while not self._waiting and not self._has_more() and not self.closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            taken = list(self._waiting)
            self._waiting.clear()
            return taken, self._complete

    def _has_more(self) -> bool:
        """Whether rows that were not complete are now."""
        if self._carried is None:
            return False
        return int(self._carried[1]["_seq"][0].as_py()) < self._complete

    def _rows(self, batches: Sequence[FollowedBatch], complete: int) -> pa.Table | None:
        """The rows of batches in order, as far as their moments are complete; None if none are."""
        held, self._carried = self._carried, None
        if not batches and held is None:
            return None
        view = batches[-1].view if batches else held[0] if held is not None else None
        assert view is not None
        parts = [batch.view.rows(p.read()) for batch in batches for p in batch.pins]
        if held is not None:
            parts.insert(0, held[1])
        # A query may have been replaced by one with other fields: the newest are given.
        names = set(view.schema.names)
        whole = together([part for part in parts if names <= {*part.column_names}], view.schema)
        if not whole.num_rows:
            return None
        given = cut(whole, 0, complete)
        if given.num_rows < whole.num_rows:
            last = int(whole["_seq"].to_numpy().max()) + 1
            self._carried = view, cut(whole, complete, last)
        if not given.num_rows:
            return None
        return view.finish(visible(given).select(view.schema.names).cast(view.schema))

    def close(self) -> None:
        """Follow no more; who waits in `next` gets None."""
        self._leave(self)
        self.end()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── for those who commit ──

    def end(self) -> None:
        """The output is no more, or the engine ends."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def wanted_from(self) -> int:
        """The first moment that it has not seen."""
        return self._position

    def reach(self, complete: int) -> None:
        """Everything before a moment is there."""
        with self._changed:
            if complete > self._complete:
                self._complete = complete
                if self._has_more():
                    self._changed.notify_all()

    def offer(self, batch: FollowedBatch, until: int) -> None:
        """Take a batch with what lies before a moment; drop old ones if too much waits."""
        with self._changed:
            self._position = max(self._position, until)
            self._waiting.append(batch)
            while len(self._waiting) > 1 and self._is_too_much():
                self.dropped += self._waiting.popleft().rows
            self._changed.notify_all()

    def _is_too_much(self) -> bool:
        rows = sum(batch.rows for batch in self._waiting)
        size = sum(batch.bytes for batch in self._waiting)
        too_many = len(self._waiting) > _MOST_BATCHES
        return too_many or rows > self._most_rows or size > self._most_bytes


class Followers:
    """All followers of an engine: they see what steps commit."""

    def __init__(
        self,
        store: Store,
        view_of: Callable[[str], View | None],
        complete_before: Callable[[str], int | None],
        changed: Callable[[], None],
    ):
        """`view_of` gives how the results of an output look; None if it is no more.

        `changed` is called when followers come or go.
        `complete_before` gives the moment before which a log is complete; None if no step writes
        it, as that of a stream.
        """
        self._store = store
        self._view_of = view_of
        self._complete_before = complete_before
        self._changed = changed
        self._lock = threading.Lock()
        self._all: list[Follower] = []
        self._pinned: list[tuple[Follower, View, list[PinnedSegment], int]] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, output: str, since: int, **limits: int) -> Follower:
        follower = Follower(output, since, self._leave, **limits)
        with self._lock:
            self._all = [*self._all, follower]
        self._changed()
        return follower

    def _leave(self, follower: Follower) -> None:
        with self._lock:
            self._all = [one for one in self._all if one is not follower]
        self._changed()

    def committing(self, train: Train, change: Change) -> None:
        """Pin what followers will read, before somebody takes it."""
        self._pinned = []
        for follower in self._all:
            view = self._view_of(follower.output)
            if view is None:
                self._leave(follower)
                follower.end()
                continue
            first = max(follower.wanted_from(), view.since)
            if self._complete_before(view.log) is not None:
                held = [segment for segment in change.written if segment.log == view.log]
                self._pinned.append((follower, view, pin(self._store, held, first), 0))
            elif view.log in train.segments and train.last > first:  # the output is a stream
                held = [s for s in train.segments[view.log] if s.last >= first]
                pins = pin(self._store, held, max(first, train.first), train.last)
                self._pinned.append((follower, view, pins, train.last))

    def committed(self) -> None:
        """What was pinned is true now."""
        pinned, self._pinned = self._pinned, []
        for follower, view, pins, until in pinned:
            if pins:
                rows = sum(one.segment.rows for one in pins)
                size = sum(one.segment.bytes for one in pins)
                follower.offer(FollowedBatch(view, pins, rows, size), until)
            follower.reach(until or self._complete_before(view.log) or 0)

    def close(self) -> None:
        """The engine ends."""
        for follower in self._all:
            follower.end()
