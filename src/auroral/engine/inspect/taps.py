"""Taps: the latest tuples of arcs that somebody looks at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from auroral.engine.debug.conditions import Condition
from auroral.engine.debug.pins import PinnedSegment, pin, together
from auroral.engine.debug.places import Place, PlaceFinder
from auroral.engine.results.batches import visible
from auroral.engine.runtime.train import Train
from auroral.errors import StateError, UsageError
from auroral.storage import Change, Segment, Store

OPEN_S = 30.0
"""A tap stays open for so long after somebody has looked."""
MOST_ROWS = 10_000
"""So many of the latest rows of a log are looked at."""
_MOST_PINS = 64
_AT = pa.timestamp("us", tz="UTC")


@dataclass
class Tap:
    """One name that somebody looks at, and the segments that its latest tuples are in."""

    place: Place
    until_s: float
    pins: dict[str, PinnedSegment] = field(default_factory=dict)
    """By the segment's file, oldest first."""
    rows: pa.Table | None = None
    """The latest tuples that were found of an arc that is never written."""

    def hold(self, pins: Sequence[PinnedSegment]) -> None:
        """Remember segments, and forget those that are older than what is looked at."""
        self.pins |= {one.segment.file or "": one for one in pins}
        total, kept = 0, 0
        for one in reversed(self.pins.values()):
            if kept >= _MOST_PINS or total >= MOST_ROWS:
                break
            total, kept = total + one.segment.rows, kept + 1
        for known in list(self.pins)[: len(self.pins) - kept]:
            del self.pins[known]


class Taps:
    """The taps of an engine: opened by looking, closed when nobody has looked for a while.

    The thread that commits only pins segments; whoever looks reads them.
    """

    def __init__(
        self,
        store: Store,
        changed: Callable[[], None],
        now_s: Callable[[], float] = time.monotonic,
    ):
        """`changed` is called when the first tap is opened or the last one closed."""
        self._store = store
        self._changed = changed
        self._now_s = now_s
        self._lock = threading.Lock()
        self._open: dict[str, Tap] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    # ── looking ──

    def sample(
        self,
        finder: PlaceFinder,
        name: str,
        limit: int,
        where: str | None,
        open_s: float = OPEN_S,
    ) -> pa.Table:
        """The latest tuples of a name, newest last, with `_seq` and `_at` in front."""
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise UsageError("BAD_CALL", f"limit is a number of rows, not {limit!r}")
        place = finder.find(name)
        resolver = finder.execution.context.settings.executor.resolver
        condition = None if where is None else Condition(where, place.fields, resolver)
        with self._lock:
            tap = self._open.get(name)
            if tap is None or (tap.place.logs, tap.place.path) != (place.logs, place.path):
                tap = self._open[name] = Tap(place, 0.0)
            tap.place = place
            tap.until_s = max(tap.until_s, self._now_s() + open_s)
            pins = list(tap.pins.values())
        self._changed()
        rows = self._rows(finder, tap, pins)
        shown = rows.append_column("_at", rows["_ts"].cast(_AT)) if rows.num_rows else None
        if shown is None:
            hidden = [pa.field("_seq", pa.int64()), pa.field("_at", _AT)]
            return pa.schema([*hidden, *place.schema]).empty_table()
        if condition is not None:
            shown = shown.filter(pa.array(condition.holds(visible(shown).drop_columns(["_at"]))))
        shown = shown.select(["_seq", "_at", *place.schema.names])
        return shown.slice(max(shown.num_rows - limit, 0))

    def _rows(self, finder: PlaceFinder, tap: Tap, pins: Sequence[PinnedSegment]) -> pa.Table:
        """The latest tuples that can be had, with hidden columns."""
        place = tap.place
        given: dict[str, pa.Table] = {}
        for log in place.logs:
            there = self._latest(log)
            known = {one.file for one in there}
            parts = [self._read(segment) for segment in there]
            parts += [
                one.read()
                for one in pins
                if one.segment.log == log and one.segment.file not in known
            ]
            schema = finder.checked.arcs[log].schema.arrow() if log in finder.checked.arcs else None
            held = [part for part in parts if part is not None and part.num_rows]
            table = together(held, schema or pa.schema([]))
            if table.num_rows:
                given[log] = _once(table.slice(max(table.num_rows - MOST_ROWS, 0)))
        if place.path:
            made = finder.preview.run(place.path, given).get(place.arc or "")
        else:
            made = next(iter(given.values()), None)
        if made is not None and place.view is not None:
            made = place.view.finish(place.view.rows(made))
        if not place.path:
            return made if made is not None else place.schema.empty_table()
        parts = [part for part in (tap.rows, made) if part is not None and part.num_rows]
        found = together(parts, place.schema)
        if found.num_rows:
            found = _once(found)
            tap.rows = found = found.slice(max(found.num_rows - MOST_ROWS, 0))
        return found

    def _latest(self, log: str) -> list[Segment]:
        """The segments of the latest rows that are still in a log."""
        held = sorted((s for s in self._store.segments(log) if s.file), key=lambda s: s.last)
        total, at = 0, len(held)
        while at > 0 and total < MOST_ROWS:
            at -= 1
            total += held[at].rows
        return held[at:]

    def _read(self, segment: Segment) -> pa.Table | None:
        try:
            return self._store.table(segment)
        except StateError:
            if self._store.holds(segment):
                raise
            return None  # somebody has taken it just now

    # ── for those who commit ──

    def committing(self, train: Train, change: Change) -> None:
        """Pin what a step has written or taken of arcs that somebody looks at."""
        now_s = self._now_s()
        closed = [name for name, tap in list(self._open.items()) if tap.until_s < now_s]
        if closed:
            with self._lock:
                self._open = {n: tap for n, tap in self._open.items() if n not in closed}
            self._changed()
        for tap in list(self._open.values()):
            held: list[PinnedSegment] = []
            for log in tap.place.logs:
                written = [s for s in change.written if s.log == log]
                taken = [s for s in train.segments.get(log, ()) if s.file not in tap.pins]
                latest = _within(taken or written)
                held += pin(self._store, latest)
            if held:
                with self._lock:
                    tap.hold(held)


def _within(segments: Sequence[Segment]) -> list[Segment]:
    """The latest of some segments, as far as their rows are looked at."""
    found: list[Segment] = []
    total = 0
    for segment in sorted((s for s in segments if s.file), key=lambda s: -s.last):
        if total >= MOST_ROWS or len(found) >= _MOST_PINS:
            break
        found.append(segment)
        total += segment.rows
    return found[::-1]


def _once(table: pa.Table) -> pa.Table:
    """Tuples in order, each once, though segments were put together meanwhile."""
    moments = table["_seq"].to_numpy()
    same = moments[1:] == moments[:-1]
    if not same.any():
        return table
    if "_sub" in table.column_names:
        subs = np.array(table["_sub"].to_pylist(), dtype=object)
        same = same & (subs[1:] == subs[:-1])
    return table.filter(pa.array(np.concatenate([[True], ~same])))
