"""Arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from auroral.network.types import Field, Type
from auroral.sql.expressions.coercion import (
    BOOLEAN,
    INT,
    STRING,
    VOID,
    array_of,
    implicit,
    shown,
    wider_without_strings,
)
from auroral.sql.expressions.operators import comparer, is_ordered, merged
from auroral.sql.expressions.typed import (
    OnlySparkError,
    Row,
    Typed,
    cast,
    implicit_cast,
    mismatch,
    strict,
)
from auroral.sql.functions.catalogue import register


@register("size cardinality", 1)
def _size(args: Sequence[Typed]) -> Typed:
    if args[0].type.name not in ("array", "map"):
        raise mismatch("size", args, "an array or a map")
    source = args[0].run

    def run(row: Row) -> int:
        value = source(row)
        return -1 if value is None else len(value)  # Spark's legacy.sizeOfNull, on by default

    return Typed(INT, run, constant=args[0].constant)


@register("array_size", 1)
def _array_size(args: Sequence[Typed]) -> Typed:
    if args[0].type.name != "array":
        raise mismatch("array_size", args, "an array")
    return strict(INT, args, len)


@register("array_contains", 2)
def _array_contains(args: Sequence[Typed]) -> Typed:
    if args[0].type.name != "array" or args[1].type == VOID:
        raise mismatch("array_contains", args, "an array and a value")
    type = wider_without_strings(args[0].type.children[0].type, args[1].type)
    if type is None or not is_ordered(type):
        raise mismatch("array_contains", args, "an array and a value of its element type")
    same = comparer("=", type)

    def run(items: list[Any], value: Any) -> bool | None:
        if any(item is not None and same(item, value) for item in items):
            return True
        return None if None in items else False

    return strict(BOOLEAN, [cast(args[0], array_of(type)), cast(args[1], type)], run)


@register("element_at", 2)
def _element_at(args: Sequence[Typed]) -> Typed:
    base, index = args
    if base.type.name == "array":
        at = implicit_cast("element_at", index, INT, 2)
        if index.type.name not in ("tinyint", "smallint", "int") or (
            at.constant and at.value() == 0
        ):
            raise mismatch("element_at", args, "an array and an int other than 0")

        def run(items: list[Any], place: int) -> Any:
            at = place - 1 if place > 0 else len(items) + place
            return items[at] if place and 0 <= at < len(items) else None

        return strict(base.type.children[0].type, [base, at], run)
    if base.type.name == "map":
        key = base.type.children[0].type
        if implicit(index.type, key) is None:
            raise mismatch("element_at", args, f"a map and {shown(key)}, its key's type")
        return strict(base.type.children[1].type, [base, cast(index, key)], dict.get)
    raise mismatch("element_at", args, "an array or a map")


@register("get", 2)
def _get(args: Sequence[Typed]) -> Typed:
    if args[0].type.name != "array":
        raise mismatch("get", args, "an array and an index")
    index = implicit_cast("get", args[1], INT, 2)

    def run(items: list[Any], at: int) -> Any:
        return items[at] if 0 <= at < len(items) else None

    return strict(args[0].type.children[0].type, [args[0], index], run)


@register("array", 0, None)
def _array(args: Sequence[Typed]) -> Typed:
    if not args:
        raise OnlySparkError("an empty array()")
    values = merged("array", args)
    runs = [value.run for value in values]
    return Typed(
        array_of(values[0].type),
        lambda row: [run(row) for run in runs],
        constant=all(arg.constant for arg in args),
    )


def _record(names: Sequence[str], values: Sequence[Typed]) -> Typed:
    runs = list(zip(names, (value.run for value in values), strict=True))
    if len({name.lower() for name in names}) < len(names):
        raise OnlySparkError("a struct with one name twice")
    return Typed(
        Type(
            "struct", children=tuple(Field(n, v.type) for n, v in zip(names, values, strict=True))
        ),
        lambda row: {name: run(row) for name, run in runs},
        constant=all(value.constant for value in values),
    )


@register("struct", 1, None)
def _struct(args: Sequence[Typed]) -> Typed:
    return _record([arg.name or f"col{at}" for at, arg in enumerate(args, 1)], args)


@register("named_struct", 2, None)
def _named_struct(args: Sequence[Typed]) -> Typed:
    names = args[::2]
    if len(args) % 2 or any(not n.constant or n.type != STRING or n.value() is None for n in names):
        raise mismatch("named_struct", args, "constant names, each followed by a value")
    return _record([name.value() for name in names], args[1::2])
