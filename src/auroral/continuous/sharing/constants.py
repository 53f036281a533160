"""Constants in the type of what they are compared with, so that comparisons stay what they were.

Spark compares `i > 2.5` as decimals. Of an int that is `i >= 3`: where an attribute's type has
next values, the constant becomes the nearest of them and the comparison includes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from auroral.continuous.sharing.template import Op
from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions import times
from auroral.sql.expressions.casts import can_cast, converter, nullable
from auroral.sql.expressions.coercion import common, comparable, decimal_for
from auroral.sql.expressions.numbers import LIMITS, float32

SLOT_TYPES = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string")
) | {"date", "timestamp", "timestamp_ntz"}
_DAY = 86_400_000_000
_WIDE = Context(prec=80)
_EMBEDDED: dict[str, Op] = {">": ">=", ">=": ">=", "<": "<=", "<=": "<=", "=": "=", "<>": "not in"}
Finish = Callable[[Sequence[Any]], Any]
Find = Callable[[Any], tuple[Any, ...] | None]
"""What is sought for a value as written: one constant, or none; None for NULL."""


@dataclass(frozen=True)
class Comparison:
    """`attribute op constant` in one type.

    `cast` is the type to cast the attribute to first; `finish` makes the constant of the values
    as written. None, NULL, satisfies nothing.
    """

    op: Op
    type: Type
    finish: Finish
    cast: bool = False


def comparison(attribute: Type, op: str, constant: Type) -> Comparison | None:
    """How an attribute is compared with a constant, None if it takes more than a constant."""
    type = comparable(attribute, constant, equality=op in ("=", "<>"))
    if type is None or type.name not in SLOT_TYPES:
        return None
    if type.name == "boolean" and op not in ("=", "<>"):
        return None
    nearest = _nearest(attribute, constant, type)
    if nearest is not None:
        return Comparison(_EMBEDDED[op], attribute, _embedded(op, nearest))
    if type.name == "decimal":
        return None  # digits may be cut
    written: Op = "!=" if op == "<>" else op  # type: ignore[assignment]
    cast = attribute != type
    if cast and type.name == "float":
        return Comparison(_EMBEDDED[op], type, _embedded(op, _nearest_float(constant, type)), cast)
    convert = _caster(constant, type)
    return Comparison(written, type, lambda values: convert(values[0]), cast)


def membership(attribute: Type, options: Sequence[Type], negated: bool) -> Comparison | None:
    """How an attribute is sought among constants."""
    type = common([attribute, *options])
    if type is None or type.name not in SLOT_TYPES or type.name == "boolean":
        return None
    op: Op = "not in" if negated else "in"
    if attribute == type and type.name not in ("decimal", "float"):
        return Comparison(op, type, _listed([_found(c, type) for c in options], negated))
    nearest = [_nearest(attribute, option, type) for option in options]
    if None not in nearest:
        finish = _listed([_equal(found) for found in nearest if found is not None], negated)
        return Comparison(op, attribute, finish)
    if type.name in ("decimal", "float"):
        return None
    finds = [_readable(_found(c, type), attribute, c) for c in options]
    return Comparison(op, type, _listed(finds, negated), cast=True)


@dataclass(frozen=True)
class Nearest:
    """The values of a type next to a constant: `below` is at most it, `above` at least it.

    Both are the constant if the type has it; None where there is no such value. `null` if it
    is NULL in the type of the comparison.
    """

    below: Any = None
    above: Any = None
    under: Any = None
    """The greatest value less than the constant."""
    over: Any = None
    """The least value greater than it."""
    null: bool = False


Near = Callable[[Any], Nearest]
_NULL = Nearest(null=True)


def _nearest(attribute: Type, constant: Type, type: Type) -> Near | None:
    """The neighbours of constants in the attribute's type, None if it needs none or has none."""
    exact = attribute.is_integral or attribute.name == "decimal"
    if attribute == type and attribute.name not in ("decimal", "float"):
        return None
    if exact and (constant.is_integral or constant.name == "decimal"):
        return _nearest_exact(attribute) if _lossless(attribute, constant, type) else None
    if attribute.name in ("tinyint", "smallint", "int") and type.name == "double":
        return _nearest_whole(attribute, constant, type)
    if attribute.name == "float" and type.name in ("float", "double"):
        return _nearest_float(constant, type)
    if attribute.name == "date" and type.name in ("timestamp", "timestamp_ntz"):
        return _nearest_date(constant, type)
    return None


def _lossless(attribute: Type, constant: Type, type: Type) -> bool:
    """Whether both are compared with all their digits."""
    if type.is_integral:
        return True
    sides = [decimal_for(attribute), decimal_for(constant)]
    whole, scale = max(side.precision - side.scale for side in sides), max(s.scale for s in sides)
    return type.name == "decimal" and type.precision - type.scale >= whole and type.scale >= scale


def _nearest_exact(attribute: Type) -> Near:
    scale = attribute.scale
    high = LIMITS[attribute.name][1] if attribute.is_integral else 10**attribute.precision - 1
    low = LIMITS[attribute.name][0] if attribute.is_integral else -high

    def value(units: int) -> Any:
        return units if attribute.is_integral else Decimal(units).scaleb(-scale, _WIDE)

    def near(constant: Any) -> Nearest:
        if constant is None:
            return _NULL
        exact = Fraction(constant) * 10**scale
        return _on_grid(math.floor(exact), math.ceil(exact), low, high, value)

    return near


def _on_grid(below: int, above: int, low: int, high: int, value: Callable[[int], Any]) -> Nearest:
    """The neighbours of a constant between two units of a type with a least and a greatest."""
    under = below if below < above else below - 1
    over = above if below < above else above + 1
    return Nearest(
        None if below < low else value(min(below, high)),
        None if above > high else value(max(above, low)),
        None if under < low else value(min(under, high)),
        None if over > high else value(max(over, low)),
    )


def _nearest_whole(attribute: Type, constant: Type, type: Type) -> Near:
    """Of integers compared as doubles."""
    exact = _nearest_exact(attribute)
    low, high = LIMITS[attribute.name]

    convert = _caster(constant, type)

    def near(written: Any) -> Nearest:
        value = convert(written)
        if value is None:
            return _NULL
        if math.isnan(value) or value == math.inf:
            return Nearest(below=high, under=high)
        return Nearest(above=low, over=low) if value == -math.inf else exact(value)

    return near


def _nearest_float(constant: Type, type: Type) -> Near:
    """Of floats; NaN is the greatest."""

    convert = _caster(constant, type)

    def near(written: Any) -> Nearest:
        value = convert(written)
        if value is None:
            return _NULL
        if math.isnan(value):
            return Nearest(below=value, above=value, under=math.inf)
        single = float32(float(value)) + 0.0
        up = math.nan if single == math.inf else _next_float(single, math.inf)
        down = _next_float(single, -math.inf) if single > -math.inf else None
        if single == value:
            return Nearest(single, single, down, up)
        if single < value:
            return Nearest(single, up, single, up)
        return Nearest(down, single, down, single)

    return near


def _next_float(value: float, towards: float) -> float:
    with np.errstate(all="ignore"):  # it may be infinite, or too small for all its digits
        return float(np.nextafter(np.float32(value), np.float32(towards)))


def _nearest_date(constant: Type, type: Type) -> Near:
    """Of dates compared as timestamps."""
    low, high = times.days(date.min), times.days(date.max)

    convert = _caster(constant, type)

    def near(written: Any) -> Nearest:
        value = convert(written)
        if value is None:
            return _NULL
        micros = times.micros(value)
        return _on_grid(micros // _DAY, -(-micros // _DAY), low, high, times.from_days)

    return near


def _embedded(op: str, near: Near) -> Finish:
    def finish(values: Sequence[Any]) -> Any:
        found = near(values[0])
        if found.null:
            return None
        if op in ("=", "<>"):
            there = found.below is not None and _same(found.below, found.above)
            if op == "=":
                return found.below if there else None
            return [found.below] if there else []
        return {">": found.over, ">=": found.above, "<": found.under, "<=": found.below}[op]

    return finish


def _same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and bool(a == b or (a != a and b != b))


def _caster(source: Type, to: Type) -> Callable[[Any], Any]:
    """The cast of a value that may be NULL."""
    if source == to:
        return lambda value: value
    convert = nullable(converter(source, to))
    return _understood(convert, to) if source.name == "string" else convert


def _understood(convert: Callable[[Any], Any], to: Type) -> Callable[[Any], Any]:
    """Refuse text that nothing of the type can ever be equal to: somebody mistyped it."""

    def understand(text: Any) -> Any:
        value = convert(text)
        if value is None and text is not None:
            raise NetworkError("TYPE_MISMATCH", f"expected a value of type {to}, found {text!r}")
        return value

    return understand


def _found(source: Type, to: Type) -> Find:
    convert = _caster(source, to)

    def find(value: Any) -> tuple[Any, ...] | None:
        found = convert(value)
        return None if found is None else (found,)

    return find


def _readable(find: Find, attribute: Type, option: Type) -> Find:
    """The same, refusing text that is no value of the attribute's type."""
    if option.name != "string" or not can_cast(option, attribute):
        return find
    require = _caster(option, attribute)

    def checked(value: Any) -> tuple[Any, ...] | None:
        require(value)
        return find(value)

    return checked


def _equal(near: Near) -> Find:
    def find(value: Any) -> tuple[Any, ...] | None:
        found = near(value)
        if found.null:
            return None
        return (found.below,) if _same(found.below, found.above) else ()

    return find


def _listed(finds: Sequence[Find], negated: bool) -> Finish:
    """The constants among which is sought; NOT IN holds for nothing if one of them is NULL."""

    def finish(values: Sequence[Any]) -> Any:
        found = [find(value) for find, value in zip(finds, values, strict=True)]
        if negated and None in found:
            return None
        return list(dict.fromkeys(item for part in found if part for item in part))

    return finish


def fits(source: Type, to: Type) -> bool:
    """Whether a value of one type can stand for one of another, if it is exactly that."""
    if source == to:
        return True
    if source.is_numeric and to.is_numeric:
        return True
    timely = ("date", "timestamp", "timestamp_ntz")
    if to.name in timely:
        return source.name in (*timely, "string") and can_cast(source, to)
    return False
