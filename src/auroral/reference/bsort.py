"""BSort, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auroral.boxes.bsort import BSort
from auroral.network.types import Schema
from auroral.reference.marks import Group, passes
from auroral.reference.operator import Emission, Now, Tuple
from auroral.reference.order import OrderProgress
from auroral.reference.windows import ascending


class ReferenceBSort:
    """Holds slack tuples per group, or without slack those the mark has not passed."""

    def __init__(self, box: BSort, inputs: Sequence[Schema], _directory: Path | None = None):
        self._progress = OrderProgress(box.order, inputs[0])
        self._slack = box.order.slack
        self._held: list[tuple[Group, Tuple]] = []

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        group = self._progress.group(arrived.row)
        if self._slack is None:
            reason = self._progress.flaw(arrived.row) or self._lateness(arrived, group)
            if reason:
                return [Emission("late", arrived, reason)]
            self._held.append((group, arrived))
            return []
        self._held.append((group, arrived))
        mine = [held for held in self._held if held[0] == group]
        return self._release([min(mine, key=self._place)]) if len(mine) > self._slack else []

    def settle(self, now: Now) -> list[Emission]:
        self._progress.settle(now.promises[0], now.ended)
        if now.ended:
            return self._release(self._held)
        return self._release([held for held in self._held if self._goes(*held)])

    def held(self) -> int:
        return len(self._held)

    def _goes(self, group: Group, held: Tuple) -> bool:
        value = self._progress.value(held.row)
        return self._slack is None and passes(self._progress.mark(group), value)

    def _release(self, leaving: list[tuple[Group, Tuple]]) -> list[Emission]:
        """Let tuples leave in order; those of one value in order of arrival."""
        ordered = sorted(leaving, key=self._place)
        self._held = [held for held in self._held if all(held is not left for left in ordered)]
        return [Emission("", left) for _, left in ordered]

    def _lateness(self, arrived: Tuple, group: Group) -> str | None:
        value = self._progress.value(arrived.row)
        return "late" if passes(self._progress.mark(group), value) else None

    def _place(self, held: tuple[Group, Tuple]) -> Any:
        return ascending([held[1].row[self._progress.on]])
