"""Sinks: what outputs give is delivered to them, each tuple once and in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import current_thread, get_ident, main_thread
from typing import Any

import pyarrow as pa

from auroral.eddy.families import FamilyMembers, family_of
from auroral.engine.lifecycle.pending import PendingDelivery, ReadPosition, SinkDetachment
from auroral.engine.queries.modification import Modification
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.batches import moment, visible
from auroral.engine.results.bound import BoundOutputs
from auroral.engine.results.outputs import Outputs
from auroral.engine.results.readers import consumer
from auroral.engine.results.unread import SegmentsRetiredError, Unread
from auroral.engine.results.views import View
from auroral.engine.sinks.delivery import DeliveryThread, DeliveryThreads
from auroral.engine.sinks.positions import SinkPositions, target_of
from auroral.errors import AuroralError, SinkError, UsageError, ended
from auroral.ids import MemberId
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.network import Network
from auroral.network.queries import declared_member, parameter_types
from auroral.network.types import Schema
from auroral.storage import Change, Store


class Sinks:
    """The sinks of outputs, as long as the engine runs.

    A query may be removed while its sink has not got everything: then the sink gets the rest,
    and is closed; or it goes on with the query that has come in its place.

    Until `start` is called, `deliver` calls the sinks itself. After it, every sink has a thread,
    and `deliver` wakes those that have something to get. The log of an output is the only buffer:
    a thread holds one step in memory. Whoever changes what is here holds the lock of the queries.
    """

    _outputs: Outputs

    def __init__(self, store: Store, queries: QueryRegistry):
        self._store = store
        self._queries = queries
        self._pending = queries.pending
        self.open: dict[str, Sink] = {}
        """By output."""
        self.ending: dict[str, Sink] = {}
        """Those of queries that were removed."""
        self._positions = SinkPositions(store, queries.pending)
        self.bound = BoundOutputs(self._positions.outputs())
        """Outputs that have a sink, or had one in an earlier run and may have it again."""
        self._called: dict[str, int] = {}
        """Those whose sinks are being called, and by which thread."""
        self.failed: dict[str, SinkError] = {}
        """Those whose sinks raised, and are not called again; what they have not got is kept."""
        self._parting: list[SinkError] = []
        """What was raised by sinks that are no longer there: told once."""
        self._threads: DeliveryThreads | None = None
        """None if sinks are called by whoever delivers."""
        self._is_well: Callable[[], bool] = lambda: True

    @property
    def outputs(self) -> Outputs:
        """What there is to deliver; there are others when boxes have come or gone."""
        return self._outputs

    def serve(self, outputs: Outputs) -> None:
        """Deliver these from now on."""
        with self._queries.lock:
            self._outputs = outputs

    # ── threads ──

    def start(
        self,
        grace_s: float,
        *,
        tell: Callable[[], None],
        fail: Callable[[BaseException], None],
        is_well: Callable[[], bool],
    ) -> None:
        """Give every sink a thread of its own.

        `tell` is called when something was delivered, `fail` if something went wrong that is not a
        sink's mistake, and nothing is delivered if the engine is not well. A sink that does not
        return within the grace time is not waited for.
        """
        with self._queries.lock:
            self._is_well = is_well
            self._threads = DeliveryThreads(self._queries.lock, grace_s, tell, fail)
            for output, sink in self.all.items():
                self._begin_thread(output, sink)

    def _begin_thread(self, output: str, sink: Sink) -> None:
        """Let a sink that was bound have its thread; the lock of the queries is held."""
        if self._threads is not None:
            deliver, close = partial(self._deliver, output, sink), partial(self._shut, output, sink)
            self._threads.begin(output, deliver, close)

    def _release_thread(self, output: str, *, close: bool) -> DeliveryThread | None:
        """Let the thread of a sink end, if it has one; the lock of the queries is held."""
        return None if self._threads is None else self._threads.release(output, close=close)

    def _wake(self, output: str) -> None:
        if self._threads is not None:
            self._threads.wake(output)

    def await_closed(self, threads: Collection[DeliveryThread]) -> None:
        """Wait until sinks are closed that `leave` let go of, for the grace time at most."""
        if self._threads is not None:
            self._threads.await_ended(threads)

    def stop(self) -> None:
        """End the threads; a sink that does not return within the grace time is abandoned."""
        if self._threads is not None:
            for output in self._threads.stop(self._called):
                self.failed[output] = _busy(output, self._threads.grace_s)

    @property
    def is_called_here(self) -> bool:
        """Whether it is a sink that asks, from a thread of its own."""
        return self._threads is not None and not self._over and self._threads.has_current

    @property
    def _over(self) -> bool:
        """Whether the threads have ended, and nothing may be recorded any more."""
        return self._threads is not None and self._threads.over

    # ── binding ──

    def bind(self, output: str, sink: Sink) -> None:
        """Give an output its sink, which goes on where the manifest says."""
        waiting = output in self._pending.outputs
        if not waiting:
            self.outputs.require(output)
        failed = self._sink(output)
        if self._over:
            raise ended()
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
        view = self.outputs.found(output)
        with self.outputs.reading(view.log) if view else nullcontext(), self._queries.lock:
            if view is not None:  # it goes on with that
                self._pending.ending.discard(output)
                self.outputs.begin(view, consumer(output))
            self._store.commit(Change(sinks={output: self._positions.begun(output, target, start)}))
            self.failed.pop(output, None)
            self._release_thread(output, close=False)
            if view is None:
                self.ending[output] = sink
            else:
                self.ending.pop(output, None)
                self.open[output] = sink
                self.bound.add(output)
                self.outputs.readers.look_again()
            self._begin_thread(output, sink)

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

    # ── queries that are removed ──

    def leaving(self, removed: Collection[str], wanted: Modification) -> list[SinkDetachment]:
        """The outputs whose queries are to be removed; the lock of the queries is held.

        If it is a sink that asks for the end of its own query, it gets nothing more.
        """
        found = []
        for output in [o for o in self.bound.known if removed and self._reads(o, removed)]:
            source = self.outputs.source(output)
            ends = not _comes(source, wanted)
            view = self.outputs.found(output)
            if ends and self._called.get(output) == get_ident():
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

    def leave(self, leaving: Collection[SinkDetachment]) -> list[DeliveryThread]:
        """Queries were removed: let go of sinks that have everything; the lock is still held.

        Returns the threads that close sinks now; without threads, these are closed already.
        """
        released = []
        for one in leaving:
            if one.ends:
                self.bound.remove(one.output)
                sink = self.open.pop(one.output, None)
                if sink is not None and one.output in self._pending.ending:
                    self.ending[one.output] = sink
                elif sink is not None:
                    thread = self._release_thread(one.output, close=True)
                    if thread is None:
                        self._shut(one.output, sink)
                    elif one.output not in self._called:
                        released.append(thread)
            self._wake(one.output)
        if any(one.gives_up for one in leaving):
            self._store.commit(Change(forgotten=self._pending.sweep()))
        return released

    def is_behind(self, output: str) -> bool:
        """Whether an output has a sink that works and has not got everything."""
        if output not in self.open:
            return False
        return self._is_waiting(output) or output in self._called

    def let_go(self, outputs: Collection[str]) -> None:
        """Outputs are no more, and their sinks have everything: close these.

        The lock of the queries is held.
        """
        for output in outputs:
            self.bound.remove(output)
            sink = self.open.pop(output, None)
            self.failed.pop(output, None)
            self.outputs.lag_s.pop(output, None)
            if sink is None:
                continue
            self._store.commit(Change(sinks={output: self._pending.record(output, closed=True)}))
            if self._release_thread(output, close=True) is None:
                self._shut(output, sink)

    def detach(self, output: str) -> list[DeliveryThread]:
        """Let go of the sink of a query that is detached; it gets nothing more.

        Returns the thread that closes it now; without threads, it is closed already.
        """
        with self._queries.lock:
            self.bound.remove(output)
            self.failed.pop(output, None)
            sink = self.open.pop(output, None)
            if sink is None:
                return []
            position = self._positions.now(output)
            saved = self._positions.record(output, target_of(sink), position)
            self._store.commit(Change(sinks={output: {**saved, "closed": True}}))
            thread = self._release_thread(output, close=True)
        if thread is None:
            self._shut(output, sink)
        return [] if thread is None or output in self._called else [thread]

    # ── delivering ──

    def deliver(self) -> int:
        """Hand everything new to the sinks, or wake their threads; returns the number of tuples.

        A sink may be a function that changes queries.
        """
        if self._threads is None:
            return sum(self._deliver(output, sink) for output, sink in self.all.items())
        for output in self.all:
            if self._is_waiting(output):
                self._wake(output)
        return 0

    def close_done(self) -> None:
        """Close sinks that have got all that was left for them."""
        for output, sink in list(self.ending.items()):
            if self._threads is not None:
                self._wake(output)
                continue
            with self._queries.lock:
                left = any(self._left(rest).steps for rest in self._pending.of(output))
            if not left:
                self._deliver(output, sink)

    def require_well(self) -> None:
        """Tell of a sink that failed."""
        if self._parting:
            raise self._parting.pop(0)
        for error in list(self.failed.values()):
            raise error

    def _note_failure(self, output: str, sink: Sink, error: SinkError) -> None:
        with self._queries.lock:
            if self._over:
                return
            if self._sink(output) is sink:
                self.failed[output] = error
            else:
                self._parting.append(error)

    def _sink(self, output: str) -> Sink | None:
        sink = self.open.get(output)
        return self.ending.get(output) if sink is None else sink

    def _deliver(self, output: str, sink: Sink) -> int:
        """Hand everything new to one sink; returns the number of tuples."""
        delivered: int = 0
        while True:
            with self._queries.lock:
                task = self._next_task(output, sink)
                if task is None:
                    return delivered
                self._called[output] = get_ident()
            try:
                delivered += self._carry_out(task)
            except SinkError as error:
                self._note_failure(output, sink, error)
            finally:
                with self._queries.lock:
                    del self._called[output]
                    self._wake(output)  # another sink may have come for it meanwhile
                if self._threads is not None:
                    self._threads.tell()

    def _next_task(self, output: str, sink: Sink) -> _Task | None:
        """What is to be done for a sink now; the lock of the queries is held."""
        idle = output not in self.failed and output not in self._called
        if self._must_stop() or not idle or self._sink(output) is not sink:
            return None
        for rest in self._pending.of(output):
            done = self._is_done(rest)
            unread = self._left(rest)
            return _Task(output, sink, unread, rest, done) if done or unread.steps else None
        if self.ending.get(output) is sink:
            return _Task(output, sink, None)
        view = self.outputs.found(output)
        if view is None:
            return None
        unread = self.outputs.unread(view, self.outputs.head(view, consumer(output)))
        return _Task(output, sink, unread) if unread.steps else None

    def _must_stop(self) -> bool:
        """Whether the engine ends or has failed, and no delivery may begin."""
        ends = self._threads is not None and self._threads.is_last_start_over
        return self._over or ends or not self._is_well()

    def _carry_out(self, task: _Task) -> int:
        """Hand over what is left of a query that was removed, or what the one there gives."""
        output, sink, rest = task.output, task.sink, task.rest
        if task.unread is None:
            self._close(output, sink)
            return 0
        view = task.unread.view
        delivered: int = 0
        batches = task.unread.batches(self._store)
        while True:
            try:
                complete_before, table = next(batches)
            except StopIteration:
                break
            except SegmentsRetiredError:
                return delivered
            at = self._written(output, sink, table, view) if table.num_rows else None
            delivered += table.num_rows
            handed = _Handed(output, sink, view, rest, complete_before, table.num_rows, at)
            with self._queries.lock:
                if self._over or not self._note(handed) or self._must_stop():
                    return delivered
        if rest is not None and task.done:
            self._got(rest)
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
            if not gone:
                change.sinks = {output: saved}
            elif self._sink(output) is None:  # else another has begun
                change.sinks = {output: {**saved, "closed": True}}
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
            if not self._over:
                with suppress(Exception):  # what it has written of this does not count
                    sink.open(self._positions.now(output))
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise  # somebody does not want to wait
            raise _failure(output, error) from error

    @property
    def delivered(self) -> bool:
        """Whether every sink that works has got everything, and has returned."""
        waiting = any(self._is_waiting(output) for output in self.all)
        closing = self._threads is not None and self._threads.closing
        return not waiting and not self._called and not closing

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
        """Close the sinks that have no thread which does."""
        if self._threads is None:
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

    def behind_s(self) -> dict[str, float]:
        """By output how old the oldest tuple is that waits of a query that was removed."""
        with self._queries.lock:
            pending = {output: self._pending.of(output) for output in self._pending.outputs}
            places = {
                output: (held[0].reader, self._pending.log_of(held[0]), self._pending.head(held[0]))
                for output, held in pending.items()
                if held
            }
        return {output: self.outputs.age_s(*place) for output, place in places.items()}

    def _left(self, rest: PendingDelivery) -> Unread:
        view = replace(rest.view, log=self._pending.log_of(rest))
        return self.outputs.unread(view, self._pending.head(rest), rest.until)

    def _is_done(self, rest: PendingDelivery) -> bool:
        """Whether all that belongs to it is there."""
        return self.outputs.is_done(self._pending.log_of(rest), rest.until)

    def _got(self, rest: PendingDelivery) -> None:
        with self._queries.lock:
            if self._over or not self._pending.has(rest):  # it has removed itself
                return
            log = self._pending.log_of(rest)
            self._store.commit(self._pending.got(rest))
            self.outputs.let_go(log)

    def _close(self, output: str, sink: Sink) -> None:
        """Close a sink that has got everything of a query that was removed."""
        with self._queries.lock:
            if self._over or self.ending.get(output) is not sink:
                return
            del self.ending[output]
            self.outputs.lag_s.pop(output, None)
            self._store.commit(self._pending.close(output))
            self._release_thread(output, close=False)
        self._shut(output, sink)


@dataclass(frozen=True)
class _Task:
    """What is to be done for a sink next."""

    output: str
    sink: Sink
    unread: Unread | None
    """What it is to get; None if it has everything and is to be closed."""
    rest: PendingDelivery | None = None
    """Of which removed query that is."""
    done: bool = False
    """Whether that is all of it."""


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


def _busy(output: str, grace_s: float) -> SinkError:
    return SinkError(
        "SINK_BUSY",
        f"the sink did not return within {grace_s:g} s and was abandoned",
        where=f"output {output}",
        hint="what it has not confirmed waits for the next start",
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
