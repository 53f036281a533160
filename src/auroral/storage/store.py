"""The store: a directory of segment logs with their manifest.

Everything the engine must remember is a log: an input, an output, later a window's history.
A log is a list of segments in order of moments with one cursor per consumer: `head` is the
first moment it has not processed, `tail` the oldest it still needs. What is before every tail
is deleted.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.disk import (
    Unsynced,
    disk_errors,
    make_directory,
    sync_directory,
    sync_files,
    unlink,
)
from auroral.errors import StateError
from auroral.ids import HELD
from auroral.storage.cache import TableCache
from auroral.storage.change import Change, Forgotten, MovedLog, UnwrittenSegment
from auroral.storage.compaction import merged, runs_to_merge
from auroral.storage.contents import has_state, mark_state, sweep
from auroral.storage.cursors import Cursors
from auroral.storage.identity import bind_network, require_format
from auroral.storage.lock import DirectoryLock
from auroral.storage.manifest import Manifest, QueryRow
from auroral.storage.resident import ResidentSegments
from auroral.storage.segment import (
    MAX_FILE_BYTES,
    Segment,
    bounds_of,
    encode,
    read,
    verify,
    write_file,
)
from auroral.storage.statistics import KeptStatistics
from auroral.storage.temporary import TemporaryDirectory

DURABILITIES = ("power", "process")
"""What a state directory may survive: also a power failure, or only the end of the process."""
SPLIT_ROWS = 100_000
"""Larger batches are written as several files at once, one per core, to be read so too."""
_CACHE_BYTES = 256 << 20


class Store:
    """A state directory, or a temporary one that is removed at the end.

    `cores` is how many files are written at once. `buckets` is into how many parts keyed state is
    split; another number than the directory has is refused, and None takes what it has, or the
    default if it is new. `fault` is called with the name of each point at which a crash is
    survivable; tests raise there.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        cores: int = 2,
        buckets: int | None = None,
        default_buckets: int = 2,
        durability: str = "power",
        fault: Callable[[str], None] = lambda _point: None,
        lock: AbstractContextManager[Any] | None = None,
    ):
        """`lock` is a reentrant lock to use instead of an own one."""
        self.durable = directory is not None
        self.power = self.durable and durability == "power"
        """Whether what is committed survives a power failure, not only the end of the process."""
        self.fault = fault
        self._cores = cores
        self.lock: AbstractContextManager[Any] = lock or threading.RLock()
        self._wanted_buckets = buckets
        self._default_buckets = default_buckets
        self._unsynced = Unsynced()
        self.progressing: Mapping[str, Sequence[str]] = {}
        """By log, the attributes whose least and greatest values segments remember."""
        self._owner: DirectoryLock | TemporaryDirectory
        if directory is None:
            self._owner = TemporaryDirectory()
        else:
            self._owner = DirectoryLock(Path(directory).absolute(), power=self.power)
        self.directory = self._owner.path
        self.segments_directory = self.directory / "segments"
        try:
            self._open_manifest()
        except BaseException:
            self._owner.release()
            raise
        self._writers = ThreadPoolExecutor(cores, thread_name_prefix="auroral-segments")
        self._cache = TableCache(_CACHE_BYTES)
        self.resident: ResidentSegments | None = None
        """The segments of queues that are in memory, if somebody decides which ones."""

    # ── opening and closing ──

    def _open_manifest(self) -> None:
        with disk_errors(self.directory):
            make_directory(self.segments_directory, sync=self.power)
        used = has_state(self.directory)
        manifest = Manifest(self.directory / "manifest.db", power=self.power, expected=used)
        self.manifest = manifest
        try:
            if used and manifest.meta("format") is None:
                raise manifest.damaged("it does not say which format it has")
            require_format(
                manifest,
                self.directory,
                buckets=self._wanted_buckets,
                default=self._default_buckets,
            )
            mark_state(self.directory, sync=self.power)
            self._load()
        except (ValueError, TypeError, AttributeError) as error:
            manifest.close()
            raise manifest.damaged(f"an entry makes no sense: {error}") from None
        except BaseException:
            manifest.close()
            raise

    def _load(self) -> None:
        self._logs: dict[str, list[Segment]] = {}
        for segment in self.manifest.segments():
            self._logs.setdefault(segment.log, []).append(segment)
            if segment.file:
                verify(self.path_of(segment), segment, deep=True)
        self._cursors = Cursors(self.manifest.cursors())
        self.counters = self.manifest.counters()
        self.costs = self.manifest.costs()
        self.next_moment = int(self.manifest.meta("next_moment") or 0)
        self.buckets = int(self.manifest.meta("buckets") or 1)
        """Into how many parts state is split by its keys."""
        known = {s.file for log in self._logs.values() for s in log if s.file}
        if self.power:
            self._settle(known)
        with disk_errors(self.directory):
            self._file_number = 1 + sweep(self.directory, known)

    def _settle(self, known: Iterable[str]) -> None:
        """Sync what an earlier run left unsynced, before anything is removed that it may need."""
        with disk_errors(self.segments_directory):
            sync_files(self.segments_directory / file for file in known)
            sync_directory(self.segments_directory)
            sync_directory(self.directory)
        self.manifest.settle()

    def close(self) -> None:
        """Release the directory; a temporary one is removed."""
        self._writers.shutdown()
        if self.resident is not None:
            self.resident.close()
        with self.lock:
            self.manifest.close()
            self._owner.release()

    def needs_sync(self, path: Path, *, content: bool) -> None:
        """Sync a new name, and what is in the file, before the next commit; if power may fail."""
        if self.power:
            self._unsynced.add(path, content=content)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction of the manifest; what it refers to is on the disk before it is."""
        with self.manifest.transaction():
            yield
            with disk_errors(self.directory):
                self._unsynced.sync()

    def bind_network(self, document: Mapping[str, Any]) -> bool:
        """Make the directory this network's, or refuse another's; whether it has changed since."""
        return bind_network(self.manifest, document, self.directory)

    # ── reading ──

    def path_of(self, segment: Segment) -> Path:
        assert segment.file
        return self.segments_directory / segment.file

    def segments(self, log: str, since: int = 0) -> list[Segment]:
        """The segments of a log that reach moment `since` or later."""
        with self.lock:
            return [s for s in self._logs.get(log, ()) if s.last >= since]

    def head(self, log: str, consumer: str) -> int:
        return self._cursors.head(log, consumer)

    def has_cursor(self, log: str, consumer: str) -> bool:
        return (log, consumer) in self._cursors

    def least_head(self, wanted: Callable[[str], bool]) -> int | None:
        """The first moment that one of the wanted consumers has not processed, if there are any."""
        with self.lock:
            places = [place for place in self._cursors if wanted(place[1])]
        return min((self.head(*place) for place in places), default=None)

    def table(self, segment: Segment, columns: list[str] | None = None) -> pa.Table:
        """A segment's tuples, from memory if they were written or read by one of many just now."""
        assert segment.file
        cached = self._in_memory(segment.file)
        if cached is not None:
            return cached.select(columns) if columns else cached
        table = read(self.path_of(segment), segment, columns)
        if columns is None and (segment.log, HELD) in self._cursors:
            with self.lock:
                if segment in self._logs.get(segment.log, ()):
                    self._cache.put(segment.file, table)
        return table

    def table_of_file(self, path: Path) -> pa.Table | None:
        """The tuples of a segment file, if they are in memory; None of any other file."""
        return self._in_memory(path.name) if path.parent == self.segments_directory else None

    def _in_memory(self, file: str) -> pa.Table | None:
        held = self.resident.table(file) if self.resident is not None else None
        return held if held is not None else self._cache.get(file)

    def rows_since(self, log: str, moment: int) -> int:
        """Tuples at or after a moment."""
        total = 0
        for segment in self.segments(log, moment):
            if segment.first >= moment:
                total += segment.rows
            elif segment.file:
                try:
                    moments = self.table(segment, ["_seq"])["_seq"].to_numpy()
                except StateError:
                    if self.holds(segment):
                        raise
                    continue
                total += int((moments >= moment).sum())
        return total

    def holds(self, segment: Segment) -> bool:
        """Whether a segment is still there; another thread may have retired it just now."""
        with self.lock:
            return segment in self._logs.get(segment.log, ())

    # ── writing ──

    def new_number(self) -> int:
        """A number that no segment file has yet."""
        with self.lock:
            self._file_number += 1
            return self._file_number - 1

    def new_path(self, first: int, last: int) -> Path:
        """A name for a new segment file."""
        return self.segments_directory / f"{self.new_number()}-{first}-{last}.parquet"

    def write(self, fresh: Sequence[UnwrittenSegment]) -> list[Segment]:
        """Write new tuples to files, several at once; nothing is registered yet."""
        pieces = [piece for batch in fresh for piece in self._pieces(batch)]
        if len(pieces) < 2:
            return [self._write_piece(piece) for piece in pieces]
        return list(self._writers.map(self._write_piece, pieces))

    def _pieces(self, batch: UnwrittenSegment) -> Iterator[UnwrittenSegment]:
        rows = batch.table.num_rows
        parts = 1 if rows < SPLIT_ROWS else self._cores
        parts = max(parts, -(-2 * batch.table.nbytes // MAX_FILE_BYTES))
        size = max(-(-rows // parts), 1)
        for start in range(0, max(rows, 1), size):
            piece = batch.table.slice(start, size)
            yield UnwrittenSegment(
                batch.log, piece, batch.complete_before, batch.punctuations if start == 0 else ()
            )

    def _write_piece(self, piece: UnwrittenSegment) -> Segment:
        at = [moment for moment, _, _ in piece.punctuations]
        rows = piece.table.num_rows
        if rows:
            moments = piece.table["_seq"].to_numpy()
            at += [int(moments.min()), int(moments.max())]
        first, last = min(at), max(at)
        if not rows:
            punctuations = piece.punctuations
            return Segment(
                0, piece.log, None, 0, 0, 0, first, last, piece.complete_before, punctuations
            )
        path = self.new_path(first, last)
        size, crc = write_file(path, encode(piece.table), sync=self.power)
        self.needs_sync(path, content=False)
        self._cache.put(path.name, piece.table)
        segment = Segment(
            0,
            piece.log,
            path.name,
            rows,
            size,
            crc,
            first,
            last,
            piece.complete_before,
            piece.punctuations,
            bounds_of(piece.table, self.progressing.get(piece.log, ())),
        )
        if self.resident is not None:
            self.resident.offer(segment, piece.table)
        return segment

    def commit(self, change: Change) -> None:
        """Write new tuples, then make everything of a change true in one transaction."""
        written = [*change.written, *self.write(change.fresh)]
        for segment in change.written:
            if segment.file:
                self.needs_sync(self.path_of(segment), content=False)
        with self.lock:
            try:
                self.fault("written")
                registered, gone = self._register(change, written)
            except Exception:
                # Nothing of it is true, so its files are nobody's.
                for segment in () if self.manifest.uncertain else written:
                    if segment.file:
                        self._delete(segment.file)
                raise
            self._apply(change, registered, gone)
        self.fault("committed")

    def _register(
        self, change: Change, written: Sequence[Segment]
    ) -> tuple[list[Segment], list[Segment]]:
        """The new segments with their ids, and those that nobody needs any more."""
        heads: dict[str, dict[str, int]] = {}
        for (log, consumer), head in change.heads.items():
            heads.setdefault(log, {})[consumer] = head
        with self._transaction():
            registered = [replace(s, id=self.manifest.add_segment(s)) for s in written]
            for moved in change.moved:
                self._move(moved)
            gone = [*change.retired, *self._forget(change.forgotten)]
            for log, own in heads.items():
                oldest = self._cursors.oldest(log, own)
                held = [*self._logs.get(log, ()), *(s for s in registered if s.log == log)]
                gone += [segment for segment in held if segment.last < oldest]
            if gone:
                self.manifest.remove_segments([segment.id for segment in gone])
            change.record(self.manifest)
            self.fault("before-commit")
        return registered, gone

    def _move(self, moved: MovedLog) -> None:
        log, to, consumer = moved.log, moved.to, moved.consumer
        head = self.head(log, consumer)
        self.manifest.move(log, to, consumer)
        held = self._logs.setdefault(to, [])
        held += [replace(segment, log=to) for segment in self._logs.pop(log, ())]
        self._cursors.drop((log, consumer))
        self._cursors.set((to, consumer), head, head)

    def _forget(self, forgotten: Forgotten) -> list[Segment]:
        """Drop what nobody needs; returns the segments that go with it."""
        for key in forgotten.cursors:
            self._cursors.drop(key)
        for counter in forgotten.counters:
            self.counters.pop(counter, None)
        gone = [segment for log in forgotten.logs for segment in self._logs.get(log, ())]
        for log in {log for log, _ in forgotten.cursors}.difference(forgotten.logs):
            gone += self._needless(log)
        self.manifest.remove_cursors(forgotten.cursors)
        self.manifest.remove_progress(forgotten.progress)
        self.manifest.remove_counters(forgotten.counters)
        for box in forgotten.costs:
            self.costs.pop(box, None)
        self.manifest.remove_costs(forgotten.costs)
        self.manifest.forget_queries([row.first for row in forgotten.queries])
        self.manifest.forget_gone([(r.first, r.first + r.count) for r in forgotten.queries])
        return gone

    def _apply(
        self, change: Change, registered: Sequence[Segment], gone: Sequence[Segment]
    ) -> None:
        for segment in registered:
            log = self._logs.setdefault(segment.log, [])
            log.insert(bisect_left(log, segment.first, key=lambda s: s.first), segment)
            if self.resident is not None:
                self.resident.offer(segment, None)
        for place, head in change.heads.items():
            self._cursors.set(place, head, head)
        for key, more in change.counts.items():
            self.counters[key] = self.counters.get(key, 0) + more
        self.costs.update(change.costs)
        if change.next_moment is not None:
            self.next_moment = change.next_moment
        self._drop(gone)

    def record_step(self, superbox: str, first: int, last: int, drops: str | None = None) -> int:
        """Note a step before it runs, with the drop boxes in front of it in JSON.

        If power fails before anything else is committed, it may be forgotten: then another train
        is formed, which gives the same results. One with drop boxes is not forgotten: another
        train might drop other tuples than those that a database has got.
        """
        with self.lock, self.manifest.transaction(lasting=drops is not None):
            step = self.manifest.add_step(superbox, first, last, drops)
        self.fault("recorded")
        return step

    def save_statistics(self, statistics: KeptStatistics) -> None:
        """Write what is known of streams, queues and outputs; a power failure may undo it."""
        with self.lock, self.manifest.transaction(lasting=False):
            self.manifest.set_statistics(statistics)

    def replace_queries(self, firsts: Sequence[int], instead: Sequence[QueryRow]) -> None:
        """Put the rows of the same queries in place of others."""
        with self.lock, self._transaction():
            self.manifest.forget_queries(firsts)
            self.manifest.add_queries(instead)

    def forget(
        self,
        logs: Sequence[str],
        cursors: Sequence[tuple[str, str]],
        progress: Sequence[str] = (),
        counters: Sequence[tuple[str, str]] = (),
        costs: Sequence[str] = (),
    ) -> None:
        """Drop whole logs, consumers that are no more and what was remembered for them."""
        gone = Forgotten(logs, cursors, progress, counters, costs=costs)
        self.commit(Change(forgotten=gone))

    def forget_sinks(self, target: str) -> None:
        """Drop the positions that sinks of queries which went have had in a file."""
        with self.lock, self._transaction():
            self.manifest.remove_sinks(target)

    def names(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The logs that hold something, and every (log, consumer)."""
        with self.lock:
            return [log for log, held in self._logs.items() if held], list(self._cursors)

    def readers(self, consumer: str) -> list[tuple[str, str]]:
        """Every (log, consumer) of a consumer and of its members, `name[…]`."""
        with self.lock:
            return self._cursors.named(consumer)

    def progress_names(self) -> list[str]:
        """Under which names progress is remembered."""
        return list(self.manifest.progress())

    def sinks(self) -> dict[str, Any]:
        """What is remembered of every sink, by output."""
        return self.manifest.sinks()

    def sink(self, output: str) -> Any | None:
        """What is remembered of one sink."""
        return self.manifest.sink(output)

    def held(self) -> set[str]:
        """The logs that keep what one consumer says."""
        with self.lock:
            return self._cursors.held()

    # ── retention and compaction ──

    def _needless(self, log_name: str) -> list[Segment]:
        """What is before every tail."""
        oldest = self._cursors.oldest(log_name)
        return [segment for segment in self._logs.get(log_name, ()) if segment.last < oldest]

    def compact(self, log_name: str) -> int:
        """Merge neighbouring small segments of a log; returns how many went."""
        gone = 0
        for run in self.small_runs(log_name):
            segment = self.merge(run)
            if segment is not None and self.replace_run(run, segment):
                gone += len(run) - 1
        return gone

    def small_runs(self, log_name: str) -> list[list[Segment]]:
        """Runs of neighbouring small segments of a log that should become one segment each."""
        with self.lock:
            return runs_to_merge(self._logs.get(log_name, []))

    def merge(self, run: Sequence[Segment]) -> Segment | None:
        """Write the tuples of a run as one segment; None if some are no longer there."""
        try:
            tables = [self.table(segment) for segment in run]
        except StateError:
            if all(self.holds(segment) for segment in run):
                raise
            return None
        punctuations = tuple(p for segment in run for p in segment.punctuations)
        before = max(s.complete_before for s in run)
        return self._write_piece(UnwrittenSegment(run[0].log, merged(tables), before, punctuations))

    def replace_run(
        self,
        run: Sequence[Segment],
        segment: Segment,
        in_use: Callable[[], Collection[int]] = lambda: (),
    ) -> bool:
        """Put a merged segment in the place of its run; False if that changed, or is `in_use`."""
        log_name = segment.log
        with self.lock:
            current = self._logs.get(log_name, [])
            used = set(in_use())
            if all(old in current and old.id not in used for old in run):
                self._replace(log_name, run, [segment])
                return True
            if segment.file:
                self._delete(segment.file)
            return False

    def _replace(self, log_name: str, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        with self._transaction():
            self.manifest.remove_segments([segment.id for segment in old])
            registered = [replace(s, id=self.manifest.add_segment(s)) for s in new]
        self._drop(old)
        log = [*self._logs.get(log_name, ()), *registered]
        self._logs[log_name] = sorted(log, key=lambda s: s.first)

    def _drop(self, gone: Sequence[Segment]) -> None:
        """Forget segments that the manifest no longer has, and delete their files."""
        ids = {segment.id for segment in gone}
        for log_name in {segment.log for segment in gone}:
            left = [s for s in self._logs.get(log_name, ()) if s.id not in ids]
            self._logs[log_name] = left
        for segment in gone:
            if segment.file:
                self._delete(segment.file)

    def _delete(self, file: str) -> None:
        """Remove a file, and its tuples from memory."""
        self._cache.drop(file)
        if self.resident is not None:
            self.resident.drop(file)
        unlink(self.segments_directory / file)
