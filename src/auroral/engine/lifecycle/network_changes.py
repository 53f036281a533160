"""Changing the network of a running engine: from the next moment on, while data flow."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auroral.engine.context import EngineContext
from auroral.engine.ingest.ingest import Ingest
from auroral.engine.lifecycle.epochs import DeclaredNetwork, Epoch
from auroral.engine.lifecycle.fates import NetworkChange, compare, report
from auroral.engine.lifecycle.stored_qos import file_qos
from auroral.engine.locks import ReentrantLock
from auroral.engine.runtime.loop import Loop
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.runtime.yielding import PROMPT_SWITCHING
from auroral.engine.topology.identity import identity, remembered
from auroral.engine.topology.plan import check_expanded, make_plan
from auroral.errors import UsageError
from auroral.ids import NEXT_EPOCH, QueryBoxId
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.point_names import attachable_arcs
from auroral.storage import Change
from auroral.storage.identity import canonical


@dataclass(frozen=True)
class PlannedChange:
    """A change that was found to be possible; nothing of it is true yet."""

    declared: DeclaredNetwork
    before: CheckedNetwork
    after: CheckedNetwork
    change: NetworkChange

    @property
    def output_fields(self) -> dict[str, list[str]]:
        """The fields of outputs that read boxes and streams."""
        arcs = self.after.arcs
        outputs = self.declared.network.outputs.items()
        return {n: list(arcs[o.from_].schema.names) for n, o in outputs if o.from_ in arcs}

    def report(self, before: DeclaredNetwork) -> dict[str, list[str]]:
        """What it does, by what happens to each part."""
        return report(before.network, self.declared.network, self.change)


class NetworkChanges:
    """Puts another network in the place of the one that runs.

    A change is refused before anything has happened, or it is made whole. It holds from the next
    moment on: what is untouched goes on, what is new begins there, and what has to be rebuilt is
    when everything before is processed.
    """

    def __init__(self, context: EngineContext, ingest: Ingest, loop: Loop, lock: ReentrantLock):
        self._context = context
        self._queries = context.queries
        self._ingest = ingest
        self._loop = loop
        self._lock = lock

    def plan(self, declared: DeclaredNetwork, removed: Collection[str] = ()) -> PlannedChange:
        """Find out what a change does, or why it cannot be; `removed` are queries that go, too."""
        with self._lock:
            latest, resolver = self._queries.epochs.latest, self._context.settings.executor.resolver
            standalone = self._queries.standalone.latest
            texts = {
                name: query.query
                for name, query in standalone.queries.items()
                if name not in removed
            }
            candidate = Epoch(0, declared, latest.flows)
            _require_same_engine(latest.declared, declared)
            before = check_expanded(resolver, latest, {})  # in the declared order
            after = check_expanded(resolver, Epoch(0, declared, []), {})
            change = compare(before, after, (latest.declared.network, declared.network))
            self._require_unread(change, removed)
            self._require_unattached(change)
            self._require_points(latest.declared.network, declared.network)
            check_expanded(resolver, candidate, texts)
            make_plan(self._context, candidate, standalone.without(removed)).discard()
            return PlannedChange(declared, before, after, change)

    def _require_unread(
        self,
        change: NetworkChange,
        removed: Collection[str],
    ) -> None:
        """Refuse to take away, or to give other fields to, what queries read."""
        touched = change.retyped | change.gone_arcs
        for name, arcs in self._arcs_read().items() if touched else ():
            found = sorted(touched.intersection(arcs))
            if found and name not in removed:
                verb = "has other fields" if found[0] in change.retyped else "is removed"
                raise UsageError(
                    "QUERY_READS",
                    f"the query {name} reads {found[0]}, which {verb}",
                    hint=f"remove {name} in the same call",
                )

    def _require_unattached(self, change: NetworkChange) -> None:
        """Refuse to take away, or to give other fields to, what attached queries read."""
        for arc in sorted(change.retyped | change.gone_arcs):
            names = self._context.attachments.reading_arc(arc)
            if names:
                verb = "has other fields" if arc in change.retyped else "is removed"
                raise UsageError(
                    "QUERY_READS",
                    f"the attached query {names[0]} reads {arc}, which {verb}",
                    hint=f"detach {names[0]} before",
                )

    def _require_points(self, before: Network, after: Network) -> None:
        """Refuse to remove or move a connection point or view that queries are attached to."""
        arcs, others = attachable_arcs(before), attachable_arcs(after)
        for point in [p for p, arc in arcs.items() if others.get(p) != arc]:
            names = self._context.attachments.on(point)
            if names:
                verb = "is moved to another arc" if point in others else "is removed"
                raise UsageError(
                    "QUERY_READS",
                    f"the query {names[0]} is attached to {point}, which {verb}",
                    hint=f"detach {names[0]} before",
                )

    def queries_touched(self, planned: PlannedChange, going: Collection[str]) -> list[str]:
        """Those of some queries that have to go before the change, as what they read goes."""
        touched = planned.change.retyped | planned.change.gone_arcs
        read = self._arcs_read() if touched else {}
        return [name for name in going if not touched.isdisjoint(read.get(name, ()))]

    def _arcs_read(self) -> dict[str, set[str]]:
        """The arcs that each query reads."""
        found = self._queries.catalogue.arcs_read()
        boxes = self._loop.execution.checked.network.boxes
        for name, box in boxes.items():
            query = QueryBoxId.query_of(name)
            if query is not None:
                found.setdefault(query, set()).update(box.sources())
        return found

    def make(self, planned: PlannedChange, file: Network | None = None) -> int:
        """Make a change that is possible; returns the moment from which on it holds.

        `file` is the network file if that says so: a restart with it changes nothing more.
        """
        declared, change = planned.declared, planned.change
        with_clock = WatermarkTracker(planned.after).uses_clock
        meta = {}
        if file is not None:
            found = canonical(identity(file, declared.bound))
            meta = {"network": json.dumps(found), **file_qos(file)}
        with self._lock, PROMPT_SWITCHING:
            self._loop.require_going()
            with (
                self._loop.failing(),
                self._queries.lock,
                self._ingest.at_change(
                    planned.after, with_clock=with_clock, ends=bool(change.drained)
                ) as moment,
            ):
                heads = self._retained(planned.after.network.streams, moment)
                self._queries.change_network(
                    moment,
                    declared,
                    remembered(declared),
                    change.drained,
                    Change(meta=meta, heads=heads),
                )
        self._loop.uses_clock(with_clock)
        self._loop.wake()
        return moment

    def _retained(self, streams: Iterable[str], moment: int) -> Mapping[tuple[str, str], int]:
        """What comes on new streams is kept until there are boxes that read it."""
        store = self._context.store
        places = [(stream, NEXT_EPOCH) for stream in streams]
        return {place: moment for place in places if not store.has_cursor(*place)}


def _require_same_engine(before: DeclaredNetwork, after: DeclaredNetwork) -> None:
    """Refuse to change how all of a network is run while it runs."""
    for option in ("order", "flush"):
        one, other = (getattr(d.network.engine, option) for d in (before, after))
        if one != other:
            raise UsageError(
                "CANNOT_CHANGE",
                f"engine: {{{option}: …}} cannot be changed while there is state: {one} is {other}",
                hint="use another state directory",
            )
    for name, stream in before.network.streams.items():
        other_stream: Any = after.network.streams.get(name)
        if other_stream is not None and bool(stream.routed) != bool(other_stream.routed):
            raise UsageError(
                "CANNOT_CHANGE",
                f"below: route of the stream {name} cannot be switched while there is state",
                where=f"stream {name}",
                hint="declare the stream under another name",
            )
