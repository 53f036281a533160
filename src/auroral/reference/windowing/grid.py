"""Where the windows over values lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from auroral.boxes.window import Length, in_marks
from auroral.network.types import Type
from auroral.progress.advances import FARTHEST, ROUNDING, advances_in


@dataclass(frozen=True)
class ReferenceGrid:
    """Window k holds values from its start, origin + k·advance, up to, not including, its end.

    >>> ReferenceGrid(size=10, advance=5).holding(12)
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
        """Where window k ends: where window k + n starts, if the size is n advances."""
        return (
            self.start(k) + self.size if self._advances is None else self.start(k + self._advances)
        )

    def holding(self, value: Any) -> list[int]:
        """The windows a value is in; none if its doubles do not tell windows apart."""
        near = self._at(value - self.origin)
        overlap = self._at(self.size)
        if near is None or overlap is None or self._at(value) is None:
            return []
        last = max(k for k in range(near - 2, near + 3) if self.start(k) <= value)
        many = overlap + 5 if self._advances is None else self._advances
        found = list(range(last - many + 1, last + 1))
        if self._advances is None:
            found = [k for k in found if value < self.end(k)]
        return [k for k in found if self.first is None or k >= self.first]

    def first_open(self, mark: Any, history: Any = 0) -> Any:
        """The start of the first window that may still come out; the end is the end of all.

        No window over doubles lies beyond the farthest, but marks above it must still rise.
        """
        if mark in (math.inf, -math.inf):
            return mark
        distance = mark - (self.size + history)
        if not self._floats:
            return self.start(distance // self.advance + 1)
        farthest = FARTHEST * self.advance
        if mark > farthest:
            return max(self._lowered(mark, history), self.first_open(farthest, history))
        if distance / self.advance < 1 - FARTHEST:
            return self._lowered(mark, history)
        k = math.floor(distance / self.advance) - 2
        while self.end(k) + history <= mark:
            k += 1
        return self.start(k)

    def _lowered(self, mark: float, history: float) -> Any:
        """A value that no window that is open or remembered starts below, however doubles round."""
        reach = self.size + history + self.advance
        return mark - reach - (abs(mark) * ROUNDING + reach * ROUNDING)

    @cached_property
    def _advances(self) -> int | None:
        """How many advances doubles are long; whole numbers need no care."""
        return advances_in(self.size, self.advance) if self._floats else None

    @property
    def _floats(self) -> bool:
        return isinstance(self.size, float)

    def _at(self, distance: Any) -> int | None:
        """How many whole advances fit in a distance; None if no number says."""
        if isinstance(distance, float):
            count = distance / self.advance
            return math.floor(count) if abs(count) < FARTHEST else None
        return int(distance // self.advance)


def grid(size: Length, advance: Length | None, on: Type) -> ReferenceGrid:
    """The windows that start at multiples of `advance`, or of `size` if there is none."""
    length = in_marks(size, on)
    return ReferenceGrid(length, length if advance is None else in_marks(advance, on))
