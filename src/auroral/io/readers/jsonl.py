"""JSON lines: one object per line; a missing key is NULL, an unknown one a dead letter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from auroral.io.chunk import ROW_CHARS, Chunk
from auroral.io.readers.assemble import Assembler, RecordPlace, Records
from auroral.io.readers.blocks import RecordBlock, blocks, cut_lines
from auroral.io.readers.text import parse
from auroral.io.rows import RowReader
from auroral.network.types import Schema, Type

_BOM = b"\xef\xbb\xbf"
_TEXTS = ("binary", "date", "timestamp", "timestamp_ntz")
_NUMBERS = ("boolean", "tinyint", "smallint", "int", "bigint", "double")


class Line(NamedTuple):
    """One line that is not blank."""

    number: int
    raw: bytes


class JsonlReader:
    """Reads one file of JSON lines; Arrow reads what is plain, Python's json the rest."""

    def __init__(self, path: str, rows: RowReader):
        self.path = path
        self.assembler = rows.assembler
        self.rows = rows
        self._byte = 0
        self._records = JsonRecords(rows, timed=False)
        self.timed = self._look()
        self._records = JsonRecords(rows, self.timed)

    def start(self) -> Any:
        return {"byte": self._byte, "line": 1}

    def chunks(self, base: Any) -> Iterator[Chunk]:
        for block in blocks(self.path, base["byte"], base["line"], cut_lines):
            place = _place(self.path, cache(lambda block=block: split(block)))
            here = {"byte": block.byte, "line": block.line}
            records = None if block.broken else self._records.read(block.data)
            if records is not None:
                yield self.assembler.chunk(records, place, here)
                continue
            values, broken = self._records.exactly([line.raw for line in split(block)])
            if block.broken:
                values, broken = [None], {0: block.broken}
            yield self.rows.read_rows(
                values, base=here, place=place, timed=self.timed, broken=broken
            )

    def arrivals(self) -> Iterator[np.ndarray]:
        schema = pa.schema([("_at", pa.float64())])
        for block in blocks(self.path, self._byte, 1, cut_lines):
            table = read_json(block.data, schema, "ignore")
            if table is not None:
                found = table.column(0).to_numpy()
            else:
                values, _ = self._records.exactly([line.raw for line in split(block)])
                found = [_seconds(v.get("_at")) if isinstance(v, dict) else None for v in values]
            yield np.asarray(found, dtype=np.float64)

    def _look(self) -> bool:
        """Skip a byte order mark and see whether the first object has `_at`."""
        for block in blocks(self.path, 0, 1, cut_lines):
            if block.byte == 0 and block.data.startswith(_BOM):
                self._byte = len(_BOM)
            for line in split(block):
                values, _ = self._records.exactly([line.raw.removeprefix(_BOM)])
                if isinstance(values[0], dict):
                    return any(str(key).lower() == "_at" for key in values[0])
        return False


class JsonRecords:
    """Reads JSON objects of one stream: many at once by Arrow, each by itself where that fails."""

    def __init__(self, rows: RowReader, timed: bool):
        self.rows = rows
        self.timed = timed
        self._load = _loader(rows.schema)
        self._fast = _explicit(rows.assembler, timed) if rows.extra != "keep" else None

    def exactly(self, texts: Sequence[bytes]) -> tuple[list[Any], dict[int, str]]:
        """Each object, and why some are none."""
        values: list[Any] = []
        broken: dict[int, str] = {}
        for i, text in enumerate(texts):
            value = None
            try:
                value = self._load(text.decode())
                if not isinstance(value, dict):
                    broken[i] = "expected a JSON object"
            except UnicodeDecodeError:
                broken[i] = "invalid UTF-8"
            except RecursionError:
                broken[i] = "invalid JSON: nested too deeply"
            except ValueError as error:
                broken[i] = f"invalid JSON: {error}"
            values.append(value)
        return values, broken

    def read(self, data: bytes) -> Records | None:
        """The records of a plain block of lines, or None."""
        if self._fast is None:
            return None
        strict = self.rows.extra == "reject"
        table = read_json(data, self._fast, "error" if strict else "infer")
        if table is None:
            return None
        if not strict and not self.rows.are_others(set(table.column_names) - {*self._fast.names}):
            return None  # a field in other letters
        columns, wrong = [], []
        for field in self.rows.assembler.schema:
            array, misfits = _typed(table.column(field.name).combine_chunks(), field.type)
            columns.append(array)
            wrong.append(misfits)
        records = Records(table.num_rows, columns, wrong)
        if self.timed:
            records.at = table.column("_at")
        progress = self.rows.assembler.progress
        if progress is not None:
            points = table.column("_punctuation").combine_chunks()
            if points.null_count < len(points):
                found = _typed(points, progress.type)
                records.punctuation, records.punctuation_wrong = found
        return records


def read_json(data: bytes, schema: pa.Schema, unexpected: str = "error") -> pa.Table | None:
    """The block by Arrow, or None if Arrow fails or might see other lines than there are."""
    data = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    data = data if data.endswith(b"\n") else data + b"\n"
    lines = data.count(b"\n")
    # Objects that begin and end with their line cannot share or span lines.
    if not data.startswith(b"{") or not data.endswith(b"}\n") or data.count(b"}\n{") != lines - 1:
        return None
    try:
        data.decode()
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=unexpected
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowCapacityError, ValueError):
        return None
    return table if table.num_rows == lines else None


def split(block: RecordBlock) -> list[Line]:
    """The lines of a block that are not blank, with their numbers."""
    if block.broken:
        return [Line(block.line, block.data)]
    raws = block.data.split(b"\n")
    return [Line(block.line + i, raw.strip()) for i, raw in enumerate(raws) if raw.strip()]


def _explicit(assembler: Assembler, timed: bool) -> pa.Schema | None:
    """What Arrow is told to read, dates and the like as text; None if it cannot be trusted to."""
    extra = [("_at", Type("double"))] if timed else []
    if assembler.progress is not None:
        extra.append(("_punctuation", assembler.progress.type))
    found = []
    for name, type in (*((f.name, f.type) for f in assembler.schema), *extra):
        if type.name == "string" or type.name in _TEXTS:
            found.append((name, pa.string()))
        elif type.name in _NUMBERS:
            found.append((name, type.arrow()))
        elif type.name == "float":
            found.append((name, pa.float64()))
        else:
            return None
    return pa.schema(found)


def _typed(array: pa.Array, type: Type) -> tuple[pa.Array, dict[int, str]]:
    if type.name in _TEXTS:
        return parse(array, type)
    return array.cast(type.arrow()), {}


def _loader(schema: Schema) -> Callable[[str], Any]:
    """A strict JSON reader; numbers stay exact if a decimal may be due."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a key occurs twice")
        return found

    def integer(text: str) -> int | float:
        return -0.0 if text == "-0" else int(text)

    exact: dict[str, Any] = {}
    if "decimal" in str(schema):
        from decimal import Decimal

        exact["parse_float"] = Decimal
    return json.JSONDecoder(object_pairs_hook=pairs, parse_int=integer, **exact).decode


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _place(path: str, lines: Callable[[], list[Line]]) -> RecordPlace:
    return RecordPlace(
        path,
        lambda i: lines()[i].number,
        lambda i: lines()[i].raw[: 4 * ROW_CHARS].decode(errors="backslashreplace"),
    )
