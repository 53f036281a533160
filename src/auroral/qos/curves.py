"""Piecewise linear functions, as utility graphs are [1 §4.1] (pure)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

_SAME_SLOPE = 1e-9
"""Slopes that differ by less, in proportion to their size, are the same but for rounding."""


@dataclass(frozen=True)
class Curve:
    """A piecewise linear function; before its first and after its last point it is flat.

    >>> latency = Curve.through([(10, 0), (0, 1), (2, 1)])
    >>> latency.value(6), latency.gradient(2), latency.slack(0.5), latency.good_until
    (0.5, -0.125, 1.5, 2.0)
    """

    points: tuple[tuple[float, float], ...]
    """By ascending x, no x twice."""

    @classmethod
    def through(cls, points: Iterable[tuple[float, float]]) -> Curve:
        """The curve through points, which may come in any order."""
        return cls(tuple(sorted((float(x), float(y)) for x, y in points)))

    @cached_property
    def _xs(self) -> list[float]:
        return [x for x, _ in self.points]

    @cached_property
    def slopes(self) -> tuple[float, ...]:
        """The slope between each point and the next."""
        return tuple((y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(self.points))

    def value(self, x: float) -> float:
        """The function at x."""
        place = bisect_right(self._xs, x)
        if place == 0:
            return self.points[0][1]
        x0, y0 = self.points[place - 1]
        if place == len(self.points) or x == x0:
            return y0
        x1, y1 = self.points[place]
        between = y0 + (y1 - y0) * ((x - x0) / (x1 - x0))
        return min(max(between, min(y0, y1)), max(y0, y1))

    def gradient(self, x: float) -> float:
        """The slope at x; where it changes, the one behind x."""
        place = bisect_right(self._xs, x)
        return self.slopes[place - 1] if 0 < place < len(self.points) else 0.0

    @cached_property
    def critical_points(self) -> tuple[float, ...]:
        """Where the slope changes, ascending."""
        slopes = (0.0, *self.slopes, 0.0)
        return tuple(
            x
            for (x, _), (before, after) in zip(self.points, pairwise(slopes), strict=True)
            if not _is_same(before, after)
        )

    def slack(self, x: float) -> float:
        """How far the next critical point is that is larger than x; infinite if there is none."""
        place = bisect_right(self.critical_points, x)
        return self.critical_points[place] - x if place < len(self.critical_points) else math.inf

    @property
    def most(self) -> float:
        """The largest value."""
        return max(y for _, y in self.points)

    @property
    def least(self) -> float:
        """The smallest value."""
        return min(y for _, y in self.points)

    @cached_property
    def good_until(self) -> float:
        """The largest x with the largest value: the end of the good zone of a latency graph, δ."""
        if self.points[-1][1] == self.most:
            return math.inf
        return max(x for x, y in self.points if y == self.most)

    @cached_property
    def good_from(self) -> float:
        """The smallest x with the largest value: where the good zone of a loss graph begins."""
        if self.points[0][1] == self.most:
            return -math.inf
        return min(x for x, y in self.points if y == self.most)

    def area(self, low: float, high: float) -> float:
        """The integral from `low` to `high`.

        >>> Curve.through([(0, 1), (2, 1), (10, 0)]).area(0, 12)
        6.0
        """
        if low > high:
            return -self.area(high, low)
        inner = self._xs[bisect_right(self._xs, low) : bisect_left(self._xs, high)]
        return sum(
            (x1 - x0) * (self.value(x0) + self.value(x1)) / 2
            for x0, x1 in pairwise([low, *inner, high])
        )

    @property
    def falls(self) -> bool:
        """Whether it never rises."""
        return all(slope <= 0 for slope in self.slopes)

    @property
    def rises(self) -> bool:
        """Whether it never falls."""
        return all(slope >= 0 for slope in self.slopes)

    @cached_property
    def is_convex(self) -> bool:
        """Whether it gets ever steeper towards the worse side, but for a flat part at its bottom.

        Aurora calls such graphs convex [1 §4.1]: who walks along the gradient finds the best.
        The worse side of a curve that falls is the right one, of one that rises the left one.
        """
        steepness = [abs(slope) for slope in self.slopes]
        if self.rises:
            steepness.reverse()
        while steepness and steepness[-1] == 0:
            steepness.pop()
        return all(
            before <= after or _is_same(before, after) for before, after in pairwise(steepness)
        )


def _is_same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME_SLOPE, abs_tol=0.0)
