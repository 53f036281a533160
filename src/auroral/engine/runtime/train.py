"""Forming a train: from segments waiting in the logs to files for one step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from auroral.ids import file_name
from auroral.scheduling.superboxes import Superbox
from auroral.scheduling.trains import train_end
from auroral.shedding.drops import Drops
from auroral.spark.running.executor import Files
from auroral.spark.running.train_file import TrainFile
from auroral.storage import Segment, Store
from auroral.storage.segment import MAX_FILE_BYTES, encode, verify, write_file

_MOST_FILES = 8
_SMALL_BYTES = 1 << 20
"""So much is put together into one file where each number of files needs a plan of its own."""


@dataclass(frozen=True)
class Train:
    """Moments `first` up to, not including, `last`; the segments that hold them, by source."""

    superbox: Superbox
    first: int
    last: int
    segments: Mapping[str, tuple[Segment, ...]]
    drops: Drops = field(default_factory=dict)
    """The drop boxes in front of the superbox, by source."""

    @property
    def tuples(self) -> int:
        """At most so many: segments at its borders may hold more."""
        return sum(map(self.rows_of, self.segments))

    def rows_of(self, source: str) -> int:
        """At most so many tuples of one source."""
        return sum(segment.rows for segment in self.segments[source])


def next_train(
    store: Store, superbox: Superbox, complete: int, limit: int, upto: int | None = None
) -> Train | None:
    """The train that is due, if any; `upto` repeats a train that was recorded before a crash."""
    head = min((store.head(source, superbox.name) for source in superbox.sources), default=0)
    if head >= complete:
        return None
    waiting = {source: store.segments(source, head) for source in superbox.sources}
    last = upto
    if last is None or last <= head:
        every = [segment for held in waiting.values() for segment in held]
        last = train_end(every, head, complete, limit)
    chosen = {source: tuple(s for s in held if s.first < last) for source, held in waiting.items()}
    return Train(superbox, head, last, chosen)


def train_files(
    store: Store,
    train: Train,
    directory: Path,
    *,
    has_room: Callable[[Mapping[str, int]], bool] | None = None,
) -> Files:
    """The files of a train: whole segments as they are, others cut or put together.

    If Spark plans for them, not for the tasks that read any, `has_room` tells whether it need not
    do so anew for so many files of each source. Few tuples come in one file then anyway, and more
    do if there is no room.
    """
    held = {source: [s for s in found if s.file] for source, found in train.segments.items()}
    apart = {
        source: _apart(segments, train, gather=_is_little(segments, planned=has_room is not None))
        for source, segments in held.items()
    }
    counts = {s: len(apart[s]) + (len(apart[s]) < len(found)) for s, found in held.items() if found}
    if has_room is not None and counts and not has_room(counts):
        apart = {source: _apart(found, train, gather=True) for source, found in held.items()}
    return {s: _files(store, s, held[s], apart[s], train, directory) for s in held}


def _is_little(segments: Sequence[Segment], *, planned: bool) -> bool:
    """Whether segments come in one file in any case."""
    size = sum(segment.bytes for segment in segments)
    return len(segments) > _MOST_FILES or (planned and len(segments) > 1 and size <= _SMALL_BYTES)


def _apart(segments: Sequence[Segment], train: Train, *, gather: bool) -> set[int]:
    """The segments, by id, that are files of the train as they are."""
    least = MAX_FILE_BYTES // 4 // len(segments) if gather and len(segments) > 1 else 0
    whole = [s for s in segments if train.first <= s.first and s.last < train.last]
    return {segment.id for segment in whole if segment.bytes >= least}


def _files(
    store: Store,
    source: str,
    segments: Sequence[Segment],
    apart: Collection[int],
    train: Train,
    directory: Path,
) -> list[TrainFile]:
    files: list[TrainFile] = []
    small: list[pa.Table] = []
    for segment in segments:
        path = store.path_of(segment)
        verify(path, segment, deep=False)
        if segment.id in apart:
            files.append(TrainFile(path, segment.rows, segment.bytes))
        else:
            table = store.table(segment)
            if segment.last >= train.last and store.resident is not None:
                store.resident.offer(segment, table, read=True)  # the next train needs the rest
            small.append(cut(table, train.first, train.last))
    rows = sum(table.num_rows for table in small)
    if rows:
        path = directory / f"{file_name(source)}-{train.first}-{train.last}.parquet"
        size, _ = write_file(path, encode(pa.concat_tables(small)), sync=False)
        files.append(TrainFile(path, rows, size))
    return files


def cut(table: pa.Table, first: int, last: int) -> pa.Table:
    """The tuples with first <= moment < last."""
    moments = table["_seq"].to_numpy()
    if np.all(moments[1:] >= moments[:-1]):
        start, stop = np.searchsorted(moments, [first, last])
        return table.slice(start, stop - start)
    return table.filter(pa.array((moments >= first) & (moments < last)))
