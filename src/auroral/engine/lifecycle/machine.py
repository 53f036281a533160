"""The life of networks, queries and deliveries: events in, what to remember out.

Nothing here reads or writes files, and nothing takes a lock. Whoever reports an event holds the
lock of the queries and commits the change that is returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from auroral.engine.lifecycle.earlier import EARLIER, EarlierOutputs
from auroral.engine.lifecycle.epochs import DeclaredNetwork, EpochSchedule, Flows
from auroral.engine.lifecycle.fates import NetworkChange
from auroral.engine.lifecycle.pending import (
    PendingDeliveries,
    SinkDetachment,
    StoredPositions,
)
from auroral.engine.lifecycle.standalone import FAILED, StandaloneQueries, StandaloneQuery
from auroral.ids import PendingReader, QueryBoxId, owner_of
from auroral.optimizer import Move
from auroral.storage import Change, Forgotten


class StoredNames(StoredPositions, Protocol):
    """What a store has names for."""

    @property
    def counters(self) -> Mapping[tuple[str, str], int]: ...

    @property
    def costs(self) -> Iterable[str]: ...

    def progress_names(self) -> Iterable[str]: ...


class Lifecycle:
    """Which network, queries and undelivered results there are, and from which moments on."""

    def __init__(
        self,
        stored: StoredNames,
        meta: Callable[[str], str | None],
        declared: DeclaredNetwork,
        restored: Callable[[Mapping[str, Any]], DeclaredNetwork] | None = None,
    ):
        """Take up what an earlier run has left, in the network that there was."""
        self._stored = stored
        self.epochs = EpochSchedule(meta, declared, restored)
        self.standalone = StandaloneQueries(json.loads(meta(FAILED) or "{}"))
        self.pending = PendingDeliveries(stored)
        self.earlier = EarlierOutputs(stored, meta(EARLIER))

    # ── events ──

    def queries_changed(
        self,
        moment: int,
        *,
        flows: Flows | None,
        added: Sequence[StandaloneQuery],
        removed: Sequence[str],
        leaving: Sequence[SinkDetachment],
    ) -> Change:
        """Queries come and go at a moment; `flows` are the eddies there must be, if others.

        `leaving` are outputs whose queries go: their sinks get what is left.
        """
        change = self.pending.leave(leaving, moment)
        if flows is not None:
            change |= self.epochs.plan(moment, flows)
        for name in removed:  # before others may have their names
            self.standalone.remove(name, moment)
        for query in added:
            self.standalone.add(query)
        return change

    def network_changed(
        self,
        moment: int,
        declared: DeclaredNetwork,
        document: Mapping[str, Any],
        drained: Sequence[str],
    ) -> Change:
        """Another network is declared, to be there from a moment on."""
        return self.epochs.plan_network(moment, declared, document, drained)

    def order_changed(self, moment: int, moves: Sequence[Move]) -> Change:
        """The optimiser lets boxes change places at a moment."""
        return self.epochs.plan_order(moment, moves)

    def epoch_reached(
        self,
        progress: Mapping[str, Any],
        changed: NetworkChange | None = None,
        arcs: Mapping[str, str] = MappingProxyType({}),
        sunk: Sequence[str] = (),
        stopped: Collection[str] = (),
    ) -> Change:
        """Everything before the next epoch is done; `progress` is what was promised up to it.

        `changed` is what becomes of the network, if it is another one: `arcs` are what its outputs
        read until now, and those that are `sunk` have a sink, which has everything. Boxes that are
        `stopped` run no more, as nobody wants their results: if they run again they begin anew.
        """
        change = self.epochs.enter()
        start = self.epochs.current.start
        gone = {query.name for query in self.standalone.ending(start)}
        change |= self.standalone.run(start)

        def is_removed(name: str) -> bool:
            return QueryBoxId.query_of(name) in gone

        if gone:
            change |= self._removed(is_removed, start)
        if changed is not None:
            change |= self.earlier.leave(changed, arcs, start, sunk)
            stored = self._stored
            logs, cursors = stored.names()
            left = [place for place in cursors if not self.earlier.keeps(*place)]
            change.forgotten |= changed.forgotten(
                logs, left, stored.progress_names(), stored.counters, stored.costs
            )
        if stopped:
            change.forgotten |= self._stopped(stopped)
        change.progress = {
            name: state
            for name, state in progress.items()
            if not is_removed(_box_of(name))
            and _box_of(name) not in stopped
            and not (changed is not None and changed.is_progress_gone(name))
        }
        return change

    def queries_failed(self, culprits: Mapping[str, str]) -> Change:
        """The boxes of queries failed, each by itself, and why."""
        return self.standalone.fail(culprits)

    # ── what follows ──

    def _stopped(self, boxes: Collection[str]) -> Forgotten:
        """Forget the state of boxes that run no more."""
        logs, _ = self._stored.names()
        owners = {log: owner_of(log) for log in logs}
        return Forgotten(
            [log for log, owner in owners.items() if owner.is_state and owner.name in boxes],
            progress=[n for n in self._stored.progress_names() if _box_of(n) in boxes],
        )

    def _removed(self, is_removed: Callable[[str], bool], moment: int) -> Change:
        """Forget what boxes have written and remembered; what sinks have still to get is kept."""
        moved = self.pending.keep(is_removed, moment)
        logs, cursors = self._stored.names()
        forgotten = Forgotten(
            [log for log in logs if is_removed(log) and log not in {m.log for m in moved}],
            [(log, r) for log, r in cursors if is_removed(log) and not PendingReader.parse(r)],
            [n for n in self._stored.progress_names() if is_removed(_box_of(n))],
            [key for key in self._stored.counters if is_removed(key[0])],
            costs=[box for box in self._stored.costs if is_removed(box)],
        )
        return Change(moved=moved, forgotten=forgotten)


def _box_of(progress: str) -> str:
    """The box that progress is remembered of, as in `pending of crowd`; else nothing."""
    return progress.partition(" of ")[2]
