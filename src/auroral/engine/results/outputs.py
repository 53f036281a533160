"""Delivery: from logs to what outputs give, each tuple once and in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from auroral.eddy.registered import NEVER
from auroral.engine.locks import EngineLocks, ReadingLock
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.batches import visible
from auroral.engine.results.bound import BoundOutputs
from auroral.engine.results.readers import Readers, consumer
from auroral.engine.results.unread import Backlog, SegmentsRetiredError, Unread, find_unread
from auroral.engine.results.views import View
from auroral.engine.runtime.stepper import Stepper
from auroral.errors import StateError, UsageError, closest, list_existing
from auroral.ids import ALL_QUERIES, ArcId, OutputReader
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.storage import HELD, Change, Segment, Store

_MOST_WAITING = 64
SHED = "_shed"
"""The column that says which share of the input tuples was dropped on the way to a result."""


@dataclass(frozen=True)
class ReadRequest:
    """Who takes which results."""

    name: str
    """Under which they are counted."""
    view: View
    readers: list[str]
    shed: bool = False
    """Whether results come with the share of input tuples that was shed."""


class ShedShares(Protocol):
    """Tells what was shed on the way to results."""

    def shares(self, superbox: Superbox | None, moments: Any, since: int) -> Any:
        """The share of input tuples dropped on the way to results with these moments."""
        ...


class AttachedResults(Protocol):
    """The results of attached queries."""

    @property
    def names(self) -> list[str]:
        """The queries."""
        ...

    def view(self, name: str) -> View | None:
        """How the results of a query look; None if there is no such query."""
        ...

    def views(self) -> list[View]:
        """Where the results of all queries are."""
        ...

    def arc_of(self, log: str) -> str | None:
        """The arc that the query reads which writes a log; None if no query writes it."""
        ...

    def emitted_before(self, log: str) -> int | None:
        """All results in a log before this moment are there; None if no query writes it."""
        ...


class Outputs:
    """The outputs of a network: which arc or query each reads, and how far it has come."""

    def __init__(
        self,
        checked: CheckedNetwork,
        store: Store,
        sources: Mapping[str, str],
        now_us: Callable[[], int],
        stepper: Stepper,
        queries: QueryRegistry,
        bound: BoundOutputs,
        locks: EngineLocks,
        kept: Callable[[], Collection[str]],
        attached: AttachedResults,
        shed: ShedShares,
    ):
        """`sources` are arcs and queries by output; those `kept` are merged by somebody else."""
        self._kept = kept
        self._attached = attached
        self._shed = shed
        self._store = store
        self._queries = queries
        self._stepper = stepper
        self._sources = dict(sources)
        self._whole = {
            arc: View(arc, checked.schema_of(arc).arrow(), 0, lambda table: table)
            for arc in sources.values()
            if arc in checked.arcs
        }
        self._bound = bound
        self._locks = locks
        self._generation = queries.epochs.generation
        self._backlog = Backlog(store)
        catalogue = queries.catalogue
        self.readers = Readers(store, catalogue, self._sources, bound, queries.pending)
        self._now_us = now_us
        self.lag_s: dict[str, float] = {}
        """How old the newest tuple of an output was when it was delivered."""
        self.latest: dict[str, int] = {}
        """The moment of the latest tuple that was taken of an output."""

    def begin(self, view: View, reader: str) -> None:
        """Let a new reader begin after what others took together with it."""
        head = self.head(view, reader)
        if head > self._store.head(view.log, reader):
            self._store.commit(Change(heads={(view.log, reader): head}))

    def forget(self, removed: Collection[str]) -> None:
        """Drop what is remembered of who read queries that are no more, and how much."""
        gone = {name for name in removed if self.source(name) == name}
        if not gone:
            return
        readers = [place for name in gone for place in self._store.readers(consumer(name))]
        names = gone | {_output_of(reader) for _, reader in readers}
        counted = [(name, "out") for name in names if (name, "out") in self._store.counters]
        if readers or counted:
            self._store.forget([], readers, counters=counted)
        with self._queries.lock:
            for name in names:
                self.lag_s.pop(name, None)
                self.latest.pop(name, None)
                self.readers.forget(name)

    def dequeue(
        self,
        output: str,
        limit: int | None,
        require_running: Callable[[], None],
        *,
        shed: bool = False,
    ) -> pa.Table:
        """What came since the last call; whole steps, so perhaps some more than `limit`.

        `require_running` raises if the engine has ended meanwhile. With `shed` the column `_shed`
        says which share of the input tuples was dropped on the way to each result.
        """
        output = self._meant(output)
        earlier = self._take_earlier(output, require_running, look=limit == 0)
        if earlier is not None:  # nobody knows any more
            unknown = pa.nulls(earlier.num_rows, pa.float64())
            return earlier.append_column(SHED, unknown) if shed else earlier

        def requested() -> ReadRequest:
            view = self._view(output)
            if output in self._bound.open:
                problem = f"the output {output} is delivered to its sink already"
                raise UsageError("HAS_SINK", problem)
            self._require_own(output)
            return ReadRequest(output, view, [consumer(output)], shed)

        return self._take(requested, limit, require_running)

    def _take_earlier(
        self, output: str, require_running: Callable[[], None], *, look: bool
    ) -> pa.Table | None:
        """What an output gave before the network changed and nobody has taken; None if nothing.

        Its fields are those of then. Who only looks gets these, and takes nothing.
        """
        while True:
            with self._queries.lock:
                place = self._queries.lifecycle.earlier.of(output)
            if place is None:
                return None
            with self.reading(place.log):
                segments = self._store.segments(place.log)
                view = View(place.log, _fields(self._store, segments), 0, lambda table: table)
                head = self._store.head(place.log, consumer(output))
                unread = find_unread(self._store, view, head, place.until)
                parts = [part for _, part in unread.batches(self._store) if part.num_rows]
                rows = [visible(part).cast(view.schema) for part in parts]
                if rows and look:
                    return view.schema.empty_table()
                with self._queries.lock:
                    require_running()
                    if self._queries.lifecycle.earlier.of(output) is not place:
                        continue
                    change = self._queries.lifecycle.earlier.got(output)
                    count = sum(table.num_rows for table in rows)
                    change.counts = {(output, "out"): count}
                    self._store.commit(change)
            if rows:
                return pa.concat_tables(rows)

    def _meant(self, name: str) -> str:
        """The output that a name means: that of an arc, as `q.late`, which one output reads."""
        readers = [output for output, source in self._sources.items() if source == name]
        alone = name not in self._sources and ArcId.parse(name).port and len(readers) == 1
        return readers[0] if alone else name

    def _require_own(self, output: str) -> None:
        """Refuse to give what others get: nothing is kept for a query or member then."""
        query = self.readers.query_of(output)
        others = self.readers.outputs_of(query)
        if output in others or not self.readers.is_apart(query):
            return
        if others:
            problem = f"the results of {query} are read by {', '.join(sorted(others))}"
            raise UsageError("HAS_OUTPUT", problem, hint="dequeue the output, or give it a sink")
        raise UsageError("HAS_SINK", f"the results of {query} are delivered to a sink already")

    def dequeue_all(
        self, name: str | None, limit: int | None, require_running: Callable[[], None]
    ) -> pa.Table:
        """The results of many queries since the last call, each tuple once."""

        def requested() -> ReadRequest:
            readers = self.readers
            catalogue = self._queries.catalogue
            view, of_all = catalogue.together(name, readers.taken_by, readers.is_apart)
            if not of_all:
                return ReadRequest(str(name), view, [consumer(str(name))])
            return ReadRequest(name or "*", view, [ALL_QUERIES, *readers.unbound(view.log)])

        return self._take(requested, limit, require_running)

    def reading(self, log: str) -> ReadingLock:
        """Held by who takes results from a log, and by who gives an output of it a sink."""
        return self._locks.reading(log)

    def _take(
        self,
        requested: Callable[[], ReadRequest],
        limit: int | None,
        require_running: Callable[[], None],
    ) -> pa.Table:
        """Take results; the lock of the log keeps others from taking the same meanwhile."""
        if limit is not None and not (isinstance(limit, int) and limit >= 0):
            raise UsageError("BAD_CALL", f"limit is a number of rows, not {limit!r}")
        while True:
            with self._queries.lock:
                require_running()
                wanted = requested()
                seen = self._queries.changes
                reading = self.reading(wanted.view.log)
                turns = reading.turns
            with reading:
                if (reading.turns, self._queries.changes) != (turns, seen):
                    continue  # somebody has taken some, or the query may be another
                table = self._take_now(wanted, seen, requested, limit, require_running)
            if table is not None:
                return table

    def _take_now(
        self,
        wanted: ReadRequest,
        seen: int,
        requested: Callable[[], ReadRequest],
        limit: int | None,
        require_running: Callable[[], None],
    ) -> pa.Table | None:
        """Take what is `wanted` after `seen` changes of queries; None if it is another now."""
        view, log = wanted.view, wanted.view.log
        with self._queries.lock:
            unread = self.unread(view, min(self.head(view, reader) for reader in wanted.readers))
        parts: list[pa.Table] = []
        head: int | None = None
        try:
            # With a limit of 0 nothing is taken: who asks wants the schema.
            for complete_before, part in () if limit == 0 else unread.batches(self._store):
                parts.append(part)
                head = complete_before
                if limit is not None and sum(p.num_rows for p in parts) >= limit:
                    break
        except SegmentsRetiredError:
            return None
        except StateError:
            require_running()
            raise
        rows = [visible(part).cast(view.schema) for part in parts if part.num_rows]
        table = view.finish(pa.concat_tables(rows) if rows else view.schema.empty_table())
        if wanted.shed:
            shares = self._shed_shares(wanted, parts, unread.head)
            table = table.append_column(SHED, pa.array(shares, pa.float64()))
        with self._queries.lock:
            require_running()
            now = wanted if self._queries.changes == seen else requested()
            if (now.view.log, now.view.since) != (log, view.since):
                return None
            if head is not None:
                counts = {(now.name, "out"): table.num_rows}
                heads = {(log, r): max(head, self._store.head(log, r)) for r in now.readers}
                change = Change(heads=heads, counts=counts)
                self._store.commit(change)
                self.took(change, log)
            self.note_lag(now.name, parts)
        return table

    def _shed_shares(self, wanted: ReadRequest, parts: Sequence[pa.Table], head: int) -> Any:
        """For each result the share of input tuples that was dropped on the way to it."""
        log = self._attached.arc_of(wanted.view.log) or wanted.view.log
        moments = np.concatenate([np.zeros(0, np.int64), *(p["_seq"].to_numpy() for p in parts)])
        since = self.latest.get(wanted.name, head - 1)
        return self._shed.shares(self._stepper.writer_of(log), moments, since)

    def compact(self) -> None:
        """Merge small segments of outputs that nobody has read; drop what nobody can read."""
        for arc in [
            *self._whole,
            *(query.arc for query in self._queries.standalone.running.queries.values()),
            *(view.log for view in self._attached.views()),
        ]:
            if len(self._store.segments(arc)) > _MOST_WAITING and arc not in self._kept():
                self._store.compact(arc)
        there = self._queries.logs()
        for log in self._store.held():
            if log not in there:  # its queries are no more
                self._hold(log, self._stepper.emitted_before(log))
            elif self._store.segments(log):
                self.let_go(log)

    def took(self, change: Change, log: str) -> None:
        """Readers of a log have come further: let go of what everybody has.

        The lock of the queries is held.
        """
        further: dict[tuple[str, str], int] = {}
        for _, reader in change.heads:
            found = self.readers.by_all_members(_output_of(reader))
            if found is not None and found[1] > self._store.head(log, consumer(found[0])):
                further[log, consumer(found[0])] = found[1]
        query = self._queries.standalone.running.source(log)
        query = "" if query == log else query
        others = self.readers.outputs_of(query) if query and query not in self._bound.known else ()
        if others:  # it is not read by itself
            further[log, consumer(query)] = min(self._store.head(log, consumer(o)) for o in others)
        if further:
            self._store.commit(Change(heads=further))
        self.let_go(log)

    def let_go(self, log: str) -> None:
        """Keep of results of queries what not everybody has."""
        with self._queries.lock:
            taken = self.readers.taken(log)
            if taken is not None and self._store.has_cursor(log, HELD):
                self._hold(log, taken)

    def _hold(self, log: str, moment: int) -> None:
        """Keep results from a moment on."""
        with self._queries.lock:
            if moment > self._store.head(log, HELD):
                self._store.commit(Change(heads={(log, HELD): moment}))

    def waiting(self, output: str) -> int | None:
        """Tuples not delivered yet, of a query those in its log; None if that was removed."""
        view = self.found(output)
        if view is None:
            return None
        return self._store.rows_since(view.log, self.head(view, consumer(output)))

    def behind_s(self, output: str) -> float:
        """How old the oldest tuple is that was not delivered; 0 if everything was."""
        view = self.found(output)
        if view is None:
            return 0.0
        return self.age_s(output, view.log, self.head(view, consumer(output)))

    def age_s(self, reader: str, log: str, head: int) -> float:
        """How old the oldest tuple of a log is from a moment on; 0 if there is none."""
        oldest_us = self._backlog.oldest_us(reader, log, head)
        return 0.0 if oldest_us is None else _seconds(self._now_us() - oldest_us)

    def source(self, output: str) -> str:
        """What an output gives: an arc, a query, a family or a member."""
        return self._sources.get(output, output)

    def declares(self, output: str) -> bool:
        """Whether it is an output of the network."""
        return output in self._sources

    def require(self, output: str) -> None:
        """Refuse what is no output."""
        self._view(output)

    def _view(self, output: str) -> View:
        """What there is to read under a name."""
        source = self.source(output)
        view = self._whole.get(source) or self._queries.catalogue.view(source)
        view = view or self._attached.view(source)
        if view is not None:
            return view
        if source != output:
            problem = f"the output {output} reads {source}, which was removed"
            raise UsageError("UNKNOWN_OUTPUT", problem)
        known = [*self._sources, *self._queries.catalogue.names(), *self._attached.names]
        names = list(dict.fromkeys(known))
        raise UsageError(
            "UNKNOWN_OUTPUT",
            f"there is no output {output}; {list_existing(names)}",
            hint=closest(output, names),
        )

    def found(self, output: str) -> View | None:
        """The same, None if the query was removed."""
        try:
            return self._view(output)
        except UsageError:
            return None

    def head(self, view: View, reader: str) -> int:
        """The first moment of which a reader has not everything."""
        if reader == ALL_QUERIES:
            return max(self._store.head(view.log, ALL_QUERIES), view.since)
        with self._queries.lock:
            return max(self.readers.head(_output_of(reader), view.log), view.since)

    @property
    def names(self) -> tuple[str, ...]:
        names = dict.fromkeys([*self._sources, *self._attached.names, *self._bound.open])
        return tuple(filter(self.found, names))

    def unread(self, view: View, head: int, until: int = NEVER) -> Unread:
        """What there is from a moment on and up to another; the lock of the queries is held."""
        attached = self._attached.emitted_before(view.log)
        emitted = self._stepper.emitted_before(view.log) if attached is None else attached
        complete = min(emitted, until)
        return find_unread(self._store, view, head, complete)

    def is_done(self, log: str, moment: int) -> bool:
        """Whether all of a log that came before a moment is there.

        The lock of the queries is held.
        """
        if self._generation != self._queries.epochs.generation:
            return False  # who writes it is just being put together
        next_epoch = self._queries.epochs.next_start
        if next_epoch is not None and next_epoch < moment:
            return False  # who writes it may not be there yet
        emitted = self._stepper.emitted_before(log)
        return min(emitted, self._stepper.done_before()) >= moment

    def note_lag(self, output: str, tables: list[pa.Table]) -> None:
        for table in tables:
            if table.num_rows:
                self.latest[output] = table["_seq"][-1].as_py()
                age_us = self._now_us() - table["_ts"][-1].as_py()
                self.lag_s[output] = _seconds(age_us)


def _fields(store: Store, segments: Sequence[Segment]) -> pa.Schema:
    """The fields of the tuples in a log, as its oldest segment has them."""
    for segment in segments:
        if segment.file:
            return visible(store.table(segment)).schema
    return pa.schema([])


def _seconds(microseconds: int) -> float:
    return round(max(microseconds, 0) / 1e6, 3)


def _output_of(reader: str) -> str:
    """The output that a consumer of a log is; other consumers have no other name."""
    found = OutputReader.parse(reader)
    return reader if found is None else found.output
