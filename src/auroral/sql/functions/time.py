"""Date and timestamp functions; the session's time zone is UTC."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from auroral.network.types import Type
from auroral.sql.expressions import times
from auroral.sql.expressions.arithmetic import java_quotient
from auroral.sql.expressions.coercion import (
    BIGINT,
    DATE,
    INT,
    STRING,
    TIMES,
    TIMESTAMP,
    VOID,
    implicit,
)
from auroral.sql.expressions.numbers import WIDE, saturate
from auroral.sql.expressions.time_arithmetic import shifted
from auroral.sql.expressions.typed import (
    OnlySparkError,
    Typed,
    cast,
    implicit_cast,
    mismatch,
    strict,
)
from auroral.sql.functions.catalogue import CATALOGUE, register, simple

_SECOND = 1_000_000
_TRUNCATED = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND}
_TRUNCATED |= {"hour": 3600 * _SECOND, "day": 86400 * _SECOND, "dd": 86400 * _SECOND}
_MONTHS = {"month": 1, "mon": 1, "mm": 1, "quarter": 3, "year": 12, "yyyy": 12, "yy": 12}

for _names, _part in {
    "year": lambda d: d.year,
    "month": lambda d: d.month,
    "day dayofmonth": lambda d: d.day,
    "dayofweek": lambda d: d.isoweekday() % 7 + 1,
    "weekday": lambda d: d.weekday(),
    "dayofyear": lambda d: d.timetuple().tm_yday,
    "weekofyear": lambda d: d.isocalendar()[1],
    "quarter": lambda d: (d.month + 2) // 3,
}.items():
    simple(_names, [DATE], INT, _part)

for _names, _part in {
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
}.items():
    simple(_names, ["timestamp|timestamp_ntz"], INT, _part)

simple("datediff date_diff", [DATE, DATE], INT, lambda end, start: (end - start).days)
simple("add_months", [DATE, INT], DATE, times.add_months)
simple("last_day", [DATE], DATE, lambda d: d.replace(day=times.month_length(d.year, d.month)))
simple("date_from_unix_date", [INT], DATE, times.from_days)


def _exactly(name: str, kind: str, output: Type, function: Callable[[Any], Any]) -> None:
    """Enter a function whose argument Spark does not cast."""

    @register(name, 1)
    def build(args: Sequence[Typed]) -> Typed:
        return strict(output, [_uncast(name, args[0], kind)], function)


def _uncast(name: str, arg: Typed, kind: str) -> Typed:
    if arg.type != VOID and implicit(arg.type, kind) != arg.type:
        raise mismatch(name, [arg], f"{kind}, which is not cast")
    return implicit_cast(name, arg, kind)


_exactly("unix_date", "date", INT, times.days)
_exactly("unix_seconds", "timestamp", BIGINT, lambda t: times.micros(t) // _SECOND)
_exactly("unix_millis", "timestamp", BIGINT, lambda t: times.micros(t) // 1000)
_exactly("unix_micros", "timestamp", BIGINT, times.micros)


def _make_date(year: int, month: int, day: int) -> date | None:
    if not 1 <= month <= 12 or not 1 <= day <= times.month_length(year, month):
        return None
    if not 1 <= year <= 9999:
        raise times.out_of_range(f"the year {year}")
    return date(year, month, day)


simple("make_date", [INT, INT, INT], DATE, _make_date)


def _moving(names: str, sign: int) -> None:
    first = names.split()[0]

    @register(names, 2)
    def build(args: Sequence[Typed]) -> Typed:
        start = implicit_cast(first, args[0], DATE)
        by = args[1]
        if by.type == STRING and by.constant:
            by = cast(by, INT)
        if by.type.name not in ("tinyint", "smallint", "int", "void"):
            raise mismatch(first, args[1:], "an int as argument 2")
        return strict(DATE, [start, cast(by, INT)], lambda d, n: shifted(d, sign * n))


_moving("date_add dateadd", 1)
_moving("date_sub", -1)


def _from_count(name: str, per_unit: int) -> None:
    @register(name, 1)
    def build(args: Sequence[Typed]) -> Typed:
        kinds = "numeric" if name == "timestamp_seconds" else "integral"
        arg = _uncast(name, args[0], kinds)
        if arg.type.name in ("float", "double"):
            return strict(
                TIMESTAMP,
                [arg],
                lambda v: (
                    times.from_micros(saturate(v * 1e6, "bigint")) if math.isfinite(v) else None
                ),
            )
        return strict(
            TIMESTAMP,
            [arg],
            lambda v: times.from_micros(_exact(WIDE.multiply(Decimal(v), Decimal(per_unit)))),
        )


def _exact(value: Decimal) -> int:
    if value != int(value):
        raise times.out_of_range(f"{value} microseconds")
    return int(value)


_from_count("timestamp_seconds", _SECOND)
_from_count("timestamp_millis", 1000)
_from_count("timestamp_micros", 1)


@register("to_date", 1, 2)
def _to_date(args: Sequence[Typed]) -> Typed:
    if len(args) == 2:
        raise OnlySparkError("to_date with a format")
    return cast(implicit_cast("to_date", args[0], "string|date|timestamp|timestamp_ntz"), DATE)


@register("to_timestamp", 1, 2)
def _to_timestamp(args: Sequence[Typed]) -> Typed:
    if len(args) == 2:
        raise OnlySparkError("to_timestamp with a format")
    if args[0].type.name not in (*TIMES, "string", "void") and not args[0].type.is_numeric:
        raise mismatch("to_timestamp", args, "a string, date, timestamp or number")
    return cast(args[0], TIMESTAMP)


@register("unix_timestamp to_unix_timestamp", 1, 2)
def _unix_timestamp(args: Sequence[Typed]) -> Typed:
    if args[0].type.name not in TIMES or len(args) == 2:
        raise OnlySparkError("unix_timestamp of a string")
    # Unlike unix_seconds it cuts towards zero, so just before 1970 it gives 0.
    seconds = [cast(args[0], TIMESTAMP)]
    return strict(BIGINT, seconds, lambda t: java_quotient(times.micros(t), _SECOND))


def truncate(value: datetime, unit: str) -> datetime | None:
    """The start of the unit a timestamp lies in; None if there is no such unit."""
    unit = unit.lower()
    naive = value.tzinfo is None
    if unit in _TRUNCATED:
        count = times.micros(value)
        return times.from_micros(count - count % _TRUNCATED[unit], naive=naive)
    start = truncate_date(value.date(), unit)
    return None if start is None else times.midnight(start, naive=naive)


def truncate_date(value: date, unit: str) -> date | None:
    """The first day of the week, month, quarter or year a date lies in."""
    unit = unit.lower()
    if unit == "week":
        return value - timedelta(days=value.weekday())
    if unit not in _MONTHS:
        return None
    return value.replace(month=(value.month - 1) // _MONTHS[unit] * _MONTHS[unit] + 1, day=1)


simple("date_trunc", [STRING, TIMESTAMP], TIMESTAMP, lambda unit, t: truncate(t, unit))
simple("trunc", [DATE, STRING], DATE, truncate_date)

_PARTS = {
    "year": "year y years yr yrs",
    "quarter": "quarter qtr",
    "month": "month mon mons months",
    "weekofyear": "week w weeks",
    "day": "day d days",
    "dayofweek": "dayofweek dow",
    "weekday": "dayofweek_iso dow_iso",
    "dayofyear": "doy",
    "hour": "hour h hours hr hrs",
    "minute": "minute m min mins minutes",
    "second": "second s sec seconds secs",
}
_FUNCTION_OF = {word: name for name, words in _PARTS.items() for word in words.split()}


@register("date_part datepart", 2)
def _date_part(args: Sequence[Typed]) -> Typed:
    unit = args[0].value().lower() if args[0].constant and args[0].type == STRING else ""
    if unit not in _FUNCTION_OF or args[1].type.name not in (*TIMES, "string"):
        raise OnlySparkError(f"extract({unit or '…'} FROM …)")
    name = _FUNCTION_OF[unit]
    if name == "second":
        source = implicit_cast("date_part", args[1], "timestamp|timestamp_ntz", 2)
        exact: Callable[[Any], Any] = lambda t: (  # noqa: E731
            Decimal(t.second * _SECOND + t.microsecond).scaleb(-6).quantize(Decimal("0.000001"))
        )
        return strict(Type("decimal", 8, 6), [source], exact)
    found = CATALOGUE[name].call(args[1:])
    if name == "weekday":
        return strict(INT, [found], lambda day: day + 1)
    return found
