"""Back-pressure: slow operators take fewer tuples first (pure) [paper 5 §4]."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.eddy.routes.tickets import OperatorRecord

SLACK = 4.0
"""Operators up to so many times as slow as the fastest are not held back: measurements vary."""
START_S = 1e-4
"""What it may take to start an operator on a chunk: one that sees few tuples is not slow for it."""


def speeds(lately: Mapping[str, OperatorRecord]) -> dict[str, float]:
    """The part of a train each operator may be first in, by the seconds it took per tuple.

    The rule: an operator's queue holds what it works off while the fastest one works through the
    train `SLACK` times, so one that is n times as slow is first in at most SLACK / n of the chunks.

    >>> price, score = OperatorRecord(1000, seconds=0.001), OperatorRecord(500, seconds=0.01)
    >>> speeds({"price": price, "score(text)": score})
    {'price': 1.0, 'score(text)': 0.2}
    """
    costs = [cost for tally in lately.values() if (cost := tally.seconds_per_tuple)]
    fastest = min(costs, default=0.0)
    return {name: _speed(tally, fastest) for name, tally in lately.items()}


def _speed(tally: OperatorRecord, fastest: float) -> float:
    seconds = tally.seconds - START_S * tally.chunks
    if seconds <= 0 or not tally.routed:  # what no tuple was sent to may be fast
        return 1.0
    return min(1.0, SLACK * fastest * tally.routed / seconds)
