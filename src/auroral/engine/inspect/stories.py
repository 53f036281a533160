"""Why boxes, outputs and queries ran, waited, were moved or were shed: a log of decisions."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

Event = Literal["ran", "waited", "moved", "shed", "changed", "failed"]
_MOST = 20_000


@dataclass
class StoryEntry:
    """One decision."""

    at_us: int
    about: tuple[str, ...]
    """The boxes, outputs, streams or queries that it concerns."""
    event: Event
    why: str
    count: int = 1
    """How often in a row it was made."""

    def document(self) -> dict[str, Any]:
        """The entry as plain data."""
        return {**vars(self), "about": list(self.about)}


class DecisionLog:
    """The latest decisions; one that is made again and again is one entry.

    >>> log = DecisionLog(lambda: 0)
    >>> for _ in range(3):
    ...     log.note(["far"], "ran", "round robin")
    >>> log.note(["near"], "waited", "no worker is free")
    >>> [(entry["event"], entry["count"]) for entry in log.story("far")]
    [('ran', 3)]
    """

    def __init__(self, now_us: Callable[[], int], most: int = _MOST):
        self._now_us = now_us
        self._lock = threading.Lock()
        self._entries: deque[StoryEntry] = deque(maxlen=most)
        self._latest: dict[tuple[str, ...], StoryEntry] = {}
        """The latest entry about each combination of names."""

    def note(self, about: Iterable[str], event: Event, why: str) -> None:
        """Add a decision."""
        names = tuple(dict.fromkeys(about))
        with self._lock:
            latest = self._latest.get(names)
            if latest is not None and (latest.event, latest.why) == (event, why):
                latest.count, latest.at_us = latest.count + 1, self._now_us()
                return
            entry = StoryEntry(self._now_us(), names, event, why)
            self._entries.append(entry)
            self._latest[names] = entry
            if len(self._latest) > (self._entries.maxlen or 0):
                kept = {id(one) for one in self._entries}
                self._latest = {n: one for n, one in self._latest.items() if id(one) in kept}

    def story(self, name: str) -> list[dict[str, Any]]:
        """The decisions about something, newest last."""
        with self._lock:
            found = [entry.document() for entry in self._entries if name in entry.about]
        return sorted(found, key=lambda entry: int(entry["at_us"]))
