"""Marks of a stream that several sources or partitions feed: one mark per origin.

An origin is one source or partition of a stream. Each has a mark of its own; the stream's mark is
the least mark of all active origins, so a partition that is read later than another loses nothing.
An origin is active from the moment it is opened, or brings a tuple, until it falls idle. One that
was opened and has brought nothing yet holds the stream's mark back. While no origin is active the
greatest mark counts. The stream's mark never falls: an origin that comes back may be late.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from auroral.progress.lowwater import LowWater, Moments, Values, as_values, last_of_moment

ARRIVED, OPENED, IDLE = 0, 1, 2
"""What a row says of its origin: it brought a tuple or punctuation, it exists, it waits no more."""

Activity = tuple[tuple[int, bool], ...]
"""Whether an origin is active, from moments on."""


@dataclass(frozen=True)
class OriginRows:
    """For each moment that concerns an origin: which origin, and what happened."""

    moments: Moments
    codes: npt.NDArray[np.int32]
    events: npt.NDArray[np.int8]

    @staticmethod
    def none() -> OriginRows:
        nothing = np.empty(0, np.int64)
        return OriginRows(nothing, nothing.astype(np.int32), nothing.astype(np.int8))

    def codes_at(self, moments: Moments) -> npt.NDArray[np.int32]:
        """The origin of each of these moments, -1 if it has none."""
        if not len(self.moments):
            return np.full(len(moments), -1, np.int32)
        index = np.minimum(np.searchsorted(self.moments, moments), len(self.moments) - 1)
        return np.where(self.moments[index] == moments, self.codes[index], -1).astype(np.int32)


@dataclass(frozen=True)
class OriginMarks:
    """The mark of each origin, and when it was active."""

    marks: Mapping[int, LowWater] = field(default_factory=dict)
    activity: Mapping[int, Activity] = field(default_factory=dict)

    def is_active(self, code: int) -> bool:
        """Whether an origin is active after everything known so far."""
        return bool(self.activity.get(code)) and self.activity[code][-1][1]

    def advance(self, rows: OriginRows, marks: Mapping[int, LowWater]) -> OriginMarks:
        """Let rows arrive; `marks` are the marks of those origins that they moved."""
        activity = dict(self.activity)
        for code in np.unique(rows.codes).tolist():
            own = rows.codes == code
            known = activity.get(code, ())
            changed = _changes(rows.moments[own], rows.events[own], known)
            activity[code] = (*known, *changed)
        every = {code: self.marks.get(code, LowWater()) for code in activity}
        return OriginMarks({**every, **marks}, activity)

    def least_since(self, moment: int, end: int) -> tuple[Moments, Values]:
        """The steps of the stream's mark in the moments from `moment` up to `end`."""
        turns = {at for steps in self.activity.values() for at, _ in steps if moment < at < end}
        bounds = [moment, *sorted(turns), end]
        found = [self._between(first, last) for first, last in itertools.pairwise(bounds)]
        parts = [part for part in found if len(part[0])]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        moments, values = (np.concatenate(side) for side in zip(*parts, strict=True))
        return moments, values

    def _between(self, first: int, last: int) -> tuple[Moments, Values]:
        """The steps while the same origins are active."""
        states = {code: _state_at(steps, first) for code, steps in self.activity.items()}
        active = [self.marks[code] for code, state in states.items() if state]
        if active:
            return _least(active, first, last)
        marks = [self.marks[code].at(first) for code, state in states.items() if state is not None]
        known: list[Any] = [value for value in marks if value is not None]
        if not known:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.array([first], np.int64), as_values([max(known)])

    def since(self, moment: int) -> OriginMarks:
        """Forget the steps that no moment from `moment` on can see."""
        marks = {code: mark.since(moment) for code, mark in self.marks.items()}
        return OriginMarks(marks, {c: _since(steps, moment) for c, steps in self.activity.items()})


def _changes(moments: Moments, events: npt.NDArray[np.int8], known: Activity) -> Activity:
    """When an origin becomes active or idle; opening one that is known changes nothing."""
    keep = events != OPENED
    keep[0] |= not known
    moments, events = moments[keep], events[keep]
    states = events != IDLE
    before = np.concatenate([[known[-1][1] if known else None], states[:-1]])
    turned = np.flatnonzero(states != before)
    return tuple(zip(moments[turned].tolist(), states[turned].tolist(), strict=True))


def _state_at(steps: Activity, moment: int) -> bool | None:
    """Whether an origin is active at a moment; None if it is not known yet."""
    state = None
    for at, active in steps:
        if at > moment:
            break
        state = active
    return state


def _since(steps: Activity, moment: int) -> Activity:
    first = max(sum(at <= moment for at, _ in steps) - 1, 0)
    return steps[first:]


def _least(marks: Sequence[LowWater], first: int, last: int) -> tuple[Moments, Values]:
    """The steps of the least of several marks in the moments from `first` up to `last`.

    The least of them reaches a value when the last of them does; only values above where it
    stands at first, and up to where the least of them ends, need be looked at.
    """
    marks = [mark.until(last) for mark in marks]
    if any(not len(mark.values) for mark in marks):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    highest = min(_plain(mark.values[-1]) for mark in marks)
    now: list[Any] = [mark.at(first) for mark in marks]
    lowest = None if any(value is None for value in now) else min(now)
    chosen = []
    for mark in marks:
        start = 0 if lowest is None else int(np.searchsorted(mark.values, lowest, "right"))
        chosen.append(mark.values[start : int(np.searchsorted(mark.values, highest, "right"))])
    if lowest is not None:
        chosen.append(as_values([lowest]))
    values = np.unique(np.concatenate(chosen))
    moments = np.full(len(values), first, np.int64)
    for mark in marks:
        reached = mark.moments[np.searchsorted(mark.values, values, "left")]
        np.maximum(moments, reached, out=moments)
    return last_of_moment(moments, values)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
