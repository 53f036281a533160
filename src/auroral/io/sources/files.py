"""A file as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from auroral.errors import UsageError
from auroral.io.chunk import Chunk
from auroral.io.fit import Extra
from auroral.io.readers.blocks import open_file
from auroral.io.readers.csv import CsvReader
from auroral.io.readers.jsonl import JsonlReader
from auroral.io.readers.lexer import FIELD_LINES
from auroral.io.readers.parquet import ParquetReader
from auroral.io.readers.reader import FileReader, ascending, in_order_of_arrival
from auroral.io.rows import RowReader
from auroral.network.types import Schema

CHUNK_ROWS = 65_536
SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))


def format_of(path: str, format: str | None = None) -> str:
    """The format named, or the one the suffix tells.

    >>> format_of("a/b.ndjson")
    'jsonl'
    """
    found = format or SUFFIXES.get(Path(path).suffix.lower())
    if found in FORMATS:
        return found
    raise UsageError(
        "UNKNOWN_FORMAT",
        f"cannot tell the format of {path}; the formats are {', '.join(FORMATS)}",
        where=path,
        hint=f"use a suffix such as {', '.join(SUFFIXES)}",
    )


class FileSource:
    """The rows of one file: in file order, or in order of `_at` if it has that column.

    A file whose `_at` is not ascending is held in memory as a whole to be sorted. In CSV a quoted
    field of more than `max_field_lines` lines is a dead letter.
    """

    def __init__(
        self,
        stream: str,
        path: str | Path,
        schema: Schema,
        *,
        format: str | None = None,
        progress_on: str | None = None,
        by: Sequence[str] = (),
        chunk_rows: int = CHUNK_ROWS,
        extra: Extra = "reject",
        max_field_lines: int = FIELD_LINES,
    ):
        self.stream = stream
        self.path = str(path)
        self.schema = schema
        self.chunk_rows = chunk_rows
        self._max_field_lines = max_field_lines
        rows = RowReader(
            stream, schema, progress_on=progress_on, by=by, place=self.path, extra=extra
        )
        self._kind = format_of(self.path, format)
        self._reader = self._open(self._kind, rows)
        self._sorted = self._reader.timed and not ascending(self._reader.arrivals())
        self._chunks: Iterator[Chunk] | None = self._read(self._reader.start(), 0)
        self._held: Chunk | None = None
        self._at = 0

    def _open(self, kind: str, rows: RowReader) -> FileReader:
        if kind == "csv":
            return CsvReader(self.path, rows, self._max_field_lines)
        if kind == "jsonl":
            return JsonlReader(self.path, rows)
        return ParquetReader(self.path, rows, self.chunk_rows)

    def poll(self, limit: int) -> Chunk | None:
        """The next rows; None only when the file is done."""
        self._fill()
        if self._held is None:
            return None
        start, stop = self._at, self._at + min(limit, self.chunk_rows)
        if stop >= self._held.count:
            chunk, self._held, self._at = self._held.slice(start, stop), None, 0
            return chunk
        self._at = stop
        return self._held.slice(start, stop)

    @property
    def finite(self) -> bool:
        return True

    @property
    def exhausted(self) -> bool:
        self._fill()
        return self._held is None

    def seek(self, offset: Any) -> None:
        base = offset["base"]
        if (base == "sorted") != self._sorted:
            raise UsageError(
                "SOURCE_CHANGED",
                f"{self.path} is not the file it was: the order of its _at has changed",
                where=self.path,
            )
        self._held, self._at = None, 0
        self._chunks = self._read(base, offset["skip"])

    @property
    def ending(self) -> int | None:
        """Where the file ended in the middle of a line, once it is read to its end."""
        if self._kind == "parquet" or not self.exhausted:
            return None
        with open_file(self.path) as file:
            size = file.seek(0, 2)
            file.seek(max(size - 1, 0))
            return size if size and file.read(1) not in (b"\n", b"\r") else None

    def require_ending(self, size: int) -> None:
        """Refuse a file whose last line, read before as it stood, has been written on."""
        with open_file(self.path) as file:
            file.seek(size)
            if file.read(1) not in (b"", b"\n", b"\r"):
                raise UsageError(
                    "SOURCE_CHANGED",
                    f"the last line of {self.path} had no end when it was read (at byte {size}),"
                    " and has been written on",
                    where=self.path,
                    hint="append whole lines, or use another state directory",
                )

    def close(self) -> None:
        self._chunks = self._held = None

    def _fill(self) -> None:
        if self._held is None and self._chunks is not None:
            self._held = next(self._chunks, None)
            if self._held is None:
                self._chunks = None

    def _read(self, base: Any, skip: int) -> Iterator[Chunk]:
        """The chunks that hold anything, from the record `skip` after `base`."""
        if self._sorted:
            every = self._reader.chunks(self._reader.start())
            chunks = iter((in_order_of_arrival(every, self.schema.arrow()),))
        else:
            chunks = self._reader.chunks(base)
        last, passed = None, 0
        for chunk in chunks:
            if chunk.offsets.base != last:
                # A block may be cut elsewhere after a restart: count on over its end.
                last, passed = chunk.offsets.base, 0
            size = chunk.offsets.end - passed
            passed = chunk.offsets.end
            if skip >= size:
                skip -= size
                continue
            if skip:
                chunk = chunk.after(chunk.offsets.end - size + skip)
                skip = 0
            if chunk.count or chunk.dead:
                yield chunk
