"""Dates and timestamps as Spark counts them: days and microseconds since 1970, UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from auroral.errors import RunError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAIVE_EPOCH = datetime(1970, 1, 1)
_DAY_ZERO = date(1970, 1, 1).toordinal()
_MICRO = timedelta(microseconds=1)
# What Java calls whitespace or control in one byte; Spark trims it before a cast.
BLANK = "".join(map(chr, (*range(33), 127)))
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIME = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*|\.[^0-9].*)?)?)?"
_TIMESTAMP = re.compile(
    rf"([+-]?)([0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_TIME})?)?)?"
)
_TIME_ONLY = re.compile(rf"(?:T|(?=[0-9]{{1,2}}:)){_TIME}")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{2}))?)?")
_SHORT_ZONES = {
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
    "PST": "America/Los_Angeles",
    "CST": "America/Chicago",
    "ECT": "Europe/Paris",
    "JST": "Asia/Tokyo",
}


def out_of_range(what: object) -> RunError:
    return RunError(
        "OUT_OF_RANGE",
        f"{what} is outside the years 1 to 9999, which the reference evaluator can represent",
    )


def days(value: date) -> int:
    return value.toordinal() - _DAY_ZERO


def from_days(count: int) -> date:
    try:
        return date.fromordinal(count + _DAY_ZERO)
    except (ValueError, OverflowError):
        raise out_of_range(f"day {count}") from None


def micros(value: datetime) -> int:
    """Microseconds since 1970; a naive timestamp counts as UTC."""
    return (value - (NAIVE_EPOCH if value.tzinfo is None else EPOCH)) // _MICRO


def from_micros(count: int, *, naive: bool = False) -> datetime:
    try:
        return (NAIVE_EPOCH if naive else EPOCH) + timedelta(microseconds=count)
    except OverflowError:
        raise out_of_range(f"{count} microseconds since 1970") from None


def midnight(value: date, *, naive: bool = False) -> datetime:
    return datetime(value.year, value.month, value.day, tzinfo=None if naive else UTC)


def parse_date(text: str) -> date | None:
    """The date a string is cast to: `yyyy`, `yyyy-M`, `yyyy-M-d` and anything after ` ` or `T`."""
    match = _DATE.fullmatch(text.strip(BLANK))
    if match is None:
        return None
    return _date(match[1], match[2], match[3], match[4])


def _date(sign: str, year: str, month: str | None, day: str | None) -> date | None:
    numbers = int(sign + year), int(month or 1), int(day or 1)
    try:
        # A leap year far away stands in for the year when only Python cannot represent it.
        probe = date(numbers[0] % 400 + 2000, *numbers[1:])
    except ValueError:
        return None
    if not 1 <= numbers[0] <= 9999:
        raise out_of_range(f"the year {numbers[0]}")
    return probe.replace(year=numbers[0])


def parse_timestamp(text: str, *, naive: bool = False) -> datetime | None:
    """The timestamp a string is cast to, with an optional zone after the seconds."""
    trimmed = text.strip(BLANK)
    match = _TIMESTAMP.fullmatch(trimmed)
    if match is None:
        time_only = _TIME_ONLY.fullmatch(trimmed)
        if time_only and not naive and _clock(*time_only.groups()[:4]) is not None:
            raise RunError(
                "CLOCK_DEPENDENT",
                f"{text!r} has a time but no date; Spark would take the day of the run",
            )
        return None
    sign, year, month, day, hour, minute, second, fraction, zone_name = match.groups()
    clock = _clock(hour, minute, second, fraction)
    found = _zone(zone_name.strip()) if zone_name else UTC
    if clock is None or found is None:
        return None
    on = _date(sign, year, month, day)
    if on is None:
        return None
    local = midnight(on, naive=True) + clock
    if naive:
        return local
    try:
        return local.replace(tzinfo=found).astimezone(UTC)
    except OverflowError:
        raise out_of_range(text) from None


def _clock(
    hour: str | None, minute: str | None, second: str | None, fraction: str | None
) -> timedelta | None:
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        return None
    return timedelta(
        hours=h, minutes=m, seconds=s, microseconds=int((fraction or "")[:6].ljust(6, "0"))
    )


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo | None:
    name = _SHORT_ZONES.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match:
        h, m, s = int(match[2]), int(match[3] or 0), int(match[4] or 0)
        offset = timedelta(hours=h, minutes=m, seconds=s)
        if m > 59 or s > 59 or offset > timedelta(hours=18):
            return None
        from datetime import timezone

        return timezone(offset if match[1] == "+" else -offset)
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return None


def timestamp_text(value: datetime) -> str:
    """`yyyy-MM-dd HH:mm:ss` and as many digits of the fraction as are not zero."""
    text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return text.rstrip("0").rstrip(".")


def add_months(value: date, months: int) -> date:
    """The same day so many months later, or the last day of that month if it is shorter."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise out_of_range(f"the year {year}")
    return date(year, month + 1, min(value.day, month_length(year, month + 1)))


def month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
