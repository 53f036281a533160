"""+ and - where a date, a timestamp or an interval takes part."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from auroral.network.types import Type
from auroral.sql.expressions import times
from auroral.sql.expressions.coercion import (
    DATE,
    DAY_TO_SECOND,
    INT,
    MONTHS,
    STRING,
    TIMES,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    is_interval,
    tightest,
)
from auroral.sql.expressions.typed import OnlySparkError, Typed, cast, mismatch, strict

_DAY = 86_400_000_000
_ONE_DAY = Type("interval_dt", 0, 0)
_AS_INTERVAL = "a length of time is written INTERVAL 30 SECONDS"


def is_timely(args: Sequence[Typed]) -> bool:
    return any(arg.type.name in TIMES or is_interval(arg.type) for arg in args)


def add_time(args: Sequence[Typed]) -> Typed:
    left, right = args
    moved_first = is_interval(left.type) and not is_interval(right.type)
    if moved_first or (right.type == DATE and left.type.is_numeric):
        left, right = right, left
    return _moved("+", left, right, 1, args)


def subtract_time(args: Sequence[Typed]) -> Typed:
    left, right = args
    if VOID in (left.type, right.type):
        raise OnlySparkError("arithmetic with NULL and times")
    if is_interval(right.type) or left.type.name not in (*TIMES, "string"):
        return _moved("-", left, right, -1, args)
    if {left.type.name, right.type.name} & {"timestamp", "timestamp_ntz"}:
        if left.type.name not in TIMES or right.type.name not in TIMES:
            raise mismatch("-", args, "two timestamps, or one and an interval", _AS_INTERVAL)
        # A date takes the other side's type; otherwise both are compared without zone.
        type = left.type if left.type == right.type else TIMESTAMP_NTZ
        if DATE in (left.type, right.type):
            type = left.type if right.type == DATE else right.type
        return strict(
            DAY_TO_SECOND,
            (cast(left, type), cast(right, type)),
            lambda a, b: times.micros(a) - times.micros(b),
        )
    if right.type == DATE:
        return strict(
            _ONE_DAY,
            (cast(left, DATE), right),
            lambda a, b: (a.toordinal() - b.toordinal()) * _DAY,
        )
    return _moved("-", left, right, -1, args)


def _moved(name: str, start: Typed, by: Typed, sign: int, args: Sequence[Typed]) -> Typed:
    """A date, timestamp or interval moved forwards or backwards."""
    if VOID in (start.type, by.type):
        raise OnlySparkError("arithmetic with NULL and times")
    if is_interval(start.type) and is_interval(by.type):
        type = tightest(start.type, by.type)
        if type is None:
            raise mismatch(name, args, "two intervals of one kind")
        return strict(type, (start, by), operator.add if sign > 0 else operator.sub)
    if start.type == STRING and by.type.name == "interval_dt":
        moved = _moved(name, cast(start, TIMESTAMP), by, sign, args)
        return cast(moved, STRING)
    if start.type == DATE:
        if by.type.name in ("tinyint", "smallint", "int"):
            return strict(DATE, (start, cast(by, INT)), lambda a, b: shifted(a, sign * b))
        if by.type == _ONE_DAY:
            return strict(DATE, (start, by), lambda a, b: shifted(a, sign * (b // _DAY)))
        if by.type == MONTHS:
            return strict(DATE, (start, by), lambda a, b: times.add_months(a, sign * b))
        if by.type.name == "interval_dt":
            start = cast(start, TIMESTAMP)
    if start.type.name in ("timestamp", "timestamp_ntz"):
        if by.type == MONTHS:
            return strict(start.type, (start, by), lambda a, b: add_months(a, sign * b))
        if by.type.name == "interval_dt":
            naive = start.type == TIMESTAMP_NTZ
            return strict(
                start.type,
                (start, by),
                lambda a, b: times.from_micros(times.micros(a) + sign * b, naive=naive),
            )
    expected = "a date or timestamp and an interval, or two numbers"
    raise mismatch(name, args, expected, _AS_INTERVAL)


def shifted(value: Any, count: int) -> Any:
    return times.from_days(times.days(value) + count)


def add_months(value: datetime, months: int) -> datetime:
    """The same time of day so many months later."""
    on = times.add_months(value.date(), months)
    zone = UTC if value.tzinfo is not None else None
    return datetime.combine(on, value.time(), tzinfo=zone)
