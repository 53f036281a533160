"""Scalar Spark SQL expressions: what they read, what type they have, what they evaluate to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from auroral.errors import NetworkError, closest
from auroral.network.types import Schema, Type
from auroral.sql.expressions.compiler import compile_node, result_type
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Name, Node, free_names, walk
from auroral.sql.expressions.typed import OnlySparkError, Typed
from auroral.sql.functions.catalogue import CATALOGUE, SqlFunction
from auroral.sql.queries.refusals import refuse

Resolver = Callable[[str, Schema], Type]


@dataclass(frozen=True)
class Expression:
    """A scalar expression checked against a schema.

    `text` is as written and goes to Spark verbatim; `fields` are the fields it reads, in schema
    order; `column` names the field if it is nothing but a reference to one; `in_catalogue` is
    False if only Spark can evaluate it.
    """

    text: str
    type: Type
    fields: tuple[str, ...]
    column: str | None
    in_catalogue: bool


def analyze(
    text: str,
    schema: Schema,
    *,
    resolver: Resolver | None = None,
    catalogue: Mapping[str, SqlFunction] = CATALOGUE,
) -> Expression:
    """Check an expression and find its type, as Spark would with ANSI mode off.

    >>> analyze("POS / 2 >= 15", Schema.parse("sid int, pos int")).fields
    ('pos',)
    >>> str(analyze("pos / 2", Schema.parse("pos int")).type)
    'double'
    """
    tree = _parse(text, schema)
    read = {schema.field(name).name for name in free_names(tree)}
    fields = tuple(name for name in schema.names if name in read)
    column = schema.field(tree.name).name if isinstance(tree, Name) else None
    try:
        type, known = _guarded(tree, schema, catalogue).type, True
    except OnlySparkError as only:
        if resolver is None:
            raise _unknown(only, tree) from None
        type, known = resolver(text, schema), False
    return Expression(text, result_type(type), fields, column, known)


def evaluator(
    text: str, schema: Schema, *, catalogue: Mapping[str, SqlFunction] = CATALOGUE
) -> Callable[[Mapping[str, Any]], Any]:
    """Compile an expression into a function of a row.

    >>> evaluator("pos div 0 is null", Schema.parse("pos int"))({"pos": 7})
    True
    """
    tree = _parse(text, schema)
    for name in free_names(tree):
        schema.field(name)
    try:
        typed = _guarded(tree, schema, catalogue)
    except OnlySparkError as only:
        raise NetworkError(
            "NOT_IN_REFERENCE",
            f"only Spark can evaluate {only.what}; the reference evaluator does not know it",
        ) from None
    result_type(typed.type)
    return typed.run


def _parse(text: str, schema: Schema) -> Node:
    try:
        tree = parse(text)
        refuse(tree, schema)
    except RecursionError:
        raise _too_deep() from None
    return tree


def _guarded(tree: Node, schema: Schema, catalogue: Mapping[str, SqlFunction]) -> Typed:
    try:
        return compile_node(tree, schema, catalogue)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> NetworkError:
    return NetworkError("SYNTAX_ERROR", "the expression is nested too deeply")


def _unknown(only: OnlySparkError, tree: Node) -> NetworkError:
    """The error for what the catalogue lacks, when no Spark is at hand to ask."""
    calls = {node.name for node in walk(tree) if isinstance(node, Call)}
    kind = "function" if only.what in calls else "construct"
    return NetworkError(
        "UNKNOWN_FUNCTION",
        f"there is no {kind} {only.what} in the catalogue, and no Spark at hand to ask",
        hint=closest(only.what, CATALOGUE) if kind == "function" else None,
    )
