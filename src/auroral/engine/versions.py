"""Which eddies there are and what each has to do, now and from later moments on."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from auroral.eddy.book import Book
from auroral.eddy.entry import NEVER, Entry, log_of
from auroral.eddy.routes.routing import Operator
from auroral.eddy.version import Version
from auroral.storage import Change, Store

EDDY = "eddy@"
"""Before the arcs of an eddy in its name, which no query can have."""
SETTLED = "settled"
"""Under which the manifest keeps the moment before which all was done when boxes changed last."""
FLOWS = "flows"
"""Under which it keeps the arcs of each eddy."""
COMING = "coming"
"""Under which it keeps which eddies there will be, and from which moments on."""

Flows = list[tuple[str, ...]]


def eddy_name(arcs: Sequence[str]) -> str:
    """The name of the box that serves some arcs."""
    return EDDY + "+".join(arcs)


def arcs_of(eddy: str) -> tuple[str, ...]:
    """The arcs that a box of that name serves."""
    return tuple(eddy.removeprefix(EDDY).split("+"))


class Versions:
    """The eddies and their versions.

    A version holds from a moment on. If queries come that need other eddies, as the first query
    over an arc does, or a join of what nothing joined, these are **coming**: trains end at their
    moment, and when all before it is processed they take the place of those there are.
    """

    def __init__(self, store: Store, book: Book, lock: threading.RLock):
        self._store = store
        self._book = book
        self._lock = lock
        meta = store.manifest.meta
        self.settled = int(meta(SETTLED) or 0)
        """The moment from which on there are the eddies and boxes that there are."""
        self.turn = 0
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
        self._book.sweep(v for versions in self._held.values() for v in versions)

    def boundary(self, eddy: str, moment: int) -> int | None:
        """The first moment after another at which the queries of an eddy change."""
        with self._lock:
            starts = [v.start for v in self._held.get(eddy, ()) if v.start > moment]
        return min(starts, default=None)

    def renew(self, changed: Collection[str], moment: int, *, always: bool = False) -> None:
        """Let eddies have a new version from a moment on: those of changed arcs, and new ones."""
        eras = [(-1, self.flows), *self._coming]
        place = max(n for n, (start, _) in enumerate(eras) if n == 0 or start <= moment)
        start, flows = eras[place]
        before = eras[place - 1][1] if place and start == moment else flows
        for arcs in flows:
            if always or arcs not in before or not set(arcs).isdisjoint(changed):
                held = self._held[eddy_name(arcs)]
                fresh = self._book.version(arcs, moment)
                if held and held[-1].start == moment:
                    held[-1] = fresh
                else:
                    held.append(fresh)

    def learn(self, eddy: str, samples: Mapping[str, Mapping[str, pa.Array]]) -> None:
        """Take samples of values; small sets of predicates are compiled anew for them."""
        with self._lock:
            renewed = [self._book.parts(name).learn(found) for name, found in samples.items()]
            held = self._held.get(eddy)
            # The book has queries already that an eddy which is to go never will have.
            if held and any(renewed) and arcs_of(eddy) in self._latest:
                held[-1] = self._book.version(arcs_of(eddy), held[-1].start)

    # ── which there are ──

    @property
    def coming(self) -> int | None:
        """The moment from which on there are to be other eddies, or other boxes."""
        coming = self._coming  # without the lock: who forms trains does not wait for who reads
        return coming[0][0] if coming else None

    @property
    def after_that(self) -> int:
        """The moment from which on there are still others; never, if there are none."""
        coming = self._coming
        return coming[1][0] if len(coming) > 1 else NEVER

    @property
    def next_flows(self) -> Flows:
        """The arcs of each eddy that is to come next, or is there if none is to come."""
        coming = self._coming
        return coming[0][1] if coming else self.flows

    @property
    def starts(self) -> list[int]:
        """All such moments."""
        return [start for start, _ in self._coming]

    def come(self, more: Mapping[str, str], progress: Mapping[str, Any]) -> None:
        """Let those be there that come next: all before their moment is done."""
        with self._lock:
            (start, flows), *rest = self._coming
            meta = {SETTLED: str(start), FLOWS: json.dumps(flows), COMING: json.dumps(rest)}
            self._store.commit(Change(meta={**meta, **more}, progress=progress))
            self.turn += 1  # first: who sees that nothing is to come sees that something has
            self.settled, self.flows, self._coming = start, flows, rest
            self._keep_known()
            self._sweep()

    def connect(
        self, entries: Sequence[Entry], moment: int, *, anew: bool = False
    ) -> dict[str, str]:
        """Form eddies anew if those there will be cannot serve queries; what to remember of it.

        With `anew` in any case, as other boxes come: those that have nothing to do go with that.
        """
        flows = self._latest
        served = all(any(set(arcs).issuperset(e.arcs) for arcs in flows) for e in entries)
        if served and not anew:
            return {}
        before = [(start, known) for start, known in self._coming if start < moment]
        self._coming = [*before, (moment, self._book.flows())]
        self._keep_known()
        return {COMING: json.dumps(self._coming)}

    @property
    def _latest(self) -> Flows:
        """The arcs of each eddy once all have come."""
        return self._coming[-1][1] if self._coming else self.flows

    def _keep_known(self) -> None:
        """Have versions of the eddies there are and are to come, and of no others."""
        flows = [self.flows, *(flows for _, flows in self._coming)]
        names = dict.fromkeys(eddy_name(arcs) for held in flows for arcs in held)
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
            return {name: self._book.parts(name).split() for name in names}

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

    def knows(self, arc: str, operators: Sequence[Operator]) -> bool:
        """Whether values of everything that an arc's filters ask for were sampled."""
        with self._lock:
            return self._book.parts(arc).knows(operators)


def _read(flows: Sequence[Sequence[str]]) -> Flows:
    return [tuple(arcs) for arcs in flows]
