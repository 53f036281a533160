"""Marks of many groups as arrays, so that many values can be looked up at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.units import Mask
from auroral.progress.lowwater import END, GroupedLowWater, JointLowWater, LowWater, Values

Mark = LowWater | GroupedLowWater | JointLowWater
_LIMIT = 2**62


@dataclass(frozen=True)
class Steps:
    """The step functions of several groups in one array; within a group values never decrease."""

    starts: Ids
    """Where each group begins, and where the last ends."""
    when: Ids
    values: Values
    ended: Ids
    """When each group has ended: above every value."""

    @staticmethod
    def of(marks: Sequence[LowWater], context: Context) -> Steps:
        """The marks of groups 0, 1, … as far as this step may see them."""
        cut = [_seen(mark, context) for mark in marks]
        starts = np.zeros(len(cut) + 1, np.int64)
        np.cumsum([len(mark.moments) for mark in cut], out=starts[1:])
        when = [mark.moments for mark in cut if len(mark.moments)]
        values = [mark.values for mark in cut if len(mark.moments)]
        ended = np.array([NEVER if m.ended is None else m.ended for m in cut], np.int64)
        none = np.zeros(0, np.int64)
        return Steps(
            starts,
            np.concatenate(when) if when else none,
            np.concatenate(values) if values else none,
            ended,
        )

    def passing(self, group: Ids, values: Values) -> Ids:
        """When the group first is above each value; `NEVER` if it is not yet."""
        ended = self.ended[group]
        if not len(self.when):
            return ended
        at = self._above(group, values)
        found = self.when[np.minimum(at, len(self.when) - 1)]
        return np.where(at < self.starts[group + 1], np.minimum(found, ended), ended)

    def below(self, ordered: Values, when: int) -> Ids:
        """How many of some ascending values each group's mark exceeds, just before `when`."""
        seen = np.zeros(len(self.when) + 1, np.int64)
        np.cumsum(self.when < when, out=seen[1:])
        count = np.diff(seen[self.starts])
        if len(self.when):
            last = np.maximum(self.starts[:-1] + count - 1, 0)
            count = np.where(count > 0, np.searchsorted(ordered, self.values[last]), 0)
        return np.where(self.ended < when, len(ordered), count)

    def _above(self, group: Ids, values: Values) -> Ids:
        """Where in the group the first greater value is, or where the group ends."""
        groups = len(self.ended)
        if groups == 1:
            return np.searchsorted(self.values, values, side="right")
        if self.values.dtype == values.dtype == np.int64:
            least, most = int(self.values.min()), int(self.values.max())
            if (most - least + 2) * groups < _LIMIT:
                codes = self.values - least
                wanted = np.clip(values, least - 1, most) - least + 1
                return self._search(codes, group, wanted, most - least + 2)
        ranked, codes = np.unique(self.values, return_inverse=True)
        wanted = np.searchsorted(ranked, values, side="right")
        return self._search(codes, group, wanted, len(ranked) + 1)

    def _search(self, codes: Ids, group: Ids, wanted: Ids, span: int) -> Ids:
        owner = np.repeat(np.arange(len(self.ended)), np.diff(self.starts))
        return np.searchsorted(owner * span + codes, group * span + wanted)


def single(mark: Mark) -> LowWater | GroupedLowWater:
    """What holds of the attribute whatever others are."""
    return mark.alone if isinstance(mark, JointLowWater) else mark


def mark_of(context: Context, at: int) -> Mark:
    """The mark of an input; boxes that go by slack need none."""
    return context.marks[at] if at < len(context.marks) else LowWater()


def least_at(mark: Mark, moment: int, context: Context) -> Any | None:
    """The mark that holds for all groups after a moment, also for groups never seen."""
    mark = single(mark)
    if isinstance(mark, LowWater):
        return _seen(mark, context).at(moment)
    values = [_seen(m, context).at(moment) for m in (mark.others, *mark.groups.values())]
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) else None


def _seen(mark: LowWater, context: Context) -> LowWater:
    """A mark without what lies beyond the step, and at its end if the step has it."""
    ends = [m for m in (mark.ended, context.ended) if m is not None and m < context.last]
    ended = min(ends) if ends else None
    if len(mark.moments) and mark.moments[-1] >= context.last:
        known = mark.moments < context.last
        return LowWater(mark.moments[known], mark.values[known], ended)
    return LowWater(mark.moments, mark.values, ended)


def passed(mark: Any | None, values: Values) -> Mask:
    """Which values are below a mark; none if there is no mark."""
    if mark is None:
        return np.zeros(len(values), bool)
    if isinstance(mark, float) and mark == END:
        return np.ones(len(values), bool)
    return np.asarray(values < mark, bool)
