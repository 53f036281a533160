"""Dedup, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auroral.boxes.dedup import Dedup
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Now, Tuple
from auroral.reference.progress.agenda import Agenda
from auroral.reference.progress.marks import Group, group_key, passes
from auroral.reference.windowing.order import OrderProgress


class ReferenceDedup:
    """Remembers the keys of what has passed until progress passes it."""

    def __init__(self, box: Dedup, inputs: Sequence[Schema], _directory: Path | None = None):
        self._progress = OrderProgress(box.order, inputs[0])
        self._keys = [inputs[0].field(name).name for name in box.keys]
        self._passed: set[Group] = set()
        """Keys of tuples that passed and that progress has not passed."""
        self._forgetting: Agenda[Group] = Agenda(self._progress, passes)

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        reason = self._progress.arrive(arrived.row)
        if reason:
            return [Emission("late", arrived, reason)]
        group, value = self._progress.group(arrived.row), self._progress.value(arrived.row)
        key = group_key(tuple(arrived.row[name] for name in self._keys))
        new = key not in self._passed
        if new:
            self._passed.add(key)
            self._forgetting.add(value, group, key)
        # A tuple is judged by what was remembered before it moved progress.
        self._passed.difference_update(self._forgetting.due_of(group))
        return [Emission("", arrived) if new else Emission(None, arrived, "duplicate")]

    def settle(self, now: Now) -> list[Emission]:
        self._progress.settle(now.promises[0], now.ended)
        self._passed.difference_update(self._forgetting.due())
        return []

    def held(self) -> int:
        return len(self._passed)
