"""One connection point or view while it runs: its arc's history, its marks, and who holds it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from auroral.engine.points.beginning import ENTRY, first_reaching, latest_rows, may_reach
from auroral.engine.points.kept_arc import KeptArc
from auroral.engine.points.mark_series import CLOCK, series_of
from auroral.engine.points.marks_log import MarksLog
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.history import KeyedHistory, can_be_key
from auroral.ids import HistoryReader
from auroral.network.check import CheckedNetwork
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import ArcProgress
from auroral.progress.values import clock_to_mark, column_marks, from_mark
from auroral.storage import Change, Segment, Store, UnwrittenSegment
from auroral.storage.store import SPLIT_ROWS

_MERGED_MARKS = 64
"""So many segments of marks become one."""
_MOST_MOVES = SPLIT_ROWS // 2
"""A segment of marks that was merged has so many moves at most."""


class PointHistory:
    """The kept history of one arc.

    The consumer `history@NAME` of the arc's log holds back what the bounds still want. The log
    `marks@NAME` has the moves of the arc's marks at these moments.
    """

    def __init__(self, store: Store, kept: KeptArc, checked: CheckedNetwork):
        self._store = store
        self.kept = kept
        self.reader = str(HistoryReader(kept.name))
        self.marks = MarksLog(store, kept.name)
        self.holds: dict[str, int] = {}
        """By attachment, the moment from which on it needs marks."""
        self._newest_entry: dict[int, int] = {}
        """By segment, the latest entry time of its tuples, as far as that was asked."""
        self.serve(checked)

    def serve(self, checked: CheckedNetwork) -> None:
        """Be the history of the arc of another network, in which it is the same."""
        self.schema: Schema = checked.arcs[self.kept.arc].schema
        empty = WatermarkTracker(checked)
        self.shape: ArcProgress = empty.arcs().get(self.kept.arc, {})
        """Which marks the arc has, before anything has arrived."""
        self.uses_clock = empty.uses_clock
        self.revised_by = checked.arcs[self.kept.arc].revised_by
        single = [name for name, mark in self.shape.items() if isinstance(mark, LowWater)]
        self.attribute: str | None = single[0] if single else None
        """The progressing attribute by which time is kept; None: by entry time."""
        self.keyed = self._keyed()
        """Its history by key; None if it has no key."""

    def _keyed(self) -> KeyedHistory | None:
        """The log is nearly sorted by what progresses: bounds of segments are enough for that."""
        key = self.kept.key or self.attribute
        if key is None or not can_be_key(self.schema.field(key).type):
            return None
        key = self.schema.field(key).name
        return KeyedHistory(
            self._store, self.name, self.arc, self.schema, key, indexed=key != self.attribute
        )

    @property
    def name(self) -> str:
        return self.kept.name

    @property
    def arc(self) -> str:
        return self.kept.arc

    # ── recording ──

    @property
    def has_marks(self) -> bool:
        """Whether something is recorded besides the tuples."""
        return bool(self.shape) or self.uses_clock

    def series(self, watermarks: WatermarkTracker) -> dict[str, LowWater]:
        """The marks to record, and the clock."""
        found = series_of(watermarks.marks_of(self.arc))
        return {**found, CLOCK: watermarks.clock} if self.uses_clock else found

    def record(
        self, watermarks: WatermarkTracker, until: int
    ) -> tuple[list[UnwrittenSegment], dict[str, Any]]:
        """What to write of the marks' moves before a moment, and what to remember."""
        return self.marks.moves(self.series(watermarks), until)

    # ── what is kept ──

    def segments(self) -> list[Segment]:
        """The segments that hold kept history."""
        return self._store.segments(self.arc, self.oldest)

    @property
    def oldest(self) -> int:
        """The moment from which on the log is whole."""
        return self._store.head(self.arc, self.reader)

    def beginning(self, before: int, mark: Any, now_us: int) -> int:
        """The moment of the oldest tuple before a moment that the bounds want at that moment.

        `mark` is that of the progressing attribute then. If no tuple is kept it is that moment.
        """
        if self.kept.keeps_nothing:
            return before
        segments, read = self.segments(), self._columns
        begins = self.oldest
        if self.kept.rows is not None:
            begins = max(begins, latest_rows(segments, self.kept.rows, before, read))
        if self.kept.time_us is not None:
            attribute, bound = self._time_bound(mark, now_us)
            if bound is not None:
                first = first_reaching(segments, attribute, bound, (begins, before), read)
                begins = before if first is None else first
        return begins

    def since(self, value: Any, begins: int, before: int) -> int:
        """The moment of the first kept tuple with at least a value of the progressing attribute."""
        assert self.attribute is not None
        span = (begins, before)
        first = first_reaching(self.segments(), self.attribute, value, span, self._columns)
        return before if first is None else first

    def until(self, value: Any, begins: int, before: int) -> int:
        """The moment of the first kept tuple above a value of the progressing attribute.

        If there is none, or no value is given, it is the moment `before`.
        """
        if value is None:
            return before
        assert self.attribute is not None
        found = before
        for segment in self.segments():
            reaches = segment.file and segment.first < found and segment.last >= begins
            if reaches and may_reach(segment, self.attribute, value):
                table = self._columns(segment, ["_seq", self.attribute])
                values, known = column_marks(table[self.attribute])
                moments = table["_seq"].to_numpy()
                chosen = moments[known & (values > value) & (moments >= begins)]
                found = min([found, *chosen.tolist()])
        return found

    def droppable(self, mark: Any, now_us: int) -> int:
        """The moment before which no bound wants anything; whole segments only."""
        segments = [s for s in self._store.segments(self.arc) if s.file]
        found = [self.oldest]
        if self.kept.keeps_nothing:
            return max([self.oldest, *(segment.last + 1 for segment in segments)])
        if self.kept.rows is not None:
            found.append(_with_rows(segments, self.kept.rows))
        if self.kept.bytes is not None:
            found.append(_within_bytes(segments, self.kept.bytes))
        if self.kept.time_us is not None:
            attribute, bound = self._time_bound(mark, now_us)
            if bound is not None:
                found.append(self._first_wanted(segments, attribute, bound))
        return max(found)

    def _time_bound(self, mark: Any, now_us: int) -> tuple[str, Any]:
        """The attribute by which time is kept, and the least value that is; None: any."""
        assert self.kept.time_us is not None
        if self.attribute is None:
            return ENTRY, now_us - self.kept.time_us
        if mark is None:
            return self.attribute, None
        kind = self.schema.field(self.attribute).type
        return self.attribute, mark - clock_to_mark(self.kept.time_us, kind.name, kind.scale)

    def _first_wanted(self, segments: Collection[Segment], attribute: str, bound: Any) -> int:
        """The beginning of the first segment that may have tuples above a bound, or of the last."""
        for segment in sorted(segments, key=lambda s: s.first):
            newer = attribute != ENTRY or self._entered(segment) >= bound
            if newer and may_reach(segment, attribute, bound):
                return segment.first
        return max((segment.first for segment in segments), default=0)

    def _entered(self, segment: Segment) -> int:
        """When the latest tuple of a segment entered."""
        if segment.id not in self._newest_entry:
            times = self._columns(segment, [ENTRY])[ENTRY].to_numpy()
            self._newest_entry[segment.id] = int(times.max())
        return self._newest_entry[segment.id]

    def newest_entry(self) -> int:
        """When the newest tuple of the arc entered; 0 if there is none."""
        held = [segment for segment in self._store.segments(self.arc) if segment.file]
        return max(map(self._entered, held), default=0)  # steps of buckets overlap

    def least_kept(self, begins: int, mark: Any) -> Any:
        """The least value of the progressing attribute that is sure to be kept.

        That is what time says, or the value of the oldest tuple, of which `begins` is the moment.
        """
        assert self.attribute is not None
        if self.kept.time_us is not None and self.kept.rows is None and mark is not None:
            return self._time_bound(mark, 0)[1]
        for segment in self._store.segments(self.arc, begins):
            if segment.file and segment.first <= begins:
                table = self._columns(segment, ["_seq", self.attribute])
                values, known = column_marks(table[self.attribute])
                chosen = values[known & (table["_seq"].to_numpy() == begins)]
                if len(chosen):
                    return chosen[:1].tolist()[0]
        return None

    def _columns(self, segment: Segment, columns: list[str]) -> Any:
        return self._store.table(segment, columns)

    # ── keeping it small ──

    def expire(self, mark: Any, now_us: int) -> Change | None:
        """Drop what no bound wants any more; None if there is nothing to do."""
        oldest = self.droppable(mark, now_us) if self.kept.is_bounded else self.oldest
        needed = min([oldest, *self.holds.values()])
        stays = not self.has_marks or min(needed, self.marks.recorded) <= self.marks.base_moment
        if oldest <= self.oldest and stays:
            return None
        needed = min(needed, self.marks.recorded)
        heads = {(self.arc, self.reader): max(oldest, self.oldest)}
        progress = self.marks.drop_before(needed) if self.has_marks else {}
        if progress:
            heads[self.marks.log, self.reader] = needed
        there = {segment.id for segment in self._store.segments(self.arc)}
        self._newest_entry = {i: at for i, at in self._newest_entry.items() if i in there}
        return Change(heads=heads, progress=progress)

    def marks_to_merge(self) -> list[Segment]:
        """Neighbouring small segments of marks that are to become one, which is one file."""
        run: list[Segment] = []
        moves = 0
        for segment in self._store.segments(self.marks.log):
            size = segment.rows + len(segment.punctuations)
            if moves + size > _MOST_MOVES:
                if len(run) >= _MERGED_MARKS:
                    return run
                run, moves = [], 0
            run.append(segment)
            moves += size
        return run if len(run) >= _MERGED_MARKS else []

    # ── looking ──

    def statistics(self, attachments: list[str]) -> dict[str, Any]:
        """What is kept, as plain data."""
        held = [segment for segment in self.segments() if segment.file]
        oldest, newest = self._span(held)
        return {
            "arc": self.arc,
            "rows": sum(segment.rows for segment in held),
            "bytes": sum(segment.bytes for segment in held),
            "segments": len(held),
            "oldest": oldest,
            "newest": newest,
            "attachments": attachments,
        }

    def _span(self, held: list[Segment]) -> tuple[Any, Any]:
        """The least and greatest value of the progressing attribute; else entry times in µs."""
        if self.attribute is None:
            if not held:
                return None, None
            first = self._columns(held[0], [ENTRY])[ENTRY].to_numpy()
            return int(first.min()), max(self._entered(held[-1]), int(first.max()))
        bounds = [s.bounds[self.attribute] for s in held if self.attribute in s.bounds]
        if not bounds:
            return None, None
        kind = self.schema.field(self.attribute).type
        values = min(low for low, _ in bounds), max(high for _, high in bounds)
        low, high = (from_mark(value, kind.name, kind.scale) for value in values)
        return low, high

    def latest_mark(self, progress: Mapping[str, Any]) -> Any:
        """The mark of the attribute by which time is kept."""
        mark = None if self.attribute is None else progress.get(self.attribute)
        return mark_at(mark, None) if isinstance(mark, LowWater) else None


def mark_at(mark: LowWater, before: int | None) -> Any:
    """What a mark has reached before a moment, whether or not the input has ended then.

    >>> mark_at(LowWater.of([(3, 10), (7, 12)]).end(9), None)
    12
    """
    values = LowWater(mark.moments, mark.values)
    return values.latest if before is None else values.at(before - 1)


def _with_rows(segments: Collection[Segment], rows: int) -> int:
    """The moment from which on whole segments hold at least so many tuples."""
    total, first = 0, 0
    for segment in sorted(segments, key=lambda s: -s.last):
        if total >= rows:
            return first
        first = segment.first if not total else min(first, segment.first)
        total += segment.rows
    return first if total >= rows else 0


def _within_bytes(segments: Collection[Segment], limit: int) -> int:
    """The moment from which on whole segments take at most so many bytes; the newest may."""
    total, first = 0, 0
    for segment in sorted(segments, key=lambda s: -s.last):
        if total and total + segment.bytes > limit:
            return first
        first = segment.first if not total else min(first, segment.first)
        total += segment.bytes
    return 0
