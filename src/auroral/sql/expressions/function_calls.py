"""Separate calls of declared Python functions from expressions.

What remains is an expression over fields and the results of the calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from auroral.errors import NetworkError
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.expression import Expression, Resolver, analyze
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Lambda, Node, children, walk


@dataclass(frozen=True)
class FunctionCall:
    """A call: the function, its arguments as expressions, and the field its results go to."""

    function: str
    args: tuple[Expression, ...]
    returns: Type
    column: str


@dataclass(frozen=True)
class FunctionCalls:
    """Expressions over fields and the results of calls, which are made in their order."""

    schema: Schema
    """The fields of the input, and those of the results."""
    calls: tuple[FunctionCall, ...] = ()
    expressions: tuple[Expression, ...] = ()

    def reads(self, schema: Schema) -> frozenset[str]:
        """The fields of the input that calls and expressions read."""
        found = [*self.expressions, *(arg for call in self.calls for arg in call.args)]
        return frozenset(name for one in found for name in one.fields if name in schema)

    def taken_out(
        self, text: str, returns: Mapping[str, Type], resolver: Resolver | None = None
    ) -> FunctionCalls:
        """Add an expression; `returns` has the functions' types by their names in lower case.

        >>> returns = {"f": Type("int"), "g": Type("double")}
        >>> calls = FunctionCalls(Schema.parse("c double")).taken_out("1 + F(g(c))", returns)
        >>> [(call.function, call.args[0].text, call.column) for call in calls.calls]
        [('g', 'c', '_call0'), ('f', '_call0', '_call1')]
        >>> calls.expressions[0].text
        '1 + _call1'
        """
        made = self
        while (call := innermost(text, returns)) is not None:
            assert call.place is not None
            args = tuple(
                analyze(text[start:end], made.schema, resolver=resolver)
                for start, end in call.place.args
            )
            made, column = made._with(call.name, args, returns[call.name])
            start, end = call.place.whole
            text = f"{text[:start]}{column}{text[end:]}"
        found = analyze(text, made.schema, resolver=resolver)
        return replace(made, expressions=(*made.expressions, found))

    def _with(
        self, function: str, args: tuple[Expression, ...], returns: Type
    ) -> tuple[FunctionCalls, str]:
        """The same with a call, and the field of its results; a call is made once."""
        for known in self.calls:
            if (known.function, known.args) == (function, args):
                return self, known.column
        number = len(self.calls)
        while f"_call{number}" in self.schema:
            number += 1
        column = f"_call{number}"
        call = FunctionCall(function, args, returns, column)
        schema = Schema((*self.schema.fields, Field(column, returns)))
        return replace(self, schema=schema, calls=(*self.calls, call)), column


def innermost(text: str, functions: Collection[str]) -> Call | None:
    """The first call of one of the functions that has no other in its arguments."""
    if not functions:
        return None
    return _innermost(parse(text), functions)


def _innermost(node: Node, functions: Collection[str]) -> Call | None:
    for child in children(node):
        found = _innermost(child, functions)
        if found is not None:
            if isinstance(node, Lambda):
                raise NetworkError(
                    "BAD_EXPRESSION",
                    f"the Python function {found.name} cannot be called in a lambda function",
                )
            return found
    return node if isinstance(node, Call) and node.name in functions else None


def called_of(text: str, functions: Collection[str]) -> set[str]:
    """Those of the functions that an expression calls."""
    try:
        nodes = walk(parse(text)) if functions else ()
        return {node.name for node in nodes if isinstance(node, Call) and node.name in functions}
    except RecursionError:
        return set()  # too deep, and refused as that
