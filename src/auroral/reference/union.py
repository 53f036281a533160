"""Union, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auroral.boxes.union import Union
from auroral.network.types import Schema
from auroral.reference.operator import Row


class ReferenceUnion:
    """Passes every tuple, its fields named as the first input's.

    >>> box = Union(inputs=("a", "b"))
    >>> both = ReferenceUnion(box, [Schema.parse("n int"), Schema.parse("N int")])
    >>> both.push(1, {"N": 7})
    [('', {'n': 7})]
    """

    def __init__(self, _box: Union, inputs: Sequence[Schema], _directory: Path | None = None):
        self._names = inputs[0].names

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        return [("", dict(zip(self._names, row.values(), strict=True)))]
