"""When outputs were paused: delays of results do not count these times."""

from __future__ import annotations

import threading
from dataclasses import dataclass

_MOST = 100
"""So many pauses are remembered."""


@dataclass(frozen=True)
class _Pause:
    applications: frozenset[str] | None
    """None: all of them."""
    began_s: float
    ended_s: float | None = None


class PausedTimes:
    """The latest pauses, by the monotonic clock.

    >>> times = PausedTimes()
    >>> times.change(None, now_s=10.0)
    >>> times.change(frozenset(), now_s=14.0)
    >>> times.within("alerts", 9.0, 20.0), times.within("alerts", 12.0, 13.0)
    (4.0, 1.0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses: list[_Pause] = []

    def change(self, applications: frozenset[str] | None, now_s: float) -> None:
        """Others are paused from now on: some, all (None), or none."""
        with self._lock:
            if self._pauses and self._pauses[-1].ended_s is None:
                last = self._pauses[-1]
                self._pauses[-1] = _Pause(last.applications, last.began_s, now_s)
            if applications is None or applications:
                self._pauses = [*self._pauses[-_MOST:], _Pause(applications, now_s)]

    def within(self, output: str, since_s: float, until_s: float) -> float:
        """For how many seconds between two times an output was paused."""
        total = 0.0
        for pause in self._pauses:
            if pause.applications is None or output in pause.applications:
                ended_s = until_s if pause.ended_s is None else min(pause.ended_s, until_s)
                total += max(ended_s - max(pause.began_s, since_s), 0.0)
        return total
