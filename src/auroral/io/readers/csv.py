"""CSV files: a header row, then a record per row; SPEC §2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from auroral.errors import UsageError
from auroral.io.chunk import ROW_CHARS, Chunk
from auroral.io.fit import match_columns, misplaced, others
from auroral.io.readers import lexer
from auroral.io.readers.assemble import RecordPlace, Records
from auroral.io.readers.blocks import RecordBlock, blocks
from auroral.io.readers.text import Parsed, expected, parse
from auroral.io.rows import RowReader
from auroral.io.values import ColumnReader
from auroral.network.types import Field, Type

_BOM = b"\xef\xbb\xbf"
_NESTED = ("array", "map", "struct")
_SECONDS = Type("double")


class CsvReader:
    """Reads one CSV file; Arrow splits and casts, the exact lexer does what Arrow refuses."""

    def __init__(self, path: str, rows: RowReader, most_lines: int = lexer.FIELD_LINES):
        """A quoted field has at most `most_lines` lines."""
        self.path = path
        self._most_lines = most_lines
        self.rows = rows
        self.assembler = rows.assembler
        self._names, self._byte, self._line = self._header()
        self._places = self._match()
        self.timed = "_at" in self._places
        self._columns = [
            (
                f,
                ColumnReader(f.type, loose=rows.extra == "ignore")
                if f.type.name in _NESTED
                else None,
            )
            for f in rows.given
        ]

    def start(self) -> Any:
        return {"byte": self._byte, "line": self._line}

    def chunks(self, base: Any) -> Iterator[Chunk]:
        for block in self._blocks(base["byte"], base["line"]):
            yield self._chunk(block)

    def arrivals(self) -> Iterator[np.ndarray]:
        column = self._places["_at"]
        for block in self._blocks(self._byte, self._line):
            split = self._split(block, column)
            texts = split[0] if split else self._split_exactly(block)[0][column]
            seconds, _ = parse(texts, _SECONDS)
            yield np.asarray(seconds.to_numpy(zero_copy_only=False), dtype=np.float64)

    def _blocks(self, byte: int, line: int) -> Iterator[RecordBlock]:
        return blocks(self.path, byte, line, partial(lexer.cut, most_lines=self._most_lines))

    def _header(self) -> tuple[list[str], int, int]:
        """The column names, and where the first record starts."""
        byte, line = 0, 1
        for block in self._blocks(0, 1):
            skip = len(_BOM) if block.byte == 0 and block.data.startswith(_BOM) else 0
            for record in lexer.records(block.data[skip:], most_lines=self._most_lines):
                byte = block.byte + skip + record.after
                line = block.line + lexer.lines(block.data[skip : skip + record.after])
                if record.fields != [None]:
                    return self._decode_header(record), byte, line
        raise UsageError(
            "EMPTY_FILE",
            f"{self.path} is empty; expected a header row with {', '.join(self._due())}",
            where=self.path,
        )

    def _decode_header(self, record: lexer.Record) -> list[str]:
        try:
            return [(field or b"").decode().strip() for field in record.fields]
        except UnicodeDecodeError:
            raise UsageError(
                "HEADER_MISMATCH", f"the header of {self.path} is not UTF-8", where=self.path
            ) from None

    def _due(self) -> tuple[str, ...]:
        return self.rows.given.names

    def _match(self) -> dict[str, int]:
        places = match_columns(self._names, self.rows.given)
        problem = misplaced(self._names, self.rows.given, places, self.rows.extra)
        if problem:
            raise UsageError(
                "HEADER_MISMATCH",
                f"the header of {self.path} does not fit: {problem}; expected"
                f" {','.join(self._due())}, found {','.join(self._names)}",
                where=self.path,
            )
        return places

    def _chunk(self, block: RecordBlock) -> Chunk:
        base = {"byte": block.byte, "line": block.line}
        split = self._split(block)
        if split is not None:
            place = _place(self.path, block, lambda: list(self._lex(block)))
            return self.assembler.chunk(self._records(split, {}), place, base)
        texts, broken, found = self._split_exactly(block)
        place = _place(self.path, block, lambda: found)
        return self.assembler.chunk(self._records(texts, broken), place, base)

    def _split(self, block: RecordBlock, only: int | None = None) -> list[pa.Array] | None:
        """The fields of a block as columns of text, or None if Arrow cannot split it."""
        if not block.plain:
            return None
        names = [str(i) for i in range(len(self._names))]
        wanted = names if only is None else [str(only)]
        # At the end of its input Arrow takes an empty field after a quoted one for quoted, too.
        data = block.data if block.data.endswith((b"\n", b"\r")) else block.data + b"\n"
        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=names
                ),
                parse_options=csv.ParseOptions(
                    newlines_in_values=True, ignore_empty_lines=len(names) > 1
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowCapacityError):
            return None
        return [column.combine_chunks() for column in table.columns]

    def _split_exactly(
        self, block: RecordBlock
    ) -> tuple[list[pa.Array], dict[int, str], list[lexer.Record]]:
        """The same, record by record, with the reason for each record that is none."""
        width = len(self._names)
        found: list[lexer.Record] = []
        broken: dict[int, str] = {}
        rows: list[list[str | None]] = []
        for record in self._lex(block):
            row: list[str | None] = [None] * width
            why = record.broken
            if not why and len(record.fields) != width:
                why = f"expected {width} fields, found {len(record.fields)}"
            if not why:
                try:
                    row = [None if f is None else f.decode() for f in record.fields]
                except UnicodeDecodeError:
                    why = "invalid UTF-8"
            if why:
                broken[len(found)] = why
            found.append(record)
            rows.append(row)
        columns = zip(*rows, strict=True) if rows else [()] * width
        return [pa.array(column, pa.string()) for column in columns], broken, found

    def _lex(self, block: RecordBlock) -> Iterator[lexer.Record]:
        """The block's records; a blank line is one only if there is a single column."""
        if block.broken:
            yield lexer.Record(0, len(block.data), len(block.data), [], block.broken)
            return
        for record in lexer.records(block.data, most_lines=self._most_lines):
            if record.fields != [None] or len(self._names) == 1:
                yield record

    def _records(self, texts: list[pa.Array], broken: dict[int, str]) -> Records:
        parsed = [
            self._parse(texts[self._places[field.name]], field, nested)
            for field, nested in self._columns
        ]
        records = self.rows.records(len(texts[0]), parsed, self._others(texts))
        records.broken = broken
        if self.timed:
            records.at, records.at_wrong = parse(texts[self._places["_at"]], _SECONDS)
        if "_punctuation" in self._places:
            progress = self.assembler.progress
            due = progress.type if progress else Type("string")
            points = texts[self._places["_punctuation"]]
            records.punctuation, records.punctuation_wrong = parse(points, due)
        return records

    def _others(self, texts: list[pa.Array]) -> list[dict[str, Any]] | None:
        """What each row has in columns that are no fields, if that is to be kept."""
        if self.rows.extra != "keep":
            return None
        columns = {self._names[i]: texts[i] for i in others(self._names, self._places)}
        return pa.table(columns).to_pylist() if columns else [{}] * len(texts[0])

    def _parse(self, texts: pa.Array, field: Field, nested: ColumnReader | None) -> Parsed:
        if nested is None:
            return parse(texts, field.type)
        values: list[Any] = []
        wrong: dict[int, str] = {}
        for i, text in enumerate(texts.to_pylist()):
            try:
                values.append(json.loads(text) if text else None)
            except (ValueError, RecursionError):
                values.append(None)
                wrong[i] = expected(field.type, text)
        array, misfits = nested.read(values)
        return array, {**misfits, **wrong}


def _place(path: str, block: RecordBlock, records: Callable[[], list[lexer.Record]]) -> RecordPlace:
    """Lines and texts of a block's records, which are counted when the first is asked for."""
    found = cache(records)
    seen = [0, 0]

    def line(i: int) -> int:
        # Bad records are asked for in order: count lines from the one before.
        start = found()[i].start
        seen[1] += lexer.lines(block.data[seen[0] : start])
        seen[0] = start
        return block.line + seen[1]

    def row(i: int) -> str:
        record = found()[i]
        raw = block.data[record.start : min(record.end, record.start + 4 * ROW_CHARS)]
        return raw.decode(errors="backslashreplace")

    def lines(i: int) -> int:
        return lexer.lines(block.data[found()[i].start : found()[i].end]) + 1

    return RecordPlace(path, line, row, lines)
