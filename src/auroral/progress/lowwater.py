"""The low-water mark of an arc as a step function of the moment.

`LowWater` says, for every moment, a value v such that no tuple with A < v comes after that
moment. It is a plain value: operations return new ones, nothing here knows of boxes or Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Moments = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
END = float("inf")
"""The mark of a stream that has ended: above every value."""


@dataclass(frozen=True, eq=False)
class LowWater:
    """A non-decreasing step function: from `moments[i]` on, the mark is at least `values[i]`.

    Invariants: moments strictly increase, values strictly increase. Before the first moment
    nothing is promised. From moment `ended` on, nothing comes at all.

    >>> mark = LowWater.of([(3, 10), (7, 12)])
    >>> mark.at(2), mark.at(3), mark.at(6), mark.at(9)
    (None, 10, 10, 12)
    >>> mark.first_reaching(11)
    7
    """

    moments: Moments = field(default_factory=lambda: np.empty(0, np.int64))
    values: Values = field(default_factory=lambda: np.empty(0, np.int64))
    ended: int | None = None

    @staticmethod
    def of(steps: Sequence[tuple[int, Any]], ended: int | None = None) -> LowWater:
        """Build one from (moment, value) pairs; what does not raise the mark is left out."""
        moments = np.array([moment for moment, _ in steps], np.int64)
        return LowWater(ended=ended).then(moments, as_values([value for _, value in steps]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LowWater)
            and self.ended == other.ended
            and self.steps() == other.steps()
        )

    __hash__ = None  # type: ignore[assignment]

    def steps(self) -> list[tuple[int, Any]]:
        return list(zip(self.moments.tolist(), self.values.tolist(), strict=True))

    def at(self, moment: int) -> Any | None:
        """The mark after the event of that moment; None while nothing is promised."""
        if self.ended is not None and moment >= self.ended:
            return END
        index = int(np.searchsorted(self.moments, moment, side="right")) - 1
        return self.values[index : index + 1].tolist()[0] if index >= 0 else None

    @property
    def latest(self) -> Any | None:
        """The mark after everything known so far."""
        if self.ended is not None:
            return END
        return self.values[-1:].tolist()[0] if len(self.values) else None

    def first_reaching(self, value: Any) -> int | None:
        """The first moment after which the mark is at or above `value`."""
        index = int(np.searchsorted(self.values, value, side="left")) if len(self.values) else 0
        if index < len(self.values):
            return int(self.moments[index])
        return self.ended

    def first_passing(self, value: Any) -> int | None:
        """The first moment after which the mark is above `value`."""
        index = int(np.searchsorted(self.values, value, side="right")) if len(self.values) else 0
        if index < len(self.values):
            return int(self.moments[index])
        return self.ended

    def then(self, moments: Moments, values: Values) -> LowWater:
        """Add later steps; values may repeat or fall back, the mark never does."""
        if not len(moments):
            return self
        raised = np.maximum.accumulate(values)
        if len(self.values):
            raised = np.maximum(raised, self.values[-1:])
            keep = raised > np.concatenate([self.values[-1:], raised[:-1]])
            values = np.concatenate([self.values, raised[keep]])
        else:
            keep = np.concatenate([[True], raised[1:] > raised[:-1]]).astype(bool)
            values = raised[keep]
        return LowWater(np.concatenate([self.moments, moments[keep]]), values, self.ended)

    def end(self, moment: int) -> LowWater:
        """Promise that nothing comes after `moment`."""
        return LowWater(self.moments, self.values, moment)

    def shift(self, distance: Any) -> LowWater:
        """Lower every value by `distance`."""
        return LowWater(self.moments, self.values - distance, self.ended)

    def until(self, moment: int) -> LowWater:
        """What was known before `moment`."""
        known = int(np.searchsorted(self.moments, moment, side="left"))
        ended = self.ended if self.ended is not None and self.ended < moment else None
        return LowWater(self.moments[:known], self.values[:known], ended)

    def since(self, moment: int) -> LowWater:
        """Forget the steps that no moment from `moment` on can see."""
        first = max(int(np.searchsorted(self.moments, moment, side="right")) - 1, 0)
        return LowWater(self.moments[first:], self.values[first:], self.ended)


def moved_since(mark: LowWater | GroupedLowWater | JointLowWater, moment: int) -> bool:
    """Whether a mark has a step at or after a moment."""
    if isinstance(mark, LowWater):
        ended = mark.ended is not None and mark.ended >= moment
        return ended or (bool(len(mark.moments)) and int(mark.moments[-1]) >= moment)
    parts: list[LowWater] = (
        [*mark.groups.values(), mark.others]
        if isinstance(mark, GroupedLowWater)
        else [mark.alone, mark.own, mark.other]
    )
    return any(moved_since(part, moment) for part in parts)


def minimum(marks: Sequence[LowWater]) -> LowWater:
    """What holds on all of several arcs together: the least mark at each moment [3 §A.2.1].

    >>> minimum([LowWater.of([(1, 5), (4, 9)]), LowWater.of([(2, 7)])]).steps()
    [(2, 5), (4, 7)]
    """
    lowest = marks[0]
    for mark in marks[1:]:
        lowest = _lesser(lowest, mark)
    return lowest


def maximum(one: LowWater, other: LowWater) -> LowWater:
    """The stronger of two promises about the same arc."""
    moments = np.concatenate([one.moments, other.moments])
    order = np.argsort(moments, kind="stable")
    values = np.concatenate([one.values, other.values])
    merged = LowWater().then(*last_of_moment(moments[order], values[order]))
    ends = [mark.ended for mark in (one, other) if mark.ended is not None]
    return LowWater(merged.moments, merged.values, min(ends) if ends else None)


def _lesser(one: LowWater, other: LowWater) -> LowWater:
    ended = None if one.ended is None or other.ended is None else max(one.ended, other.ended)
    breaks = [one.moments, other.moments]
    breaks += [np.array([m.ended], np.int64) for m in (one, other) if m.ended is not None]
    moments = np.unique(np.concatenate(breaks))
    left, left_known, left_over = _sampled(one, moments)
    right, right_known, right_over = _sampled(other, moments)
    both = (left_known | left_over) & (right_known | right_over) & ~(left_over & right_over)
    if not both.any():
        return LowWater(ended=ended)
    least = np.where(left_over, right, np.where(right_over, left, np.minimum(left, right)))
    return LowWater(ended=ended).then(moments[both], least[both])


def _sampled(mark: LowWater, moments: Moments) -> tuple[Values, Any, Any]:
    index = np.searchsorted(mark.moments, moments, side="right") - 1
    known = index >= 0
    filler = mark.values if len(mark.values) else np.zeros(1, np.int64)
    over = np.zeros(len(moments), bool) if mark.ended is None else moments >= mark.ended
    return filler[np.maximum(index, 0)], known, over


def last_of_moment(moments: Moments, values: Values) -> tuple[Moments, Values]:
    """Where one moment has several values, keep the greatest."""
    if not len(moments):
        return moments, values
    raised = np.maximum.accumulate(values)
    last = np.concatenate([moments[1:] != moments[:-1], [True]]).astype(bool)
    return moments[last], raised[last]


def as_values(values: Sequence[Any]) -> Values:
    """Values as an array that compares as they do: int64, float64 or objects (long decimals)."""
    if all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in values):
        return np.array(values, np.int64)
    if any(isinstance(v, float) for v in values):
        return np.array(values, np.float64)
    return np.array(values, object)


@dataclass(frozen=True)
class GroupedLowWater:
    """One mark per group [3 §A.1.1]; `others` is that of every group never seen."""

    by: tuple[str, ...]
    groups: Mapping[tuple[Any, ...], LowWater]
    others: LowWater = field(default_factory=LowWater)

    def of(self, group: tuple[Any, ...]) -> LowWater:
        return self.groups.get(group, self.others)

    def at(self, moment: int, group: tuple[Any, ...]) -> Any | None:
        return self.of(group).at(moment)

    def until(self, moment: int) -> GroupedLowWater:
        groups = {group: mark.until(moment) for group, mark in self.groups.items()}
        return GroupedLowWater(self.by, groups, self.others.until(moment))

    def since(self, moment: int) -> GroupedLowWater:
        groups = {group: mark.since(moment) for group, mark in self.groups.items()}
        return GroupedLowWater(self.by, groups, self.others.since(moment))

    def end(self, moment: int) -> GroupedLowWater:
        groups = {group: mark.end(moment) for group, mark in self.groups.items()}
        return GroupedLowWater(self.by, groups, self.others.end(moment))


@dataclass(frozen=True)
class JointLowWater:
    """What holds of pairs of two attributes, A and `by` [3 §7].

    After any moment every tuple has A >= `own` or `by` >= `other`; `alone` is what holds of A
    whatever `by` is. So a group with `by` = v is complete below e as soon as `own` has reached e
    and `other` has passed v, which may be long before `alone` reaches e.
    """

    by: str
    alone: LowWater
    own: LowWater
    other: LowWater

    def of(self, value: Any) -> LowWater:
        """The mark of A among tuples whose `by` is `value`; NULL has only `alone`."""
        passed = None if value is None else self.other.first_passing(value)
        if passed is None:
            return self.alone
        moments = np.maximum(self.own.moments, passed)
        steps = LowWater(ended=self.own.ended).then(*last_of_moment(moments, self.own.values))
        return maximum(self.alone, steps)

    def until(self, moment: int) -> JointLowWater:
        parts = (self.alone, self.own, self.other)
        return JointLowWater(self.by, *(part.until(moment) for part in parts))

    def since(self, moment: int) -> JointLowWater:
        parts = (self.alone, self.own, self.other)
        return JointLowWater(self.by, *(part.since(moment) for part in parts))

    def end(self, moment: int) -> JointLowWater:
        parts = (self.alone, self.own, self.other)
        return JointLowWater(self.by, *(part.end(moment) for part in parts))


Mark = LowWater | GroupedLowWater
