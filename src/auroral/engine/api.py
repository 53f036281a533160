"""The engine: a network running on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.catalog import record_catalog
from auroral.engine.debug.debugger import Debugger
from auroral.engine.endpoints import Endpoints
from auroral.engine.ingest.data_sets import StoredDataSets
from auroral.engine.ingest.ingest import Receipt
from auroral.engine.ingest.streaming import StreamReader, StreamReaders, declared_frames, rows_of
from auroral.engine.ingest.tables import require_tables
from auroral.engine.inspect.cautions import log_cautions, log_infeasible
from auroral.engine.inspect.followers import Follower
from auroral.engine.inspect.looking import Looking
from auroral.engine.inspect.statistics import entities
from auroral.engine.lifecycle.editor import NetworkEditor
from auroral.engine.lifecycle.edits import NetworkEdit, read_edit
from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.engine.lifecycle.stored_network import StoredNetwork
from auroral.engine.locks import EngineLocks
from auroral.engine.options import require_options
from auroral.engine.parts import PartOptions, put_together
from auroral.engine.points.attach_socket import AttachServer
from auroral.engine.points.live_attachment import attach_for_a_while
from auroral.engine.queries.modification import requested
from auroral.engine.queries.registrar import Registrar
from auroral.engine.runtime.clock import MonotoneClock, last_time_us
from auroral.engine.runtime.loop import not_drained
from auroral.engine.sinks.file_ownership import require_own_files
from auroral.engine.starting import SparkOptions, StateOptions
from auroral.engine.topology.superboxes import require_executable, require_jars
from auroral.errors import (
    AuroralError,
    RunError,
    UsageError,
    require_name,
)
from auroral.io.open import as_sink
from auroral.io.paths import require_local
from auroral.io.sinks.sink import Delivery, Sink
from auroral.io.sources.source import Source
from auroral.network.arc import Arc
from auroral.network.box import Resolver
from auroral.network.check import check
from auroral.network.data_sets import with_data_sets
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.qos.graphs import QoS
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.spark.running.executor import StepExecutor
from auroral.spark.session.causes import FROM_SPARK, reason

_DRIVER_BYTES = 256 << 20


class Engine:
    """Runs a network: tuples in by `enqueue` or sources, results out by `dequeue` or sinks.

    With `state` everything survives a crash of the process, and a power failure unless
    `durability` is `process`; the same call goes on. `train` is the most tuples of one step.
    `buckets` is into how many parts the state of keyed boxes is split, when it is made.
    `clock` is `wall`, or `arrival`: time is what the column `_at` says. `spark` is a session to
    use instead of an own one. `tables` gives the rows of static tables that have no store.
    `jars` are files with connectors of Spark's, besides those that the network names. `workers`
    is how many steps may be under way at the same time; a step that takes longer than
    `step_timeout_s` is ended, and its query or box does nothing more. `executor` runs steps
    elsewhere than on Spark, as in tests. A sink that does
    not return within `sink_grace_s` seconds when the engine ends is abandoned (`SINK_BUSY`).
    """

    def __init__(
        self,
        network: Network,
        *,
        master: str = "local[*]",
        state: str | Path | None = None,
        durability: str | None = None,
        train: int | None = None,
        buckets: int | None = None,
        clock: str = "wall",
        spark: SparkSession | None = None,
        dead_letters: str | Path | None = None,
        driver_bytes: int = _DRIVER_BYTES,
        reuse_plans: bool | None = None,
        background: bool = True,
        sink_grace_s: float = 10.0,
        tables: Mapping[str, Any] | None = None,
        jars: Sequence[str | Path] = (),
        workers: int | None = None,
        step_timeout_s: float | None = None,
        executor: StepExecutor | None = None,
        now_us: Callable[[], int] | None = None,
        fault: Callable[[str], None] = lambda _point: None,
    ):
        require_options(
            clock=clock,
            durability=durability,
            train=train,
            workers=workers,
            sink_grace_s=sink_grace_s,
            buckets=buckets,
        )
        self.network = network.importing()
        declared = network.engine
        durability = durability or declared.durability
        self._state_options = StateOptions(state, durability, buckets or declared.buckets, fault)
        self._spark_options = SparkOptions(master, spark, jars, reuse_plans)
        self._options = PartOptions(
            tables or {},
            train or declared.train_tuples or DEFAULT_TRAIN,
            driver_bytes,
            step_timeout_s or declared.step_timeout_s,
            workers or (None if declared.workers == "auto" else declared.workers),
            background,
            clock == "arrival",
            Path(dead_letters) if dead_letters else None,
        )
        self._background = background
        self._executor = executor
        self._sink_grace_s = float(sink_grace_s)
        require_tables(self._options.tables, network)
        self._given_now_us = now_us
        self._started = False
        self.edited: dict[str, list[str]] = {}
        """What `start` has changed in a state directory whose network was declared otherwise."""
        self._endpoints = Endpoints()

    # ── life ──

    def start(self) -> Self:
        """Check the network, open its state, start Spark and begin to work."""
        if self._started:
            raise UsageError("ALREADY_STARTED", "the engine runs already")
        flat = with_data_sets(self.network.flattened())
        self._given = with_late_outputs(flat, self._endpoints.sinks)
        self.network = self._given
        self.check()
        self._locks = EngineLocks()
        self._store = self._state_options.open(self._locks, self._spark_options.cores)
        try:
            self._now_us = MonotoneClock(self._given_now_us, after=last_time_us(self._store))
            # Before Spark starts: a wrong directory should be told at once.
            stored = StoredNetwork(self._store, self._given, self._endpoints.sinks)
            declared = stored.bind()
            self.network = declared.network
            directory, power = self._store.directory, self._store.power
            self._data_sets = StoredDataSets(self.network, directory, sync=power)
            executor = self._executor
            if executor is None:
                self.spark, executor = self._spark_options.start(self.network)
            registrar = Registrar(self._given, executor.resolver)
            self._declared = check(self._given, executor.resolver, registrar.check)
            if self.network is not self._given:
                stored.serve(registrar, self.network)
            self._open(registrar, executor, declared, stored)
        except BaseException as error:
            self._store.close()
            if isinstance(error, FROM_SPARK):
                raise RunError("SPARK_FAILED", reason(error), where="start") from error
            raise
        log_cautions(self.network)
        flow = self._context.quality.flow_outputs()
        log_infeasible(self._loop.execution.checked, self._store.costs, flow)
        self._started = True
        self._loop.start(self._sink_grace_s)
        self._server: AttachServer | None = None
        if self._background:
            self._indexing.maintenance.start()
        if stored.edited:
            self.edited = self._editor.edit(
                NetworkEdit({}, [], self._given, whole=True), by_file=True
            )
        self._attaching.on_demand.end_unused()  # those of queries that ended with the last run
        if self._background and self._store.durable:
            attach = partial(attach_for_a_while, self, self._parts)
            self._server = AttachServer(self._store.directory, attach)
        given = self._endpoints.sources
        try:
            if self._executor is None:
                for name, frame in declared_frames(self.network, given, self.spark):
                    self.read_stream(name, frame)
        except AuroralError:
            self.shutdown()
            raise
        return self

    def check(self) -> None:
        """Refuse what can be seen to fail without Spark; `start` begins with it."""
        self._require_runnable(self.network.flattened())
        if self._spark_options.session is None:
            require_jars(self.network)
        if self._state_options.directory is not None:
            require_local(self._state_options.directory, "state")

    def _open(
        self,
        registrar: Registrar,
        executor: StepExecutor,
        declared: DeclaredNetwork,
        stored: StoredNetwork,
    ) -> None:
        edited = stored.edited
        parts = put_together(
            self._store,
            self._locks,
            self._now_us,
            executor,
            registrar,
            declared,
            stored.restored,
            # The streams of a network that is to be changed may be others.
            lambda network: [] if edited else self._endpoints.all_sources(network),
            self._options,
        )
        self.network, self._parts = parts.network, parts
        self._endpoints.serve(parts)
        wall = not self._options.arrival
        self._looking = Looking(parts, self._store, lambda: self._data_sets, wall=wall)
        self._readers = StreamReaders()
        self._context, self._ingest, self._loop = parts.context, parts.ingest, parts.loop
        self._queries, self._dead = parts.context.queries, parts.context.dead
        self._changing = parts.changing
        self._editor = NetworkEditor(
            parts,
            self._store,
            self._locks,
            self._endpoints.sinks,
            require=self._require_runnable,
            bind=lambda last: self._endpoints.bind_declared(self.network, last=last),
            sources_of=self._endpoints.all_sources,
            made=self._change_network,
        )
        self._debugger = Debugger(parts, self._editor)
        self._attaching, self._attachments = parts.attaching, parts.attachments
        self._indexing, self._history = parts.indexing, parts.context.history
        execution = parts.loop.execution
        try:
            # What waits for sinks of queries that the network has no more comes first.
            self._endpoints.bind_declared(self.network, last=False)
            if not edited:
                self._changing.change(*self._queries.declared(), declared=True)
                registrar.registered()
                record_catalog(self._store, self.network, self._declared)
            self._endpoints.bind_declared(self.network, last=not edited)
            self._data_sets.push(self._ingest, execution.checked)
        except BaseException:
            execution.sinks.close()
            raise

    def story(self, name: str) -> list[dict[str, Any]]:
        """Why a box, output, stream or query ran, waited, was moved or shed; newest last."""
        self._require_running()
        return self._looking.story(name, self.network)

    def set_qos(self, output: str, qos: QoS | Mapping[str, Any] | None) -> None:
        """Judge an output, or a view, by other graphs from now on; None: by the default.

        It holds after a restart too, until the network file or `modify` says something else.
        """
        require_name(output, "an output")
        self._require_running()
        self._editor.set_qos(output, qos)
        self._loop.wake()

    # ── queries come and go ──

    def modify(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        remove: Sequence[str] = (),
        network: Network | None = None,
    ) -> dict[str, list[str]]:
        """Change the network while data flow, wholly or not at all.

        `add` maps names to declarations: queries as SQL, `Query` or `Family`, rows for more
        members of a family that is there, boxes, streams, outputs and the rest as objects or as
        the keys of a network file, also under `streams`, `boxes` and so on. `remove` lists names,
        members as in `alerts[17]`, or `outputs.alerts` for an output that is called like a box.
        What is in both is replaced. With `network` the whole network is another.

        New boxes and queries see the tuples that arrive after the call. Returns what was added,
        removed and rebuilt, and whether the state of rebuilt boxes was kept, drained or reset.
        """
        self._require_running()
        self._attachments.require_free(add or {})
        wanted = self._read_edit(add, remove, network)
        if wanted.network is None:
            self._changing.change(*requested(wanted.add, wanted.remove))
            self._loop.wake()
            return wanted.queries_report()
        self._loop.require_outside("change the network")
        with self._locks.network:  # what is there now may be another network
            return self._editor.edit(self._read_edit(add, remove, network), by_file=False)

    def _read_edit(self, add: Any, remove: Any, network: Network | None) -> NetworkEdit:
        return read_edit(self.network.compact or self.network, add, remove, network)

    def _require_runnable(self, network: Network) -> None:
        sources, sinks = self._endpoints.sources, self._endpoints.sinks
        require_executable(network, sinks, self._options.tables)
        require_own_files(network, sources, sinks, self._options.dead_letters)

    def _change_network(self, network: Network, stored: StoredDataSets | None) -> None:
        """The network is another from now on; it may have the same stored data sets."""
        self.network, self._data_sets = network, stored or self._data_sets
        self._declared = check(network, self._context.settings.executor.resolver)
        record_catalog(self._store, network, self._declared)

    # ── queries over the past ──

    def attach(
        self,
        point: str,
        query: str | Callable[[Arc], Arc],
        *,
        name: str | None = None,
        since: Any = None,
    ) -> str:
        """Attach a query to a connection point or a view, and return its name.

        `query` is SQL over the point's name, or a function from arc to arc. It gives what the point
        keeps, from `since` on if that is given, a value of the field by which the arc makes
        progress, and then what flows, until `detach`. `dequeue` and `bind_sink` know it by its
        name.
        """
        self._require_running()
        self._loop.require_outside("attach a query")
        return self._attaching.attach(point, query, name, since)

    def sql(self, query: str, limit: int | None = None, *, job: str | None = None) -> pa.Table:
        """The first rows of a SELECT over tables, points, views as of now; see `cancel_sql`."""
        self._require_running()
        return self._looking.sql(query, self.network, limit, job)

    def cancel_sql(self, job: str) -> None:
        """End a SELECT that was given this `job`, from another thread."""
        self._looking.cancel_sql(job)

    def detach(self, name: str) -> None:
        """End an attached query; what nobody has taken of its results is dropped."""
        self._require_running()
        self._loop.require_outside("detach a query")
        self._attaching.detach(name)

    def matches(self, query: str | None = None) -> pa.Table:
        """How often each query matched, exactly once, and on how many tuples it failed."""
        self._require_running()
        return self._queries.catalogue.matches(query)

    def shutdown(self) -> dict[str, Any]:
        """Stop after the step under way; what is not processed stays for the next start.

        So does what a sink has not confirmed that does not return within `sink_grace_s` seconds.
        Returns the statistics as they are at the end.
        """
        if not self._started:
            return {}
        self._loop.require_outside("end the engine that called it")
        self._readers.stop()
        self._indexing.maintenance.stop()
        if self._server is not None:
            self._server.close()
        self._loop.stop()
        self._loop.execution.sinks.stop()
        with self._loop.between_rounds(), self._changing.lock, ExitStack() as stack:
            with self._queries.lock:  # who takes results records that before
                self._started = False
            stack.callback(self._parts.close)
            return self._looking.statistics()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        if error is None:
            if self._loop.failure is not None:
                raise self._loop.failure
            self._loop.execution.require_well()

    # ── data in and out ──

    def enqueue(self, stream: str, rows: Any, *, position: Any | None = None) -> int:
        """Push tuples: dicts, tuples, Arrow, pandas or a Spark DataFrame; returns how many fit.

        Rows that do not fit become dead letters. With `position` (any JSON value) the batch is
        taken once: after a restart `position(stream)` tells which was the last.
        """
        if not isinstance(rows, DataFrame):
            return self.receive(stream, rows, position=position).accepted
        self._require_running()
        whole = position is not None
        batches = list(rows_of(rows, self._store.directory, stream, whole=whole))
        return sum(self.receive(stream, batch, position=position).accepted for batch in batches)

    def receive(self, stream: str, rows: Any, *, position: Any | None = None) -> Receipt:
        """As `enqueue`, but for a Spark DataFrame; also tells dead letters and the first moment."""
        self._require_running()
        self._data_sets.require_other(stream)
        receipt = self._ingest.enqueue(stream, rows, position)
        self._loop.wake()
        return receipt

    def backlog(self) -> int:
        """How many moments have arrived that the slowest box has not processed."""
        self._require_running()
        return max(self._ingest.next_moment - self._loop.execution.stepper.slowest_head(), 0)

    def position(self, stream: str) -> Any | None:
        """The position of the last batch or source chunk that was taken."""
        self._require_running()
        return self._ingest.position(stream)

    def read_stream(
        self, stream: str, frame: DataFrame, *, trigger: Mapping[str, Any] | None = None
    ) -> StreamReader:
        """Feed a stream from any Spark `readStream`, each micro-batch exactly once."""
        self._require_running()
        self._ingest.position(stream)  # there must be such a stream
        reader = StreamReader(self, stream, frame, self._store, trigger=trigger or {})
        return self._readers.add(reader)

    def dequeue(self, output: str, limit: int | None = None, *, shed: bool = False) -> pa.Table:
        """What came on an output since the last call, in order of emission.

        With `shed` the column `_shed` says which share of the input tuples that a result comes
        from was dropped by load shedding.
        """
        require_name(output, "an output or a query")
        self._require_running()
        outputs = self._loop.execution.outputs
        if output in self._attachments and outputs.found(output) is None:
            self._attachments.require_well(output)
        table = outputs.dequeue(output, limit, self._require_running, shed=shed)
        if not table.num_rows:
            self._attachments.require_well(output)
        return table

    def dequeue_all(self, name: str | None = None, limit: int | None = None) -> pa.Table:
        """The results of many queries, each tuple once, with the list of its `queries`.

        `name` is a stream with queries over it, a family or a query; it may be left out if there
        is one stream.
        """
        self._require_running()
        outputs = self._loop.execution.outputs
        return outputs.dequeue_all(name, limit, self._require_running)

    def table(self, name: str) -> pa.Table:
        """The rows of a table as they are now, in the order of its key."""
        require_name(name, "a table")
        self._require_running()
        return self._context.tables.rows(self.network, name)

    def drain(self, timeout_s: float | None = None) -> None:
        """Wait until everything that has been enqueued is processed and delivered.

        After `timeout_s` seconds that is a `TIMEOUT`, whatever sources do. Without threads of its
        own (`background=False`) the engine looks at the time between steps.

        If a sink has failed, that is told when all others have got everything.
        """
        self._drain(timeout_s)
        self._loop.execution.require_well()
        self._attachments.require_well()

    def _drain(self, timeout_s: float | None = None) -> None:
        self._require_running()
        self._loop.require_outside("wait until everything is delivered")
        since = time.monotonic()
        if not self._readers.drain(since, timeout_s):
            raise not_drained(timeout_s)
        self._loop.drain(timeout_s, endless=self._endpoints.endless, since=since)

    def finish(self) -> None:
        """Declare the end of all input: every window closes, marks go to the end."""
        self._drain()
        if not self.ended:
            with self._loop.between_rounds():
                self._loop.execution.watermarks.end(self._ingest.end())
            self._loop.wake()
        self.drain()

    @property
    def idle(self) -> bool:
        """Whether all sources have ended and everything is processed and delivered."""
        self._require_running()
        return not self._readers.are_active() and self._loop.reached(None)

    def wait(self, timeout_s: float) -> None:
        """Sleep until something happened, at most so long."""
        self._loop.wait(timeout_s)
        self._require_running()

    @property
    def ended(self) -> bool:
        """Whether the input was declared to have ended, now or in an earlier run."""
        return self._ingest.ended is not None

    # ── sources and sinks ──

    def bind_source(
        self, source: Source, *, name: str | None = None, idle: str | float | None = None
    ) -> None:
        """Feed a stream from a source, at any time.

        Several sources may feed one stream: each has a `name`, a number if none is given, and a
        mark of its own, and the stream's mark is the least of these. One that brings nothing for
        `idle` (seconds, or text as `30 s`) is not waited for.
        """
        source = self._endpoints.labelled(self.network, source, name, idle)
        if not self._started:
            self._endpoints.sources.append(source)
            return
        self._require_running()
        self._endpoints.bind_source(self.network, source)

    def unbind_source(self, stream: str, name: str | None = None) -> None:
        """Read no more from the source of a stream, or from the one of its sources with a name.

        What it has brought stays; a source that is bound again under the name goes on behind it.
        """
        self._require_running()
        self._endpoints.unbind_source(self.network, stream, name)

    def bind_sink(self, output: str, sink: Sink | Callable[[Delivery], object]) -> None:
        """Deliver an output or a query to a sink or a function, at any time.

        If its sink has failed, this one takes what is left.
        """
        require_name(output, "an output or a query")
        sink = as_sink(sink)
        if not self._started:
            self._endpoints.sinks[output] = sink
            return
        self._require_running()
        self._endpoints.bind_sink(self.network, output, sink, self._require_running)

    def unbind_sink(self, output: str) -> None:
        """Deliver an output no more; what its sink has not got waits for `dequeue` or another."""
        require_name(output, "an output or a query")
        self._require_running()
        self._endpoints.unbind_sink(output)

    # ── finding out: see docs/how-to/debug.md ──

    def pause(self, application: str | None = None) -> dict[str, Any]:
        """Let nothing run, or no box that serves only paused outputs; returns `debug_state()`.

        Steps under way end, and input is still taken. A restart is not paused.
        """
        return self._debugging.pause(application)

    def resume(self, application: str | None = None) -> dict[str, Any]:
        """Go on after `pause` or a breakpoint, with everything or one output."""
        return self._debugging.resume(application)

    def step(
        self, kind: str = "train", application: str | None = None, count: int = 1
    ) -> list[dict[str, Any]]:
        """While paused, run the next train, or the next moment through all boxes it reaches.

        `kind` is `train` or `tuple`. Returns the trace: for each box what went in and came out.
        """
        return self._debugging.step(kind, application, count)

    def debug_state(self) -> dict[str, Any]:
        """Whether and what is paused, which breakpoint was hit, all breakpoints, the last trace."""
        return self._debugging.state()

    def set_breakpoint(
        self, arc: str, condition: str | None = None, *, enabled: bool = True
    ) -> str:
        """Pause before a tuple of an arc that satisfies a condition is processed; returns an id."""
        return self._debugging.set_breakpoint(arc, condition, enabled=enabled)

    def remove_breakpoint(self, id: str) -> None:
        """Forget a breakpoint."""
        self._debugging.remove_breakpoint(id)

    def enable_breakpoint(self, id: str, enabled: bool = True) -> None:
        """Let a breakpoint stop the engine, or not."""
        self._debugging.enable_breakpoint(id, enabled)

    def sample(self, arc: str, limit: int = 100, where: str | None = None) -> pa.Table:
        """The latest tuples of an arc, output, query or point, newest last.

        The first columns are `_seq` (moment) and `_at` (entry time).
        """
        return self._debugging.sample(arc, limit, where)

    def point_rows(
        self,
        point: str,
        key: Any = None,
        since: Any = None,
        until: Any = None,
        limit: int = 1000,
        before: int | None = None,
    ) -> pa.Table:
        """What a point or view keeps, by key and time: the latest `limit` rows below `before`."""
        return self._debugging.point_rows(point, key, (since, until), limit, before)

    def follow(self, output: str) -> Follower:
        """Follow what an output or query gives from now on, without taking it."""
        return self._debugging.follow(output)

    def send(self, stream: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Enqueue one tuple made by hand; returns its `moment`."""
        self._require_running()
        self._data_sets.require_other(stream)
        return self._debugger.send(stream, row)

    def replay(
        self, point: str, since: Any = None, until: Any = None, into: str | None = None
    ) -> str:
        """Let a stretch of kept history flow again into a branch of its own; returns its name.

        `since` and `until` are values of the field by which the arc makes progress. `into` is SQL
        over the point's name, or the name of an attached query; by default all rows come.
        """
        self._require_running()
        self._loop.require_outside("replay history")
        return self._debugger.replay(point, since, until, into)

    def preview_change(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        remove: Sequence[str] = (),
        network: Network | None = None,
    ) -> dict[str, list[str]]:
        """What `modify` would do, without doing it; what it would refuse is refused."""
        self._require_running()
        self._attachments.require_free(add or {})
        return self._debugger.preview_change(self._read_edit(add, remove, network))

    # ── looking ──

    @property
    def resolver(self) -> Resolver | None:
        """What tells the types of functions that only Spark knows."""
        return self._context.settings.executor.resolver if self._started else None

    def typecheck(self, network: Network | None = None) -> dict[str, str]:
        """Every arc of this network, or of another one, with its schema."""
        arcs = (network or self.network).check(self.resolver).arcs
        return {name: str(arc.schema) for name, arc in arcs.items()}

    def list_entities(self) -> dict[str, list[str]]:
        """The names of streams, boxes, outputs and the rest."""
        queries = self._queries.catalogue.names() if self._started else None
        return entities(self.network, queries)

    def describe(self, name: str) -> dict[str, Any]:
        """What is known of one entity: its declaration, schema, counts and progress."""
        self._require_running()
        return self._looking.describe(name, self.network)

    def stats(self) -> dict[str, Any]:
        """Tuples in and out, steps, times, queues, dead letters and progress."""
        self._require_running()
        return self._looking.statistics()

    def recent_steps_s(self) -> list[float]:
        """How long the latest steps took, a thousand at most."""
        return list(self._loop.execution.stepper.durations_s)

    @property
    def dead_letters(self) -> Path:
        """The file that rows which did not fit are written to; it exists if there are any."""
        return self._dead.path

    @property
    def _debugging(self) -> Debugger:
        self._require_running()
        return self._debugger

    def _require_running(self) -> None:
        if not self._started:
            raise UsageError("NOT_STARTED", "start the engine first, or use it in a with block")
        if self._loop.failure is not None:
            raise self._loop.failure
