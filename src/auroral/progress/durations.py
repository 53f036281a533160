"""Durations as text: `5 minutes`, `1 h 30 min`, `250 ms`."""

from __future__ import annotations

import re

from auroral.errors import NetworkError

_UNITS_US = {
    "us": 1,
    "microsecond": 1,
    "ms": 1_000,
    "millisecond": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "second": 1_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "h": 3_600_000_000,
    "hr": 3_600_000_000,
    "hour": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
LONGEST = 2**61
"""No window, delay or number of tuples is longer: some can be added without leaving 64 bits."""
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_duration_us(text: str) -> int:
    """A duration in microseconds.

    >>> parse_duration_us("1 hour 30 min")
    5400000000
    """
    at = 0
    total = 0.0
    while at < len(text):
        part = _PART.match(text, at)
        unit = part and _UNITS_US.get(part[2].lower(), _UNITS_US.get(part[2].lower().rstrip("s")))
        if not part or not unit:
            break
        total += float(part[1]) * unit
        at = part.end()
    if at < len(text) or not text.strip():
        raise NetworkError(
            "BAD_DURATION",
            f"cannot read {text!r} as a duration; expected a number and a unit,"
            f" as in '10 minutes' (units: {', '.join(_UNITS_US)})",
        )
    if total > LONGEST:
        raise NetworkError("BAD_DURATION", f"{text!r} is too long: expected at most 70,000 years")
    return round(total)
