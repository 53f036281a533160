"""BSort, one tuple at a time."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auroral.boxes.bsort import BSort
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Now, ReferenceOperator, Tuple
from auroral.reference.progress.agenda import Agenda
from auroral.reference.progress.marks import Group, passes
from auroral.reference.windowing.order import OrderProgress, TupleNumbers
from auroral.reference.windowing.windows import ascending

_Held = tuple[tuple[Any, ...], int, Tuple]
"""A tuple with its place in the order and its arrival number."""


def reference_bsort(
    box: BSort, inputs: Sequence[Schema], directory: Path | None = None
) -> ReferenceOperator:
    """The operator for either order: by arrival, or by the values of a field."""
    if box.order.numbered:
        return ArrivalBuffer(box, inputs)
    return ReferenceBSort(box, inputs, directory)


class ArrivalBuffer:
    """Holds slack tuples per group, and lets the first go: order of arrival is kept."""

    def __init__(self, box: BSort, inputs: Sequence[Schema]):
        self._numbers, self._slack = TupleNumbers(box.order, inputs[0]), box.order.slack or 0
        self._held: dict[Group, deque[tuple[int, Tuple]]] = {}
        self._arrived = 0

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        held = self._held.setdefault(self._numbers.group(arrived.row), deque())
        self._arrived += 1
        held.append((self._arrived, arrived))
        return [Emission("", held.popleft()[1])] if len(held) > self._slack else []

    def settle(self, now: Now) -> list[Emission]:
        if not now.ended:
            return []
        rest = [one for held in self._held.values() for one in held]
        self._held = {}
        return [Emission("", left) for _, left in sorted(rest, key=lambda one: one[0])]

    def held(self) -> int:
        return sum(len(held) for held in self._held.values())


class ReferenceBSort:
    """Holds slack tuples per group, or without slack those the mark has not passed."""

    def __init__(self, box: BSort, inputs: Sequence[Schema], _directory: Path | None = None):
        self._progress = OrderProgress(box.order, inputs[0])
        self._slack = box.order.slack
        self._arrived = 0
        self._buffers: dict[Group, list[_Held]] = {}
        """With slack: what each group holds, as a heap."""
        self._waiting: Agenda[_Held] = Agenda(self._progress, passes)
        """Without: what waits for the mark."""
        self._held = 0

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        group = self._progress.group(arrived.row)
        place = ascending([arrived.row[self._progress.on]])
        held = (place, self._arrived, arrived)
        self._arrived += 1
        if self._slack is None:
            reason = self._progress.flaw(arrived.row)
            value = self._progress.value(arrived.row)
            if reason is None and passes(self._progress.mark(group), value):
                reason = "late"
            if reason is not None:
                return [Emission("late", arrived, reason)]
            self._waiting.add(value, group, held)
            self._held += 1
            return []
        self._held += 1
        buffer = self._buffers.setdefault(group, [])
        heapq.heappush(buffer, held)
        return self._release([heapq.heappop(buffer)]) if len(buffer) > self._slack else []

    def settle(self, now: Now) -> list[Emission]:
        self._progress.settle(now.promises[0], now.ended)
        if now.ended and self._buffers:
            held = [held for buffer in self._buffers.values() for held in buffer]
            self._buffers = {}
            return self._release(held)
        return self._release(self._waiting.due())

    def held(self) -> int:
        return self._held

    def _release(self, leaving: list[_Held]) -> list[Emission]:
        """Let tuples leave in order; those of one value in order of arrival."""
        self._held -= len(leaving)
        return [Emission("", left) for _, _, left in sorted(leaving, key=lambda held: held[:2])]
