"""How far everybody has come who reads results of queries, and so what has to be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

from auroral.eddy.families import SMALL, family_of, texts
from auroral.eddy.registered import RegisteredQuery
from auroral.engine.lifecycle.pending import PendingDeliveries, PendingDelivery
from auroral.engine.queries.catalogue import Catalogue
from auroral.engine.results.bound import BoundOutputs
from auroral.ids import ALL_QUERIES, MemberId, OutputReader
from auroral.storage import Store

_FEW = 64

T = TypeVar("T")
Member = tuple[RegisteredQuery, int, str]
"""A member of a family: its number in an entry, and who it is among the consumers."""


def consumer(output: str) -> str:
    """The name of an output among the consumers of a log."""
    return str(OutputReader(output))


class SlowestReader(Generic[T]):
    """The least of many values that only grow: looks at those alone that may be it.

    `value` is None for what is gone.

    >>> heads = {"a": 3, "b": 5, "c": 8}
    >>> least = SlowestReader(heads, heads.get)
    >>> heads["a"] = 9
    >>> least()
    5
    """

    def __init__(self, items: Iterable[T], value: Callable[[T], int | None]):
        self._value = value
        self._held: list[tuple[int, int, T]] = []
        """Values as they were at the last look; of equal ones the first to come decides."""
        for item in items:
            found = value(item)
            if found is not None:
                self._held.append((found, len(self._held), item))
        heapify(self._held)
        self._next = len(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, item: T) -> None:
        value = self._value(item)
        if value is not None:
            heappush(self._held, (value, self._next, item))
            self._next += 1

    def __call__(self) -> int | None:
        while self._held:
            known, number, item = self._held[0]
            value = self._value(item)
            if value is None:
                heappop(self._held)
            elif value > known:
                heapreplace(self._held, (value, number, item))
            else:
                return value
        return None


class Readers:
    """Who reads which results. Callers hold the lock of the queries.

    Every sink, and every output that reads a query under another name, gets all results of it,
    whatever others take. A query without them is read by itself, together with others, or, if it is
    a family, by members; these take from each other. Who reads comes further, so what a log
    keeps depends on its slowest readers alone; a new sink may be behind where everybody was, and
    then all are looked at again.
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        sources: Mapping[str, str],
        bound: BoundOutputs,
        pending: PendingDeliveries,
    ):
        self._store = store
        self._catalogue = catalogue
        self._sinks = bound.open
        self._sunk = bound.known
        """Those that have a sink, or had one in an earlier run that is not bound again yet."""
        self._sources = sources
        self._pending = pending
        self._removed: dict[str, tuple[int, SlowestReader[PendingDelivery]]] = {}
        """By log what is left of queries that were removed, after how many changes of that."""
        self._outputs: dict[str, list[str]] = {}
        """Those that read a query under another name, by its own."""
        for output in sources:
            query = self.query_of(output)
            if output != query:
                self._outputs.setdefault(query, []).append(output)
        self.look_again()

    def look_again(self) -> None:
        """Forget who is the slowest."""
        self._slowest: dict[str, SlowestReader[RegisteredQuery]] = {}
        """By log."""
        self._newest: dict[str, int] = {}
        """By log, the id of the last query that came before the last look."""
        self._members: dict[str, tuple[int, SlowestReader[Member]]] = {}
        """By family, and the id of the last entry it had then."""
        self._member_sinks: dict[str, SlowestReader[str]] = {}
        """By family."""
        self._sinks_of: dict[str, list[str]] | None = None
        """By family, if they are sorted so already."""

    def forget(self, query: str) -> None:
        """Drop what is remembered of a query or family that is no more."""
        self._members.pop(query, None)
        self._member_sinks.pop(query, None)

    def query_of(self, output: str) -> str:
        """The query or family of which an output, a query or a member gives results."""
        return MemberId.parse(self._sources.get(output, output)).family

    def outputs_of(self, query: str) -> list[str]:
        """The outputs that read a query under other names."""
        return self._outputs.get(query, [])

    def is_apart(self, query: str) -> bool:
        """Whether a sink or outputs get the results of a query or family, and nobody else."""
        return query in self._sinks or bool(self.outputs_of(query))

    # ── how far ──

    def head(self, output: str, log: str) -> int:
        """The moment before which an output, a query or a member has nothing to give any more."""
        own = self._store.head(log, consumer(output))
        query = self.query_of(output)
        outputs = self.outputs_of(query)
        if output in self._sunk or output in outputs:
            return own
        if output != query:  # what its family gave a member does not give
            return max(own, self.head(query, log))
        if outputs:  # nor a query what all of its outputs have
            return max(own, min(self.head(each, log) for each in outputs))
        return max(own, self._store.head(log, ALL_QUERIES))

    def taken_by(self, entry: RegisteredQuery) -> int:
        """The moment before which everybody who reads a query or family has taken everything.

        Sinks of single members are others.
        """
        query = family_of(entry.name)
        readers = self.outputs_of(query)
        if query in self._sunk or not readers:
            readers = [*readers, query]
        return min(self.head(reader, entry.log) for reader in readers)

    def taken(self, log: str) -> int | None:
        """The moment before which everybody has taken the results in a log; None if nobody is."""
        held = self._slowest.get(log)
        if held is None or len(held) > 2 * self._catalogue.count(log) + _FEW:
            fresh = self._catalogue.reading(log)
            held = self._slowest[log] = SlowestReader(fresh, self._taken)
        else:
            fresh = self._catalogue.reading(log, after=self._newest[log])
            for entry in fresh:
                held.add(entry)
        self._newest[log] = max([self._newest.get(log, 0), *(entry.first for entry in fresh)])
        found = [moment for moment in (held(), self._left(log)) if moment is not None]
        return min(found, default=None)

    def _left(self, log: str) -> int | None:
        """The first moment of a log that is left to be got of queries that were removed."""
        changes, least = self._removed.get(log, (-1, None))
        if least is None or changes != self._pending.changes:
            least = SlowestReader(self._pending.of_log(log), self._rest_head)
            self._removed[log] = self._pending.changes, least
        return least()

    def _rest_head(self, rest: PendingDelivery) -> int | None:
        return self._pending.head(rest) if self._pending.has(rest) else None

    def _taken(self, entry: RegisteredQuery) -> int | None:
        if not self._catalogue.has(entry) or not entry.count:
            return None
        taken = max(self.taken_by(entry), entry.since)
        sinks = None if entry.keys is None else self._by_member_sinks(entry)
        return taken if sinks is None else min(taken, sinks)

    def unbound(self, log: str) -> list[str]:
        """Consumers of a log that are taken together with others until their sinks come again."""
        found = []
        for query in sorted(self._sunk - self._sinks):
            entries = self._catalogue.chunks(query)
            if entries and entries[0].log == log and not self.outputs_of(query):
                found.append(consumer(query))
        return found

    # ── members of families ──

    def by_all_members(self, member: str) -> tuple[str, int] | None:
        """The family of a member, and the moment before which all its members have everything.

        None if that is not read by its members, or if they are many.
        """
        family = self.query_of(member)
        by_itself = member != family and member not in self.outputs_of(family)
        if not by_itself or not self._sunk.isdisjoint((member, family)):
            return None
        entries = self._catalogue.chunks(family)
        live = sum(entry.count - len(entry.gone) for entry in entries)
        last, least = self._members.pop(family, (0, SlowestReader[Member]((), self._member_head)))
        if live > SMALL:
            return None
        if len(least) > 2 * live + _FEW:  # most of them are gone
            last, least = 0, SlowestReader[Member]((), self._member_head)
        for entry in (entry for entry in entries if entry.first > last):
            left = [number for number in range(entry.count) if number not in entry.gone]
            for number, key in zip(left, texts(entry, left), strict=True):
                least.add((entry, number, consumer(str(MemberId(family, key)))))
        self._members[family] = max(last, *(entry.first for entry in entries)), least
        return family, least() or 0

    def _member_head(self, member: Member) -> int | None:
        entry, number, reader = member
        if number in entry.gone or not self._catalogue.has(entry):
            return None
        taken = self._store.head(entry.log, reader)
        return max(taken, entry.since) if taken else 0  # whom nobody reads has taken nothing

    def _by_member_sinks(self, entry: RegisteredQuery) -> int | None:
        family = family_of(entry.name)
        if self._sinks_of is None:
            self._sinks_of = {}
            for sink in list(self._sunk):
                self._sinks_of.setdefault(MemberId.parse(sink).family, []).append(sink)
        if family not in self._member_sinks:
            self._member_sinks[family] = SlowestReader(
                [sink for sink in self._sinks_of.get(family, ()) if sink != family],
                lambda sink: (
                    self._store.head(entry.log, consumer(sink)) if sink in self._sunk else None
                ),
            )
        return self._member_sinks[family]()
