"""Resample, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from auroral.boxes.resample import Resample
from auroral.boxes.sides import left_field, without_right
from auroral.network.types import Schema
from auroral.reference.operator import (
    Emission,
    Failed,
    FunctionFailedError,
    NoResultError,
    Now,
    Tuple,
)
from auroral.reference.progress.agenda import Agenda
from auroral.reference.progress.marks import Group, passes
from auroral.reference.windowing.band import ReferenceBand
from auroral.reference.windowing.kept import Kept
from auroral.reference.windowing.order import progress_of
from auroral.reference.windowing.patience import Patience, timed_out
from auroral.reference.windowing.windows import ascending, computation, oldest, shown

LEFT, RIGHT = 0, 1
_PORTS = ("left_late", "right_late")


@dataclass
class Near:
    """A right tuple; `windows` counts the windows it is in that are not complete."""

    group: Group
    tuple: Tuple
    windows: int = 0
    past: bool = False
    """Whether no left tuple that comes could be near it."""


@dataclass
class Pending:
    """A left tuple with the right tuples near it, by group; `done` are the groups complete."""

    number: int
    value: Any
    tuple: Tuple
    near: dict[Group, list[Near]] = field(default_factory=dict)
    done: set[Group] = field(default_factory=set)


class ReferenceResample:
    """Keeps left tuples until right progress has passed all that is near them.

    Right tuples are kept as long as one of those is near them, or one that comes could be. With a
    timeout, a left tuple whose time is over is complete, and a right one is not for those to come.
    """

    def __init__(self, box: Resample, inputs: Sequence[Schema], directory: Path | None = None):
        left, right = inputs
        self._progress = [progress_of(box.left, left), progress_of(box.right, right)]
        self._on = None if box.left.numbered else left.field(box.left.on).name
        self._patience = Patience.of(box.timeout)
        self._band = band_of(box, inputs)
        self._left = left_field(left, right)
        compute = without_right(box.compute, right)
        self._compute = computation(compute, right, directory, self._left)
        self._pending: Kept[Pending] = Kept(timed=box.timeout is not None)
        self._right: Kept[Near] = Kept(timed=box.timeout is not None)
        self._completing: Agenda[tuple[Pending, Group]] = Agenda(self._progress[RIGHT], passes)
        self._arrived = 0
        self._waited_for = 0
        """Right tuples that are past but in windows that are not complete."""

    def push(self, port: int, arrived: Tuple) -> list[Emission]:
        progress = self._progress[port]
        group, value = progress.group(arrived.row), progress.value(arrived.row)
        reason = progress.arrive(arrived.row)
        if reason:
            return [Emission(_PORTS[port], arrived, reason)]
        if port == LEFT:
            self._take_left(value, arrived)
        else:
            self._take_right(value, group, arrived)
        return []

    def settle(self, now: Now) -> list[Emission | Failed]:
        for progress, promises in zip(self._progress, now.promises, strict=True):
            progress.settle(promises, now.ended)
        is_over = self._patience.over(now.clock_us)
        left_mark, right_mark = (progress.mark_of_all() for progress in self._progress)
        self._pending.drop(lambda value: self._band.left_is_past(value, right_mark))
        over = self._pending.drop_old(lambda pending: is_over(pending.tuple))
        timed = [(pending, group) for pending in over for group in pending.near]
        emitted = self._complete([*self._completing.due(), *timed])
        past = self._right.drop(lambda value: self._band.right_is_past(value, left_mark))
        old = self._right.drop_old(lambda near: is_over(near.tuple))
        for near in (*past, *old):
            near.past = True
            self._waited_for += near.windows > 0
        gone = [*(pending.tuple for pending in over), *(near.tuple for near in old)]
        return [*emitted, *map(timed_out, gone)]

    def held(self) -> int:
        return len(self._pending) + len(self._right) + self._waited_for

    def _take_left(self, value: Any, arrived: Tuple) -> None:
        pending = Pending(self._arrived, value, arrived)
        self._arrived += 1
        self._pending.add(value, pending)
        for near in self._band.near_left(value, self._right):
            if self._patience.meet(arrived, near.tuple):
                self._add(pending, near)

    def _take_right(self, value: Any, group: Group, arrived: Tuple) -> None:
        near = Near(group, arrived)
        self._right.add(value, near)
        for pending in self._band.near_right(value, self._pending):
            if group not in pending.done and self._patience.meet(pending.tuple, arrived):
                self._add(pending, near)

    def _add(self, pending: Pending, near: Near) -> None:
        """Put a right tuple into the window of its group around a left one."""
        if near.group not in pending.near:
            until = pending.value + self._band.after
            self._completing.add(until, near.group, (pending, near.group))
        pending.near.setdefault(near.group, []).append(near)
        near.windows += 1

    def _complete(self, passed: list[tuple[Pending, Group]]) -> list[Emission | Failed]:
        """What the groups that have passed left tuples give: as those came, groups in order."""
        by, made = self._progress[RIGHT].by, []
        for pending, group in passed:
            if group in pending.done:
                continue  # its time was over before
            near = pending.near[group]
            pending.done.add(group)
            for each in near:
                each.windows -= 1
                self._waited_for -= each.past and not each.windows
            place = ascending(near[0].tuple.row[name] for name in by)
            made.append((pending.number, place, pending, [each.tuple for each in near]))
        ordered = sorted(made, key=lambda one: one[:2])
        return [self._result(pending, tuples) for _, _, pending, tuples in ordered]

    def _result(self, pending: Pending, near: list[Tuple]) -> Emission | Failed:
        row = {name: shown(near[0].row[name]) for name in self._progress[RIGHT].by}
        row |= (
            {"tup": pending.value} if self._on is None else {self._on: pending.tuple.row[self._on]}
        )
        try:
            computed = self._compute([self._with_left(pending.tuple, each) for each in near])
            made = Tuple(row | computed, oldest([pending.tuple, *near]))
        except NoResultError:
            return Emission(None, pending.tuple)
        except FunctionFailedError as error:
            return Failed(str(error), row)
        return Emission("", made)

    def _with_left(self, left: Tuple, right: Tuple) -> Tuple:
        """A right tuple that has the left one as a field."""
        return (
            right
            if self._left is None
            else replace(right, row=right.row | {self._left.name: left.row})
        )


def band_of(box: Resample, inputs: Sequence[Schema]) -> ReferenceBand:
    """Which right values are near a left one."""
    return ReferenceBand.of(
        box.within, box.within, box.left.type_in(inputs[LEFT], tuple_number=True)
    )
