"""A calendar queue: events by time, cheap to add and to take in order [2 §6.2]."""

from __future__ import annotations

import heapq


class CalendarQueue:
    """Events of days to come lie in one list per day; only those of the present day are sorted.

    An event for a name replaces the one that was there; what was replaced is skipped when its time
    comes.

    >>> calendar = CalendarQueue(day_s=1.0)
    >>> for at_s, name in ((0.5, "far"), (2.5, "near"), (0.2, "both"), (0.4, "far")):
    ...     calendar.put(name, at_s)
    >>> calendar.due(0.45), calendar.due(2.0), calendar.due(9.0), len(calendar)
    (['both', 'far'], [], ['near'], 0)
    """

    def __init__(self, day_s: float = 1.0):
        self._day_s = day_s
        self._times: dict[str, float] = {}
        self._days: dict[int, list[tuple[float, str]]] = {}
        self._coming: list[int] = []
        """The days that have events, as a heap."""
        self._today = 0
        self._events: list[tuple[float, str]] = []
        """The events of today and before, as a heap."""

    def __len__(self) -> int:
        return len(self._times)

    def put(self, name: str, at_s: float) -> None:
        """Say when something happens to a name; replaces what was said before."""
        if self._times.get(name) == at_s:
            return
        self._times[name] = at_s
        day = int(at_s // self._day_s)
        if day <= self._today:
            heapq.heappush(self._events, (at_s, name))
        elif day in self._days:
            self._days[day].append((at_s, name))
        else:
            self._days[day] = [(at_s, name)]
            heapq.heappush(self._coming, day)

    def remove(self, name: str) -> None:
        """Nothing happens to a name."""
        self._times.pop(name, None)

    def due(self, now_s: float) -> list[str]:
        """Take out what has happened up to now, in order of time."""
        self._today = max(self._today, int(now_s // self._day_s))
        while self._coming and self._coming[0] <= self._today:
            for event in self._days.pop(heapq.heappop(self._coming)):
                heapq.heappush(self._events, event)
        names = []
        while self._events and self._events[0][0] <= now_s:
            at_s, name = heapq.heappop(self._events)
            if self._times.get(name) == at_s:
                del self._times[name]
                names.append(name)
        return names
