"""CSV files: what is written reads back as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.errors import UsageError
from auroral.io.sinks.append import AppendFile
from auroral.io.sinks.render import csv_fields
from auroral.io.sinks.sink import Delivery
from auroral.network.types import Schema

PIECE_BYTES = 1 << 26


class CsvSink:
    """A header row, then a line per row; positions are byte offsets."""

    def __init__(
        self, path: str | Path, schema: Schema | str | Mapping[str, str], *, durable: bool = False
    ):
        schema = Schema.parse(schema)
        self.path = str(path)
        self.fields = schema.names
        self._file = AppendFile(path, durable=durable)
        names = csv_fields(pa.array(schema.names, pa.string())).to_pylist()
        self._header = (",".join(names) + "\n").encode()

    def open(self, position: Any | None) -> None:
        if position is not None:
            self._require_header()
        self._file.open(position, self._header)

    def _require_header(self) -> None:
        try:
            with open(self.path, "rb") as file:
                header = file.read(len(self._header))
        except OSError:
            return  # told when it is opened
        if header != self._header:
            raise UsageError(
                "SINK_FIELDS",
                f"{self.path} does not have the fields {', '.join(self.fields)}",
                hint="write to another file, under another name of the query or output",
            )

    def write(self, delivery: Delivery) -> Any:
        if tuple(delivery.table.column_names) != tuple(self.fields):
            raise UsageError(
                "SINK_FIELDS",
                f"the file was given the fields {', '.join(self.fields)}, but {delivery.output}"
                f" has {', '.join(delivery.table.column_names)}",
                where=self.path,
            )
        position = self._file.append(b"")
        for piece in pieces(delivery.table):
            position = self._file.append(csv_lines(piece))
        self._file.sync()
        return position

    @property
    def durable(self) -> bool:
        """Whether `write` returns only when its rows are on the disk."""
        return self._file.durable

    @durable.setter
    def durable(self, wanted: bool) -> None:
        self._file.durable = wanted

    def close(self) -> None:
        self._file.close()


def csv_lines(table: pa.Table) -> memoryview:
    r"""The rows as CSV, a line each.

    >>> bytes(csv_lines(pa.table({"a": [1, None], "b": ["", "x,y"]})))
    b'1,""\n,"x,y"\n'
    """
    fields = [csv_fields(column) for column in contiguous(table)]
    return joined(pc.binary_join_element_wise(*fields, ","), "\n")


def pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The table in parts whose text Arrow can hold in one array."""
    count = table.nbytes // PIECE_BYTES + 1
    rows = -(-table.num_rows // count) or 1
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def contiguous(table: pa.Table) -> list[pa.Array]:
    """The table's columns, each as one array."""
    if not table.num_rows:
        return [pa.array([], column.type) for column in table.columns]
    batch = table.combine_chunks().to_batches(max_chunksize=table.num_rows)[0]
    return list(batch.columns)


def joined(rows: pa.Array, end: str) -> memoryview:
    """The rows one after the other, which is how Arrow holds them anyway."""
    lines = pc.binary_join_element_wise(rows, end, "")
    _, offsets, data = lines.buffers()
    if not len(lines) or data is None:
        return memoryview(b"")
    return memoryview(data)[: int(np.frombuffer(offsets, np.int32)[len(lines)])]
