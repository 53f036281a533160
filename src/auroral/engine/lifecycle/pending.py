"""What sinks have still to get of queries that were removed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from auroral.engine.results.views import View
from auroral.ids import PendingLogId, PendingReader
from auroral.storage import Change, Forgotten, MovedLog, QueryRow

Origin = tuple[Sequence[int], bool]
"""The first ids of a query or of the parts of a family; or the id of a member, and True."""


@dataclass(frozen=True, eq=False)
class PendingDelivery:
    """The results before a moment of what was removed then: a query, a family or a member."""

    output: str
    view: View
    """How it is read; `PendingDeliveries.log_of` says where it is now."""
    until: int
    origin: Origin

    @property
    def reader(self) -> str:
        """Its name among the consumers of logs."""
        return str(PendingReader(self.output, self.until))


@dataclass(frozen=True)
class ReadPosition:
    """What somebody has not got of a query."""

    view: View
    head: int
    """Where he has come to."""
    origin: Origin


@dataclass(frozen=True)
class SinkDetachment:
    """An output whose query is about to be removed."""

    output: str
    ends: bool
    """Whether no other comes in its place."""
    unread: ReadPosition | None = None
    """What its sink is still to get; None if it has none now."""
    gives_up: bool = False
    """Whether it wants nothing more, of queries before neither."""


class StoredPositions(Protocol):
    """How far consumers of logs, and sinks, have come."""

    def head(self, log: str, consumer: str) -> int: ...

    def readers(self, consumer: str) -> list[tuple[str, str]]: ...

    def names(self) -> tuple[list[str], list[tuple[str, str]]]: ...

    def sinks(self) -> Mapping[str, Any]: ...

    def sink(self, output: str) -> Any | None: ...


class PendingDeliveries:
    """What is left to be got, by output, in the order in which it was left.

    The manifest keeps it with the positions of sinks, so a sink that is bound again gets it.
    Nothing is written here: what has to be remembered is returned.
    """

    def __init__(self, stored: StoredPositions):
        self._stored = stored
        self._held: dict[str, list[PendingDelivery]] = {}
        self.ending: set[str] = set()
        """Outputs that have nothing else to give."""
        self.changes = 0
        """How often more was left, or elsewhere."""
        self._saved: dict[str, list[tuple[int, Origin]]] = {}
        """What an earlier run has left: up to which moments, and of what."""
        for output, saved in stored.sinks().items():
            if isinstance(saved, dict):  # dead letters have a number
                pending = saved.get("rests", ())
                self._saved[output] = [(until, (ids, member)) for until, ids, member in pending]
                self.ending |= {output} if saved.get("ends") else set()

    def restore(self, view_of: Callable[[Origin], View]) -> Change:
        """Know what an earlier run has left, and forget readers that have got everything."""
        for output, saved in self._saved.items():
            made = [
                PendingDelivery(output, view_of(origin), until, origin) for until, origin in saved
            ]
            self._held |= {output: made} if made else {}
        self._saved = {}
        over = [output for output in self.ending if output not in self._held]
        self.ending.difference_update(over)  # their sinks had everything, and were not closed
        sinks = {output: self.record(output, closed=True) for output in over}
        return Change(sinks=sinks, forgotten=self.sweep())

    def sweep(self) -> Forgotten:
        """Forget readers that want nothing more."""
        readers = {rest.reader for rest in self._all()}
        stale = [
            p for p in self._stored.names()[1] if PendingReader.parse(p[1]) and p[1] not in readers
        ]
        kept = {log for log, _ in stale if PendingLogId.parse(log)}
        return Forgotten(list(kept - self.logs()), stale)

    def of(self, output: str) -> list[PendingDelivery]:
        return list(self._held.get(output, ()))

    @property
    def outputs(self) -> list[str]:
        """Those of which something is left, and those that only end."""
        return list(dict.fromkeys([*self._held, *self.ending]))

    def log_of(self, rest: PendingDelivery) -> str:
        """Where it is: where its reader is."""
        places = self._stored.readers(rest.reader)
        return places[0][0] if places else rest.view.log

    def head(self, rest: PendingDelivery) -> int:
        """The first moment of it that is left."""
        return max(self._stored.head(self.log_of(rest), rest.reader), rest.view.since)

    def logs(self) -> set[str]:
        """The logs of which something is left."""
        return {self.log_of(rest) for rest in self._all()}

    def of_log(self, log: str) -> list[PendingDelivery]:
        """What is left in a log."""
        return [rest for rest in self._all() if self.log_of(rest) == log]

    def has(self, rest: PendingDelivery) -> bool:
        """Whether something is left of it."""
        return rest in self._held.get(rest.output, ())

    def needs(self, rows: Iterable[QueryRow]) -> set[int]:
        """The first ids of those queries and families of which something is left."""
        origins = [rest.origin for rest in self._all()]
        origins += [origin for saved in self._saved.values() for _, origin in saved]
        ids = sorted(n for found, _ in origins for n in found)

        def is_among(row: QueryRow) -> bool:
            at = bisect_left(ids, row.first)
            return at < len(ids) and ids[at] < row.first + row.count

        return {row.first for row in rows if is_among(row)}

    def keep(self, is_removed: Callable[[str], bool], moment: int) -> list[MovedLog]:
        """Keep by itself what is left in arcs of boxes that are removed."""
        logs = [(rest, self.log_of(rest)) for rest in self._all() if rest.until <= moment]
        moved = [
            MovedLog(log, str(PendingLogId(rest.origin[0][0])), rest.reader)
            for rest, log in logs
            if is_removed(log)
        ]
        self.changes += len(moved)
        return moved

    def _all(self) -> list[PendingDelivery]:
        return [rest for held in list(self._held.values()) for rest in held]

    # ── changing ──

    def leave(self, leaving: Sequence[SinkDetachment], moment: int) -> Change:
        """Queries are removed at a moment; what to remember of it."""
        self.changes += len(leaving)
        heads: dict[tuple[str, str], int] = {}
        sinks: dict[str, Any] = {}
        for one in leaving:
            if one.gives_up:
                self._held.pop(one.output, None)
            if one.unread is not None and one.unread.view.since < moment:
                rest = PendingDelivery(one.output, one.unread.view, moment, one.unread.origin)
                self._held.setdefault(one.output, []).append(rest)
                heads[rest.view.log, rest.reader] = one.unread.head
            if one.ends and one.output in self._held:
                self.ending.add(one.output)
            closed = {"closed": True} if one.ends and one.output not in self._held else {}
            sinks[one.output] = self.record(one.output, **closed)
        return Change(heads=heads, sinks=sinks)

    def saved(self, output: str) -> dict[str, Any]:
        """What the manifest is to say of it, with the position of the sink."""
        pending = [(rest.until, *rest.origin) for rest in self._held.get(output, ())]
        ends = {"ends": True} if output in self.ending else {}
        return {"rests": pending, **ends} if pending else ends

    def record(self, output: str, **more: Any) -> dict[str, Any]:
        """All that it is to say of a sink that stays where it is."""
        saved = self._stored.sink(output) or {}
        found = {key: value for key, value in saved.items() if key not in ("rests", "ends")}
        return {**found, **self.saved(output), **more}

    def got(self, rest: PendingDelivery) -> Change:
        """Somebody has got all of it."""
        log = self.log_of(rest)
        self._held[rest.output].remove(rest)
        if not self._held[rest.output]:
            del self._held[rest.output]
        over = PendingLogId.parse(log) is not None and log not in self.logs()
        return Change(
            sinks={rest.output: self.record(rest.output)},
            forgotten=Forgotten([log] if over else [], [(log, rest.reader)]),
        )

    def close(self, output: str) -> Change:
        """The sink of an output that has nothing else to give was given everything."""
        self.ending.discard(output)
        return Change(sinks={output: self.record(output, closed=True)})
