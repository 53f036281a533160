"""Dedup, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auroral.boxes.dedup import Dedup
from auroral.network.types import Schema
from auroral.reference.marks import Group, group_key, passes
from auroral.reference.operator import Emission, Now, Tuple
from auroral.reference.order import OrderProgress


class ReferenceDedup:
    """Remembers the keys of what has passed until progress passes it."""

    def __init__(self, box: Dedup, inputs: Sequence[Schema], _directory: Path | None = None):
        self._progress = OrderProgress(box.order, inputs[0])
        self._keys = [inputs[0].field(name).name for name in box.keys]
        self._passed: dict[Group, tuple[Any, Group]] = {}
        """Of each remembered key, the value of the tuple that passed and its group."""

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        self._forget()
        reason = self._progress.arrive(arrived.row)
        if reason:
            return [Emission("late", arrived, reason)]
        group, value = self._progress.group(arrived.row), self._progress.value(arrived.row)
        key = group_key(tuple(arrived.row[name] for name in self._keys))
        if key in self._passed:
            return [Emission(None, arrived, "duplicate")]
        self._passed[key] = (value, group)
        return [Emission("", arrived)]

    def settle(self, now: Now) -> list[Emission]:
        self._progress.settle(now.promises[0], now.ended)
        self._forget()
        return []

    def held(self) -> int:
        return len(self._passed)

    def _forget(self) -> None:
        self._passed = {
            key: (value, group)
            for key, (value, group) in self._passed.items()
            if not passes(self._progress.mark(group), value)
        }
