"""Where the windows over values lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from auroral.boxes.window import Length, in_marks
from auroral.network.types import Type


@dataclass(frozen=True)
class Grid:
    """Window k holds origin + k·advance up to, not including, that + size.

    >>> Grid(size=10, advance=5).holding(12)
    [1, 2]
    """

    size: Any
    advance: Any
    origin: Any = 0
    first: int | None = None
    """The number of the first window, if there is a first."""

    def start(self, k: int) -> Any:
        return self.origin + k * self.advance

    def end(self, k: int) -> Any:
        return self.start(k) + self.size

    def holding(self, value: Any) -> list[int]:
        """The windows a value is in, tried one by one from the last that could hold it."""
        last = self._at(value - self.origin)
        least = self._at(value - self.size - self.origin)
        if last is None or least is None:
            return []
        tried = range(least - 1, last + 2)
        found = [k for k in tried if self.start(k) <= value < self.end(k)]
        return [k for k in found if self.first is None or k >= self.first]

    def first_open(self, mark: Any, history: Any = 0) -> Any:
        """The start of the first window that may still come out; a mark beyond all stays."""
        k = self._at(mark - self.size - history - self.origin)
        if k is None:
            return mark
        k -= 1
        while self.end(k) + history <= mark:
            k += 1
        return self.start(k)

    def _at(self, distance: Any) -> int | None:
        """How many whole advances fit in a distance; None if no number says."""
        if isinstance(distance, float):
            count = distance / self.advance
            return math.floor(count) if math.isfinite(count) else None
        return int(distance // self.advance)


def grid(size: Length, advance: Length | None, on: Type) -> Grid:
    """The windows that start at multiples of `advance`, or of `size` if there is none."""
    length = in_marks(size, on)
    return Grid(length, length if advance is None else in_marks(advance, on))
