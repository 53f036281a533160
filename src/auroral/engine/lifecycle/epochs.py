"""Epochs: which network and which eddies there are, now and from later moments on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auroral.eddy.registered import NEVER
from auroral.network.network import Network
from auroral.optimizer import Move
from auroral.scheduling.fusion import RULE, Fusion
from auroral.storage import Change

SETTLED = "settled"
"""Under which the manifest keeps the moment before which all was done when boxes changed last."""
FLOWS = "flows"
"""Under which it keeps the arcs of each eddy."""
MOVES = "moves"
"""Under which it keeps what the optimiser has moved."""
COMING = "coming"
"""Under which it keeps the epochs that are planned."""
RUNNING = "running"
"""Under which it keeps the network of the epoch there is."""

Flows = list[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class DeclaredNetwork:
    """A network as users declare it; queries that were registered since are not in it."""

    network: Network
    bound: frozenset[str] = frozenset()
    """Arcs that are delivered, although the network does not say so: they were given a sink."""
    demanded: frozenset[str] = frozenset()
    """Views that keep nothing and run, because queries are attached to them."""
    fusion_rule: int = RULE
    """How outputs' graphs decide which boxes run as one."""

    @property
    def fusion(self) -> Fusion:
        """Which boxes run as one."""
        return Fusion.of(self.network, self.fusion_rule)


@dataclass(frozen=True, eq=False)
class Epoch:
    """What there is from a moment on."""

    start: int
    declared: DeclaredNetwork
    flows: Flows
    """The arcs of each eddy."""
    drained: tuple[str, ...] = ()
    """Boxes whose windows are closed at the moment before it."""
    document: Mapping[str, Any] | None = None
    """How the network is remembered, if it is another than the one before."""
    moves: tuple[Move, ...] = ()
    """What the optimiser has moved. Any other change starts from the declared order again."""


class EpochSchedule:
    """The epoch that there is, and those that are planned.

    Superboxes stop at the start of the next epoch. When all before it is processed, the epoch is
    entered: boxes that are new begin there, boxes that are gone are forgotten.

    Nothing is written here: what has to be remembered is returned. Whoever changes the schedule
    holds the lock of the queries; whoever only looks needs none.
    """

    def __init__(
        self,
        meta: Callable[[str], str | None],
        declared: DeclaredNetwork,
        restored: Callable[[Mapping[str, Any]], DeclaredNetwork] | None = None,
    ):
        """Take up what an earlier run has left; `meta` reads entries of the manifest.

        `restored` makes the networks of planned epochs from what is remembered of them.
        """
        flows = _read(json.loads(meta(FLOWS) or "[]"))
        moves = _moves(json.loads(meta(MOVES) or "[]"))
        self.current = Epoch(int(meta(SETTLED) or 0), declared, flows, moves=moves)
        self.planned: tuple[Epoch, ...] = ()
        """In the order of their starts."""
        for start, flows, drained, document, *more in json.loads(meta(COMING) or "[]"):
            if document is not None:
                assert restored is not None
                declared = restored(document)
            moves = _moves(more[0] if more else [])
            epoch = Epoch(start, declared, _read(flows), tuple(drained), document, moves)
            self.planned = (*self.planned, epoch)
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

    def plan(self, moment: int, flows: Flows) -> Change:
        """Let another epoch start at a moment, with other eddies, or with other queries' boxes."""
        before = tuple(epoch for epoch in self.planned if epoch.start < moment)
        replaced = next((e for e in reversed(self.planned) if e.start == moment), None)
        if replaced is None:
            epoch = Epoch(moment, self.latest.declared, flows)
        else:
            epoch = replace(replaced, flows=flows, moves=())
        self.planned = (*before, epoch)
        return self._remembered()

    def plan_network(
        self,
        moment: int,
        declared: DeclaredNetwork,
        document: Mapping[str, Any],
        drained: Sequence[str] = (),
    ) -> Change:
        """Let another network be there from a moment on."""
        epoch = Epoch(moment, declared, self.latest.flows, tuple(drained), document)
        self.planned = (*self.planned, epoch)
        return self._remembered()

    def plan_order(self, moment: int, moves: Sequence[Move]) -> Change:
        """Let boxes have changed places from a moment on; no other epoch is planned."""
        assert not self.planned
        flows, declared = self.current.flows, self.current.declared
        self.planned = (Epoch(moment, declared, flows, moves=tuple(moves)),)
        return self._remembered()

    def enter(self) -> Change:
        """Let the next epoch be the one there is; all before its start is done."""
        self.generation += 1  # first: who sees that none is planned sees that it was entered
        self.current, *planned = self.planned
        self.planned = tuple(planned)
        meta = {SETTLED: str(self.current.start), FLOWS: json.dumps(self.current.flows)}
        meta[MOVES] = json.dumps([move.document() for move in self.current.moves])
        if self.current.document is not None:
            meta[RUNNING] = json.dumps(self.current.document)
        return Change(meta=meta) | self._remembered()

    def _remembered(self) -> Change:
        planned = [
            (e.start, e.flows, e.drained, e.document, [move.document() for move in e.moves])
            for e in self.planned
        ]
        return Change(meta={COMING: json.dumps(planned)})


def _moves(documents: Sequence[Mapping[str, Any]]) -> tuple[Move, ...]:
    return tuple(map(Move.parse, documents))


def _read(flows: Sequence[Sequence[str]]) -> Flows:
    return [tuple(arcs) for arcs in flows]
