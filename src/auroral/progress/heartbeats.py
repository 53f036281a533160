"""Whether a heartbeat counts in the unit of its attribute, judged by the first value seen."""

from __future__ import annotations

from auroral.errors import Caution
from auroral.progress.values import PER_SECOND

_SOONEST_S, _LATEST_S = 10**8, 10**11
"""1973 and the year 5138: times that a clock tells lie between."""


def unit_caution(stream: str, on: str, value: float, unit: str, now_s: float) -> Caution | None:
    """What to say if values cannot be times in this unit; None if they can.

    A clock that does not tell the time of day (`_at` from 0, say) goes with small values.

    >>> print(unit_caution("s", "ts", 1_700_000_000_000, "s", 1.7e9).message)  # doctest: +ELLIPSIS
    the heartbeat on ts counts s since 1970, but its first value is 1700000000000: the mark would...
    >>> unit_caution("s", "ts", 1_700_000_000_000, "ms", 1.7e9), unit_caution("s", "ts", 5, "s", 9)
    (None, None)
    """
    seconds = value / PER_SECOND[unit]
    if seconds > _LATEST_S:
        effect = "the mark would never advance in a lull"
    elif seconds < _SOONEST_S <= now_s:
        effect = "the mark would jump ahead of all values, and make them late"
    else:
        return None
    fitting = [u for u, per in PER_SECOND.items() if _SOONEST_S <= value / per <= _LATEST_S]
    fix = f"heartbeat: {{lag: …, unit: {fitting[0]}}}" if fitting else "leave the heartbeat out"
    return Caution(
        "HEARTBEAT_UNIT",
        f"the heartbeat on {on} counts {unit} since 1970, but its first value is {value:.15g}:"
        f" {effect} (perhaps {fix})",
        f"stream {stream}",
    )
