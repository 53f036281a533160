"""The history of one connection point, organised by its key.

The log of the point stays as it is, in order of moments. Beside it lie runs: files with the same
rows sorted by key, which are segments of a log of their own (`HistoryIndexId`). So they are
registered, synced and swept like all segments. They can be lost without loss: what no run
covers is looked up in the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from auroral.errors import StateError
from auroral.history.merging import merged_runs, sorted_by_key
from auroral.history.predicate import KeyPredicate
from auroral.history.run_file import (
    GROUP_ROWS,
    RunDirectory,
    expected_distinct,
    nullable,
    read_batches,
    read_directory,
    write_run,
)
from auroral.history.tiers import RunTiers, expired
from auroral.ids import HistoryIndexId
from auroral.network.types import Schema
from auroral.progress.values import to_mark
from auroral.storage import Change, Segment, Store
from auroral.storage.segment import read, reading

_BATCH_ROWS = 131_072
_ATTEMPTS = 100
_EVER = 2**62
T = TypeVar("T")


@dataclass(frozen=True)
class KeptMoments:
    """Which part of a log is history: `oldest` is the first moment kept.

    Nothing of a moment before `complete` will be added to the log any more.
    """

    oldest: int
    complete: int


@dataclass(frozen=True)
class ReadAmount:
    """Rows and bytes."""

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: ReadAmount) -> ReadAmount:
        return ReadAmount(self.rows + other.rows, self.bytes + other.bytes)


@dataclass(frozen=True)
class Lookup:
    """What a lookup found, in order of moments, and what it read of all that a scan would read."""

    rows: pa.Table
    read: ReadAmount
    kept: ReadAmount


@dataclass(frozen=True)
class LookupPlan:
    """What a lookup would read, known from footers and the manifest alone."""

    read: ReadAmount
    kept: ReadAmount
    pieces: int
    """Row groups of runs and segments of the log."""


@dataclass(frozen=True)
class HistoryStatistics:
    """How much history there is, how it is organised, and what lookups have read of it."""

    rows: int
    bytes: int
    distinct_keys: int | None
    """Estimated from the largest run; None while there is none."""
    runs: int
    indexed_rows: int
    indexed_bytes: int
    lookups: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    rows_kept: int = 0
    """The sum over all lookups of what a scan would have read."""
    bytes_kept: int = 0

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass
class _Totals:
    lookups: int = 0
    read: ReadAmount = field(default_factory=ReadAmount)
    kept: ReadAmount = field(default_factory=ReadAmount)


@dataclass(frozen=True)
class _Snapshot:
    """The files that a lookup has to look at, as they were at one time."""

    runs: tuple[Segment, ...]
    log: tuple[Segment, ...]

    @property
    def covered(self) -> tuple[int, int]:
        """Runs have all rows from one moment on up to, not including, another.

        Somebody may hold back rows of the log that are older than history.
        """
        if not self.runs:
            return 0, 0
        return self.runs[0].first, max(run.last for run in self.runs) + 1

    @property
    def others(self) -> list[Segment]:
        """Segments of the log with moments that no run covers."""
        start, end = self.covered
        return [segment for segment in self.log if segment.first < start or segment.last >= end]

    def kept(self, first: int, last: int) -> ReadAmount:
        """What a scan of some moments would read."""
        found = _between(self.log, first, last)
        return ReadAmount(sum(s.rows for s in found), sum(s.bytes for s in found))


class KeyedHistory:
    """Looks up rows of a log by a key, and keeps the runs that make this cheap.

    With `indexed=False` there are no runs: the bounds of the log's segments decide what is read.
    That is enough for a key by which the log is nearly sorted.

    `lookup` may be called by any thread. `work` is called by one thread at a time.
    """

    def __init__(
        self,
        store: Store,
        point: str,
        log: str,
        schema: Schema,
        key: str,
        *,
        indexed: bool = True,
        tiers: RunTiers | None = None,
        group_rows: int = GROUP_ROWS,
    ):
        self.id = HistoryIndexId(point, log, schema.field(key).name)
        self._store = store
        self._log = log
        self._index_log = str(self.id)
        self._schema = schema
        self.key = schema.field(key).name
        self._scale = schema.field(key).type.scale
        self.indexed = indexed
        self._tiers = tiers or RunTiers()
        self._group_rows = group_rows
        self._lock = threading.Lock()
        self._totals = _Totals()
        self._directories: dict[str, RunDirectory] = {}

    # ── looking ──

    def lookup(self, predicate: KeyPredicate, first: int, last: int) -> Lookup:
        """The rows of moments `first` to `last` whose key satisfies a predicate.

        Rows that are no longer kept are as the caller says: not before `first`.
        """
        (parts, amount), snapshot = self._retried(lambda s: self._found(s, predicate, first, last))
        rows = self._arranged(parts)
        kept = snapshot.kept(first, last)
        self._note(amount, kept)
        return Lookup(rows, amount, kept)

    def scan(self, predicate: KeyPredicate | None, first: int, last: int) -> Lookup:
        """The same rows, found by reading all of the log."""

        def read_all(snapshot: _Snapshot) -> tuple[list[pa.Table], ReadAmount]:
            parts: list[pa.Table] = []
            amount = ReadAmount()
            for segment in _between(snapshot.log, first, last):
                if segment.file:
                    table = read(self._store.path_of(segment), segment)
                    amount += ReadAmount(segment.rows, segment.bytes)
                    parts.append(_taken(table, predicate, first, last))
            return parts, amount

        (parts, amount), snapshot = self._retried(read_all, all_of_log=True)
        return Lookup(self._arranged(parts), amount, snapshot.kept(first, last))

    def plan(self, predicate: KeyPredicate, first: int, last: int) -> LookupPlan:
        """What a lookup would read; reads footers only."""

        def add_up(snapshot: _Snapshot) -> tuple[ReadAmount, int]:
            amount, pieces = ReadAmount(), 0
            for run in _between(snapshot.runs, first, last):
                directory = self._directory(run)
                for number in directory.matching(predicate):
                    group = directory.groups[number]
                    amount += ReadAmount(group.rows, group.bytes)
                    pieces += 1
            for segment in _between(snapshot.others, first, last):
                if segment.file and self._may_hold(segment, predicate):
                    amount += ReadAmount(segment.rows, segment.bytes)
                    pieces += 1
            return amount, pieces

        (amount, pieces), snapshot = self._retried(add_up)
        return LookupPlan(amount, snapshot.kept(first, last), pieces)

    def statistics(self) -> HistoryStatistics:
        """How much there is and what lookups read of it."""
        snapshot = self._snapshot()
        kept = snapshot.kept(0, _EVER)
        largest = max(snapshot.runs, key=lambda run: run.rows, default=None)
        distinct = None
        if largest is not None:
            try:
                found = self._directory(largest).distinct
                distinct = expected_distinct(largest.rows, found, kept.rows)
            except StateError:
                distinct = None  # it was merged just now
        with self._lock:
            totals = replace(self._totals)
        return HistoryStatistics(
            kept.rows,
            kept.bytes,
            distinct,
            len(snapshot.runs),
            sum(run.rows for run in snapshot.runs),
            sum(run.bytes for run in snapshot.runs),
            totals.lookups,
            totals.read.rows,
            totals.read.bytes,
            totals.kept.rows,
            totals.kept.bytes,
        )

    def _found(
        self, snapshot: _Snapshot, predicate: KeyPredicate, first: int, last: int
    ) -> tuple[list[pa.Table], ReadAmount]:
        parts, amount = [], ReadAmount()
        for run in _between(snapshot.runs, first, last):
            directory = self._directory(run)
            groups = directory.matching(predicate)
            for number in groups:
                amount += ReadAmount(directory.groups[number].rows, directory.groups[number].bytes)
            for table in self._rows(run, groups):
                parts.append(_taken(table, predicate, first, last))
        for segment in _between(snapshot.others, first, last):
            if segment.file and self._may_hold(segment, predicate):
                path = self._store.path_of(segment)
                amount += ReadAmount(segment.rows, segment.bytes)
                keys = read(path, segment, [self.key])
                if pc.any(predicate.mask(keys[self.key])).as_py():
                    table = _taken(read(path, segment), predicate, first, last)
                    parts.append(_outside(table, *snapshot.covered))
        return parts, amount

    def _arranged(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Rows in order of moments, hidden columns first."""
        hidden = pa.schema([("_seq", pa.int64()), ("_ts", pa.int64())])
        empty = pa.schema([*hidden, *self._schema.arrow()]).empty_table()
        table = pa.concat_tables(
            [empty, *(nullable(part) for part in parts)], promote_options="default"
        )
        first = [name for name in ("_seq", "_ts", "_sub") if name in table.column_names]
        moments = [(name, "ascending") for name in first if name != "_ts"]
        return table.select([*first, *self._schema.names]).sort_by(moments)

    def _may_hold(self, segment: Segment, predicate: KeyPredicate) -> bool:
        """Whether the bounds of a segment of the log allow rows that satisfy a predicate."""
        if self.key not in segment.bounds:
            return True
        least, greatest = segment.bounds[self.key]
        # Bounds leave out NaN.
        floating = isinstance(least, float) and predicate.has_nan
        return floating or self._in_marks(predicate).overlaps(least, greatest)

    def _in_marks(self, predicate: KeyPredicate) -> KeyPredicate:
        """The same predicate on marks, as bounds of segments are: decimals are unscaled there."""

        def mark(value: Any) -> Any:
            return to_mark(value, self._scale) if isinstance(value, Decimal) else value

        marked = (replace(i, low=mark(i.low), high=mark(i.high)) for i in predicate.intervals)
        return KeyPredicate(predicate.key, tuple(marked))

    def _directory(self, run: Segment) -> RunDirectory:
        assert run.file
        found = self._directories.get(run.file)
        if found is None:
            path = self._store.path_of(run)
            found = reading(path, run, lambda: read_directory(path, self.key))
            with self._lock:
                self._directories[run.file] = found
        return found

    def _snapshot(self, *, all_of_log: bool = False) -> _Snapshot:
        with self._store.lock:
            runs = () if all_of_log else tuple(self._store.segments(self._index_log))
            log = self._store.segments(self._log)
        return _Snapshot(runs, tuple(log))

    def _retried(
        self, look: Callable[[_Snapshot], T], *, all_of_log: bool = False
    ) -> tuple[T, _Snapshot]:
        """Look at a snapshot; again if its files were merged or expired meanwhile."""
        for _ in range(_ATTEMPTS):
            snapshot = self._snapshot(all_of_log=all_of_log)
            try:
                return look(snapshot), snapshot
            except StateError:
                if all(map(self._store.holds, (*snapshot.runs, *snapshot.log))):
                    raise
        raise StateError(
            "HISTORY_BUSY", f"the history of {self.id.point} changes faster than it can be read"
        )

    def _note(self, amount: ReadAmount, kept: ReadAmount) -> None:
        with self._lock:
            self._totals.lookups += 1
            self._totals.read += amount
            self._totals.kept += kept

    # ── keeping runs ──

    def work(self, kept: KeptMoments, is_cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Do one piece of work: drop, merge or make runs; False if there is nothing to do.

        A merge that is cancelled ends soon and leaves everything as it was.
        """
        if not self.indexed:
            return False
        runs = self._store.segments(self._index_log)
        gone = expired(runs, kept.oldest)
        if gone:
            self._commit([], gone)
            return True
        merging = self._tiers.to_merge(runs, kept.oldest)
        if merging:
            return self._merge(merging, kept.oldest, is_cancelled)
        return self._extend(runs, kept)

    def forget(self) -> None:
        """Drop all runs."""
        self._store.forget([self._index_log], [])
        with self._lock:
            self._directories.clear()

    def _merge(
        self, runs: Sequence[Segment], oldest: int, is_cancelled: Callable[[], bool]
    ) -> bool:
        inputs = [self._kept_rows(run, oldest) for run in runs]
        schemas = [
            self._directory(run).metadata.schema.to_arrow_schema().remove_metadata() for run in runs
        ]
        schema = _common(schemas)
        aligned = [(_with_columns(table, schema) for table in each) for each in inputs]
        merged = _unless(is_cancelled, merged_runs(aligned, self.key))
        try:
            self._write(max(runs[0].first, oldest), runs[-1].last, schema, merged, runs)
        except WorkCancelledError:
            return False
        return True

    def _kept_rows(self, run: Segment, oldest: int) -> Iterator[pa.Table]:
        for table in self._rows(run, range(len(self._directory(run).groups))):
            yield table if run.first >= oldest else _since(table, oldest)

    def _rows(self, run: Segment, groups: Sequence[int]) -> Iterator[pa.Table]:
        """The rows of some row groups of a run, a batch at a time."""
        path = self._store.path_of(run)
        batches = read_batches(path, self._directory(run), groups, _BATCH_ROWS)
        while (table := reading(path, run, lambda: next(batches, None))) is not None:
            yield table

    def _extend(self, runs: Sequence[Segment], kept: KeptMoments) -> bool:
        """Make a run of the next rows of the log, if there are enough."""
        start = max(kept.oldest, max((run.last + 1 for run in runs), default=0))
        waiting = self._store.segments(self._log, start)
        rows, end = 0.0, start
        for segment in waiting:
            if segment.last < kept.complete and rows < self._tiers.first_rows:
                rows += segment.rows * _share_since(segment, start)
                end = max(end, segment.last + 1)
        if rows < self._tiers.first_rows:
            return False
        taken = [s for s in waiting if s.first < end and s.file]
        parts = []
        for segment in taken:
            try:
                table = read(self._store.path_of(segment), segment)
            except StateError:
                if self._store.holds(segment):
                    raise
                return True  # it was merged with others: look again
            parts.append(_taken(table, None, start, end - 1))
        found = self._arranged(parts)
        if found.num_rows:
            ordered = sorted_by_key(found, self.key)
            self._write(start, end - 1, ordered.schema, [ordered], [])
        return bool(found.num_rows)

    def _write(
        self,
        first: int,
        last: int,
        schema: pa.Schema,
        tables: Iterable[pa.Table],
        instead_of: Sequence[Segment],
    ) -> None:
        path = self._store.new_path(first, last)
        made = write_run(
            path,
            self.key,
            schema,
            tables,
            sync=self._store.power,
            group_rows=self._group_rows,
        )
        run = Segment(
            0, self._index_log, path.name, made.rows, made.bytes, made.crc, first, last, last + 1
        )
        self._commit([run], instead_of)

    def _commit(self, made: Sequence[Segment], gone: Sequence[Segment]) -> None:
        self._store.commit(Change(written=made, retired=gone))
        with self._lock:
            for run in gone:
                self._directories.pop(run.file or "", None)


class WorkCancelledError(Exception):
    """A merge was told to end."""


def _unless(is_cancelled: Callable[[], bool], tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        if is_cancelled():
            raise WorkCancelledError
        yield table


def _between(segments: Sequence[Segment], first: int, last: int) -> list[Segment]:
    return [segment for segment in segments if segment.last >= first and segment.first <= last]


def _share_since(segment: Segment, start: int) -> float:
    """About which share of a segment's rows is not before a moment."""
    return (segment.last + 1 - max(start, segment.first)) / (segment.last + 1 - segment.first)


def _taken(table: pa.Table, predicate: KeyPredicate | None, first: int, last: int) -> pa.Table:
    """The rows of some moments that satisfy a predicate."""
    moments = table["_seq"]
    holds = pc.and_(pc.greater_equal(moments, first), pc.less_equal(moments, last))
    if predicate is not None:
        holds = pc.and_(holds, predicate.mask(table[predicate.key]))
    return table.filter(holds)


def _outside(table: pa.Table, start: int, end: int) -> pa.Table:
    """The rows that are not of moments from one on up to, not including, another."""
    moments = table["_seq"]
    return table.filter(pc.or_(pc.less(moments, start), pc.greater_equal(moments, end)))


def _since(table: pa.Table, oldest: int) -> pa.Table:
    return table.filter(pc.greater_equal(table["_seq"], oldest))


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Steps in which no moment could repeat have no `_sub`; beside others it is NULL."""
    schema = pa.unify_schemas(list(schemas))
    return pa.schema([each.with_nullable(nullable=True).remove_metadata() for each in schema])


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    missing = [each for each in schema if each.name not in table.column_names]
    for each in missing:
        table = table.append_column(each, pa.nulls(table.num_rows, each.type))
    return table.select(schema.names)
