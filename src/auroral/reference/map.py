"""Map, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.boxes.map import Map
from auroral.network.function import Function
from auroral.network.types import Schema
from auroral.reference.calling import called
from auroral.reference.operator import Row
from auroral.sql.expression import evaluator


class ReferenceMap:
    """Makes one tuple of each tuple.

    >>> box = Map(input="reports", keep="*", compute={"twice": "pos * 2"})
    >>> ReferenceMap(box, [Schema.parse("pos int")]).push(0, {"pos": 7})
    [('', {'pos': 7, 'twice': 14})]
    """

    def __init__(self, box: Map, inputs: Sequence[Schema], directory: Path | None = None):
        (schema,) = inputs
        self._layout = box.layout(schema)
        self._kept = box.kept(schema)
        self._expressions: dict[str, Callable[[Row], Any]] = {}
        self._functions: dict[str, Callable[[Row], Any]] = {}
        for name, how in box.compute.items():
            if isinstance(how, Function):
                self._functions[name] = _caller(how, schema, directory)
            else:
                self._expressions[name] = evaluator(how, schema)

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        made = {name: row[name] for name in self._kept}
        made |= {name: run(row) for name, run in self._expressions.items()}
        made |= {name: run(row) for name, run in self._functions.items()}
        return [("", {name: made[name] for name in self._layout})]


def _caller(how: Function, schema: Schema, directory: Path | None) -> Callable[[Row], Any]:
    """The Python function as a function of one tuple; it sees Arrow arrays of one value each."""
    function, returns = how.load(directory), how.type(directory)
    types = {n: schema.field(n).type.arrow() for n in how.arguments(schema, directory)}

    def call(row: Row) -> Any:
        arguments = [pa.array([row[name]], type) for name, type in types.items()]
        return called(function, returns, arguments)

    return call
