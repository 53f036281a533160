"""Filter, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auroral.boxes.filter import REST, Filter
from auroral.network.types import Schema
from auroral.reference.operator import Row
from auroral.sql.expression import evaluator


class ReferenceFilter:
    """Sends a tuple to the first port whose predicate is true.

    >>> box = Filter(input="reports", where="pos >= 30")
    >>> across = ReferenceFilter(box, [Schema.parse("pos int")])
    >>> across.push(0, {"pos": 30}), across.push(0, {"pos": None})
    ([('', {'pos': 30})], [('rest', {'pos': None})])
    """

    def __init__(self, box: Filter, inputs: Sequence[Schema], _directory: Path | None = None):
        self._routes = {port: evaluator(p, inputs[0]) for port, p in box.predicates.items()}

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        for port, holds in self._routes.items():
            if holds(row) is True:
                return [(port, row)]
        return [(REST, row)]
