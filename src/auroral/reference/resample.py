"""Resample, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auroral.boxes.resample import Resample
from auroral.network.types import Schema
from auroral.reference.band import Band
from auroral.reference.marks import Group
from auroral.reference.operator import Emission, Failed, FunctionFailedError, Now, Tuple
from auroral.reference.order import OrderProgress
from auroral.reference.windows import ascending, computation, oldest, shown

LEFT, RIGHT = 0, 1
_PORTS = ("left_late", "right_late")


@dataclass
class Pending:
    """A left tuple with the right tuples near it, by group; `done` are the groups complete."""

    value: Any
    tuple: Tuple
    near: dict[Group, list[Tuple]] = field(default_factory=dict)
    done: set[Group] = field(default_factory=set)

    def waits_for(self, group: Group, right: Tuple) -> bool:
        """Whether a right tuple is in a window that is not complete."""
        return group not in self.done and any(right is near for near in self.near.get(group, ()))


class ReferenceResample:
    """Keeps left tuples until right progress has passed all that is near them.

    Right tuples are kept as long as one of those is near them, or one that comes could be.
    """

    def __init__(self, box: Resample, inputs: Sequence[Schema], directory: Path | None = None):
        left, right = inputs
        self._progress = [OrderProgress(box.left, left), OrderProgress(box.right, right)]
        self._band = band_of(box, inputs)
        self._compute = computation(box.compute, right, directory)
        self._pending: list[Pending] = []
        self._right: list[tuple[Any, Group, Tuple]] = []

    def push(self, port: int, arrived: Tuple) -> list[Emission]:
        progress = self._progress[port]
        reason = progress.arrive(arrived.row)
        if reason:
            return [Emission(_PORTS[port], arrived, reason)]
        group, value = progress.group(arrived.row), progress.value(arrived.row)
        if port == LEFT:
            self._take_left(value, arrived)
        else:
            self._take_right(value, group, arrived)
        return []

    def settle(self, now: Now) -> list[Emission | Failed]:
        for progress, promises in zip(self._progress, now.promises, strict=True):
            progress.settle(promises, now.ended)
        emitted = [made for pending in self._pending for made in self._complete(pending)]
        left, right = self._progress
        self._pending = [
            pending
            for pending in self._pending
            if not self._band.left_is_past(pending.value, right.mark_of_all())
        ]
        self._right = [
            kept
            for kept in self._right
            if not self._band.right_is_past(kept[0], left.mark_of_all())
            or any(pending.waits_for(kept[1], kept[2]) for pending in self._pending)
        ]
        return emitted

    def held(self) -> int:
        return len(self._pending) + len(self._right)

    def _take_left(self, value: Any, arrived: Tuple) -> None:
        pending = Pending(value, arrived)
        for right, group, kept in self._right:
            if self._band.holds(value, right):
                pending.near.setdefault(group, []).append(kept)
        self._pending.append(pending)

    def _take_right(self, value: Any, group: Group, arrived: Tuple) -> None:
        self._right.append((value, group, arrived))
        for pending in self._pending:
            if group not in pending.done and self._band.holds(pending.value, value):
                pending.near.setdefault(group, []).append(arrived)

    def _complete(self, pending: Pending) -> list[Emission | Failed]:
        """What the groups that have passed a left tuple give, in their order."""
        right = self._progress[RIGHT]
        passed = {}
        for group, near in pending.near.items():
            past = self._band.left_is_past(pending.value, right.mark(group))
            if group not in pending.done and past:
                passed[group] = near
        pending.done |= set(passed)
        by = right.by
        ordered = sorted(passed.values(), key=lambda near: ascending(near[0].row[n] for n in by))
        return [self._result(pending, near) for near in ordered]

    def _result(self, pending: Pending, near: list[Tuple]) -> Emission | Failed:
        row = {name: shown(near[0].row[name]) for name in self._progress[RIGHT].by}
        row[self._progress[LEFT].on] = pending.tuple.row[self._progress[LEFT].on]
        try:
            made = Tuple(row | self._compute(near), oldest([pending.tuple, *near]))
        except FunctionFailedError as error:
            return Failed(str(error), row)
        return Emission("", made)


def band_of(box: Resample, inputs: Sequence[Schema]) -> Band:
    """Which right values are near a left one."""
    return Band.of(box.within, box.within, inputs[LEFT].field(box.left.on).type)
