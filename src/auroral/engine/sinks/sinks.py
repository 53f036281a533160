"""Sinks: what outputs give is delivered to them, each tuple once and in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import current_thread, main_thread
from typing import Any

import pyarrow as pa

from auroral.eddy.families import FamilyMembers, family_of
from auroral.engine.lifecycle.pending import PendingDelivery, ReadPosition, SinkDetachment
from auroral.engine.queries.modification import Modification
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.batches import moment, visible
from auroral.engine.results.outputs import Batches, Outputs
from auroral.engine.results.readers import consumer
from auroral.engine.results.views import View
from auroral.engine.sinks.positions import SinkPositions, target_of
from auroral.errors import AuroralError, SinkError, UsageError
from auroral.ids import MemberId
from auroral.io.sinks.csv import CsvSink
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.network import Network
from auroral.network.queries import declared_member, parameter_types
from auroral.network.types import Schema
from auroral.storage import Change, Store


class Sinks:
    """The sinks of outputs, as long as the engine runs.

    A query may be removed while its sink has not got everything: then the sink gets the rest,
    and is closed; or it goes on with the query that has come in its place.
    """

    def __init__(self, store: Store, queries: QueryRegistry, outputs: Callable[[Sinks], Outputs]):
        self._store = store
        self._queries = queries
        self._pending = queries.pending
        self.open: dict[str, Sink] = {}
        """By output. Whoever changes this, or what is below, holds the lock of the queries."""
        self.ending: dict[str, Sink] = {}
        """Those of queries that were removed."""
        self._positions = SinkPositions(store, queries.pending)
        self.known = self._positions.outputs()
        """Outputs that have a sink, or had one in an earlier run and may have it again."""
        self._called: set[str] = set()
        """Those whose sinks are being called."""
        self.failed: dict[str, SinkError] = {}
        """Those whose sinks raised, and are not called again; what they have not got is kept."""
        self._parting: list[SinkError] = []
        """What was raised by sinks that are no longer there: told once."""
        self.outputs = outputs(self)
        """What there is to deliver; there are others when boxes have come or gone."""

    # ── binding ──

    def bind(self, output: str, sink: Sink) -> None:
        """Give an output its sink, which goes on where the manifest says."""
        waiting = output in self._pending.outputs
        if not waiting:
            self.outputs.require(output)
        failed = self._sink(output)
        if failed is not None and output not in self.failed:
            raise UsageError("HAS_SINK", f"the output {output} has a sink already")
        target = target_of(sink)
        start = self._positions.start(output, target, instead=failed is not None)
        if failed is not None:
            with suppress(Exception):  # that it fails is known
                failed.close()
        if self._store.power and hasattr(sink, "durable"):
            sink.durable = True
        sink.open(start.position)
        if start.position is None and hasattr(sink, "path"):  # what others wrote there is no more
            self._store.forget_sinks(target)
        with self._queries.lock:
            view = self.outputs.found(output)
            if view is not None:  # it goes on with that
                self._pending.ending.discard(output)
                self.outputs.begin(view, consumer(output))
            self._store.commit(Change(sinks={output: self._positions.begun(output, target, start)}))
            self.failed.pop(output, None)
            if view is None:
                self.ending[output] = sink
                return
            self.ending.pop(output, None)
            self.open[output] = sink
            self.known.add(output)
            self.outputs.readers.look_again()

    def bind_all(self, sinks: Mapping[str, Sink], network: Network, *, last: bool) -> None:
        """Give outputs their sinks that have none yet; not those of queries that were removed.

        The last time all queries are there, and what is no output is refused.
        """
        for output, sink in sinks.items():
            there = output in self._pending.outputs or self.outputs.found(output) is not None
            if output not in self.all and (there or (last and not _is_declared(output, network))):
                self.bind(output, sink)

    def has(self, output: str) -> bool:
        """Whether something is left of an output for a sink."""
        return output in self._pending.outputs

    def schema(self, output: str, query: str) -> Schema | None:
        """The fields that an output gives of a query: one that is there, or what is left of it."""
        found = self._queries.catalogue.schema(query)
        if found is None and self._pending.of(output):
            left = self._pending.of(output)[0].view.schema
            found = parameter_types(left.empty_table())
        return found

    @property
    def all(self) -> dict[str, Sink]:
        """Every sink by output."""
        return {**self.ending, **self.open}

    def require_fit(
        self, replaced: Mapping[str, Any], schema_of: Callable[[str, Any], Schema]
    ) -> None:
        """Refuse queries with other fields than the header of a file that goes on with them."""
        for output, sink in list(self.open.items()):
            query = self.outputs.readers.query_of(output)
            if query in replaced and isinstance(sink, CsvSink):
                names = schema_of(query, replaced[query]).names
                if MemberId.parse(output).key is not None:
                    names = names[1:]  # a member gives no key
                if names != sink.fields:
                    raise UsageError(
                        "SINK_FIELDS",
                        f"{sink.path} has the fields {', '.join(sink.fields)}, the new {query}"
                        f" has {', '.join(names)}",
                        hint="give the query another name, or remove the old one before",
                    )

    # ── queries that are removed ──

    def leaving(
        self, removed: Collection[str], wanted: Modification, *, by_sink: bool
    ) -> list[SinkDetachment]:
        """The outputs whose queries are to be removed; the lock of the queries is held.

        If it is a sink that asks for the end of its own query, it gets nothing more.
        """
        found = []
        for output in [o for o in self.known if removed and self._reads(o, removed)]:
            source = self.outputs.source(output)
            ends = not _comes(source, wanted)
            view = self.outputs.found(output)
            if by_sink and ends and output in self._called:
                found.append(SinkDetachment(output, ends, gives_up=True))
            elif view is not None and output in self.open:
                head = self.outputs.head(view, consumer(output))
                origin = self._queries.catalogue.origin(source)
                found.append(SinkDetachment(output, ends, ReadPosition(view, head, origin)))
            elif ends:  # its sink is not bound again yet
                found.append(SinkDetachment(output, ends))
        return found

    def _reads(self, output: str, queries: Collection[str]) -> bool:
        source = self.outputs.source(output)
        return source in queries or MemberId.parse(source).family in queries

    def leave(self, leaving: Collection[SinkDetachment]) -> None:
        """Queries were removed: let go of sinks that have everything; the lock is still held."""
        for one in leaving:
            if one.ends:
                self.known.discard(one.output)
                sink = self.open.pop(one.output, None)
                if sink is not None and one.output in self._pending.ending:
                    self.ending[one.output] = sink
                elif sink is not None:
                    self._shut(one.output, sink)
        if any(one.gives_up for one in leaving):
            self._pending.sweep()

    def close_done(self) -> None:
        """Close sinks that have got all that was left for them."""
        for output in list(self.ending):
            if output not in self._called:
                for rest in self._pending.of(output):
                    if not self._is_done(rest) or next(self._left(rest), None) is not None:
                        break
                    self._got(rest)
                else:
                    self._close(output)

    # ── delivering ──

    def deliver(self) -> int:
        """Hand everything new to the sinks; returns the number of tuples.

        A sink may be a function that changes queries.
        """
        delivered = 0
        for output, sink in self.all.items():
            idle = output not in self._called and output not in self.failed
            if idle and self._sink(output) is sink:
                self._called.add(output)
                try:
                    delivered += self._deliver(output, sink)
                except SinkError as error:
                    self._note_failure(output, sink, error)
                finally:
                    self._called.discard(output)
        return delivered

    def require_well(self) -> None:
        """Tell of a sink that failed."""
        if self._parting:
            raise self._parting.pop(0)
        for error in list(self.failed.values()):
            raise error

    def _note_failure(self, output: str, sink: Sink, error: SinkError) -> None:
        if self._sink(output) is sink:
            self.failed[output] = error
        else:
            self._parting.append(error)

    def _sink(self, output: str) -> Sink | None:
        sink = self.open.get(output)
        return self.ending.get(output) if sink is None else sink

    def _deliver(self, output: str, sink: Sink) -> int:
        delivered = 0
        for rest in self._pending.of(output):
            done = self._is_done(rest)
            delivered += self._hand(output, sink, rest)
            if not done or not self._pending.has(rest):  # or it has removed itself
                return delivered
            self._got(rest)
        if self.ending.get(output) is sink:
            self._close(output)
            return delivered
        return delivered + self._hand(output, sink)

    def _hand(self, output: str, sink: Sink, rest: PendingDelivery | None = None) -> int:
        """Hand over what is left of a query that was removed, or what the one there gives."""
        with self._queries.lock:
            if rest is not None:
                view, batches = rest.view, self._left(rest)
            else:
                found = self.outputs.found(output) if self.open.get(output) is sink else None
                if found is None:
                    return 0
                view, batches = found, self.outputs.new(found, consumer(output))
        delivered = 0
        for complete_before, table in batches:
            at = self._written(output, sink, table, view) if table.num_rows else None
            delivered += table.num_rows
            with self._queries.lock:
                if not self._note(
                    _Handed(output, sink, view, rest, complete_before, table.num_rows, at)
                ):
                    break
        return delivered

    def _note(self, handed: _Handed) -> bool:
        """Remember what a sink has got; False if its query was removed meanwhile."""
        output, rest = handed.output, handed.rest
        left = self._pending.of(output)[:1] if rest is None else [rest]
        log, reader = handed.view.log, consumer(output)
        for reading in left:
            log, reader = self._pending.log_of(reading), reading.reader
        gone = self._sink(output) is not handed.sink  # it has removed itself
        change = Change(heads={} if gone else {(log, reader): handed.complete_before})
        if handed.rows:
            saved = self._positions.record(output, target_of(handed.sink), handed.position)
            change.sinks = {output: {**saved, "closed": True} if gone else saved}
            if (not left and not gone) or self.outputs.source(output) != output:
                change.counts = {(output, "out"): handed.rows}
        self._store.commit(change)
        if left or gone:
            self.outputs.let_go(log)
        else:
            self.outputs.took(change, log)
        return not gone and (rest is not None or not left)

    def _written(self, output: str, sink: Sink, table: pa.Table, view: View) -> Any:
        self.outputs.note_lag(output, [table])
        rows = visible(table).cast(view.schema)
        try:
            return sink.write(Delivery(output, rows, moment(table, 0), moment(table, -1)))
        except BaseException as error:
            with suppress(Exception):  # what it has written of this does not count
                sink.open(self._positions.now(output))
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise  # somebody does not want to wait
            raise _failure(output, error) from error

    @property
    def delivered(self) -> bool:
        """Whether every sink that works has got everything, and has returned."""
        waiting = any(self._is_waiting(output) for output in self.all)
        return not waiting and not self._called

    def _is_waiting(self, output: str) -> bool:
        with self._queries.lock:
            if output in self.failed:
                return False
            if self._pending.of(output) or output in self.ending:
                return True
            view = self.outputs.found(output)
            if view is None:
                return False
            return bool(self._store.segments(view.log, self.outputs.head(view, consumer(output))))

    def close(self) -> None:
        for output, sink in self.all.items():
            self._shut(output, sink)

    def _shut(self, output: str, sink: Sink) -> None:
        try:
            sink.close()
        except Exception as error:
            self._parting.append(_failure(output, error))

    # ── what is left ──

    def left(self) -> dict[str, int]:
        """By output how many tuples wait of queries that were removed, those in their logs."""
        with self._queries.lock:
            pending = {output: self._pending.of(output) for output in self._pending.outputs}
            places = {
                output: [(self._pending.log_of(rest), self._pending.head(rest)) for rest in held]
                for output, held in pending.items()
            }
        return {
            output: sum(self._store.rows_since(log, head) for log, head in held)
            for output, held in places.items()
        }

    def _left(self, rest: PendingDelivery) -> Batches:
        view = replace(rest.view, log=self._pending.log_of(rest))
        return self.outputs.batches(view, self._pending.head(rest), rest.until)

    def _is_done(self, rest: PendingDelivery) -> bool:
        """Whether all that belongs to it is there."""
        return self.outputs.is_done(self._pending.log_of(rest), rest.until)

    def _got(self, rest: PendingDelivery) -> None:
        with self._queries.lock:
            log = self._pending.log_of(rest)
            self._pending.got(rest)
            self.outputs.let_go(log)

    def _close(self, output: str) -> None:
        with self._queries.lock:
            sink = self.ending.pop(output)
            self._pending.ending.discard(output)
            self.outputs.lag_s.pop(output, None)
            self._store.commit(Change(sinks={output: self._pending.record(output, closed=True)}))
        self._shut(output, sink)


@dataclass(frozen=True)
class _Handed:
    """What a sink was given, and where it is now."""

    output: str
    sink: Sink
    view: View
    rest: PendingDelivery | None
    complete_before: int
    rows: int
    position: Any


def _failure(output: str, error: BaseException) -> SinkError:
    known = isinstance(error, AuroralError)
    return SinkError(
        "SINK_FAILED",
        str(error) if known else f"{type(error).__name__}: {error}",
        where=f"output {output}",
        hint="what it has not taken waits for another bind_sink, or the next start",
    )


def _is_declared(output: str, network: Network) -> bool:
    """Whether it gives a query of the network's, or a member."""
    declared = network.outputs.get(output)
    query = output if declared is None else declared.from_
    member = declared_member(network.queries, query, network.directory)
    return query in network.queries or member is not None


def _comes(source: str, wanted: Modification) -> bool:
    """Whether a query, a family or a member comes in the place of the one that goes."""
    member = MemberId.parse(source)
    entries = [entry for entry in wanted.entries if family_of(entry.name) == member.family]
    if member.key is None:
        return bool(entries) or any(standalone.name == source for standalone in wanted.standalone)
    members = FamilyMembers()
    for entry in entries:
        if entry.keys is not None:
            members.add(entry)
    return bool(members.find([member.key]))
