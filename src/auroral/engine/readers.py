"""How far everybody has come who reads results of queries, and so what has to be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

from auroral.eddy.entry import Entry
from auroral.eddy.families import SMALL, family_of, texts
from auroral.engine.catalogue import Catalogue
from auroral.storage import Store

OUTPUT = "output "
ALL = "every query"
"""The reader that takes the results of all queries of a log together."""
_FEW = 64

T = TypeVar("T")


def consumer(output: str) -> str:
    """The name of an output among the consumers of a log."""
    return f"{OUTPUT}{output}"


class Least(Generic[T]):
    """The least of many values that only grow: looks at those alone that may be it.

    `value` is None for what is gone.

    >>> heads = {"a": 3, "b": 5, "c": 8}
    >>> least = Least(heads, heads.get)
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

    Who reads comes further, so what a log keeps depends on its slowest readers alone. Only a new
    sink may be behind where everybody was: then all are looked at again.
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        sources: Mapping[str, str],
        sinks: Mapping[str, object],
        sunk: Set[str],
    ):
        self._store = store
        self._catalogue = catalogue
        self._sinks = sinks
        self._sunk = sunk
        """Those that have a sink, or had one in an earlier run that is not bound again yet."""
        self._sources = sources
        self._outputs: dict[str, list[str]] = {}
        """Those that read a query, by its name."""
        for output, source in sources.items():
            self._outputs.setdefault(source, []).append(output)
        self.look_again()

    def look_again(self) -> None:
        """Forget who is the slowest."""
        self._slowest: dict[str, Least[Entry]] = {}
        """By log."""
        self._newest: dict[str, int] = {}
        """By log, the id of the last query that came before the last look."""
        self._members: dict[str, tuple[tuple[int, int], Least[tuple[Entry, int]]]] = {}
        """By family, and how many entries it had then and which was the last."""
        self._member_sinks: dict[str, dict[str, Least[str]]] = {}
        """By family and log."""
        self._sinks_of: dict[str, list[str]] | None = None
        """By family, if they are sorted so already."""

    def forget(self, query: str) -> None:
        """Drop what is remembered of a query or family that is no more."""
        self._members.pop(query, None)
        self._member_sinks.pop(query, None)

    def taken(self, log: str) -> int | None:
        """The moment before which everybody has taken the results in a log; None if nobody is."""
        held = self._slowest.get(log)
        if held is None or len(held) > 2 * self._catalogue.count(log) + _FEW:
            fresh = self._catalogue.reading(log)
            held = self._slowest[log] = Least(fresh, self._head)
        else:
            fresh = self._catalogue.reading(log, after=self._newest[log])
            for entry in fresh:
                held.add(entry)
        self._newest[log] = max([self._newest.get(log, 0), *(entry.first for entry in fresh)])
        return held()

    def _head(self, entry: Entry) -> int | None:
        if not self._catalogue.has(entry) or not entry.count:
            return None
        taken = max(self.taken_by(entry), entry.since)
        alone = entry.keys is None
        sinks = None if alone else self._by_member_sinks(family_of(entry.name), entry.log)
        return taken if sinks is None else min(taken, sinks)

    def has_sink(self, query: str) -> bool:
        """Whether a sink gets the results of a query or family."""
        return any(reader in self._sinks for reader in self._all_of(query))

    def unbound(self, log: str) -> list[str]:
        """Consumers of a log that were sinks of queries in an earlier run and are not bound."""
        found = []
        for output in sorted(self._sunk - self._sinks.keys()):
            entries = self._catalogue.chunks(self._sources.get(output, output))
            if entries and entries[0].log == log:
                found.append(consumer(output))
        return found

    def _all_of(self, query: str) -> list[str]:
        return [*self._outputs.get(query, ()), query]

    def taken_by(self, entry: Entry) -> int:
        """The moment before which everybody who reads a query has taken everything.

        Those are its sink and the outputs that read it, or else whoever dequeues it, or all
        members of a family one by one. Sinks of single members are others.
        """
        name, log = family_of(entry.name), entry.log
        readers = self._readers_of(name)
        taken = min(self._store.head(log, consumer(reader)) for reader in readers)
        return taken if not self._sunk.isdisjoint(readers) else max(taken, self._by_others(entry))

    def _readers_of(self, query: str) -> list[str]:
        """Those whom the results of a query or family are kept for."""
        outputs = self._outputs.get(query, [])
        return self._all_of(query) if query in self._sunk or not outputs else outputs

    def _by_others(self, entry: Entry) -> int:
        """The moment before which everything was taken by others in place of its readers."""
        together = self._store.head(entry.log, ALL)
        if entry.keys is None:
            return together
        return max(together, self._by_all_members(family_of(entry.name)))

    def begins(self, output: str) -> int:
        """The moment before which others have taken what an output without a sink would get."""
        query, counted = self._place(output)
        entries = self._catalogue.chunks(query)
        if output in self._sunk or not entries:
            return 0
        return self._by_others(entries[0]) if counted else self.taken_by(entries[0])

    def has_others_sink(self, output: str) -> bool:
        """Whether a sink gets what an output would get, and nothing is kept for the output."""
        query, counted = self._place(output)
        return not counted and output not in self._sinks and self.has_sink(query)

    def _place(self, output: str) -> tuple[str, bool]:
        """The query or family an output reads, and whether results are kept for it."""
        source = self._sources.get(output, output)
        query = source.partition("[")[0]
        return query, source == query and output in self._readers_of(query)

    def _by_all_members(self, family: str) -> int:
        """The moment before which all members that are there have taken everything; 0 if many."""
        mark = self._catalogue.last_of(family)
        if family not in self._members or self._members[family][0] != mark:
            self._members[family] = mark, self._least_of(family, self._catalogue.chunks(family))
        return self._members[family][1]() or 0

    def _least_of(self, family: str, entries: Sequence[Entry]) -> Least[tuple[Entry, int]]:
        live = sum(entry.count - len(entry.gone) for entry in entries)
        few = entries if live <= SMALL else ()
        named = {(e.first, n): key for e in few for n, key in enumerate(texts(e))}

        def head(member: tuple[Entry, int]) -> int | None:
            entry, number = member
            reader = consumer(f"{family}[{named[entry.first, number]}]")
            taken = self._store.head(entry.log, reader)
            if number in entry.gone:
                return None
            return max(taken, entry.since) if taken else 0  # a family may be read as one

        return Least([(e, number) for e in few for number in range(e.count)], head)

    def _by_member_sinks(self, family: str, log: str) -> int | None:
        if self._sinks_of is None:
            self._sinks_of = {}
            for sink in list(self._sinks):
                self._sinks_of.setdefault(sink.partition("[")[0], []).append(sink)
        held = self._member_sinks.setdefault(family, {})
        if log not in held:
            held[log] = Least(
                [sink for sink in self._sinks_of.get(family, ()) if sink != family],
                lambda sink: self._store.head(log, consumer(sink)) if sink in self._sinks else None,
            )
        return held[log]()
