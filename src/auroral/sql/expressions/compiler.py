"""Compile a syntax tree into a typed closure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from auroral.errors import NetworkError, list_existing
from auroral.network.types import Schema, Type
from auroral.sql.expressions import arithmetic, patterns  # noqa: F401 (they fill the catalogue)
from auroral.sql.expressions.coercion import INT, STRING, VOID, implicit, shown
from auroral.sql.expressions.numbers import float32, to_decimal
from auroral.sql.expressions.operators import choose
from auroral.sql.expressions.syntax import (
    Call,
    Case,
    Cast,
    IndexAccess,
    Lambda,
    Literal,
    Member,
    Name,
    Node,
)
from auroral.sql.expressions.typed import (
    OnlySparkError,
    Row,
    Typed,
    cast,
    constant,
    mismatch,
    strict,
)
from auroral.sql.functions import collection, math, text, time  # noqa: F401 (so do these)
from auroral.sql.functions.catalogue import CATALOGUE, SqlFunction

CAST_FUNCTIONS = {
    field.type.name: field.type
    for field in Schema.parse(
        "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal, "
        "i date, j timestamp, k binary, l string"
    )
}


def compile_node(
    node: Node, schema: Schema, catalogue: Mapping[str, SqlFunction] = CATALOGUE
) -> Typed:
    """Type and compile a tree; OnlySparkError if the catalogue lacks something it uses."""

    def below(part: Node) -> Typed:
        return compile_node(part, schema, catalogue)

    match node:
        case Literal(value, type):
            return constant(value, type, literal=True)
        case Name(name):
            return _field(name, schema)
        case Member(base, name):
            return _member(below(base), name)
        case IndexAccess(base, index):
            return _element(below(base), below(index))
        case Cast(child, to, attempt):
            return cast(below(child), to, attempt)
        case Case(branches, default):
            return choose(
                [(below(a), below(b)) for a, b in branches],
                None if default is None else below(default),
            )
        case Lambda():
            raise OnlySparkError("a lambda function")
        case Call(name, args, aliases):
            if name in CAST_FUNCTIONS and len(args) == 1:
                return cast(below(args[0]), CAST_FUNCTIONS[name])
            if name not in catalogue:
                raise OnlySparkError(name)
            typed = [below(arg) for arg in args]
            if name == "struct":
                typed = [
                    replace(one, name=alias or _name_of(arg))
                    for one, arg, alias in zip(
                        typed, args, aliases or [None] * len(args), strict=True
                    )
                ]
            return catalogue[name].call(typed)


def _name_of(node: Node) -> str | None:
    """What `struct(…)` calls a part that has no alias."""
    return node.name if isinstance(node, Name | Member) else None


def _field(name: str, schema: Schema) -> Typed:
    field = schema.field(name)
    key = field.name
    if field.type.name == "float":
        return strict(field.type, [Typed(field.type, itemgetter(key))], float32)
    if field.type.name == "decimal":
        exact = partial(to_decimal, type=field.type)
        return strict(field.type, [Typed(field.type, itemgetter(key))], exact)
    return Typed(field.type, itemgetter(key))


def _member(base: Typed, name: str) -> Typed:
    if base.type.name == "array" and base.type.children[0].type.name == "struct":
        raise OnlySparkError("a field of an array of structs")
    if base.type.name == "map":
        return _element(base, constant(name, STRING, literal=True))
    if base.type.name != "struct":
        raise NetworkError(
            "TYPE_MISMATCH", f".{name}: expected a struct before the dot, found {shown(base.type)}"
        )
    for child in base.type.children:
        if child.name.lower() == name.lower():
            return strict(child.type, [base], itemgetter(child.name))
    raise NetworkError(
        "UNKNOWN_FIELD",
        f"the struct has no field {name}; {list_existing(c.name for c in base.type.children)}",
    )


def _element(base: Typed, index: Typed) -> Typed:
    if base.type.name == "array":
        if not index.type.is_integral and index.type != VOID:
            raise mismatch("[ ]", [index], "an integer as index of an array")
        index = cast(index, INT) if index.type == VOID else index
        return strict(base.type.children[0].type, (base, index), _item)
    if base.type.name == "map":
        key = base.type.children[0].type
        to = implicit(index.type, key)
        if to is None:
            raise mismatch("[ ]", [index], f"{shown(key)}, the type of the map's keys")
        return strict(base.type.children[1].type, (base, cast(index, key)), dict.get)
    if base.type.name == "struct" and index.constant and index.type == STRING:
        return _member(base, index.value())
    raise mismatch("[ ]", [base], "an array or a map")


def _item(items: list[Any], at: int) -> Any:
    return items[at] if 0 <= at < len(items) else None


def result_type(type: Type) -> Type:
    """The type of a result; refuses types that no field can have."""
    if type == VOID or any(child.type == VOID for child in type.children):
        raise NetworkError(
            "UNTYPED_NULL",
            "expected a value with a type, found a bare NULL",
            hint="give it a type, e.g. CAST(NULL AS int)",
        )
    if type.name.startswith("interval"):
        raise NetworkError(
            "TYPE_MISMATCH",
            f"expected a value a field can hold, found an {shown(type)}",
            hint="compare it, or subtract unix_seconds(…) of both sides to get a number",
        )
    return type


__all__ = ["Row", "compile_node", "result_type"]
