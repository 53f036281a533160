"""Epochs: which network and which eddies there are, now and from later moments on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from auroral.eddy.registered import NEVER
from auroral.network.network import Network
from auroral.storage import Change

SETTLED = "settled"
"""Under which the manifest keeps the moment before which all was done when boxes changed last."""
FLOWS = "flows"
"""Under which it keeps the arcs of each eddy."""
COMING = "coming"
"""Under which it keeps which eddies there will be, and from which moments on."""

Flows = list[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Epoch:
    """What there is from a moment on."""

    start: int
    network: Network
    """As it is declared; queries that were registered since are not in it."""
    flows: Flows
    """The arcs of each eddy."""


class EpochSchedule:
    """The epoch that there is, and those that are planned.

    Superboxes stop at the start of the next epoch. When all before it is processed, the epoch is
    entered: boxes that are new begin there, boxes that are gone are forgotten.

    Nothing is written here: what has to be remembered is returned. Whoever changes the schedule
    holds the lock of the queries; whoever only looks needs none.
    """

    def __init__(self, meta: Callable[[str], str | None], network: Network):
        """Take up what an earlier run has left; `meta` reads entries of the manifest."""
        flows = _read(json.loads(meta(FLOWS) or "[]"))
        self.current = Epoch(int(meta(SETTLED) or 0), network, flows)
        self.planned: tuple[Epoch, ...] = tuple(
            Epoch(start, network, _read(flows)) for start, flows in json.loads(meta(COMING) or "[]")
        )
        """In the order of their starts."""
        self.generation = 0
        """How many were entered since the engine started."""

    @property
    def next_start(self) -> int | None:
        """When the next epoch starts, if one is planned."""
        planned = self.planned
        return planned[0].start if planned else None

    @property
    def later_start(self) -> int:
        """When the epoch after the next one starts; never, if none is planned."""
        planned = self.planned
        return planned[1].start if len(planned) > 1 else NEVER

    @property
    def next(self) -> Epoch:
        """The epoch that is entered next; the one there is, if none is planned."""
        planned = self.planned
        return planned[0] if planned else self.current

    @property
    def latest(self) -> Epoch:
        """The last one that is planned."""
        planned = self.planned
        return planned[-1] if planned else self.current

    @property
    def all(self) -> tuple[Epoch, ...]:
        return (self.current, *self.planned)

    def plan(self, moment: int, flows: Flows, network: Network | None = None) -> Change:
        """Let another epoch start at a moment, with other eddies, or with another network too.

        Another network is remembered when the epoch is entered, not before.
        """
        before = tuple(epoch for epoch in self.planned if epoch.start < moment)
        self.planned = (*before, Epoch(moment, network or self.latest.network, flows))
        return Change() if network is not None else self._remembered()

    def cancel(self) -> None:
        """Let no other network come: it was found to be impossible."""
        self.planned = tuple(e for e in self.planned if e.network is self.current.network)

    def enter(self) -> Change:
        """Let the next epoch be the one there is; all before its start is done."""
        self.generation += 1  # first: who sees that none is planned sees that it was entered
        self.current, *planned = self.planned
        self.planned = tuple(planned)
        settled = {SETTLED: str(self.current.start), FLOWS: json.dumps(self.current.flows)}
        return Change(meta={**settled, **self._remembered().meta})

    def _remembered(self) -> Change:
        return Change(meta={COMING: json.dumps([(e.start, e.flows) for e in self.planned])})


def _read(flows: Sequence[Sequence[str]]) -> Flows:
    return [tuple(arcs) for arcs in flows]
