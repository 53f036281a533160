"""What each eddy has to do, from which moments on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa

from auroral.eddy.query_index import QueryIndex
from auroral.eddy.registered import RegisteredQuery, log_of
from auroral.eddy.routes.routing import RoutedOperator
from auroral.eddy.version import Version
from auroral.engine.lifecycle.epochs import EpochSchedule
from auroral.engine.locks import ReentrantLock
from auroral.ids import EddyId


class EddyVersions:
    """The versions of eddies: which queries each has, compiled, from a moment on.

    If queries come that need other eddies, as the first query over an arc does, or a join of what
    nothing joined, these come with the next epoch.
    """

    def __init__(self, epochs: EpochSchedule, query_index: QueryIndex, lock: ReentrantLock):
        self._epochs = epochs
        self._query_index = query_index
        self._lock = lock
        self._held: dict[str, list[Version]] = {}
        """By eddy, of planned epochs too."""
        self.follow()

    def follow(self) -> None:
        """Have versions of the eddies of all epochs, and of no others."""
        flows = [epoch.flows for epoch in self._epochs.all]
        names = dict.fromkeys(str(EddyId(arcs)) for held in flows for arcs in held)
        self._held = {name: self._held.get(name, []) for name in names}

    def enter(self, moment: int) -> None:
        """The epoch that starts at a moment was entered."""
        self.follow()
        self._sweep()
        self.forget_before(moment)

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

    def serves(self, entries: Iterable[RegisteredQuery]) -> bool:
        """Whether the eddies of the latest epoch can serve queries."""
        flows = self._epochs.latest.flows
        return all(any(set(arcs).issuperset(e.arcs) for arcs in flows) for e in entries)

    def add_version(self, changed: Collection[str], moment: int, *, always: bool = False) -> None:
        """Let eddies have a new version from a moment on: those of changed arcs, and new ones."""
        epochs = self._epochs.all
        place = max(n for n, epoch in enumerate(epochs) if n == 0 or epoch.start <= moment)
        flows = epochs[place].flows
        before = epochs[place - 1].flows if place and epochs[place].start == moment else flows
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
            # The index has queries already that an eddy which is to go never will have.
            arcs = _arcs_of(eddy)
            if held and any(renewed) and arcs in self._epochs.latest.flows:
                held[-1] = self._query_index.version(arcs, held[-1].start)

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


def _arcs_of(eddy: str) -> tuple[str, ...]:
    found = EddyId.parse(eddy)
    assert found is not None
    return found.arcs
