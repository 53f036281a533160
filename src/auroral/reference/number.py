"""Number, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auroral.boxes.number import Number
from auroral.network.types import Schema
from auroral.reference.operator import Row


class ReferenceNumber:
    """Counts tuples as they come, from 0.

    >>> numbered = ReferenceNumber(Number(input="s", **{"as": "n"}), [])
    >>> numbered.push(0, {"x": 5}), numbered.push(0, {"x": 3})
    ([('', {'x': 5, 'n': 0})], [('', {'x': 3, 'n': 1})])
    """

    def __init__(self, box: Number, _inputs: Sequence[Schema], _directory: Path | None = None):
        self._name, self._count = box.as_, 0

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        self._count += 1
        return [("", {**row, self._name: self._count - 1})]
