"""Filter, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence

from auroral.boxes.filter import REST, Filter
from auroral.network.box import Scope
from auroral.network.types import Schema
from auroral.reference.calls import Evaluators
from auroral.reference.operator import Row


class ReferenceFilter:
    """Sends a tuple to the first port whose predicate is true.

    >>> box = Filter(input="reports", where="pos >= 30")
    >>> across = ReferenceFilter(box, [Schema.parse("pos int")])
    >>> across.push(0, {"pos": 30}), across.push(0, {"pos": None})
    ([('', {'pos': 30})], [('rest', {'pos': None})])
    """

    def __init__(self, box: Filter, inputs: Sequence[Schema], scope: Scope | None = None):
        scope = scope or Scope(imports=True)
        self._ports = list(box.predicates)
        self._evaluators = Evaluators(box.calls(inputs[0], scope), scope)

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        called = self._evaluators.called(row)
        for port, holds in zip(self._ports, self._evaluators.expressions, strict=True):
            if holds(called) is True:
                return [(port, row)]
        return [(REST, row)]
