"""Gate, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auroral.boxes.gate import Gate
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Now, Tuple
from auroral.reference.progress.marks import passes
from auroral.reference.windowing.order import OrderProgress


class ReferenceGate:
    """Judges each tuple by what the stream promised when the moment before it was over."""

    def __init__(self, box: Gate, inputs: Sequence[Schema], _directory: Path | None = None):
        self._progress = [OrderProgress(order, inputs[0]) for order in box.orders]

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        if any(_is_below(progress, arrived) for progress in self._progress):
            return [Emission("late", arrived, "late")]
        return [Emission("", arrived)]

    def settle(self, now: Now) -> list[Emission]:
        for progress in self._progress:
            progress.settle(now.promises[0], now.ended)
        return []

    def held(self) -> int:
        return 0


def _is_below(progress: OrderProgress, arrived: Tuple) -> bool:
    row = arrived.row
    if progress.flaw(row) is not None:
        return False
    return passes(progress.mark(progress.group(row)), progress.value(row))
