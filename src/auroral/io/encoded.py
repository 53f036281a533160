"""JSON lines and CSV that come as bytes: batches that `enqueue` takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from auroral.io.batches import ENQUEUED, EncodedBatch
from auroral.io.chunk import ROW_CHARS, Chunk
from auroral.io.readers import lexer
from auroral.io.readers.assemble import RecordPlace
from auroral.io.readers.blocks import RecordBlock
from auroral.io.readers.csv import CsvReader
from auroral.io.readers.jsonl import JsonRecords, split
from auroral.io.rows import RowReader

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class JsonLinesText(EncodedBatch):
    """JSON objects, one per line, as bytes; a line that is none is a dead letter.

    >>> from auroral.network.types import Schema
    >>> chunk = JsonLinesText(b'{"a": 1}\\n{"a": \\n').chunk(RowReader("s", Schema.parse("a int")))
    >>> chunk.tuples.to_pylist(), chunk.dead[0].line
    ([{'a': 1}], 2)
    """

    data: bytes = field(repr=False)
    place: str = ENQUEUED
    line: int = 1
    """The number of the first line."""

    def chunk(self, rows: RowReader) -> Chunk:
        data = self.data.removeprefix(_BOM) if self.line == 1 else self.data
        block = RecordBlock(data, 0, self.line, plain=True)
        lines = cache(lambda: split(block))
        place = RecordPlace(
            self.place,
            lambda i: lines()[i].number,
            lambda i: lines()[i].raw[: 4 * ROW_CHARS].decode(errors="backslashreplace"),
        )
        reader = JsonRecords(rows, timed=False)
        records = reader.read(data) if data.strip() else None
        if records is not None:
            return rows.assembler.chunk(records, place, None)
        values, broken = reader.exactly([line.raw for line in lines()])
        return rows.read_rows(values, place=place, broken=broken)


@dataclass(frozen=True)
class CsvText(EncodedBatch):
    """CSV as bytes; the first record is the header unless `names` are given."""

    data: bytes = field(repr=False)
    place: str = ENQUEUED
    line: int = 1
    """The number of the first line."""
    names: Sequence[str] | None = None
    """The columns of data without a header."""

    def chunk(self, rows: RowReader) -> Chunk:
        reader = _CsvBytes(self, rows)
        nothing = Chunk.of_tuples(rows.assembler.arrow.empty_table(), base=None)
        return next(reader.chunks(reader.start()), nothing)


class _CsvBytes(CsvReader):
    """Reads CSV from memory, as one block."""

    def __init__(self, given: CsvText, rows: RowReader):
        self._given = given
        super().__init__(given.place, rows)

    def _header(self) -> tuple[list[str], int, int]:
        if self._given.names is not None:
            return list(self._given.names), 0, self._given.line
        names, byte, line = super()._header()
        return names, byte, line + self._given.line - 1

    def _blocks(self, byte: int, line: int) -> Iterator[RecordBlock]:
        data = self._given.data[byte:] if byte else self._given.data
        if data:
            _, plain = lexer.cut(data, True, self._most_lines)
            yield RecordBlock(data, byte, line, plain)
