"""Why boxes, outputs and queries ran, waited, were moved or were shed: a log of decisions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

Event = Literal["ran", "waited", "moved", "shed", "changed", "failed"]
_MOST = 20_000
_RECENT_US = 60_000_000
"""A decision that was made for the last time longer ago is told as another one."""


@dataclass
class StoryEntry:
    """One decision."""

    at_us: int
    about: tuple[str, ...]
    """The boxes, outputs, streams or queries that it concerns."""
    event: Event
    why: str
    count: int = 1
    """How often in a row it was made; what others decided about the same names lies between."""
    same: str = ""
    """Decisions are the same if this is, and their event."""

    def document(self) -> dict[str, Any]:
        """The entry as plain data."""
        shown = {name: value for name, value in vars(self).items() if name != "same"}
        return {**shown, "about": list(self.about)}


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
        self._most = most
        self._numbers = count()
        self._entries: OrderedDict[int, StoryEntry] = OrderedDict()
        """By number; those that were made or told again last are at the end."""
        self._latest: dict[tuple[tuple[str, ...], Event], int] = {}
        """The number of the latest entry of each kind about each combination of names."""

    def note(self, about: Iterable[str], event: Event, why: str, same: str | None = None) -> None:
        """Add a decision.

        If it is the `same` as the latest one of its kind, that is told again, with the new figures
        in `why`; without `same`, if the reason is equal.
        """
        names = tuple(dict.fromkeys(about))
        same = why if same is None else same
        with self._lock:
            now_us, number = self._now_us(), self._latest.get((names, event))
            latest = None if number is None else self._entries[number]
            if latest is not None and latest.same == same and now_us - latest.at_us <= _RECENT_US:
                latest.count, latest.at_us, latest.why = latest.count + 1, now_us, why
                assert number is not None
                self._entries.move_to_end(number)
                return
            number = next(self._numbers)
            self._entries[number] = StoryEntry(now_us, names, event, why, same=same)
            self._latest[names, event] = number
            if len(self._entries) > self._most:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        number, entry = self._entries.popitem(last=False)
        if self._latest[entry.about, entry.event] == number:
            del self._latest[entry.about, entry.event]

    def story(self, *names: str) -> list[dict[str, Any]]:
        """The decisions about something that has one name or several, newest last."""
        wanted = set(names)
        with self._lock:
            found = [
                entry.document()
                for entry in self._entries.values()
                if not wanted.isdisjoint(entry.about)
            ]
        return sorted(found, key=lambda entry: int(entry["at_us"]))
