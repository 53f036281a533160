"""Values of Spark SQL literals: numbers, dates, timestamps, binary, intervals."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions.casts import cast_value
from auroral.sql.expressions.numbers import LIMITS, WIDE, float32
from auroral.sql.expressions.syntax import Literal

_MICROS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
_MONTHS = {"year": 12, "month": 1}
_FIELD = {"week": 0, "day": 0, "hour": 1, "minute": 2, "second": 3}
_SUFFIXES = {"L": "bigint", "S": "smallint", "Y": "tinyint"}


def number(text: str) -> Literal:
    """The literal `text` is, with its sign; a ValueError says what is wrong with it.

    >>> number("1.50").type.precision, number("-2147483648").type.name, number("1e3").value
    (3, 'int', 1000.0)
    >>> number("-0.0").value, number("-0.0D").value
    (Decimal('0.0'), -0.0)
    """
    upper = text.upper()
    if upper.endswith("BD"):
        return _decimal(Decimal(upper[:-2]))
    if upper[-1] in _SUFFIXES:
        name = _SUFFIXES[upper[-1]]
        value = int(upper[:-1])
        if not LIMITS[name][0] <= value <= LIMITS[name][1]:
            raise ValueError(f"{text} does not fit a {name}")
        return Literal(value, Type(name))
    if upper[-1] in "DF":
        found = float(upper[:-1])
        if upper[-1] == "F":
            found = float32(Decimal(upper[:-1]))
        if math.isinf(found):
            raise ValueError(f"{text} does not fit a {'float' if upper[-1] == 'F' else 'double'}")
        return Literal(found, Type("float" if upper[-1] == "F" else "double"))
    if "E" in upper:
        if math.isinf(float(upper)):
            raise ValueError(f"{text} does not fit a double")
        return Literal(float(upper), Type("double"))
    if "." in upper:
        return _decimal(Decimal(upper))
    value = int(upper)
    for name in ("int", "bigint"):
        if LIMITS[name][0] <= value <= LIMITS[name][1]:
            return Literal(value, Type(name))
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> Literal:
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > 38:
        raise ValueError(f"{value} has more than 38 digits")
    exact = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    exact = WIDE.plus(exact)  # a decimal zero has no sign
    return Literal(exact, Type("decimal", precision, scale))


def typed_literal(kind: str, text: str) -> Literal:
    """`DATE '…'`, `TIMESTAMP '…'`, `X'…'`."""
    if kind == "x":
        if not re.fullmatch(r"[0-9a-fA-F]*", text):
            raise NetworkError("BAD_LITERAL", f"X'{text}': expected hexadecimal digits")
        return Literal(bytes.fromhex("0" * (len(text) % 2) + text), Type("binary"))
    type = Type("timestamp" if kind == "timestamp_ltz" else kind)
    value = cast_value(text, Type("string"), type)
    if value is None:
        raise NetworkError(
            "BAD_LITERAL",
            f"{kind.upper()} '{text}' is not a {type}",
            hint="write DATE '2024-02-29' or TIMESTAMP '2024-02-29 12:30:00'",
        )
    return Literal(value, type)


def interval(parts: str | list[tuple[str, str]]) -> Literal:
    """An interval of months, or of days to microseconds, from amounts and units.

    >>> interval("10 minutes").value
    600000000
    """
    if isinstance(parts, str):
        words = re.findall(r"[-+]?\s*[0-9.]+|[A-Za-z]+|\S", parts)
        if words[:1] and words[0].lower() == "interval":
            words = words[1:]
        if len(words) % 2 or not words:
            raise _bad_interval(parts)
        parts = list(zip(words[::2], words[1::2], strict=True))
    months, micros = 0, 0
    units: list[str] = []
    for amount, word in parts:
        unit = word.lower().removesuffix("s")
        count = amount.strip().replace(" ", "")
        fraction = unit == "second" and re.fullmatch(r"[-+]?[0-9]*\.?[0-9]*", count) is not None
        if unit not in (*_MICROS, *_MONTHS) or not (
            (fraction and count.strip("+-.")) or re.fullmatch(r"[-+]?[0-9]+", count)
        ):
            raise _bad_interval(f"{amount} {word}")
        units.append(unit)
        if unit in _MONTHS:
            months += int(count) * _MONTHS[unit]
        else:
            micros += int(Decimal(count) * _MICROS[unit])
    if all(unit in _MONTHS for unit in units):
        return Literal(months, Type("interval_ym"))
    if any(unit in _MONTHS for unit in units):
        raise NetworkError(
            "BAD_LITERAL",
            "an interval has either years and months or days to seconds, not both",
            hint="add two intervals one after the other",
        )
    fields = [_FIELD.get(unit, 3) for unit in units]
    return Literal(micros, Type("interval_dt", min(fields), max(fields)))


def _bad_interval(text: str) -> NetworkError:
    return NetworkError(
        "BAD_LITERAL",
        f"INTERVAL {text}: expected amounts and units",
        hint="write INTERVAL 10 MINUTES or INTERVAL '2 hours 30 minutes'",
    )
