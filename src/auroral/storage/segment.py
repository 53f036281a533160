"""Segments: immutable Parquet files with a checksum and the moments they cover."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from auroral.disk import disk_errors, write_whole
from auroral.errors import StateError
from auroral.progress.values import column_marks

MAX_FILE_BYTES = 127 << 20
"""No segment file is larger: a compiled plan reads slots of this length."""


Punctuations = tuple[tuple[int, Any, tuple[Any, ...]], ...]
"""(moment, value, group) triples."""


@dataclass(frozen=True)
class Segment:
    """A run of tuples of one log.

    `first` and `last` are the least and greatest moment; all inputs are complete before
    `sealed`. `punctuations` are (moment, value, group) triples that arrived with them. `bounds`
    are the least and greatest mark of each progressing attribute.
    """

    id: int
    log: str
    file: str | None
    rows: int
    bytes: int
    crc: int
    first: int
    last: int
    complete_before: int
    punctuations: Punctuations = ()
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def share_within(self, first: int, before: int | None = None) -> float:
        """About which share of its tuples has moments from `first` on and before another one.

        Nothing is read for that: tuples are taken to be spread evenly over its moments.

        >>> segment = Segment(1, "reports", "reports-1", 100, 800, 0, 1, 100, 101)
        >>> segment.share_within(31), segment.share_within(31, 51), segment.share_within(200)
        (0.7, 0.2, 0.0)
        """
        last = self.last if before is None else min(self.last, before - 1)
        return max(last - max(self.first, first) + 1, 0) / (self.last - self.first + 1)

    def rows_from(self, moment: int) -> float:
        """About how many of its tuples are not before a moment."""
        return self.rows * self.share_within(moment)


def bounds_of(table: pa.Table, attributes: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """The least and greatest mark of each attribute; none if it is always NULL or NaN."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in attributes:
        values, known = column_marks(table[name])
        if known.any():
            seen = values[known]
            low, high = seen.min(), seen.max()
            found[name] = (low.item(), high.item()) if hasattr(low, "item") else (low, high)
    return found


def encode(table: pa.Table) -> pa.Buffer:
    """A table as the bytes of a Parquet file that Spark reads fastest.

    Plain, uncompressed pages: written in about half the time of snappy, and the scan is no
    slower (docs/adr/0003). Columns without NULLs are declared so, which spares writing and
    reading where the NULLs are: half the time of integers.
    """
    fields = [
        field.with_nullable(nullable=table[field.name].null_count > 0) for field in table.schema
    ]
    schema = pa.schema(fields, table.schema.metadata)
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays(table.columns, schema=schema),
        sink,
        compression="none",
        use_dictionary=["_ts"] if "_ts" in table.column_names else False,
        column_encoding={"_seq": "DELTA_BINARY_PACKED"},
        write_statistics=["_seq"],
        write_page_checksum=True,
        row_group_size=1 << 20,
    )
    return sink.getvalue()


def write_file(path: Path, data: pa.Buffer, *, sync: bool) -> tuple[int, int]:
    """Write bytes under a temporary name, then rename; returns (bytes, checksum)."""
    with disk_errors(path):
        write_whole(path, memoryview(data), sync=sync)
    return data.size, zlib.crc32(data)


def checksum(path: Path) -> int:
    """The checksum of a whole file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            value = zlib.crc32(block, value)
    return value


def verify(path: Path, segment: Segment, *, deep: bool) -> None:
    """Refuse a missing, shortened or (when `deep`) altered segment, by name."""
    try:
        found = path.stat()
    except OSError:
        raise _damaged(path, segment, "the file is missing") from None
    size = found.st_size
    if not stat.S_ISREG(found.st_mode):
        raise _damaged(path, segment, "it is no file")
    if size != segment.bytes:
        raise _damaged(path, segment, f"it has {size} bytes, expected {segment.bytes}")
    if deep and checksum(path) != segment.crc:
        raise _damaged(path, segment, "its checksum does not match")


def read(path: Path, segment: Segment, columns: list[str] | None = None) -> pa.Table:
    """The tuples of a segment."""
    verify(path, segment, deep=False)
    return reading(path, segment, lambda: read_file(str(path), columns))


def read_file(path: str, columns: list[str] | None = None) -> pa.Table:
    """The rows of a segment file, its pages verified."""
    with open(path, "rb") as opened:
        table = pq.ParquetFile(opened, page_checksum_verification=True).read(columns)
    fields = [field.with_nullable(nullable=True) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


def reading(path: Path, segment: Segment, action: Callable[[], pa.Table]) -> pa.Table:
    """Run a reader; what goes wrong is the segment's damage."""
    try:
        return action()
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, segment, str(error).splitlines()[0]) from None


def _damaged(path: Path, segment: Segment, reason: str) -> StateError:
    return StateError(
        "SEGMENT_DAMAGED",
        f"segment {segment.id} of log {segment.log} (moments {segment.first} to {segment.last})"
        f" cannot be used: {reason}",
        where=str(path),
        hint="restore the file from a backup of the state directory; nothing was skipped",
    )
