"""Segments of queues that are in memory, so that steps need not read them from the disk.

The tuples are on the disk as well, always: what is evicted costs time, never data.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from auroral.errors import StateError
from auroral.scheduling.residency import (
    QueuedSegment,
    ResidencyMoves,
    ResidencyPlanner,
    WaitingQueue,
)
from auroral.storage.segment import Segment, read

SMALL_BYTES = 1 << 20
"""Segments up to this size are put together with others, by the driver."""


@dataclass(frozen=True)
class ResidencyCounts:
    """What has happened so far."""

    loads: int = 0
    """Segments brought from the disk."""
    evictions: int = 0
    """Segments that others took the place of."""
    refusals: int = 0
    """New segments that were committed and had no room."""
    memory_bytes: int = 0
    """What steps have read that was in memory."""
    disk_bytes: int = 0
    """What steps have read that was not."""


class ResidentSegments:
    """Holds segments of queues in memory, as a `ResidencyPlanner` decides.

    Segments that the driver cuts or puts together are held as Arrow tables. Those that tasks read
    as they are stay in the page cache of the operating system, which is asked to read them ahead
    when they are loaded; a copy in a memory file system would be read no faster (docs/adr/0055).

    Loading is done by a thread of its own if there are threads (`background`).
    """

    def __init__(
        self,
        planner: ResidencyPlanner,
        *,
        background: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self.counts = ResidencyCounts()
        self._planner = planner
        self._now_s = now_s
        self._lock = threading.Lock()
        self._tables: dict[str, pa.Table] = {}
        self._logs: Collection[str] = ()
        self._cut_rows = 0
        self._growth: dict[str, float] = {}
        """By log, how much larger than their files tables are."""
        loader = ThreadPoolExecutor(1, thread_name_prefix="auroral-residency")
        self._loader = loader if background else None

    def serve(self, logs: Collection[str], budget: int, cut_rows: int) -> None:
        """Hold segments of these logs; those of more tuples than a train are cut."""
        with self._lock:
            self._logs, self._cut_rows = frozenset(logs), cut_rows
            self._planner.budget = budget

    def close(self) -> None:
        """Hold nothing any more."""
        if self._loader is not None:
            self._loader.shutdown(cancel_futures=True)
        with self._lock:
            self._logs = ()
            self._tables.clear()

    # ── what is there ──

    @property
    def budget(self) -> int:
        return self._planner.budget

    @property
    def used(self) -> int:
        """How many bytes are in memory."""
        return self._planner.used

    def __contains__(self, file: str) -> bool:
        return file in self._planner

    def table(self, file: str) -> pa.Table | None:
        """The tuples of a segment, if they are in memory as a table."""
        return self._tables.get(file)

    def share(self, segments: Iterable[Segment]) -> float:
        """The share of segments that is in memory, by bytes; all of it if there are none."""
        total = held = 0
        for segment in segments:
            if segment.file:
                total += segment.bytes
                held += segment.bytes if segment.file in self._planner else 0
        return held / total if total else 1.0

    def size(self, segment: Segment) -> int:
        """How many bytes a segment takes in memory, as far as is known."""
        if not self._is_read_by_driver(segment):
            return segment.bytes
        table = self._tables.get(segment.file or "")
        growth = self._growth.get(segment.log, 1.0)
        return table.nbytes if table is not None else int(segment.bytes * growth)

    def note_read(self, segments: Iterable[Segment]) -> None:
        """Count what a step is about to read, and keep it until the next plan."""
        held = [segment for segment in segments if segment.file]
        with self._lock:
            self._planner.pin(segment.file for segment in held if segment.file)
            inside = sum(s.bytes for s in held if s.file and s.file in self._planner)
            self.counts = replace(
                self.counts,
                memory_bytes=self.counts.memory_bytes + inside,
                disk_bytes=self.counts.disk_bytes + sum(s.bytes for s in held) - inside,
            )

    # ── what comes and goes ──

    def offer(self, segment: Segment, table: pa.Table | None, *, read: bool = False) -> None:
        """Hold a segment that was written just now, or read, if its log is a queue.

        It is offered with its tuples when they are written, and without when it is committed.
        `read`: it was read in order to cut it, and is needed again.
        """
        if not segment.file or segment.log not in self._logs:
            return
        by_table = table is not None and (read or self._is_read_by_driver(segment))
        size = table.nbytes if by_table and table is not None else segment.bytes
        queued = QueuedSegment(segment.file, segment.log, size, segment.first)
        with self._lock:
            if by_table:
                self._growth[segment.log] = size / segment.bytes
            if segment.file in self._planner:
                if not by_table or segment.file in self._tables:
                    return
                if not self._planner.resize(segment.file, size):
                    self._count(evictions=1)
                    return
            else:
                evicted = self._planner.admit(queued, self._now_s())
                if evicted is None:
                    self._count(refusals=1 if table is None else 0)
                    return
                self._remove(evicted)
            if by_table and table is not None:
                self._tables[segment.file] = table

    def drop(self, file: str) -> None:
        """Forget a segment that is no more."""
        with self._lock:
            self._planner.forget(file)
            self._tables.pop(file, None)

    def tend(
        self,
        queues: Iterable[WaitingQueue],
        pinned: Collection[str],
        segment_of: Callable[[str], tuple[Path, Segment] | None],
    ) -> ResidencyMoves:
        """Load and evict as queues and priorities are now."""
        with self._lock:
            moves = self._planner.plan(queues, pinned, self._now_s())
            self._remove(moves.evict)
            for file in moves.passed:
                self._tables.pop(file, None)
        for queued in moves.load:
            found = segment_of(queued.name)
            if found is None:
                self.drop(queued.name)
            elif self._loader is None:
                self._load(*found)
            else:
                self._submit(*found)
        return moves

    def _submit(self, path: Path, segment: Segment) -> None:
        assert self._loader is not None
        with suppress(RuntimeError):  # the engine ends
            self._loader.submit(self._load, path, segment)

    def _load(self, path: Path, segment: Segment) -> None:
        """Bring a segment into memory that the planner has made room for."""
        assert segment.file
        table = None
        try:
            if self._is_read_by_driver(segment):
                table = read(path, segment)
            else:
                _read_ahead(path)
        except (StateError, OSError):  # it has been passed meanwhile; if not, its step will tell
            self.drop(segment.file)
            return
        with self._lock:
            if segment.file not in self._planner:
                return
            self._count(loads=1)
            if table is not None:
                self._growth[segment.log] = table.nbytes / segment.bytes
                if self._planner.resize(segment.file, table.nbytes):
                    self._tables[segment.file] = table

    def _is_read_by_driver(self, segment: Segment) -> bool:
        """Whether steps cut a segment, or put it together with others."""
        return segment.bytes <= SMALL_BYTES or segment.rows > self._cut_rows

    def _remove(self, evicted: Collection[str]) -> None:
        for file in evicted:
            self._tables.pop(file, None)
        self._count(evictions=len(evicted))

    def _count(self, loads: int = 0, evictions: int = 0, refusals: int = 0) -> None:
        known = self.counts
        self.counts = replace(
            known,
            loads=known.loads + loads,
            evictions=known.evictions + evictions,
            refusals=known.refusals + refusals,
        )


def _read_ahead(path: Path) -> None:
    """Ask the operating system to read a file into its cache, without waiting for it."""
    if not hasattr(os, "posix_fadvise"):
        return
    opened = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(opened)
