"""Tickets: what an operator has earned by the tuples it took out of the eddy (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field

MEMORY = 0.7
"""What a train leaves of what was known before: after five trains a sixth of it."""
WHOLE_TRAIN = 16_384
"""A train of fewer tuples counts as part of one, so that trickles do not wipe out the memory."""


def kept(tuples: int) -> float:
    """The part of the past that is kept after a train of so many tuples."""
    return float(MEMORY ** min(1.0, tuples / WHOLE_TRAIN))


@dataclass
class OperatorRecord:
    """What an operator did: in total, or lately if older trains fade."""

    routed: float = 0.0
    returned: float = 0.0
    seconds: float = 0.0
    first: float = 0.0
    """Chunks it was the first operator of."""
    chunks: float = 0.0
    """Chunks of the trains it took part in."""

    def add(self, other: OperatorRecord, keep: float = 1.0) -> None:
        """Count `other`, after fading the past."""
        self.routed = keep * self.routed + other.routed
        self.returned = keep * self.returned + other.returned
        self.seconds = keep * self.seconds + other.seconds
        self.first = keep * self.first + other.first
        self.chunks = keep * self.chunks + other.chunks

    @property
    def pass_rate(self) -> float | None:
        return self.returned / self.routed if self.routed else None

    @property
    def seconds_per_tuple(self) -> float | None:
        return self.seconds / self.routed if self.routed else None


@dataclass
class Account:
    """The tickets of an operator and what they were earned with.

    For every tuple it is sent it gets as many tickets as it applies predicates, for every tuple
    it returns it gives as many back; it keeps one at least. Tickets fade with every train.
    """

    predicates: int
    tickets: float = 1.0
    exposure: float = 1.0
    """Tuples it was sent, fading as its tickets do."""
    total: OperatorRecord = field(default_factory=OperatorRecord)
    recent: OperatorRecord = field(default_factory=OperatorRecord)

    def earn(self, tally: OperatorRecord, keep: float) -> None:
        """Settle for a train."""
        earned = self.predicates * (tally.routed - tally.returned)
        self.tickets = max(keep * self.tickets + earned, 1.0)
        self.exposure = max(keep * self.exposure + tally.routed, 1.0)
        self.total.add(tally)
        self.recent.add(tally, keep)

    def apply(self, predicates: int) -> None:
        """Queries have come or gone: what it did would have earned it tickets in proportion."""
        self.tickets = max(self.tickets * predicates / max(self.predicates, 1), 1.0)
        self.predicates = predicates

    def weight(self, speed: float = 1.0) -> float:
        """What counts in the lottery: tickets × (speed × tickets per tuple sent)⁴.

        Shares of tickets alone put the best operator behind another too often (1.24 filters per
        tuple in the paper's Table 3), and tickets squared hold on to an operator because it is
        first: one that comes later sees few tuples and cannot earn many, however selective.
        Tickets per tuple do not depend on the place; their power decides (1.17), and the tickets
        keep those back that have hardly been tried. A slow operator earns them at less speed.
        """
        return self.tickets * max(speed * self.tickets / self.exposure, 1e-9) ** 4
