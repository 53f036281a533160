"""Functions that keep order over whole arrays of marks, for those that are common.

Marks are integers (µs of timestamps, days of dates) or doubles. Integers saturate at the ends of
their type. What is not here is evaluated value by value.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

import numpy as np

from auroral.network.types import Type
from auroral.progress.lowwater import Values
from auroral.progress.monotone import Change
from auroral.sql.expressions import times
from auroral.sql.expressions.coercion import DATE, DOUBLE, TIMES
from auroral.sql.expressions.numbers import LIMITS

EXACT = Context(prec=76)
"""Python rounds decimals to 28 digits unless told otherwise; fields have up to 38."""
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_UNITS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND}
_UNITS |= {"hour": 3600 * _SECOND, "day": _DAY, "dd": _DAY}
_PER_UNIT = {"unix_seconds": _SECOND, "unix_millis": 1000, "unix_micros": 1}
_FROM_UNIT = {"timestamp_seconds": _SECOND, "timestamp_millis": 1000, "timestamp_micros": 1}
_STAMPS = ("timestamp", "timestamp_ntz")


def vectorised(name: str, source: Type, type: Type, constant: Any) -> Change | None:
    """The function over arrays; None if there is none for these types."""
    if source.name == "decimal" and type.name == "decimal" and name in ("+", "-", "*"):
        return _of_decimals(name, source, type, constant)
    if not _is_plain(source) or not _is_plain(type):
        return None
    if name in ("cast", "to_date", "to_timestamp"):
        return _cast(source, type)
    if name in ("+", "-"):
        return _moved(source, type, constant if name == "+" else -constant)
    if name == "*":
        if type == DOUBLE:
            return lambda marks: marks.astype(np.float64) * float(constant)
        return _times(int(constant), type) if source.is_integral and type.is_integral else None
    if name == "/" and type == DOUBLE:
        return lambda marks: marks.astype(np.float64) / float(constant)
    if name == "div" and source.is_integral:
        return lambda marks: _truncated(marks, int(constant))
    if name in ("floor", "ceil", "ceiling"):
        if source.is_integral:
            return lambda marks: marks
        towards = np.floor if name == "floor" else np.ceil
        return lambda marks: _as_integers(towards(marks), *LIMITS["bigint"])
    if name in ("round", "bround"):
        if source.is_integral and (constant or 0) >= 0:
            return lambda marks: marks
        return _rounded if source == DOUBLE and name == "round" and not constant else None
    return _of_times(name, source, constant)


def _of_times(name: str, source: Type, constant: Any) -> Change | None:
    if source.name in _STAMPS:
        if name == "date_trunc" and str(constant).lower() in _UNITS:
            unit = _UNITS[str(constant).lower()]
            return lambda marks: marks - marks % unit
        if name in _PER_UNIT:
            return lambda marks: marks // _PER_UNIT[name]
        if name in ("unix_timestamp", "to_unix_timestamp"):
            return lambda marks: _truncated(marks, _SECOND)
    if name in _FROM_UNIT and source.is_integral:
        return _times(_FROM_UNIT[name], Type("timestamp"))
    if name == "unix_date" and source == DATE:
        return lambda marks: marks
    if name == "positive":
        return lambda marks: marks
    return None


def _of_decimals(name: str, source: Type, type: Type, constant: Any) -> Change | None:
    """Exact arithmetic on unscaled integers; None if Spark rounds the result."""
    exact = constant if isinstance(constant, Decimal) else Decimal(str(constant))
    places = max(-int(exact.as_tuple().exponent), 0)
    digits = int(exact.scaleb(places, EXACT))
    most = 10**type.precision - 1
    scale = source.scale + places if name == "*" else max(source.scale, places)
    if scale > type.scale:
        return None

    def computed(marks: Values) -> Values:
        given = marks.astype(object)
        if name == "*":
            made = given * (digits * 10 ** (type.scale - scale))
        else:
            by = digits * 10 ** (type.scale - places)
            made = given * 10 ** (type.scale - source.scale) + (by if name == "+" else -by)
        made = np.clip(made, -most, most)
        return np.asarray(made.astype(np.int64) if most < 2**63 else made)

    return computed


def _rounded(marks: Values) -> Values:
    """To whole numbers, halves away from zero."""
    whole = np.trunc(marks)
    return np.asarray(whole + np.copysign(np.abs(marks - whole) >= 0.5, marks) + 0.0)


def _is_plain(type: Type) -> bool:
    return type.is_integral or type == DOUBLE or type.name in TIMES


def _limits(type: Type) -> tuple[int, int]:
    if type == DATE:
        return times.days(date.min), times.days(date.max)
    if type.name in TIMES:
        return times.micros(datetime.min), times.micros(datetime.max)
    return LIMITS[type.name]


def _moved(source: Type, type: Type, by: Any) -> Change | None:
    """Plus a number, or an interval in µs."""
    if type == DOUBLE:
        return lambda marks: marks.astype(np.float64) + float(by)
    if source == DATE and type == DATE:
        # Months are not all of one length, and months are no int.
        return None
    if source.name != type.name and not (source.is_integral and type.is_integral):
        return None
    low, high = _limits(type)

    def moved(marks: Values) -> Values:
        least, greatest = max(low - by, -(2**63)), min(high - by, 2**63 - 1)
        return np.asarray(np.clip(marks, least, greatest) + by)

    return moved


def _times(factor: int, type: Type) -> Change:
    low, high = _limits(type)

    def multiplied(marks: Values) -> Values:
        least, greatest = -(-low // factor), high // factor
        made = np.clip(marks, least, greatest) * factor
        made[marks > greatest] = high
        made[marks < least] = low
        return np.asarray(made)

    return multiplied


def _truncated(marks: Values, divisor: int) -> Values:
    """Division that cuts towards zero, as Java does."""
    quotient = marks // divisor
    return np.asarray(quotient + ((marks < 0) & (quotient * divisor != marks)))


def _as_integers(marks: Values, low: int, high: int) -> Values:
    """Doubles as integers, within limits."""
    inside = (marks > float(low)) & (marks < float(high))
    whole = np.where(inside, marks, 0.0).astype(np.int64)
    return np.where(inside, whole, np.where(marks <= float(low), low, high))


def _cast(source: Type, type: Type) -> Change | None:
    if type == DOUBLE:
        if source.name == "timestamp":
            return lambda marks: marks / 1e6
        return (lambda marks: marks.astype(np.float64)) if source.is_numeric else None
    if type.is_integral:
        low, high = LIMITS[type.name]
        if source == DOUBLE:
            return lambda marks: _as_integers(np.trunc(marks), low, high)
        if source.name == "timestamp":
            return lambda marks: np.clip(marks // _SECOND, low, high)
        return (lambda marks: np.clip(marks, low, high)) if source.is_integral else None
    if type == DATE and source.name in _STAMPS:
        return lambda marks: marks // _DAY
    if type.name in _STAMPS:
        if source == DATE:
            return lambda marks: marks * _DAY
        if source.name in _STAMPS:
            return lambda marks: marks
        if source.is_integral:
            return _times(_SECOND, type)
    return None
