"""Expressions that must be true or false."""

from __future__ import annotations

from auroral.errors import NetworkError
from auroral.network.box import Scope, at_key
from auroral.network.types import Field, Schema, Type
from auroral.sql.expression import Expression, analyze


def expression(text: str, schema: Schema, scope: Scope, key: str) -> Expression:
    """Analyse an expression; mistakes say which key it stands under."""
    with at_key(key):
        return analyze(text, schema, resolver=scope.resolver)


def predicate(text: str, schema: Schema, scope: Scope, key: str) -> Expression:
    """Analyse an expression that must be boolean."""
    found = expression(text, schema, scope, key)
    if found.type.name != "boolean":
        raise NetworkError(
            "TYPE_MISMATCH",
            f"expected a predicate (boolean), but {text!r} is {found.type}",
            where=f"key {key}",
        )
    return found


def sided(**sides: Schema) -> Schema:
    """A schema in which `left.x` and `right.y` are fields of two structs."""
    return Schema(
        tuple(Field(name, Type("struct", children=schema.fields)) for name, schema in sides.items())
    )
