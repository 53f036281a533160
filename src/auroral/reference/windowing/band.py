"""The band between the ordered attributes of two inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from auroral.boxes.window import Length, in_marks
from auroral.network.types import Type
from auroral.reference.progress.marks import least, passes
from auroral.reference.windowing.kept import Item, Kept


@dataclass(frozen=True)
class ReferenceBand:
    """left.on − before <= right.on <= left.on + after, in units that both sides share."""

    before: Any
    after: Any

    @staticmethod
    def of(before: Length, after: Length, on: Type) -> ReferenceBand:
        return ReferenceBand(in_marks(before, on), in_marks(after, on))

    def near_left(self, left: Any, right: Kept[Item]) -> list[Item]:
        """The right tuples near a left one, as they came."""
        return right.between(
            lambda value: left - self.before <= value, lambda value: left + self.after < value
        )

    def near_right(self, right: Any, left: Kept[Item]) -> list[Item]:
        """The left tuples near a right one, as they came."""
        return left.between(
            lambda value: right <= value + self.after, lambda value: right < value - self.before
        )

    def left_is_past(self, left: Any, right_mark: Any) -> bool:
        """Whether no right tuple that comes now can match a left one."""
        return passes(right_mark, left + self.after)

    def right_is_past(self, right: Any, left_mark: Any) -> bool:
        """Whether no left tuple that comes now can match a right one."""
        return left_mark is not None and bool(left_mark - self.before > right)

    def left_mark(self, left_mark: Any, right_mark: Any) -> Any:
        """Nothing below it is the left of a pair that comes now."""
        return least([left_mark, _reaching(right_mark, self.after)])

    def right_mark(self, left_mark: Any, right_mark: Any) -> Any:
        """Nothing below it is the right of a pair that comes now."""
        return least([right_mark, _less(left_mark, self.before)])


def _reaching(mark: Any, distance: Any) -> Any:
    """Nothing below it, plus a distance, is at or above a mark, also where doubles are rounded."""
    lowered = _less(mark, distance)
    if not isinstance(lowered, float) or math.isinf(mark):
        return lowered
    if math.nextafter(lowered, -math.inf) + distance < mark:
        return lowered
    return math.nextafter(mark, -math.inf) - distance


def _less(mark: Any, distance: Any) -> Any:
    return None if mark is None else mark - distance
