"""JSON lines: an object per row; NULL is null, NaN and the infinities are strings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from auroral.io.sinks.append import AppendFile
from auroral.io.sinks.csv import contiguous, joined, pieces
from auroral.io.sinks.render import json_values
from auroral.io.sinks.sink import Delivery


class JsonlSink:
    """A line per row; positions are byte offsets."""

    def __init__(self, path: str | Path, *, durable: bool = False):
        self.path = str(path)
        self._file = AppendFile(path, durable=durable)

    def open(self, position: Any | None) -> None:
        self._file.open(position)

    def write(self, delivery: Delivery) -> Any:
        position = self._file.append(b"")
        for piece in pieces(delivery.table):
            position = self._file.append(json_lines(piece))
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


def json_lines(table: pa.Table) -> memoryview:
    r"""The rows as JSON objects, a line each.

    >>> bytes(json_lines(pa.table({"a": [1, None], "b": ["x", '"']})))
    b'{"a":1,"b":"x"}\n{"a":null,"b":"\\""}\n'
    """
    parts: list[Any] = []
    for name, column in zip(table.column_names, contiguous(table), strict=True):
        key = json.dumps(name, ensure_ascii=False)
        parts += [f"{',' if parts else '{'}{key}:", json_values(column)]
    return joined(pc.binary_join_element_wise(*parts, ""), "}\n")
