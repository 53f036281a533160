"""Where the windows over values lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from auroral.boxes.window import Length, in_marks
from auroral.network.types import Type
from auroral.progress.advances import FARTHEST, advances_in


@dataclass(frozen=True)
class ReferenceGrid:
    """Window k holds values from its start, origin + k·advance, up to, not including, its end.

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
        """Where window k ends: where window k + n starts, if the size is n advances."""
        return (
            self.start(k) + self.size if self._advances is None else self.start(k + self._advances)
        )

    def holding(self, value: Any) -> list[int]:
        """The windows a value is in; none if its doubles do not tell windows apart."""
        last = self._at(value - self.origin)
        least = self._at(value - self.size - self.origin)
        if last is None or least is None or self._at(value) is None:
            return []
        found = list(range(least - 2, last + 3))
        if self._advances is not None:
            last = max(k for k in found if self.start(k) <= value)
            found = list(range(last - self._advances + 1, last + 1))
        else:
            found = [k for k in found if self.start(k) <= value < self.end(k)]
        return [k for k in found if self.first is None or k >= self.first]

    def first_open(self, mark: Any, history: Any = 0) -> Any:
        """The start of the first window that may still come out; a mark beyond all is lowered."""
        k = self._at(mark - (self.size + history) - self.origin)
        if k is None:
            return mark - (self.size + history)
        k -= 2
        while self.end(k) + history <= mark:
            k += 1
        return self.start(k)

    @cached_property
    def _advances(self) -> int | None:
        """How many advances doubles are long; whole numbers need no care."""
        floats = isinstance(self.size, float)
        return advances_in(self.size, self.advance) if floats else None

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
