"""How fast tuples arrive: a mean in which older arrivals count less and less."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass

_FADE_S = 5.0
"""After so many seconds an arrival counts for a third."""


@dataclass(frozen=True)
class KeptRate:
    """What a state directory remembers of the arrivals of one stream."""

    rate: float
    """Tuples per second when the latest ones came."""
    recent: float
    """Tuples per second when this was written: less, if nothing has come for a while."""


@dataclass
class _Arrivals:
    """What is known of one stream: the faded count of its arrivals, as of a time."""

    since_s: float
    at_s: float
    faded: float = 0.0
    """Arrivals, each times exp(−age/_FADE_S)."""
    measured: float = 0.0
    """Tuples per second when the latest ones came, of which half are counted."""

    def fade(self, now_s: float) -> float:
        """The count as it is now."""
        return self.faded * math.exp(-max(now_s - self.at_s, 0.0) / _FADE_S)


class ArrivalRates:
    """Tuples per second of streams; any thread may tell and ask. Times are arguments.

    >>> rates = ArrivalRates()
    >>> for second in range(100):
    ...     rates.arrived("reports", 50, float(second))
    >>> round(rates.rate("reports", 99.5)), rates.rate("others", 99.5)
    (50, 0.0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flows: dict[str, _Arrivals] = {}

    def restore(self, kept: Mapping[str, KeptRate], now_s: float) -> None:
        """Go on with the rates of an earlier run; the time between does not count."""
        with self._lock:
            for stream, one in kept.items():
                flow = _Arrivals(-math.inf, now_s, one.recent * _FADE_S, one.rate)
                self._flows.setdefault(stream, flow)

    def kept(self, now_s: float) -> dict[str, KeptRate]:
        """What a later run has to know."""
        with self._lock:
            return {
                name: KeptRate(flow.measured, _rate(flow, now_s))
                for name, flow in self._flows.items()
            }

    def arrived(self, stream: str, tuples: int, now_s: float) -> None:
        """Some tuples have come."""
        with self._lock:
            flow = self._flows.setdefault(stream, _Arrivals(now_s, now_s))
            before = flow.fade(now_s)
            flow.at_s = max(flow.at_s, now_s)
            # Just after a batch the rate is too high, just before it too low.
            flow.faded = before + tuples / 2
            flow.measured = _rate(flow, flow.at_s)
            flow.faded = before + tuples

    def rate(self, stream: str, now_s: float) -> float:
        """Tuples per second lately; of a stream that has just begun, over a second at least."""
        with self._lock:
            flow = self._flows.get(stream)
            return 0.0 if flow is None else _rate(flow, now_s)

    def all(self, now_s: float) -> Mapping[str, float]:
        """The rates of all streams that have had tuples."""
        with self._lock:
            return {name: _rate(flow, now_s) for name, flow in self._flows.items()}


def _rate(flow: _Arrivals, now_s: float) -> float:
    known_s = max(now_s - flow.since_s, 1.0)
    return flow.fade(now_s) / (_FADE_S * (1 - math.exp(-known_s / _FADE_S)))
