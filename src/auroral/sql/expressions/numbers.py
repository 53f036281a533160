"""Java's numbers in Python: wrapping integers, 32-bit floats, Spark's decimals, number to text."""

from __future__ import annotations

import math
import struct
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from auroral.errors import RunError
from auroral.network.types import Type

LIMITS = {
    name: (-(1 << bits - 1), (1 << bits - 1) - 1)
    for name, bits in (("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64))
}
WIDE = Context(prec=800, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)
# Spark multiplies decimals with this context before it rounds to the result type.
JAVA = Context(prec=39, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)
# Spark negates decimals in Scala's default context, which rounds them to 34 digits.
_NEGATE = Context(prec=34, rounding=ROUND_HALF_EVEN, Emin=-9999, Emax=9999)
_F32 = struct.Struct("f")
_F64 = struct.Struct(">d")
_Q64 = struct.Struct(">q")


def wrap(value: int, name: str) -> int:
    """Keep the low bits, as Java's narrowing does.

    >>> wrap(2**31, "int")
    -2147483648
    """
    low, high = LIMITS[name]
    return value if low <= value <= high else ((value - low) & (high - low)) + low


def saturate(value: float, name: str) -> int:
    """Truncate a double as Java's `(int)` and `(long)` do: NaN is 0, the limits hold."""
    if math.isnan(value):
        return 0
    low, high = LIMITS[name]
    if value <= low:
        return low
    return high if value >= high else int(value)


def float32(value: float | int | Decimal) -> float:
    """Round once to the nearest 32-bit float.

    >>> float32(0.1)
    0.10000000149011612
    """
    try:
        double = float(value)
    except OverflowError:
        double = math.inf if value > 0 else -math.inf
    if not isinstance(value, float) and math.isfinite(double):
        # An exact value just beside the middle of two floats must not round to the middle first.
        exact, near = Fraction(value), Fraction(double)
        if exact != near and (_Q64.unpack(_F64.pack(double))[0] & 0x1FFFFFFF) == 0x10000000:
            double = math.nextafter(double, math.inf if exact > near else -math.inf)
    try:
        return float(_F32.unpack(_F32.pack(double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def to_decimal(value: Decimal, type: Type) -> Decimal | None:
    """Round HALF_UP to the type's scale; None if it does not fit."""
    if value.adjusted() > 80:
        return None
    found = value.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP, WIDE)
    if not found:
        return abs(found)
    return None if found.adjusted() >= type.precision - type.scale else found


def negated(value: Decimal, type: Type) -> Decimal:
    """Minus a decimal, by way of 34 digits; Spark fails where that no longer fits."""
    found = to_decimal(_NEGATE.minus(value), type)
    if found is None:
        raise RunError("OUT_OF_RANGE", f"-({value}) does not fit {type}")
    return found


def rounded(value: Decimal, scale: int, half_up: bool = True) -> Decimal:
    """Round to `scale` digits after the point, which may be negative."""
    mode = ROUND_HALF_UP if half_up else ROUND_HALF_EVEN
    return value.quantize(Decimal(1).scaleb(-scale), mode, WIDE)


def truncated(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_DOWN, WIDE))


def decimal_of(value: float) -> Decimal:
    """The decimal a double prints as, which is what Java's BigDecimal.valueOf takes."""
    return Decimal(repr(value))


def float_text(value: float, single: bool = False) -> str:
    """A double or float as Java prints it.

    >>> float_text(1e7), float_text(0.001), float_text(-0.0), float_text(0.1, single=True)
    ('1.0E7', '0.001', '-0.0', '0.1')
    >>> float_text(5e-324), float_text(1e-323), float_text(1.4e-45, single=True)
    ('4.9E-324', '9.9E-324', '1.4E-45')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    size = np.float32(abs(value)) if single else abs(value)
    shortest = str(size)
    _, digits, exponent = Decimal(shortest).normalize().as_tuple()
    if len(digits) == 1:  # two are closer, where numbers are far apart
        _, digits, exponent = Decimal(f"{float(size):.1e}").normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{text}"
        whole, part = text[:point].ljust(point, "0"), text[point:]
        return f"{sign}{whole}.{part or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}E{point - 1}"


def order_key(value: Any) -> Any:
    """A key that sorts and compares like Spark: NaN equals NaN and is greatest, -0.0 equals 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value + 0.0)
    if isinstance(value, list):
        return [nullable_key(item) for item in value]
    if isinstance(value, dict):
        return [nullable_key(item) for item in value.values()]
    return value


def nullable_key(value: Any) -> Any:
    """`order_key` inside a structure, where NULL comes first."""
    return (0,) if value is None else (1, order_key(value))
