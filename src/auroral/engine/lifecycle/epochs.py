"""Which eddies there are and what each has to do, now and from later moments on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from auroral.eddy.query_index import QueryIndex
from auroral.eddy.registered import NEVER, RegisteredQuery, log_of
from auroral.eddy.routes.routing import RoutedOperator
from auroral.eddy.version import Version
from auroral.engine.locks import ReentrantLock
from auroral.ids import EddyId
from auroral.storage import Change, Store

SETTLED = "settled"
"""Under which the manifest keeps the moment before which all was done when boxes changed last."""
FLOWS = "flows"
"""Under which it keeps the arcs of each eddy."""
COMING = "coming"
"""Under which it keeps which eddies there will be, and from which moments on."""

Flows = list[tuple[str, ...]]


class EddyEpochs:
    """The eddies and their versions.

    A version holds from a moment on. If queries come that need other eddies, as the first query
    over an arc does, or a join of what nothing joined, these are **coming**: trains end at their
    moment, and when all before it is processed they take the place of those there are.
    """

    def __init__(self, store: Store, query_index: QueryIndex, lock: ReentrantLock):
        self._store = store
        self._query_index = query_index
        self._lock = lock
        meta = store.manifest.meta
        self.epoch_start = int(meta(SETTLED) or 0)
        """The moment from which on there are the eddies and boxes that there are."""
        self.generation = 0
        """How often others have come."""
        self.flows: Flows = _read(json.loads(meta(FLOWS) or "[]"))
        """The arcs of each eddy there is."""
        self._coming: list[tuple[int, Flows]] = [
            (start, _read(flows)) for start, flows in json.loads(meta(COMING) or "[]")
        ]
        self._held: dict[str, list[Version]] = {}
        """By eddy, those that are to come too."""
        self._keep_known()

    # ── what eddies do ──

    def at(self, eddy: str, moment: int) -> Version:
        """What an eddy has to do at a moment; what was before is forgotten."""
        with self._lock:
            self._forget_before(moment, [self._held[eddy]])
            return self._held[eddy][0]

    def forget_before(self, moment: int) -> None:
        """Forget what eddies had to do before a moment."""
        with self._lock:
            self._forget_before(moment, list(self._held.values()))

    def _forget_before(self, moment: int, eddies: Sequence[list[Version]]) -> None:
        passed = False
        for held in eddies:
            while len(held) > 1 and held[1].start <= moment:
                held.pop(0)
                passed = True
        if passed:
            self._sweep()

    def _sweep(self) -> None:
        """Delete compiled predicates that no version has."""
        self._query_index.sweep(v for versions in self._held.values() for v in versions)

    def boundary(self, eddy: str, moment: int) -> int | None:
        """The first moment after another at which the queries of an eddy change."""
        with self._lock:
            starts = [v.start for v in self._held.get(eddy, ()) if v.start > moment]
        return min(starts, default=None)

    def add_version(self, changed: Collection[str], moment: int, *, always: bool = False) -> None:
        """Let eddies have a new version from a moment on: those of changed arcs, and new ones."""
        eras = [(-1, self.flows), *self._coming]
        place = max(n for n, (start, _) in enumerate(eras) if n == 0 or start <= moment)
        start, flows = eras[place]
        before = eras[place - 1][1] if place and start == moment else flows
        for arcs in flows:
            if always or arcs not in before or not set(arcs).isdisjoint(changed):
                held = self._held[str(EddyId(arcs))]
                fresh = self._query_index.version(arcs, moment)
                if held and held[-1].start == moment:
                    held[-1] = fresh
                else:
                    held.append(fresh)

    def learn(self, eddy: str, samples: Mapping[str, Mapping[str, pa.Array]]) -> None:
        """Take samples of values; small sets of predicates are compiled anew for them."""
        with self._lock:
            renewed = [
                self._query_index.parts(name).learn(found) for name, found in samples.items()
            ]
            held = self._held.get(eddy)
            # The book has queries already that an eddy which is to go never will have.
            arcs = _arcs_of(eddy)
            if held and any(renewed) and arcs in self._latest:
                held[-1] = self._query_index.version(arcs, held[-1].start)

    # ── which there are ──

    @property
    def next_epoch(self) -> int | None:
        """The moment from which on there are to be other eddies, or other boxes."""
        next_epoch = self._coming  # without the lock: who forms trains does not wait for who reads
        return next_epoch[0][0] if next_epoch else None

    @property
    def later_epoch(self) -> int:
        """The moment from which on there are still others; never, if there are none."""
        next_epoch = self._coming
        return next_epoch[1][0] if len(next_epoch) > 1 else NEVER

    @property
    def next_flows(self) -> Flows:
        """The arcs of each eddy that is to come next, or is there if none is to come."""
        next_epoch = self._coming
        return next_epoch[0][1] if next_epoch else self.flows

    @property
    def starts(self) -> list[int]:
        """All such moments."""
        return [start for start, _ in self._coming]

    def enter_epoch(self, more: Mapping[str, str], progress: Mapping[str, Any]) -> None:
        """Let those be there that come next: all before their moment is done."""
        with self._lock:
            (start, flows), *rest = self._coming
            meta = {SETTLED: str(start), FLOWS: json.dumps(flows), COMING: json.dumps(rest)}
            self._store.commit(Change(meta={**meta, **more}, progress=progress))
            self.generation += 1  # first: who sees that nothing is to come sees that something has
            self.epoch_start, self.flows, self._coming = start, flows, rest
            self._keep_known()
            self._sweep()

    def plan_epoch(
        self, entries: Sequence[RegisteredQuery], moment: int, *, anew: bool = False
    ) -> dict[str, str]:
        """Form eddies anew if those there will be cannot serve queries; what to remember of it.

        With `anew` in any case, as other boxes come: those that have nothing to do go with that.
        """
        flows = self._latest
        served = all(any(set(arcs).issuperset(e.arcs) for arcs in flows) for e in entries)
        if served and not anew:
            return {}
        before = [(start, known) for start, known in self._coming if start < moment]
        self._coming = [*before, (moment, self._query_index.flows())]
        self._keep_known()
        return {COMING: json.dumps(self._coming)}

    @property
    def _latest(self) -> Flows:
        """The arcs of each eddy once all have come."""
        return self._coming[-1][1] if self._coming else self.flows

    def _keep_known(self) -> None:
        """Have versions of the eddies there are and are to come, and of no others."""
        flows = [self.flows, *(flows for _, flows in self._coming)]
        names = dict.fromkeys(str(EddyId(arcs)) for held in flows for arcs in held)
        self._held = {name: self._held.get(name, []) for name in names}

    # ── looking ──

    def count(self, eddy: str) -> int:
        """How many queries an eddy has."""
        with self._lock:
            return sum(version.queries for version in self._held.get(eddy, [])[-1:])

    def splits(self, eddy: str) -> dict[str, tuple[int, int]]:
        """By arc or group how many queries are in bitmaps, how many by access predicates."""
        with self._lock:
            names = {name for version in self._held.get(eddy, ()) for name in version.filters}
            return {name: self._query_index.parts(name).split() for name in names}

    def writes(self, eddy: str, log: str) -> bool:
        """Whether an eddy writes a log, now or as soon as its queries change."""
        with self._lock:
            kinds = {key for version in self._held.get(eddy, ()) for key in version.copied}
            return any(log_of(*key) == log for key in kinds)

    def tables(self) -> set[str]:
        """The panes and SteMs that queries need, now or before what waits is through."""
        with self._lock:
            versions = [version for held in self._held.values() for version in held]
            return {table for version in versions for table in version.tables()}

    def knows(self, arc: str, operators: Sequence[RoutedOperator]) -> bool:
        """Whether values of everything that an arc's filters ask for were sampled."""
        with self._lock:
            return self._query_index.parts(arc).knows(operators)


def _read(flows: Sequence[Sequence[str]]) -> Flows:
    return [tuple(arcs) for arcs in flows]


def _arcs_of(eddy: str) -> tuple[str, ...]:
    found = EddyId.parse(eddy)
    assert found is not None
    return found.arcs
