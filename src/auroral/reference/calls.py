"""Expressions that call declared Python functions, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.network.box import Scope
from auroral.network.function import Function
from auroral.network.types import Type
from auroral.reference.calling import called
from auroral.reference.operator import Row
from auroral.sql.expressions.expression import evaluator
from auroral.sql.expressions.function_calls import FunctionCalls


class Evaluators:
    """Makes all calls for a tuple, in their order, and then evaluates expressions."""

    def __init__(self, calls: FunctionCalls, scope: Scope):
        self._calls = [
            (
                call.column,
                [evaluator(arg.text, calls.schema) for arg in call.args],
                caller(
                    scope.functions[call.function],
                    call.returns,
                    [arg.type for arg in call.args],
                    scope.directory,
                ),
            )
            for call in calls.calls
        ]
        self.expressions = [evaluator(one.text, calls.schema) for one in calls.expressions]

    def called(self, row: Row) -> Row:
        """The tuple with the results of all calls."""
        for column, args, call in self._calls:
            row = {**row, column: call([run(row) for run in args])}
        return row


def caller(
    how: Function, returns: Type, types: Sequence[Type], directory: Path | None
) -> Callable[[Sequence[Any]], Any]:
    """A Python function of one value per argument; it sees Arrow arrays of one value each."""
    function = how.load(directory)

    def call(values: Sequence[Any]) -> Any:
        given = zip(values, types, strict=True)
        arguments = [pa.array([value], type.arrow()) for value, type in given]
        return called(function, returns, arguments)

    return call
