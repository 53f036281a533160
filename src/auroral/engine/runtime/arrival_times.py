"""When tuples arrived, by moment: enough to tell how old a queue is."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence

_MOST = 4_096
"""Entries that are kept; then every other one is forgotten."""


class ArrivalTimes:
    """Arrival times of moments, by the monotonic clock.

    A commit of arrivals tells the time of all moments before it that no commit before has told.
    What arrived before the engine started counts as arrived when it started, or earlier by the
    `ages` that an earlier run has left: pairs of the moment before which something had arrived,
    and for how many seconds it had waited. The time between two runs does not count.

    >>> times = ArrivalTimes(now_s=lambda: 0.0)
    >>> times.arrived(100, 5.0); times.arrived(300, 6.0)
    >>> times.at(99), times.at(100), times.mean(50, 150)
    (5.0, 6.0, 5.5)
    """

    def __init__(
        self,
        start: int = 0,
        now_s: Callable[[], float] = time.monotonic,
        ages: Sequence[tuple[int, float]] = (),
    ):
        self._now_s = now_s
        self._lock = threading.Lock()
        at_s, known = now_s(), [(before, age_s) for before, age_s in ages if before < start]
        self._before = [*(before for before, _ in known), start]
        """Moments before this one arrived by the time of the same place; ascending."""
        self._times = [*(at_s - age_s for _, age_s in known), at_s]
        if ages and ages[-1][0] == start:
            self._times[-1] = at_s - ages[-1][1]
        self._summed: list[float] = []
        """Arrival times of all moments from the first place to each one, counted from the time of
        the first place, added up."""
        self._sum_up()

    def arrived(self, next_moment: int, at_s: float | None = None) -> None:
        """All moments before `next_moment` have arrived by now."""
        with self._lock:
            if next_moment <= self._before[-1]:
                return
            at_s = self._now_s() if at_s is None else at_s
            moments = next_moment - self._before[-1]
            self._summed.append(self._summed[-1] + moments * (at_s - self._times[0]))
            self._before.append(next_moment)
            self._times.append(at_s)
            if len(self._before) > _MOST:
                del self._before[:-1:2], self._times[:-1:2]
                self._sum_up()

    def at(self, moment: int) -> float:
        """When a moment arrived; now, if that is not known yet."""
        with self._lock:
            place = bisect_right(self._before, moment)
            return self._times[place] if place < len(self._times) else self._now_s()

    def ages(self, first: int, most: int) -> list[tuple[int, float]]:
        """The ages of what arrived from a moment on, for a later run; at most so many pairs."""
        with self._lock:
            now_s, place = self._now_s(), bisect_right(self._before, first)
            found = list(zip(self._before[place:], self._times[place:], strict=True))
        step = -(-len(found) // most) or 1
        kept = found[::-step][::-1]  # the newest is among them
        return [(before, max(now_s - at, 0.0)) for before, at in kept]

    def now_s(self) -> float:
        """The time by the same clock."""
        return self._now_s()

    def age_s(self, moment: int) -> float:
        """How long ago a moment arrived."""
        return max(self._now_s() - self.at(moment), 0.0)

    def mean(self, first: int, last: int) -> float:
        """When the moments from `first` to before `last` arrived, on average."""
        if last <= first:
            return self.at(first)
        with self._lock:
            now_s = self._now_s()
            summed = self._sum_before(last, now_s) - self._sum_before(first, now_s)
            return self._times[0] + summed / (last - first)

    def spread(self, first: int, last: int) -> list[tuple[float, int]]:
        """Arrival times of the moments from `first` to before `last`, and how many each is of."""
        with self._lock:
            found: list[tuple[float, int]] = []
            at = first
            for place in range(bisect_right(self._before, first), len(self._before)):
                upto = min(self._before[place], last)
                if upto > at:
                    found.append((self._times[place], upto - at))
                    at = upto
                if at >= last:
                    return found
            if last > at:
                found.append((self._now_s(), last - at))
            return found

    def _sum_up(self) -> None:
        self._summed = [0.0]
        for place in range(1, len(self._before)):
            moments = self._before[place] - self._before[place - 1]
            self._summed.append(self._summed[-1] + moments * (self._times[place] - self._times[0]))

    def _sum_before(self, moment: int, now_s: float) -> float:
        """Arrival times of all moments from the first place to before this one, added up."""
        place = bisect_right(self._before, moment) - 1
        if place < 0:  # it arrived by the time that others are counted from
            return 0.0
        after_s = self._times[place + 1] if place + 1 < len(self._times) else now_s
        return self._summed[place] + (moment - self._before[place]) * (after_s - self._times[0])
