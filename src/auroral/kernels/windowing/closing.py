"""When progress passes a value: by punctuation, per group, jointly, or inferred from arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.units import Mask
from auroral.kernels.windowing.slack import RankCodes, SlackThresholds
from auroral.progress.lowwater import GroupedLowWater, JointLowWater, LowWater, Values


class GroupProgress(Protocol):
    """The progress of a step's groups, as its rows see it.

    Groups are numbers; where progress is the same for all of them they are ignored.
    """

    def before(self) -> tuple[Values, Mask]:
        """The mark each row finds when it arrives, and whether there is one."""

    def reaching(self, group: Ids, values: Values, /) -> Ids:
        """The moment after which the mark is at or above each value; NEVER: not in this step."""

    def passing(self, group: Ids, values: Values, /) -> Ids:
        """The moment after which the mark is above each value."""

    def reached(self, group: Ids, values: Values, /) -> Mask:
        """Whether the mark is at or above each value when the step is over."""


@dataclass(frozen=True)
class Punctuated:
    """One mark for all groups."""

    mark: LowWater
    seq: Ids
    """The moments of the rows."""
    context: Context

    def before(self) -> tuple[Values, Mask]:
        return _at(self.mark, self.seq - 1)

    def reaching(self, _group: Ids, values: Values) -> Ids:
        return within(_first(self.mark, values, "left"), self.context)

    def passing(self, _group: Ids, values: Values) -> Ids:
        return within(_first(self.mark, values, "right"), self.context)

    def reached(self, group: Ids, values: Values) -> Mask:
        return self.reaching(group, values) < NEVER


@dataclass(frozen=True)
class Inferred:
    """Thresholds that the tuples of each group move."""

    running: SlackThresholds
    seq: Ids
    context: Context
    chosen: Ids | None = None
    """The rows asked about, if not all."""

    def before(self) -> tuple[Values, Mask]:
        values, known = self.running.before()
        return (values, known) if self.chosen is None else (values[self.chosen], known[self.chosen])

    def reaching(self, group: Ids, values: Values) -> Ids:
        rows = self.running.reaching(group, values)
        moments = self.seq[rows] if len(self.seq) else np.full(len(rows), NEVER)
        return within(np.where(rows < 0, NEVER, moments), self.context)

    def passing(self, group: Ids, values: Values) -> Ids:
        raise NotImplementedError("tuples ordered with slack are released by count")

    def reached(self, group: Ids, values: Values) -> Mask:
        last, known = self.running.last()
        ended = self.context.ended is not None and self.context.ended < self.context.last
        return np.asarray(known[group] & (last[group] >= values), bool) | ended


@dataclass(frozen=True)
class Grouped:
    """A mark for each group: their steps lie behind one another."""

    segment: Ids
    """Which mark each group has."""
    starts: Ids
    moments: Ids
    values: Values
    ended: Ids
    group: Ids
    """The group of each row."""
    seq: Ids
    context: Context

    @staticmethod
    def of(marks: Sequence[LowWater], group: Ids, seq: Ids, context: Context) -> Grouped:
        """Lay the marks out; groups that share one share its steps."""
        unique = list({id(mark): mark for mark in marks}.values())
        number = {id(mark): i for i, mark in enumerate(unique)}
        starts = np.zeros(len(unique) + 1, np.int64)
        np.cumsum([len(mark.moments) for mark in unique], out=starts[1:])
        full = [mark.values for mark in unique if len(mark.values)]
        return Grouped(
            np.array([number[id(mark)] for mark in marks], np.int64),
            starts,
            np.concatenate([np.empty(0, np.int64), *(mark.moments for mark in unique)]),
            np.concatenate(full) if full else np.empty(0, np.int64),
            np.array([NEVER if m.ended is None else m.ended for m in unique], np.int64),
            group,
            seq,
            context,
        )

    def before(self) -> tuple[Values, Mask]:
        segment = self.segment[self.group]
        found = self._search(self.moments, segment, self.seq) - 1
        known = found >= self.starts[segment]
        return _picked(self.values, np.where(known, found, 0)), known

    def reaching(self, group: Ids, values: Values) -> Ids:
        segment = self.segment[group]
        return self._moments(segment, self._search(self.values, segment, values))

    def passing(self, group: Ids, values: Values) -> Ids:
        segment = self.segment[group]
        return self._moments(segment, self._search(self.values, segment, values, above=True))

    def reached(self, group: Ids, values: Values) -> Mask:
        return self.reaching(group, values) < NEVER

    def _moments(self, segment: Ids, found: Ids) -> Ids:
        inside = found < self.starts[segment + 1]
        moments = _picked(self.moments, np.where(inside, found, 0))
        return within(np.where(inside, moments, self.ended[segment]), self.context)

    def _search(self, steps: Values, segment: Ids, wanted: Values, above: bool = False) -> Ids:
        """The first step of a segment at or above what is wanted, or above it."""
        codes = RankCodes.of(steps, len(self.starts))
        lengths = np.diff(self.starts)
        keys = np.repeat(np.arange(len(lengths)), lengths) * codes.span + codes.encode(steps)
        return np.searchsorted(keys, segment * codes.span + codes.encode(wanted, above))


@dataclass(frozen=True)
class JointProgress:
    """A mark that depends on the value of one of the grouping columns [3 §7]."""

    mark: JointLowWater
    value: Values
    """Each group's value of that column."""
    known: Mask
    group: Ids
    seq: Ids
    context: Context

    def before(self) -> tuple[Values, Mask]:
        alone, known = _at(self.mark.alone, self.seq - 1)
        own, helps = _at(self.mark.own, self.seq - 1)
        passed = self._passed()[self.group]
        helps &= passed < self.seq
        better = helps & (~known | (own > alone))
        return np.where(better, own, alone), known | helps

    def reaching(self, group: Ids, values: Values) -> Ids:
        return self._earliest(group, values, "left")

    def passing(self, group: Ids, values: Values) -> Ids:
        return self._earliest(group, values, "right")

    def reached(self, group: Ids, values: Values) -> Mask:
        return self.reaching(group, values) < NEVER

    def _earliest(self, group: Ids, values: Values, side: Any) -> Ids:
        own = np.maximum(_first(self.mark.own, values, side), self._passed()[group])
        return within(np.minimum(_first(self.mark.alone, values, side), own), self.context)

    def _passed(self) -> Ids:
        return np.where(self.known, _first(self.mark.other, self.value, "right"), NEVER)


def marked(
    mark: LowWater | GroupedLowWater | JointLowWater,
    group: Ids,
    seq: Ids,
    context: Context,
    keys: Sequence[tuple[Any, ...]] = (),
    values: tuple[Values, Mask] | None = None,
) -> GroupProgress:
    """The progress a mark promises to groups that have these keys, or these values."""
    if isinstance(mark, GroupedLowWater):
        return Grouped.of([mark.of(key) for key in keys], group, seq, context)
    if isinstance(mark, JointLowWater):
        assert values is not None
        return JointProgress(mark, *values, group, seq, context)
    return Punctuated(mark, seq, context)


def timed_out(clock: LowWater | None, due_us: Ids, context: Context) -> Ids:
    """The moment at which the clock passes each time; NEVER: not in this step."""
    return within(_first(clock or LowWater(), due_us, "right"), context)


def reached_at(clock: LowWater | None, seq: Ids) -> Ids:
    """When tuples of these moments reach a box, µs; 0 before the clock has ticked."""
    times, known = _at(clock or LowWater(), seq)
    return np.where(known, times, 0)


def within(moments: Ids, context: Context) -> Ids:
    """Moments of this step; the end, if it comes in it, passes everything."""
    if context.ended is not None:
        moments = np.minimum(moments, context.ended)
    return np.where(moments < context.last, moments, NEVER)


def _at(mark: LowWater, moments: Ids) -> tuple[Values, Mask]:
    found = np.searchsorted(mark.moments, moments, side="right") - 1
    return _picked(mark.values, np.maximum(found, 0)), found >= 0


def _first(mark: LowWater, values: Values, side: Any) -> Ids:
    ended = NEVER if mark.ended is None else mark.ended
    if not len(mark.values):
        return np.full(len(values), ended, np.int64)
    found = np.searchsorted(mark.values, values, side=side)
    return np.append(mark.moments, ended)[found]


def _picked(values: Values, index: Ids) -> Values:
    """Values by number; zeros if there are none to pick from."""
    return values[index] if len(values) else np.zeros(len(index), np.int64)
