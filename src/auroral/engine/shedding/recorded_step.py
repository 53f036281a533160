"""Steps as the manifest knows them before they are committed, with what they drop."""

from __future__ import annotations

from dataclasses import dataclass

from auroral.engine.runtime.train import Train
from auroral.engine.shedding.control import SheddingControl
from auroral.shedding.drops import Drop, Drops, by_arc, drops_text, parse_drops
from auroral.storage import Store
from auroral.storage.manifest import OpenStep


@dataclass(frozen=True)
class RecordedStep:
    """A step that the manifest knows and that is not committed."""

    number: int
    last: int
    drops: Drops
    """What it drops, also if it runs again after a crash."""

    @classmethod
    def of(cls, step: OpenStep) -> RecordedStep:
        return cls(step.id, step.last, by_arc(parse_drops(step.drops)))


def record_step(store: Store, train: Train, shedding: SheddingControl | None) -> RecordedStep:
    """Let the manifest know of a step before it runs, with the drop boxes that there are now."""
    drops: list[Drop] = []
    if shedding is not None and train.first < train.last:
        drops = shedding.drops_for(train.superbox)
    text = drops_text(drops) if drops else None
    number = store.record_step(train.superbox.name, train.first, train.last, text)
    return RecordedStep(number, train.last, by_arc(drops))
