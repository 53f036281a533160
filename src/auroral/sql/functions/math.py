"""Mathematical functions. Where Java gives NaN or infinity, so do these; they never raise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions.coercion import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    VOID,
    implicit,
    is_interval,
)
from auroral.sql.expressions.numbers import (
    WIDE,
    decimal_of,
    float32,
    negated,
    rounded,
    saturate,
    to_decimal,
    wrap,
)
from auroral.sql.expressions.typed import (
    OnlySparkError,
    Row,
    Typed,
    cast,
    implicit_cast,
    mismatch,
    strict,
)
from auroral.sql.functions.catalogue import register, simple


def _guarded(function: Callable[[float], float]) -> Callable[[float], float]:
    """NaN where Python complains about the domain, infinity where it overflows."""

    def run(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, value) if function is math.sinh else math.inf

    return run


def _atanh(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) == 1 else math.atanh(value)


for _name, _function in {
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "exp": math.exp,
    "expm1": math.expm1,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "atanh": _atanh,
    "degrees": math.degrees,
    "radians": math.radians,
    "rint": lambda v: math.copysign(float(round(v)), v) if math.isfinite(v) else v,
}.items():
    simple(_name, [DOUBLE], DOUBLE, _guarded(_function))


def _logarithm(function: Callable[[float], float], above: float = 0.0) -> Callable[[float], Any]:
    return lambda value: None if value <= above else function(value)


simple("ln", [DOUBLE], DOUBLE, _logarithm(math.log))
simple("log10", [DOUBLE], DOUBLE, _logarithm(math.log10))
simple("log2", [DOUBLE], DOUBLE, _logarithm(math.log2))
simple("log1p", [DOUBLE], DOUBLE, _logarithm(math.log1p, -1.0))


@register("log", 1, 2)
def _log(args: Sequence[Typed]) -> Typed:
    def run(base: float, value: float) -> float | None:
        if base <= 0 or value <= 0:
            return None
        over, under = math.log(value), math.log(base)
        if under:
            return over / under
        return math.nan if not over or over != over else math.copysign(math.inf, over)

    cast_args = [implicit_cast("log", arg, DOUBLE, at) for at, arg in enumerate(args, 1)]
    if len(args) == 1:
        return strict(DOUBLE, cast_args, _logarithm(math.log))
    return strict(DOUBLE, cast_args, run)


def _power(base: float, exponent: float) -> float:
    if abs(base) == 1 and math.isinf(exponent):
        return math.nan
    if base == 1 and math.isnan(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except (ValueError, OverflowError):
        odd = exponent == int(exponent) and int(exponent) % 2 == 1
        if base == 0 or exponent == int(exponent):
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan if base < 0 else math.inf


simple("power pow", [DOUBLE, DOUBLE], DOUBLE, _power)
simple("atan2", [DOUBLE, DOUBLE], DOUBLE, lambda y, x: math.atan2(y + 0.0, x + 0.0))
simple("hypot", [DOUBLE, DOUBLE], DOUBLE, math.hypot)
simple("e", [], DOUBLE, lambda: math.e)
simple("pi", [], DOUBLE, lambda: math.pi)


@register("sign signum", 1)
def _sign(args: Sequence[Typed]) -> Typed:
    if is_interval(args[0].type):
        raise OnlySparkError("sign of an interval")
    arg = implicit_cast("sign", args[0], DOUBLE)
    return strict(DOUBLE, [arg], lambda v: v if v == 0 or math.isnan(v) else math.copysign(1.0, v))


@register("abs", 1)
def _abs(args: Sequence[Typed]) -> Typed:
    if is_interval(args[0].type):
        return strict(args[0].type, args, abs)
    arg = implicit_cast("abs", args[0], "numeric")
    if arg.type.is_integral:
        name = arg.type.name
        return strict(arg.type, [arg], lambda value: wrap(abs(value), name))
    if arg.type.name == "decimal":
        type = arg.type
        return strict(type, [arg], lambda value: negated(value, type) if value < 0 else value)
    return strict(arg.type, [arg], abs)


def _whole(names: str, mode: str) -> None:
    first = names.split()[0]
    towards = math.ceil if first == "ceil" else math.floor

    def run_double(value: float) -> int:
        return saturate(value, "bigint") if not math.isfinite(value) else _long(towards(value))

    @register(names, 1, 2)
    def build(args: Sequence[Typed]) -> Typed:
        if len(args) == 2:
            raise OnlySparkError(f"{first} with a scale")
        arg = implicit_cast(first, args[0], "double|decimal|bigint")
        if arg.type.name == "bigint":
            return Typed(arg.type, arg.run, constant=arg.constant)
        if arg.type.name == "double":
            return strict(Type("bigint"), [arg], run_double)
        if arg.type.scale == 0:
            return Typed(arg.type, arg.run, constant=arg.constant)
        type = Type("decimal", min(arg.type.precision - arg.type.scale + 1, 38))
        return strict(type, [arg], lambda value: value.to_integral_value(mode, WIDE))


def _long(value: int) -> int:
    return max(-(1 << 63), min(value, (1 << 63) - 1))


_whole("ceil ceiling", ROUND_CEILING)
_whole("floor", ROUND_FLOOR)


def _rounding(name: str, half_up: bool) -> None:
    @register(name, 1, 2)
    def build(args: Sequence[Typed]) -> Typed:
        arg = implicit_cast(name, args[0], "numeric")
        scale = 0
        if len(args) == 2:
            places = implicit_cast(name, args[1], INT, 2)
            if not places.constant:
                raise NetworkError("TYPE_MISMATCH", f"{name}: expected a constant number of digits")
            scale = places.value()
            if scale is None:
                raise OnlySparkError(f"{name} with NULL digits")
        return _rounded(arg, scale, half_up)


def _rounded(arg: Typed, scale: int, half_up: bool) -> Typed:
    type = arg.type
    if type.name == "decimal":
        whole = type.precision - type.scale + 1
        if scale < 0:
            to = Type("decimal", min(max(whole, 1 - scale), 38))
        else:
            digits = min(type.scale, scale)
            to = Type("decimal", min(whole + digits, 38), digits)
        return strict(
            to, [arg], lambda v: to_decimal(rounded(v, min(scale, to.scale), half_up), to)
        )
    if type.is_integral:
        if scale >= 0:
            return Typed(type, arg.run, constant=arg.constant)
        name = type.name
        return strict(type, [arg], lambda v: wrap(int(rounded(Decimal(v), scale, half_up)), name))

    def run(value: float) -> float:
        if not math.isfinite(value) or scale > 400:
            return value
        if scale < -400:
            return 0.0
        # Through BigDecimal the sign of zero is lost.
        found = float(rounded(decimal_of(value), scale, half_up)) + 0.0
        return float32(found) if type == FLOAT else found

    return strict(type, [arg], run)


_rounding("round", half_up=True)
_rounding("bround", half_up=False)


@register("isnan", 1)
def _isnan(args: Sequence[Typed]) -> Typed:
    arg = implicit_cast("isnan", args[0], "double|float")
    test = arg.run

    def run(row: Row) -> bool:
        value = test(row)
        return value is not None and math.isnan(value)

    return Typed(BOOLEAN, run, constant=arg.constant)


@register("nanvl", 2)
def _nanvl(args: Sequence[Typed]) -> Typed:
    left, right = args
    if left.type == VOID or {left.type, right.type} == {FLOAT, DOUBLE}:
        left, right = cast(left, DOUBLE), cast(right, DOUBLE)
    if right.type == VOID:
        right = cast(right, left.type)
    types = [implicit(side.type, "double|float") for side in (left, right)]
    if types[0] is None or types[0] != types[1]:
        raise mismatch("nanvl", args, "two doubles")
    first, second = cast(left, types[0]).run, cast(right, types[0]).run

    def run(row: Row) -> float | None:
        value: float | None = first(row)
        if value is None or not math.isnan(value):
            return value
        other: float | None = second(row)
        return other

    return Typed(types[0], run, constant=left.constant and right.constant)
