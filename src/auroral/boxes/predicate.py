"""Expressions that must be true or false."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.errors import NetworkError
from auroral.network.box import Scope, at_key
from auroral.network.function import signature_of
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.expression import Expression, analyze
from auroral.sql.expressions.function_calls import FunctionCall, FunctionCalls, called_of
from auroral.sql.functions.catalogue import CATALOGUE


def expression(text: str, schema: Schema, scope: Scope, key: str) -> Expression:
    """Analyse an expression; mistakes say which key it stands under."""
    with at_key(key):
        return analyze(text, schema, resolver=scope.resolver)


def with_calls(texts: Mapping[str, str], schema: Schema, scope: Scope) -> FunctionCalls:
    """Analyse the expressions of a box, by key; they may call declared Python functions."""
    calls = FunctionCalls(schema)
    for key, text in texts.items():
        with at_key(key):
            called = called_of(text, scope.functions)
            returns = {name: _returns(scope, name) for name in called}
            calls = calls.taken_out(text, returns, scope.resolver)
            for call in calls.calls:
                _require_arity(scope, call)
    return calls


def _returns(scope: Scope, name: str) -> Type:
    if name in CATALOGUE:
        raise NetworkError(
            "DUPLICATE_NAME",
            f"{name} is a function of SQL and a Python function of this network",
            hint="give the Python function another name",
        )
    return scope.functions[name].type(scope.directory, imports=scope.imports)


def _require_arity(scope: Scope, call: FunctionCall) -> None:
    target = scope.functions[call.function].target(scope.directory, scope.imports)
    signature = None if target is None else signature_of(target)
    try:
        if signature is not None:
            signature.bind(*call.args)
    except TypeError as error:
        raise NetworkError(
            "WRONG_ARITY", f"{call.function} is called with {len(call.args)} arguments: {error}"
        ) from None


def predicate(text: str, schema: Schema, scope: Scope, key: str) -> Expression:
    """Analyse an expression that must be boolean."""
    return require_boolean(expression(text, schema, scope, key), text, key)


def require_boolean(found: Expression, text: str, key: str) -> Expression:
    """Refuse an expression that is not boolean."""
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
