"""Map, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from auroral.boxes.map import Map
from auroral.network.box import Scope
from auroral.network.function import Function
from auroral.network.types import Schema
from auroral.reference.calls import Evaluators, caller
from auroral.reference.operator import Row


class ReferenceMap:
    """Makes one tuple of each tuple.

    >>> box = Map(input="reports", keep="*", compute={"twice": "pos * 2"})
    >>> ReferenceMap(box, [Schema.parse("pos int")]).push(0, {"pos": 7})
    [('', {'pos': 7, 'twice': 14})]
    """

    def __init__(self, box: Map, inputs: Sequence[Schema], scope: Scope | None = None):
        (schema,) = inputs
        scope = scope or Scope(imports=True)
        self._layout = box.layout(schema)
        self._kept = box.kept(schema)
        self._names = list(box.texts)
        self._evaluators = Evaluators(box.calls(schema, scope), scope)
        self._functions = {
            name: _caller(how, schema, scope)
            for name, how in box.compute.items()
            if isinstance(how, Function)
        }

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        made = {name: row[name] for name in self._kept}
        called = self._evaluators.called(row)
        values = [run(called) for run in self._evaluators.expressions]
        made |= dict(zip(self._names, values, strict=True))
        made |= {name: run(row) for name, run in self._functions.items()}
        return [("", {name: made[name] for name in self._layout})]


def _caller(how: Function, schema: Schema, scope: Scope) -> Callable[[Row], Any]:
    """A Python function that takes fields, as a function of one tuple."""
    names = how.arguments(schema, scope.directory)
    types = [schema.field(name).type for name in names]
    call = caller(how, how.type(scope.directory), types, scope.directory)
    return lambda row: call([row[name] for name in names])
