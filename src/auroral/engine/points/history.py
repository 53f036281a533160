"""The history of all connection points and views: recorded with steps, expired between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress

from auroral.engine.points.kept_arc import KeptArc, kept_arcs
from auroral.engine.points.marks_log import MarksLog
from auroral.engine.points.point import PointHistory
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.errors import StateError, UsageError, closest, list_existing, require_name
from auroral.ids import HistoryReader, MarksLogId
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.storage import Change, Segment, Store

_EVERY_S = 0.5
"""Expired history is dropped, and small segments are merged, so often at most."""
_MERGE = "merge"


class KeptHistory:
    """What connection points and views keep.

    The loop's thread records, expires, and puts merged segments in their place; another thread
    merges. Only between rounds does a log lose segments that a step might read.
    """

    def __init__(
        self,
        store: Store,
        now_us: Callable[[], int] | None,
        *,
        background: bool = True,
        tell: Callable[[], None] = lambda: None,
    ):
        """Without `now_us` the time is what the newest tuple of an arc says."""
        self._store = store
        self._now_us = now_us
        self._background = background
        self.points: dict[str, PointHistory] = {}
        self._tended_s: float | None = None
        self._merging = StepPool[list[tuple[list[Segment], Segment]]](int(background), tell)
        self._busy = False

    # ── the network it serves ──

    def serve(
        self,
        checked: CheckedNetwork,
        watermarks: WatermarkTracker,
        begin: Callable[[str], int] = lambda _arc: 0,
        demanded: Collection[str] = (),
    ) -> None:
        """Keep what the points of a network want; those that are new begin where `begin` says.

        `demanded` are views that keep nothing, and run.
        """
        kept = kept_arcs(checked.network, demanded)
        self._drop_removed(kept)
        watermarks.watch(sorted({one.arc for one in kept.values()}))
        for name, one in kept.items():
            point = self.points.get(name)
            if point is None or point.arc != one.arc:
                point = self.points[name] = PointHistory(self._store, one, checked)
            else:
                point.kept = one
                point.serve(checked)
            self._begin(point, watermarks, begin(checked.arcs[one.arc].producer))

    def _begin(self, point: PointHistory, watermarks: WatermarkTracker, moment: int) -> None:
        if self._store.has_cursor(point.arc, point.reader):
            return
        heads = {(point.arc, point.reader): moment, (point.marks.log, point.reader): moment}
        progress = point.marks.begin(point.series(watermarks), moment)
        self._store.commit(Change(heads=heads, progress=progress))

    def _drop_removed(self, kept: Mapping[str, KeptArc]) -> None:
        """Forget points that are no more, or are on another arc now."""
        arcs = {name: one.arc for name, one in kept.items()}
        logs, cursors = self._store.names()
        gone = []
        for log, consumer in cursors:
            reader = HistoryReader.parse(consumer)
            if reader is not None and log not in (
                arcs.get(reader.point),
                str(MarksLogId(reader.point)) if reader.point in arcs else None,
            ):
                gone.append((log, consumer))
        names = {reader.point for _, c in gone if (reader := HistoryReader.parse(c)) is not None}
        if not gone:
            return
        removed = [MarksLog.keys_of(name) for name in names]
        marks = [log for log in logs if (id := MarksLogId.parse(log)) and id.point in names]
        readers = [(log, c) for log, c in cursors if _point_of(c) in names]
        self._store.forget(marks, readers, [key for keys in removed for key in keys])
        for name in names:
            self.points.pop(name, None)

    # ── recording ──

    def record(self, change: Change, watermarks: WatermarkTracker, done: int) -> None:
        """Add to a step's change the moves of marks before a moment, which are then forgotten."""
        for point in self._recorded():
            fresh, progress = point.record(watermarks, done)
            change.fresh = [*change.fresh, *fresh]
            change.progress = {**change.progress, **progress}

    def record_until(self, watermarks: WatermarkTracker, moment: int) -> None:
        """Commit the moves before a moment, from which on other boxes run."""
        change = Change()
        self.record(change, watermarks, moment)
        if change.progress:
            self._store.commit(change)

    def _recorded(self) -> Iterator[PointHistory]:
        return (point for point in self.points.values() if point.has_marks)

    # ── keeping it small ──

    def tend(
        self, watermarks: WatermarkTracker, in_use: Callable[[], Collection[int]], *, now: bool
    ) -> None:
        """Between rounds: drop what has expired and merge what is small; `now`, or after a while.

        `in_use` are the segments that steps under way read.
        """
        if not self.points:
            return
        self._put_in_place(in_use)
        passed = self._tended_s is None or time.monotonic() - self._tended_s >= _EVERY_S
        if not now and not passed:
            return
        self._tended_s = time.monotonic()
        for point in self.points.values():
            mark = point.latest_mark(watermarks.marks_of(point.arc))
            change = point.expire(mark, self.now_us(point))
            if change is not None:
                self._store.commit(change)
        self._merge_small(in_use)

    def _merge_small(self, in_use: Callable[[], Collection[int]]) -> None:
        if self._busy:
            return
        runs: list[list[Segment]] = []
        for arc in {point.arc for point in self.points.values()}:
            runs += self._store.small_runs(arc)
        marks = [(p, run) for p in self.points.values() if (run := p.marks_to_merge())]
        if not runs and not marks:
            return
        self._busy = True

        def merge() -> list[tuple[list[Segment], Segment]]:
            made = [(run, segment) for run in runs if (segment := self._store.merge(run))]
            for point, run in marks:
                with suppress(StateError):  # some have expired meanwhile
                    (segment,) = self._store.write([point.marks.merged(run)])
                    made.append((run, segment))
            return made

        self._merging.submit(_MERGE, merge)
        if self._merging.inline:
            self._put_in_place(in_use)

    def _put_in_place(self, in_use: Callable[[], Collection[int]]) -> None:
        for ended in self._merging.take_finished():
            self._busy = False
            if ended.error is not None:
                raise ended.error
            for run, segment in ended.value or ():
                self._store.replace_run(run, segment, in_use)

    def close(self) -> None:
        """Wait for the merging under way; no step is."""
        self._merging.wait()
        self._put_in_place(lambda: ())
        self._merging.close()

    # ── looking ──

    def require(self, name: str, network: Network) -> PointHistory:
        """The history of a connection point or a view; an error says which there are."""
        require_name(name, "a connection point or a view")
        found = self.points.get(name)
        if found is not None:
            return found
        if name in network.views:
            raise UsageError(
                "NOT_MATERIALIZED",
                f"the view {name} keeps nothing of the past, and nothing flows now",
                hint="attach while the network runs, or give the view keep or materialize: part",
            )
        raise UsageError(
            "UNKNOWN_POINT",
            f"there is no connection point {name}; {list_existing(self.points)}",
            hint=closest(name, self.points),
        )

    def now_us(self, point: PointHistory) -> int:
        """The time by which the history of a point expires that has no mark."""
        return point.newest_entry() if self._now_us is None else self._now_us()

    def has_dropped(self, point: PointHistory, moment: int) -> bool:
        """Whether the arc of a point has had tuples before a moment."""
        counts = self._store.counters
        every = counts.get((point.arc, "tuples"), counts.get((point.arc, "in"), 0))
        return every > self._store.rows_since(point.arc, moment)

    @property
    def arcs(self) -> set[str]:
        """The arcs that keep history."""
        return {point.arc for point in self.points.values()}


def _point_of(consumer: str) -> str | None:
    reader = HistoryReader.parse(consumer)
    return None if reader is None else reader.point
