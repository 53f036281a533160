"""Watermarks of streams, moved on by what has arrived in their logs."""

from __future__ import annotations

import pyarrow as pa

from auroral.engine.runtime.train import cut
from auroral.engine.runtime.watermarks import WatermarkTracker, origins_log
from auroral.ids import CLOCK_LOG, WATERMARKS
from auroral.network.check import CheckedNetwork
from auroral.progress.origins import OriginRows
from auroral.storage import Segment, Store


class ArrivalProgress:
    """Reads the logs of streams as far as they are complete and moves watermarks on."""

    def __init__(self, checked: CheckedNetwork, store: Store, watermarks: WatermarkTracker):
        self._checked = checked
        self._store = store
        self._watermarks = watermarks
        self._folded: int = store.manifest.progress().get(WATERMARKS, 0)
        """The moment before which everything has been read."""

    def fold(self, complete: int) -> None:
        """Move the marks of all streams up to where logs are complete."""
        first = self._folded
        if complete <= first:
            return
        if self._watermarks.uses_clock:
            for segment in self._store.segments(CLOCK_LOG, first):
                ticks = cut(self._store.table(segment), first, complete)
                self._watermarks.tick(ticks["_seq"].to_numpy(), ticks["_ts"].to_numpy())
        for stream in self._checked.network.streams:
            self._fold_stream(stream, first, complete)
        self._folded = complete

    def _fold_stream(self, stream: str, first: int, complete: int) -> None:
        columns = self._watermarks.needs(stream)
        if not columns:
            return
        held = self._store.segments(stream, first)
        noted = [[p for p in s.punctuations if first <= p[0] < complete] for s in held]
        tuples = [self._tuples(s, columns, first, complete) for s in held]
        origins = self._origins(stream, first, complete)
        if origins is None:
            for some, punctuations in zip(tuples, noted, strict=True):
                self._watermarks.advance(stream, some, punctuations)
        else:  # which may say something where there is no tuple
            whole = pa.concat_tables(tuples) if tuples else self._no_tuples(stream, columns)
            every = [punctuation for some in noted for punctuation in some]
            self._watermarks.advance(stream, whole, every, origins)

    def _origins(self, stream: str, first: int, last: int) -> OriginRows | None:
        """Which origin the moments of a stream concern; None if it has no more than one source."""
        held = self._store.segments(origins_log(stream), first)
        if not held:
            return None
        rows = pa.concat_tables([cut(self._store.table(s), first, last) for s in held])
        if not rows.num_rows:
            return None
        return OriginRows(*(rows[name].to_numpy() for name in ("_seq", "origin", "event")))

    def _tuples(self, segment: Segment, columns: list[str], first: int, last: int) -> pa.Table:
        if segment.file is None:
            return self._no_tuples(segment.log, columns)
        return cut(self._store.table(segment, columns), first, last)

    def _no_tuples(self, stream: str, columns: list[str]) -> pa.Table:
        schema = self._checked.arcs[stream].schema.arrow()
        fields = [pa.field("_seq", pa.int64()), *(schema.field(n) for n in columns[1:])]
        return pa.schema(fields).empty_table()
