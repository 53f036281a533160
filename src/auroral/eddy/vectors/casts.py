"""Casts of whole columns, as Spark casts with ANSI mode off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.eddy.vectors.batch import TupleBatch
from auroral.eddy.vectors.vector import DTYPES, Vector, absent, from_arrow, from_python
from auroral.network.types import FRACTIONAL, Type
from auroral.sql.expressions.casts import converter

Convert = Callable[[TupleBatch, Vector], Vector]
_DAY = 86_400_000_000
_EXACT_DIGITS = 15
"""Decimals of so many digits, and the power of ten below them, are exact as doubles."""


def cast_of(source: Type, to: Type, attempt: bool = False) -> Convert:
    """The function that casts a column."""
    whole = None if attempt else _whole(source, to)
    if whole is not None:
        return lambda _, vector: whole(vector)
    if source.name == "void":
        return lambda *_: absent(to)
    return _each(source, to, attempt)


def is_whole(source: Type, to: Type) -> bool:
    """Whether all values of a column are cast in one step, and none can fail."""
    return _whole(source, to) is not None


def _whole(source: Type, to: Type) -> Callable[[Vector], Vector] | None:
    """The cast with one step for all values, None if there is none."""
    a, b = source.name, to.name
    number = to.is_integral or b in FRACTIONAL
    if (source.is_integral or a == "boolean") and number:
        return lambda v: Vector(to, v.data.astype(DTYPES[b]), v.valid)
    if a in FRACTIONAL and to.is_integral:
        return lambda v: Vector(to, _saturated(v.data, b), v.valid)
    if a in FRACTIONAL and b in FRACTIONAL:
        return lambda v: Vector(to, _floats(v.data, DTYPES[b]), v.valid)
    if b == "boolean" and (source.is_integral or a in FRACTIONAL):
        return lambda v: Vector(to, v.data != 0, v.valid)
    if a == "date" and b in ("timestamp", "timestamp_ntz"):
        return lambda v: Vector(to, v.data.astype(np.int64) * _DAY, v.valid)
    if {a, b} == {"timestamp", "timestamp_ntz"}:
        return lambda v: Vector(to, v.data, v.valid)
    if b == "date" and a in ("timestamp", "timestamp_ntz"):
        return lambda v: Vector(to, (v.data // _DAY).astype(np.int32), v.valid)
    if a == "decimal" and b == "double" and source.precision <= _EXACT_DIGITS:
        return lambda v: _double(v, source.scale)
    if b == "string" and source.is_integral:
        return lambda v: Vector(to, v.arrow().cast(pa.string()))
    if a == b == "decimal" and _widens(source, to):
        return lambda v: Vector(to, pc.cast(v.data, to.arrow()))
    return None


def _widens(source: Type, to: Type) -> bool:
    more = to.precision - to.scale >= source.precision - source.scale
    return more and to.scale >= source.scale


def _floats(data: Any, dtype: Any) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return data.astype(dtype)


def _saturated(data: Any, name: str) -> Any:
    """Truncate as Java's `(int)` and `(long)` do: NaN is 0, the limits hold; narrower ones wrap."""
    wide: Any = np.int64 if name == "bigint" else np.int32
    limits = np.iinfo(wide)
    found = data.astype(np.float64)
    high, low = found >= float(limits.max), found <= float(limits.min)
    inside = np.where(high | low | np.isnan(found), 0.0, found).astype(wide)
    inside[high] = limits.max
    inside[low] = limits.min
    return inside.astype(DTYPES[name])


def _double(vector: Vector, scale: int) -> Vector:
    array = vector.arrow()
    # The low half of a decimal's 128 bits holds all of one with so few digits.
    halves = np.frombuffer(array.buffers()[1], np.int64)
    data = halves[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return Vector(Type("double"), data.astype(np.float64) / 10.0**scale, valid)


def _each(source: Type, to: Type, attempt: bool) -> Convert:
    """The cast value by value; equal values are cast once."""
    convert = converter(source, to, attempt)
    hashable = source.name in ("string", "decimal")

    def run(batch: TupleBatch, vector: Vector) -> Vector:
        seen: dict[Any, Any] = {}

        def one(value: Any) -> Any:
            if value is None:
                return None
            if not hashable:
                return convert(value)
            if value not in seen:
                seen[value] = convert(value)
            return seen[value]

        if source.is_integral and to.name == "decimal":
            try:
                return from_arrow(pc.cast(vector.arrow(), to.arrow()), to)
            except pa.ArrowInvalid:
                pass
        return from_python(batch.each(one, batch.python(vector)), to)

    return run
