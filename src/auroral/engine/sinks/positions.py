"""How far sinks have come: in the file or the like they write to now, and in those before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auroral.engine.lifecycle.pending import PendingDeliveries
from auroral.errors import StateError, masked
from auroral.io.sinks.sink import Sink
from auroral.storage import Store


@dataclass(frozen=True)
class Start:
    """Where a sink begins."""

    position: Any | None
    """None: with nothing."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Up to where its output was written elsewhere, by target."""


class SinkPositions:
    """What the manifest knows of sinks."""

    def __init__(self, store: Store, pending: PendingDeliveries):
        self._store = store
        self._pending = pending
        self._others: dict[str, Mapping[str, Any]] = {
            output: saved["others"]
            for output, saved in store.manifest.sinks().items()
            if isinstance(saved, dict) and "others" in saved
        }

    def outputs(self) -> set[str]:
        """Those that have had a sink, and may have it again."""
        return {
            output
            for output, saved in self._store.manifest.sinks().items()
            if isinstance(saved, dict) and not saved.get("closed") and not saved.get("ends")
        }

    def start(self, output: str, target: str, *, instead: bool) -> Start:
        """Where a sink is to begin; `instead` of one that failed it may be another."""
        saved = self._store.manifest.sink(output)
        others = self._others.get(output, {})
        if saved is None or (saved["to"] != target and saved.get("closed")):
            return Start(None)  # there was none, or it was another query's
        if saved["to"] == target:
            return Start(saved["at"], others)
        if not saved.get("empty"):
            if not instead and target not in others:
                raise StateError(
                    "SINK_CHANGED",
                    f"this state has delivered {output} to {saved['to']}, not to {target}",
                    hint="use the same sink, or another state directory",
                )
            others = {**others, saved["to"]: saved["at"]}
        rest = {other: at for other, at in others.items() if other != target}
        return Start(others.get(target), rest)

    def begun(self, output: str, target: str, start: Start) -> dict[str, Any]:
        """What the manifest is to say of a sink that has been opened."""
        self._others[output] = start.others
        empty = {"empty": True} if start.position is None else {}
        return {**self.record(output, target, start.position), **empty}

    def record(self, output: str, target: str, position: Any | None) -> dict[str, Any]:
        """What it is to say of a sink that has come so far."""
        others = self._others.get(output)
        return {
            "to": target,
            "at": position,
            **({"others": others} if others else {}),
            **self._pending.saved(output),
        }

    def now(self, output: str) -> Any | None:
        """Up to where what is written counts."""
        saved = self._store.manifest.sink(output)
        return None if saved is None else saved["at"]


def target_of(sink: Sink) -> str:
    """What a position in a sink is a position of."""
    path = getattr(sink, "path", None)
    return type(sink).__name__ if path is None else masked(os.path.abspath(path))
