"""Drop boxes: which tuples of an arc a superbox does not get [1 §4.5] (pure data)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

DropReason = Literal["random", "semantic", "admission"]
"""By which kind of shedding a tuple was dropped."""


@dataclass(frozen=True)
class DropInterval:
    """Values of a field that are dropped: `low <= value < high`; None is no bound.

    NULL and NaN are kept. Timestamps are given in µs since 1970, dates in days.
    """

    field: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Drop:
    """A drop box in front of a superbox. Of several on one arc, each may drop a tuple.

    A tuple is dropped if its value is in the `interval`, when there is one, and if its moment is
    chosen. `rate` is the share of moments that are chosen: moment m is, if a hash of m and `seed`
    is small enough. So a drop is a function of tuples alone, and the same after a restart.

    >>> drop = Drop("far", "reports", 0.25, 7, ("alerts",))
    >>> Drop.parse(drop.document()) == drop
    True
    """

    superbox: str
    arc: str
    """Of which the superbox gets only the rest."""
    rate: float
    seed: int
    outputs: tuple[str, ...]
    """That lose something by it."""
    interval: DropInterval | None = None
    reason: DropReason = "random"
    """Under which its tuples are counted."""

    def document(self) -> dict[str, Any]:
        """The drop as plain data."""
        found = {**vars(self), "outputs": list(self.outputs)}
        found["interval"] = None if self.interval is None else vars(self.interval)
        return found

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Drop:
        """The drop that `document` gave."""
        interval = document["interval"]
        found = None if interval is None else DropInterval(**interval)
        return cls(**{**document, "outputs": tuple(document["outputs"]), "interval": found})


Drops = Mapping[str, tuple[Drop, ...]]
"""The drop boxes in front of a superbox, by arc."""
Dropped = Mapping[str, Mapping[DropReason, int]]
"""How many tuples were dropped, by arc and reason."""


class DropTally:
    """Adds up what drop boxes dropped, by arc and reason.

    >>> tally = DropTally()
    >>> tally.add("reports", {"random": 2}); tally.add("reports", {"random": 3})
    >>> tally.total("reports"), tally.dropped
    (5, {'reports': {'random': 5}})
    """

    def __init__(self) -> None:
        self.dropped: dict[str, dict[DropReason, int]] = {}

    def add(self, arc: str, counts: Mapping[DropReason, int]) -> None:
        """Some tuples of an arc were dropped."""
        for reason, count in counts.items():
            held = self.dropped.setdefault(arc, {})
            held[reason] = held.get(reason, 0) + count

    def add_all(self, dropped: Dropped) -> None:
        """Some tuples of arcs were dropped."""
        for arc, counts in dropped.items():
            self.add(arc, counts)

    def total(self, arc: str) -> int:
        """How many tuples of an arc were dropped."""
        return sum(self.dropped.get(arc, {}).values())


def drops_text(drops: Iterable[Drop]) -> str:
    """Drop boxes as JSON; the same text for the same drop boxes."""
    return json.dumps([drop.document() for drop in drops], sort_keys=True)


def parse_drops(text: str | None) -> tuple[Drop, ...]:
    """The drop boxes that `drops_text` gave; None: there are none."""
    return tuple(map(Drop.parse, json.loads(text))) if text else ()


def by_arc(drops: Iterable[Drop]) -> dict[str, tuple[Drop, ...]]:
    """Drop boxes of one superbox, by arc."""
    found: dict[str, tuple[Drop, ...]] = {}
    for drop in drops:
        found[drop.arc] = (*found.get(drop.arc, ()), drop)
    return found
