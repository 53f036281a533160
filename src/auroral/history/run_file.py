"""Runs: Parquet files with the rows of a stretch of history, sorted by key and then by moment.

Row groups are small and their statistics say which keys they hold, so that a lookup reads a few of
them. What the statistics leave open (NaN, very long text) is read.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from auroral.disk import OpenFile, disk_errors, rename, unlink
from auroral.history.predicate import Interval, KeyPredicate, comparable_column

GROUP_ROWS = 8_192
"""The rows of a row group: what a lookup of one key reads at least."""
_DISTINCT = b"auroral.distinct"
_KEY = b"auroral.key"


@dataclass(frozen=True)
class GroupBounds:
    """A row group of a run: its least and greatest key, None if the statistics do not say."""

    rows: int
    bytes: int
    least: Any
    greatest: Any
    all_null: bool


@dataclass(frozen=True)
class RunDirectory:
    """What the footer of a run says: its row groups, and how many different keys there are."""

    metadata: pq.FileMetaData
    key: str
    groups: tuple[GroupBounds, ...]
    distinct: int
    floating: bool

    @cached_property
    def _bounded(self) -> tuple[list[int], list[Any], list[Any]]:
        """The groups whose bounds are known, with the least and the greatest keys; both ascend."""
        known = [number for number, group in enumerate(self.groups) if group.least is not None]
        found = [self.groups[number] for number in known]
        return known, [group.least for group in found], [group.greatest for group in found]

    @cached_property
    def _unbounded(self) -> list[int]:
        """The groups of which the statistics say nothing, although they hold keys."""
        groups = enumerate(self.groups)
        return [n for n, group in groups if group.least is None and not group.all_null]

    def matching(self, predicate: KeyPredicate) -> list[int]:
        """The row groups that can hold a row which satisfies a predicate."""
        known, least, greatest = self._bounded
        found = set(self._unbounded) if predicate.intervals else set()
        for interval in predicate.intervals:
            at = _first_above(greatest, interval)
            while at < len(known) and interval.overlaps(least[at], greatest[at]):
                found.add(known[at])
                at += 1
        if self.floating and predicate.has_nan:
            found.update(known[-1:])  # NaN comes after all numbers, and statistics leave it out
        return sorted(found)

    def holding(self, values: Sequence[Any]) -> list[int]:
        """The row groups that can hold one of some ascending values, none of which is NaN."""
        known, least, greatest = self._bounded
        found = set(self._unbounded) if values else set()
        for number, low, high in zip(known, least, greatest, strict=True):
            at = bisect_left(values, low)
            if at < len(values) and values[at] <= high:
                found.add(number)
        return sorted(found)


def _first_above(greatest: list[Any], interval: Interval) -> int:
    """The first group that has a key which is not below an interval."""
    low = interval.low
    if low is None:
        return 0
    if low != low:
        return len(greatest)  # NaN is above all numbers
    return (bisect_left if interval.closed_low else bisect_right)(greatest, low)


def read_directory(path: Path, key: str) -> RunDirectory:
    """Read the footer of a run."""
    metadata = pq.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    at = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == key)
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        least, greatest, nulls = _statistics(group.column(at).statistics)
        groups.append(
            GroupBounds(
                group.num_rows, group.total_byte_size, least, greatest, nulls == group.num_rows
            )
        )
    distinct = int((metadata.metadata or {}).get(_DISTINCT, 0))
    floating = pa.types.is_floating(schema.field(key).type)
    return RunDirectory(metadata, key, tuple(groups), distinct, floating)


def key_of(path: Path) -> str | None:
    """The column by which a file is sorted; None if it is no run."""
    key = (pq.read_metadata(path).metadata or {}).get(_KEY)
    return None if key is None else key.decode()


def _statistics(found: pq.Statistics | None) -> tuple[Any, Any, int]:
    """The least and greatest value as intervals compare them, and how many are NULL."""
    if found is None:
        return None, None, 0
    nulls = found.null_count if found.has_null_count else 0
    if not found.has_min_max:
        return None, None, nulls
    if found.physical_type in ("INT32", "INT64") and found.logical_type.type != "DECIMAL":
        return found.min_raw, found.max_raw, nulls
    with suppress(ValueError, OverflowError):
        return found.min, found.max, nulls
    return None, None, nulls


def read_groups(
    path: Path, directory: RunDirectory, groups: Sequence[int], columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of some row groups, in the order of the run."""
    with path.open("rb") as opened:
        file = pq.ParquetFile(opened, metadata=directory.metadata, page_checksum_verification=True)
        wanted = None if columns is None else list(columns)
        return nullable(file.read_row_groups(list(groups), columns=wanted, use_threads=False))


def read_batches(
    path: Path, directory: RunDirectory, groups: Sequence[int], batch_rows: int
) -> Iterator[pa.Table]:
    """The rows of some row groups in the order of the run, about `batch_rows` at a time."""
    batch: list[int] = []
    rows = 0
    for group in groups:
        batch.append(group)
        rows += directory.groups[group].rows
        if rows >= batch_rows:
            yield read_groups(path, directory, batch)
            batch, rows = [], 0
    if batch:
        yield read_groups(path, directory, batch)


def nullable(table: pa.Table) -> pa.Table:
    """The table with every column allowed to be NULL, as arcs have them."""
    fields = [field.with_nullable(nullable=True).remove_metadata() for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


@dataclass(frozen=True)
class WrittenRun:
    """A run that is on the disk and not yet registered."""

    path: Path
    rows: int
    bytes: int
    crc: int


def write_run(
    path: Path,
    key: str,
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    *,
    sync: bool,
    group_rows: int = GROUP_ROWS,
) -> WrittenRun:
    """Write sorted tables, one after the other, as one run; nothing is left of what fails."""
    temporary = path.with_name(path.name + ".tmp")
    with disk_errors(path):
        try:
            with _CheckedFile(temporary) as file:
                rows = _write(file, key, schema, tables, group_rows)
                if sync:
                    file.sync()
            rename(temporary, path)
        except BaseException:
            unlink(temporary)
            raise
    return WrittenRun(path, rows, file.size, file.crc)


def _write(
    file: _CheckedFile, key: str, schema: pa.Schema, tables: Iterable[pa.Table], group_rows: int
) -> int:
    rows, counter = 0, _DistinctCounter(key)
    with pq.ParquetWriter(
        pa.PythonFile(file, "w"),
        schema,
        compression="none",
        use_dictionary=False,
        column_encoding={"_seq": "DELTA_BINARY_PACKED"} if "_seq" in schema.names else None,
        write_statistics=[key],
        write_page_checksum=True,
        store_schema=True,
    ) as writer:
        waiting: list[pa.Table] = []
        for table in tables:
            counter.add(table)
            waiting.append(table.select(schema.names).cast(schema))
            whole = pa.concat_tables(waiting)
            full = whole.num_rows - whole.num_rows % group_rows
            if full:
                writer.write_table(whole.slice(0, full).combine_chunks(), row_group_size=group_rows)
            waiting = [whole.slice(full)]
            rows += table.num_rows
        if waiting and waiting[0].num_rows:
            writer.write_table(waiting[0].combine_chunks(), row_group_size=group_rows)
        facts = {_DISTINCT: str(counter.count), _KEY: key}
        writer.add_key_value_metadata({name.decode(): value for name, value in facts.items()})
    return rows


class _DistinctCounter:
    """Counts the different keys of sorted rows; NULL is none."""

    def __init__(self, key: str):
        self._key = key
        self._last: Any = None
        self.count = 0

    def add(self, table: pa.Table) -> None:
        values = comparable_column(table[self._key]).combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # too long for one array of text
            values = pa.concat_arrays(values.chunks)
        values = values.drop_null()
        if not len(values):
            return
        changes = pc.sum(pc.not_equal(values[1:], values[:-1])).as_py() or 0
        first = values[0].as_py()
        self.count += int(changes) + (self._last is None or first != self._last)
        self._last = values[-1].as_py()


class _CheckedFile:
    """A new file that knows the checksum of what was written to it."""

    def __init__(self, path: Path):
        self._file = OpenFile(path, anew=True)
        self.crc = 0
        self.closed = False

    @property
    def size(self) -> int:
        return self._file.size

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.crc = zlib.crc32(view, self.crc)
        self._file.write(view)
        return view.nbytes

    def flush(self) -> None:
        """Nothing is held back."""

    def tell(self) -> int:
        return self._file.size

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        """pyarrow closes its file when it has written the footer; ours stays open to be synced."""

    def __enter__(self) -> _CheckedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True
        self._file.close()


def expected_distinct(rows: int, distinct: int, total: int) -> int:
    """How many different keys `total` rows have, if `rows` of them have `distinct`.

    Keys are taken to be equally frequent. Rows with keys of their own go on having such.

    >>> expected_distinct(1_000, 10, 50_000), expected_distinct(1_000, 1_000, 50_000)
    (10, 50000)
    """
    if not rows or not distinct:
        return 0
    if distinct >= rows:
        return total
    low, high = float(distinct), float(rows) * rows
    for _ in range(200):
        keys = math.sqrt(low * high)
        if keys * -math.expm1(-rows / keys) < distinct:
            low = keys
        else:
            high = keys
    return max(distinct, min(total, round(-high * math.expm1(-total / high))))
