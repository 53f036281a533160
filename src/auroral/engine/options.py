"""What an engine may be told, checked."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from auroral.errors import UsageError
from auroral.storage import DURABILITIES


def require_options(
    *, clock: Any, durability: Any, train: Any, workers: Any, sink_grace_s: Any, buckets: Any
) -> None:
    """Refuse options of an engine that make no sense."""
    if clock not in ("wall", "arrival"):
        raise UsageError("BAD_OPTION", f"clock is wall or arrival, found {clock!r}")
    if durability not in (None, *DURABILITIES):
        known_levels = " or ".join(DURABILITIES)
        problem = f"durability is {known_levels}, found {durability!r}"
        raise UsageError("BAD_OPTION", problem)
    if train is not None and not (isinstance(train, Integral) and int(train) >= 1):
        raise UsageError("BAD_OPTION", f"a train needs at least one tuple, found {train!r}")
    if workers is not None and not (isinstance(workers, Integral) and int(workers) >= 1):
        raise UsageError("BAD_OPTION", f"steps need at least one worker, found {workers!r}")
    if not (isinstance(sink_grace_s, int | float) and sink_grace_s >= 0):
        problem = f"sink_grace_s is a number of seconds, found {sink_grace_s!r}"
        raise UsageError("BAD_OPTION", problem)
    if buckets is not None and not (isinstance(buckets, Integral) and 1 <= int(buckets) <= 4096):
        raise UsageError("BAD_OPTION", f"buckets are 1 to 4096, found {buckets!r}")
