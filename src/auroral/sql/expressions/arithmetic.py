"""+ - * / % div and bits: types widened as Spark does, integers wrap, division by zero is NULL."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Any

from auroral.network.types import Type
from auroral.sql.expressions.coercion import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    VOID,
    adjusted,
    decimal_for,
    is_interval,
    tightest,
)
from auroral.sql.expressions.numbers import JAVA, WIDE, float32, negated, to_decimal, wrap
from auroral.sql.expressions.operators import literal_decimals
from auroral.sql.expressions.time_arithmetic import add_time, is_timely, subtract_time
from auroral.sql.expressions.typed import (
    OnlySparkError,
    Typed,
    cast,
    implicit_cast,
    mismatch,
    strict,
)
from auroral.sql.functions.catalogue import register

Binary = Callable[[Any, Any], Any]


def operands(name: str, args: Sequence[Typed]) -> tuple[Typed, Typed]:
    """Both sides in one numeric type, or as two decimals."""
    left, right = (cast(arg, DOUBLE) if arg.type == STRING else arg for arg in args)
    left, right = literal_decimals(left, right)
    if left.type.name == "decimal" and right.type.is_integral:
        right = cast(right, decimal_for(right.type))
    elif right.type.name == "decimal" and left.type.is_integral:
        left = cast(left, decimal_for(left.type))
    elif "decimal" in (left.type.name, right.type.name) and left.type != right.type:
        left, right = _decimal_sides(left, right)
    if left.type.name == "decimal" and right.type.name == "decimal":
        return left, right
    type = tightest(left.type, right.type)
    if type is None or not type.is_numeric:
        raise mismatch(name, args, "two numbers")
    return cast(left, type), cast(right, type)


def _decimal_sides(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """A decimal beside a float becomes a double, beside NULL it stays."""
    floating = {"float", "double"} & {left.type.name, right.type.name}
    if not floating:
        return left, right
    to_double = [cast(side, DOUBLE) if side.type.is_numeric else side for side in (left, right)]
    return to_double[0], to_double[1]


def decimal_result(name: str, a: Type, b: Type) -> Type:
    """The decimal type of a result, by Hive's rules."""
    scale = max(a.scale, b.scale)
    if name in ("+", "-"):
        return adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
    if name == "*":
        return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
    if name == "/":
        scale = max(6, a.scale + b.precision + 1)
        return adjusted(a.precision - a.scale + b.scale + scale, scale)
    if name == "div":
        return Type("decimal", min(a.precision - a.scale + b.scale or 1, 38), 0)
    return adjusted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def java_remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend; `b` is not zero."""
    if isinstance(a, float):
        return math.nan if math.isinf(a) or a != a or b != b else math.fmod(a, b)
    if isinstance(a, Decimal):
        return WIDE.remainder(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def java_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, Decimal):
        return WIDE.divide(a, b).quantize(Decimal(1).scaleb(-39), context=WIDE)
    return a / b


def _nonzero(function: Binary) -> Binary:
    return lambda a, b: function(a, b) if b else None


_FUNCTIONS: dict[str, Binary] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _nonzero(_divide),
    "%": _nonzero(java_remainder),
}
_DECIMAL = {"+": WIDE.add, "-": WIDE.subtract, "*": JAVA.multiply}


def arithmetic(name: str, left: Typed, right: Typed, function: Binary) -> Typed:
    """Apply a function to two operands of one type and fit the result into its type."""
    type = left.type
    if type.name == "decimal":
        type = decimal_result(name, left.type, right.type)
        exact: Binary = _DECIMAL.get(name, function)

        def run_decimal(a: Decimal, b: Decimal) -> Decimal | None:
            value = exact(a, b)
            return None if value is None else to_decimal(value, type)

        return strict(type, (left, right), run_decimal)
    if type.is_integral:
        integral = type.name

        def run_integer(a: int, b: int) -> int | None:
            value = function(a, b)
            return None if value is None else wrap(value, integral)

        return strict(type, (left, right), run_integer)
    if type.name == "float":

        def run_float(a: float, b: float) -> float | None:
            value = function(a, b)
            return None if value is None else float32(value)

        return strict(type, (left, right), run_float)
    return strict(type, (left, right), function)


def _operator(name: str, names: str) -> None:
    @register(names, 2)
    def build(args: Sequence[Typed]) -> Typed:
        if is_timely(args):
            if name == "+":
                return add_time(args)
            if name == "-":
                return subtract_time(args)
            if any(is_interval(arg.type) for arg in args):
                raise OnlySparkError(f"an interval with {name}")
            raise mismatch(name, args, "two numbers")
        if name == "/" and all(arg.type.is_numeric or arg.type == VOID for arg in args):
            # Both become doubles at once: by way of float a bigint would lose digits.
            exact = any(arg.type.name == "decimal" for arg in args)
            floating = any(arg.type.name in ("float", "double") for arg in args)
            if floating or not exact:
                args = [cast(arg, DOUBLE) for arg in args]
        left, right = operands(name, args)
        return arithmetic(name, left, right, _FUNCTIONS[name])


for _name, _names in (("+", "+"), ("-", "-"), ("*", "*"), ("/", "/"), ("%", "% mod")):
    _operator(_name, _names)


@register("div", 2)
def _div(args: Sequence[Typed]) -> Typed:
    left, right = operands("div", args)
    if left.type.is_integral:
        left, right = cast(left, BIGINT), cast(right, BIGINT)
        return strict(
            BIGINT,
            (left, right),
            lambda a, b: wrap(java_quotient(a, b), "bigint") if b else None,
        )
    if left.type.name != "decimal":
        raise mismatch("div", args, "two integers or decimals")
    whole = decimal_result("div", left.type, right.type)

    def run(a: Decimal, b: Decimal) -> int | None:
        if not b:
            return None
        value = to_decimal(WIDE.divide(a, b).to_integral_value(ROUND_DOWN, WIDE), whole)
        return None if value is None else wrap(int(value), "bigint")

    return strict(BIGINT, (left, right), run)


@register("pmod", 2)
def _pmod(args: Sequence[Typed]) -> Typed:
    left, right = operands("pmod", args)

    def run(a: Any, b: Any) -> Any:
        if not b:
            return None
        rest = java_remainder(a, b)
        if rest >= 0 or rest != rest:
            return rest
        return java_remainder(WIDE.add(rest, b) if isinstance(b, Decimal) else rest + b, b)

    return arithmetic("%", left, right, run)


@register("negative", 1)
def _negative(args: Sequence[Typed]) -> Typed:
    arg = args[0]
    if is_interval(arg.type):
        return strict(arg.type, [arg], operator.neg)
    arg = implicit_cast("-", arg, "numeric")
    if arg.type.is_integral:
        name = arg.type.name
        return strict(arg.type, [arg], lambda value: wrap(-value, name))
    if arg.type.name == "decimal":
        return strict(arg.type, [arg], lambda value: negated(value, arg.type))
    return strict(arg.type, [arg], operator.neg)


@register("positive", 1)
def _positive(args: Sequence[Typed]) -> Typed:
    return args[0] if is_interval(args[0].type) else implicit_cast("+", args[0], "numeric")


def _bitwise(name: str, function: Binary) -> None:
    @register(name, 2)
    def build(args: Sequence[Typed]) -> Typed:
        type = tightest(args[0].type, args[1].type)
        if type is None or not type.is_integral:
            raise mismatch(name, args, "two integers")
        return strict(type, [cast(arg, type) for arg in args], function)


_bitwise("&", operator.and_)
_bitwise("|", operator.or_)
_bitwise("^", operator.xor)


@register("~", 1)
def _invert(args: Sequence[Typed]) -> Typed:
    if not args[0].type.is_integral:
        raise mismatch("~", args, "an integer")
    return strict(args[0].type, args, operator.invert)


def _shift(names: str, function: Callable[[int, int, int], int]) -> None:
    first = names.split()[0]

    @register(names, 2)
    def build(args: Sequence[Typed]) -> Typed:
        value = args[0]
        if value.type.name != "bigint":
            value = implicit_cast(first, value, INT)
        by = implicit_cast(first, args[1], INT, 2)
        bits = 64 if value.type == BIGINT else 32
        name = value.type.name

        def run(a: int, b: int) -> int:
            return wrap(function(a, b % bits, bits), name)

        return strict(value.type, (value, by), run)


_shift("shiftleft", lambda a, b, _: a << b)
_shift("shiftright", lambda a, b, _: a >> b)
_shift("shiftrightunsigned", lambda a, b, bits: (a % (1 << bits)) >> b)
