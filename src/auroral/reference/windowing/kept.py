"""Tuples of one side of a join or resample, by the value they are ordered on."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


class Kept(Generic[Item]):
    """Items by value: those near a value are found, those past are dropped, without a scan.

    >>> kept = Kept()
    >>> for value in (5, 1, 3):
    ...     kept.add(value, f"tuple {value}")
    >>> kept.between(lambda value: value >= 2, lambda value: value > 9)
    ['tuple 5', 'tuple 3']
    >>> kept.drop(lambda value: value < 3)
    ['tuple 1']
    """

    def __init__(self, *, timed: bool = False) -> None:
        """Start with none; `timed` ones can be dropped by age, too."""
        self._items: list[tuple[Any, int, Item]] = []
        self._by_age: deque[tuple[Any, int, Item]] | None = deque() if timed else None
        self._added = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: Any, item: Item) -> None:
        entry = (value, self._added, item)
        insort(self._items, entry)
        if self._by_age is not None:
            self._by_age.append(entry)
        self._added += 1

    def between(self, reaches: Callable[[Any], bool], exceeds: Callable[[Any], bool]) -> list[Item]:
        """Items from the first value that reaches up to the first that exceeds, as they came."""
        first, last = self._first(reaches), self._first(exceeds)
        return [item for _, _, item in sorted(self._items[first:last], key=lambda one: one[1])]

    def drop(self, is_past: Callable[[Any], bool]) -> list[Item]:
        """Take away the items whose values are past; greater values are past later."""
        count = self._first(lambda value: not is_past(value))
        dropped = [item for _, _, item in self._items[:count]]
        del self._items[:count]
        return dropped

    def drop_old(self, is_over: Callable[[Item], bool]) -> list[Item]:
        """Take away the items whose time is over; that of later ones is over later."""
        dropped = []
        while self._by_age and is_over(self._by_age[0][2]):
            entry = self._by_age.popleft()
            at = bisect_left(self._items, entry[:2], key=lambda one: one[:2])
            if at < len(self._items) and self._items[at][2] is entry[2]:
                dropped.append(self._items.pop(at)[2])
        return dropped

    def _first(self, holds: Callable[[Any], bool]) -> int:
        """Where the first value lies for which something holds that holds of all greater ones."""
        return bisect_left(self._items, True, key=lambda one: holds(one[0]))
