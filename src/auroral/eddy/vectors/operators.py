"""Operators on whole columns of numbers, times and texts, as Spark computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc

from auroral.eddy.vectors.vector import DTYPES, Bools, Vector, both, from_arrow
from auroral.network.types import FRACTIONAL, Type

BOOLEAN = Type("boolean")
_ARROW = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def can_compare(type: Type) -> bool:
    """Whether whole columns of the type can be compared."""
    return type.name in DTYPES or type.name in ("string", "binary", "decimal")


def compare(name: str, left: Vector, right: Vector) -> Vector:
    """`left name right`; NaN equals NaN and is greatest."""
    if not left.narrow:
        one, other = left.data, right.data
        if len(one) != len(other):
            one, other = (side[0] if len(side) == 1 else side for side in (one, other))
        return from_arrow(_ARROW[name](one, other), BOOLEAN)
    valid = both(left.valid, right.valid)
    if left.type.name in FRACTIONAL:
        return Vector(BOOLEAN, _compare_floats(name, left.data, right.data), valid)
    return Vector(BOOLEAN, _NUMPY[name](left.data, right.data), valid)


def _compare_floats(name: str, a: Any, b: Any) -> Any:
    if name in ("=", "<>"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return same if name == "=" else ~same
    if name in ("<", ">="):
        less = (a < b) | (np.isnan(b) & ~np.isnan(a))
        return less if name == "<" else ~less
    more = (a > b) | (np.isnan(a) & ~np.isnan(b))
    return more if name == ">" else ~more


def same(left: Vector, right: Vector) -> Vector:
    """`left <=> right`."""
    equal = compare("=", left, right)
    one, other = left.nulls(), right.nulls()
    found = np.where(one | other, one & other, equal.data & ~equal.nulls())
    return Vector(BOOLEAN, found)


def calculate(name: str, left: Vector, right: Vector) -> Vector:
    """+ - * / % of two numbers of one type: integers wrap, division by zero is NULL."""
    a, b, type = left.data, right.data, left.type
    valid = both(left.valid, right.valid)
    with np.errstate(all="ignore"):
        if name in ("/", "%"):
            a, b = np.broadcast_arrays(a, b)
            valid = both(valid, _unless(b == 0))
            b = np.where(b == 0, np.ones_like(b), b)
        if name == "+":
            found = a + b
        elif name == "-":
            found = a - b
        elif name == "*":
            found = a * b
        elif name == "/":
            found = a / b
        elif type.is_integral:
            found = np.fmod(a, np.where(b == -1, np.ones_like(b), b))
        else:
            found = np.fmod(a, b)
    return Vector(type, found, valid)


def _unless(mask: Bools) -> Bools | None:
    return ~mask if mask.any() else None


def divide_whole(left: Vector, right: Vector) -> Vector:
    """`div` of two bigints: truncated, NULL on division by zero."""
    a, b = np.broadcast_arrays(left.data, right.data)
    valid = both(left.valid, right.valid, _unless(b == 0))
    plain = np.where((b == 0) | (b == -1), np.int64(1), b)
    quotient = a // plain
    quotient = quotient + ((quotient * plain != a) & ((a < 0) != (plain < 0)))
    with np.errstate(all="ignore"):
        return Vector(left.type, np.where(b == -1, -a, quotient), valid)


def negate(vector: Vector) -> Vector:
    with np.errstate(all="ignore"):
        return Vector(vector.type, np.negative(vector.data), vector.valid)


def absolute(vector: Vector) -> Vector:
    with np.errstate(all="ignore"):
        return Vector(vector.type, np.abs(vector.data), vector.valid)


def upper(vector: Vector) -> Vector | None:
    """Capitals, None if the texts have others than ASCII's."""
    return _cased(vector, pc.ascii_upper)


def lower(vector: Vector) -> Vector | None:
    return _cased(vector, pc.ascii_lower)


def _cased(vector: Vector, change: Callable[[Any], Any]) -> Vector | None:
    plain = pc.all(pc.string_is_ascii(vector.data)).as_py()
    return None if plain is False else Vector(vector.type, change(vector.data))


def like(vector: Vector, kind: str, text: str) -> Vector:
    """Whether texts equal, begin with, end with or hold a text."""
    if kind == "equal":
        found = pc.equal(vector.data, text)
    elif kind == "prefix":
        found = pc.starts_with(vector.data, text)
    elif kind == "suffix":
        found = pc.ends_with(vector.data, text)
    else:
        found = pc.match_substring(vector.data, text)
    return from_arrow(found, BOOLEAN)
