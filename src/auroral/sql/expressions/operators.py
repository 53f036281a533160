"""Comparison, logic and choice: =, <, AND, OR, NOT, IN, CASE, coalesce and their kind."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from auroral.network.types import Type
from auroral.sql.expressions.coercion import (
    BOOLEAN,
    VOID,
    common,
    common_without_strings,
    comparable,
    shown,
)
from auroral.sql.expressions.numbers import order_key
from auroral.sql.expressions.typed import (
    Row,
    Typed,
    cast,
    constant,
    implicit_cast,
    mismatch,
    strict,
)
from auroral.sql.functions.catalogue import register

_PLAIN = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def needs_key(type: Type) -> bool:
    """Whether Python's own comparison differs from Spark's: NaN and NULL inside structures."""
    return type.name in ("float", "double", "array", "struct")


def is_ordered(type: Type) -> bool:
    """Whether Spark can compare values of the type; maps it cannot."""
    return type.name != "map" and all(is_ordered(child.type) for child in type.children)


def comparer(name: str, type: Type) -> Callable[[Any, Any], bool]:
    """The comparison of two values of one type that are not NULL."""
    plain: Callable[[Any, Any], bool] = _PLAIN[name]
    if not needs_key(type):
        return plain
    return lambda a, b: plain(order_key(a), order_key(b))


def _sides(name: str, args: Sequence[Typed], equality: bool) -> tuple[Typed, Typed, Type]:
    left, right = literal_decimals(*args)
    type = comparable(left.type, right.type, equality=equality)
    if type is None or not is_ordered(type):
        raise mismatch(name, args, "two values that can be compared")
    if type == VOID:
        return left, right, VOID
    return cast(left, type), cast(right, type), type


def literal_decimals(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Give an integer literal beside a decimal just the digits it has, as Spark does."""
    if left.literal and left.type.is_integral and right.type.name == "decimal":
        left = cast(left, Type("decimal", len(str(abs(left.value())))))
    elif right.literal and right.type.is_integral and left.type.name == "decimal":
        right = cast(right, Type("decimal", len(str(abs(right.value())))))
    return left, right


def _comparison(name: str) -> Callable[[Sequence[Typed]], Typed]:
    def build(args: Sequence[Typed]) -> Typed:
        left, right, type = _sides(name, args, name == "=")
        if type == VOID:
            return constant(None, BOOLEAN)
        return strict(BOOLEAN, (left, right), comparer(name, type))

    return build


for _name in _PLAIN:
    register(_name, 2)(_comparison(_name))


@register("<>", 2)
def _differs(args: Sequence[Typed]) -> Typed:
    left, right, type = _sides("<>", args, True)
    if type == VOID:
        return constant(None, BOOLEAN)
    same = comparer("=", type)
    return strict(BOOLEAN, (left, right), lambda a, b: not same(a, b))


@register("<=> equal_null", 2)
def null_safe_equal(args: Sequence[Typed]) -> Typed:
    left, right, type = _sides("<=>", args, True)
    first, second = left.run, right.run
    if type == VOID:
        return constant(True, BOOLEAN)
    same = comparer("=", type)

    def run(row: Row) -> bool:
        a, b = first(row), second(row)
        return a is b if a is None or b is None else same(a, b)

    return Typed(BOOLEAN, run, constant=left.constant and right.constant)


def _booleans(name: str, args: Sequence[Typed]) -> list[Typed]:
    if any(arg.type not in (BOOLEAN, VOID) for arg in args):
        raise mismatch(name, args, "booleans")
    return [cast(arg, BOOLEAN) for arg in args]


def _logic(name: str, decisive: bool) -> None:
    @register(name, 2, None)
    def build(args: Sequence[Typed]) -> Typed:
        runs = [arg.run for arg in _booleans(name.upper(), args)]

        def run(row: Row) -> bool | None:
            found: bool | None = not decisive
            for part in runs:
                value: bool | None = part(row)
                if value is None:
                    found = None
                elif value is decisive:
                    return decisive
            return found

        return Typed(BOOLEAN, run, constant=all(arg.constant for arg in args))


_logic("and", False)
_logic("or", True)


@register("not", 1)
def _not(args: Sequence[Typed]) -> Typed:
    return strict(BOOLEAN, _booleans("NOT", args), operator.not_)


def _null_test(args: Sequence[Typed], wanted: bool) -> Typed:
    test = args[0].run
    return Typed(BOOLEAN, lambda row: (test(row) is None) is wanted, constant=args[0].constant)


@register("isnull", 1)
def _isnull(args: Sequence[Typed]) -> Typed:
    return _null_test(args, True)


@register("isnotnull", 1)
def _isnotnull(args: Sequence[Typed]) -> Typed:
    return _null_test(args, False)


@register("isunknown", 1)
def _isunknown(args: Sequence[Typed]) -> Typed:
    return _null_test(_booleans("IS UNKNOWN", args), True)


@register("in", 2, None)
def _in(args: Sequence[Typed]) -> Typed:
    type = common([arg.type for arg in args])
    if type is None or not is_ordered(type):
        raise mismatch("IN", args, "values of one type")
    if type == VOID:
        return constant(None, BOOLEAN)
    value, *options = [cast(arg, type).run for arg in args]
    same = comparer("=", type)

    def run(row: Row) -> bool | None:
        sought = value(row)
        if sought is None:
            return None
        unknown = False
        for option in options:
            found = option(row)
            if found is None:
                unknown = True
            elif same(sought, found):
                return True
        return None if unknown else False

    return Typed(BOOLEAN, run, constant=all(arg.constant for arg in args))


def merged(name: str, args: Sequence[Typed]) -> list[Typed]:
    """The arguments cast to the type that holds them all."""
    type = common([arg.type for arg in args])
    if type is None:
        raise mismatch(name, args, "values of one type")
    return [cast(arg, type) for arg in args]


def choose(branches: Sequence[tuple[Typed, Typed]], default: Typed | None) -> Typed:
    """CASE WHEN: the first branch whose condition is true."""
    for condition, _ in branches:
        if condition.type != BOOLEAN:
            raise mismatch("CASE WHEN", [condition], "a boolean condition")
    results = [result for _, result in branches] + ([default] if default else [])
    values = merged("CASE", results)
    pairs = [
        (condition.run, value.run) for (condition, _), value in zip(branches, values, strict=False)
    ]
    otherwise = values[-1].run if default else (lambda _: None)

    def run(row: Row) -> Any:
        for condition, value in pairs:
            if condition(row) is True:
                return value(row)
        return otherwise(row)

    fixed = all(arg.constant for arg in (*results, *(test for test, _ in branches)))
    return Typed(values[0].type, run, constant=fixed)


@register("if", 3)
def _if(args: Sequence[Typed]) -> Typed:
    return choose([(implicit_cast("if", args[0], BOOLEAN), args[1])], args[2])


@register("coalesce", 1, None)
def coalesce(args: Sequence[Typed]) -> Typed:
    values = merged("coalesce", args)
    runs = [value.run for value in values]

    def run(row: Row) -> Any:
        for part in runs:
            value = part(row)
            if value is not None:
                return value
        return None

    return Typed(values[0].type, run, constant=all(arg.constant for arg in args))


register("nvl ifnull", 2)(coalesce)


@register("nvl2", 3)
def _nvl2(args: Sequence[Typed]) -> Typed:
    return choose([(_null_test(args[:1], False), args[1])], args[2])


@register("nullif", 2)
def _nullif(args: Sequence[Typed]) -> Typed:
    return choose([(_comparison("=")(args), constant(None, VOID))], args[0])


def _extreme(name: str, better: str) -> None:
    @register(name, 2, None)
    def build(args: Sequence[Typed]) -> Typed:
        type = common_without_strings([arg.type for arg in args])
        if type is None or not is_ordered(type):
            raise mismatch(name, args, f"values of one type, such as {shown(args[0].type)}")
        wins = comparer(better, type) if type != VOID else None
        runs = [cast(arg, type).run for arg in args]

        def run(row: Row) -> Any:
            found = None
            for part in runs:
                value = part(row)
                if value is not None and (found is None or (wins and wins(value, found))):
                    found = value
            return found

        return Typed(type, run, constant=all(arg.constant for arg in args))


_extreme("greatest", ">")
_extreme("least", "<")
