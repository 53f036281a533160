"""The engine: a network running on Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.catalog import record_catalog
from auroral.engine.endpoints import Endpoints
from auroral.engine.ingest.data_sets import StoredDataSets
from auroral.engine.ingest.streaming import StreamReader, declared_frames, rows_of
from auroral.engine.ingest.tables import require_tables
from auroral.engine.inspect.cautions import log_cautions, log_infeasible
from auroral.engine.inspect.statistics import describe_entity, entities, statistics
from auroral.engine.lifecycle.editor import NetworkEditor
from auroral.engine.lifecycle.edits import NetworkEdit, read_edit
from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.engine.lifecycle.stored_network import StoredNetwork
from auroral.engine.locks import EngineLocks
from auroral.engine.options import require_options
from auroral.engine.parts import PartOptions, put_together
from auroral.engine.points.attach_socket import AttachServer
from auroral.engine.points.live_attachment import LiveAttachment
from auroral.engine.points.look import KeptRows, ReadTable, table_frame
from auroral.engine.queries.modification import requested
from auroral.engine.queries.registrar import Registrar
from auroral.engine.runtime.clock import MonotoneClock, last_time_us
from auroral.engine.runtime.loop import not_drained
from auroral.engine.sinks.file_ownership import require_own_files
from auroral.engine.topology.superboxes import declared_jars, require_executable, require_jars
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
from auroral.network.check import check
from auroral.network.data_sets import with_data_sets
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.qos.graphs import QoS
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.spark.running.executor import SparkExecutor, StepExecutor
from auroral.spark.session.causes import FROM_SPARK, reason
from auroral.spark.session.session import cores_of, start_session, step_session
from auroral.storage import Store
from auroral.storage.identity import default_buckets

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
        self._master = master
        self._state = state
        self._durability = durability or network.engine.durability
        self._train = train or network.engine.train_tuples or DEFAULT_TRAIN
        self._buckets = buckets or network.engine.buckets
        self._clock = clock
        self._given_spark = spark
        self._dead_path = Path(dead_letters) if dead_letters else None
        self._driver_bytes = driver_bytes
        self._reuse_plans = reuse_plans
        self._background = background
        declared = network.engine.workers
        self._workers = workers or (None if declared == "auto" else declared)
        self._step_timeout_s = step_timeout_s or network.engine.step_timeout_s
        self._executor = executor
        self._sink_grace_s = float(sink_grace_s)
        self._tables = tables or {}
        self._jars = jars
        require_tables(self._tables, network)
        self._given_now_us = now_us
        self._fault = fault
        self._started = False
        self.edited: dict[str, list[str]] = {}
        """What `start` has changed in a state directory whose network was declared otherwise."""
        self._endpoints = Endpoints()

    # ── life ──

    def start(self) -> Engine:
        """Check the network, open its state, start Spark and begin to work."""
        if self._started:
            raise UsageError("ALREADY_STARTED", "the engine runs already")
        self._given = with_late_outputs(
            with_data_sets(self.network.flattened()), self._endpoints.sinks
        )
        self.network = self._given
        self.check()
        self._locks = EngineLocks()
        self._store = Store(
            self._state,
            cores=min(os.cpu_count() or 2, 8),
            buckets=self._buckets,
            default_buckets=default_buckets(self._cores()),
            durability=self._durability,
            fault=self._fault,
            lock=self._locks.store,
        )
        try:
            self._now_us = MonotoneClock(self._given_now_us, after=last_time_us(self._store))
            # Before Spark starts: a wrong directory should be told at once.
            stored = StoredNetwork(self._store, self._given, self._endpoints.sinks)
            declared = stored.bind()
            self.network = declared.network
            self._data_sets = self._stored_data_sets(self.network)
            executor = self._executor or self._start_spark()
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
        if self._background:
            loop = self._loop
            loop.execution.sinks.start(
                self._sink_grace_s,
                tell=loop.wake,
                fail=loop.fail,
                is_well=lambda: loop.failure is None,
            )
        self._loop.start()
        self._server: AttachServer | None = None
        if self._background:
            self._indexing.maintenance.start()
        if stored.edited:
            edit = NetworkEdit({}, [], self._given, whole=True)
            self.edited = self._editor.edit(edit, by_file=True)
        self._attaching.on_demand.end_unused()  # those of queries that ended with the last run
        if self._background and self._store.durable:
            self._server = AttachServer(self._store.directory, self._attach_for_a_while)
        self._read_declared_streams()
        return self

    def _stored_data_sets(self, network: Network) -> StoredDataSets:
        return StoredDataSets(network, self._store.directory, sync=self._store.power)

    def _attach_for_a_while(self, point: str, sql: str, follow: bool) -> LiveAttachment:
        """Attach a query that another process asks for; with `follow` for what flows, too."""
        self._require_running()
        if not follow:
            self._attaching.on_demand.require_history(point)
        name = self._attaching.attach(point, sql, None, None, lasting=False)
        self._loop.wake()
        moment = self._ingest.next_moment
        return LiveAttachment(
            take=partial(self.dequeue, name),
            wait=self.wait,
            detach=partial(self.detach, name),
            caught_up=lambda: self._attachments.has_reached(name, moment),
        )

    def _start_spark(self) -> SparkExecutor:
        self.spark = self._given_spark or start_session(
            self._master, jars=[*declared_jars(self.network), *self._jars]
        )
        return SparkExecutor(step_session(self.spark), reuse_plans=self._reuse_plans)

    def _cores(self) -> int:
        """How many tasks run at once; asked before Spark starts."""
        given = self._given_spark
        return cores_of(self._master if given is None else str(given.sparkContext.master))

    def check(self) -> None:
        """Refuse what can be seen to fail without Spark; `start` begins with it."""
        require_executable(self.network.flattened(), self._endpoints.sinks, self._tables)
        if self._given_spark is None:
            require_jars(self.network)
        if self._state is not None:
            require_local(self._state, "state")
        require_own_files(
            self.network, self._endpoints.sources, self._endpoints.sinks, self._dead_path
        )

    def _read_declared_streams(self) -> None:
        """Sources in a format of Spark's own run as Structured Streaming queries."""
        try:
            if self._executor is None:
                for name, frame in declared_frames(
                    self.network, self._endpoints.sources, self.spark
                ):
                    self.read_stream(name, frame)
        except AuroralError:
            self.shutdown()
            raise

    def _open(
        self,
        registrar: Registrar,
        executor: StepExecutor,
        declared: DeclaredNetwork,
        stored: StoredNetwork,
    ) -> None:
        edited = stored.edited
        options = PartOptions(
            self._tables,
            self._train,
            self._driver_bytes,
            self._step_timeout_s,
            self._workers,
            self._background,
            self._clock == "arrival",
            self._dead_path,
        )
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
            options,
        )
        self.network = parts.network
        self._endpoints.serve(parts)
        self._readers: list[StreamReader] = []
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
        self._attaching, self._attachments = parts.attaching, parts.attachments
        self._indexing, self._history = parts.indexing, parts.context.history
        execution = parts.loop.execution
        try:
            # What waits for sinks of queries that the network has no more comes first.
            self._endpoints.bind_declared(self.network, last=False)
            if not edited:
                self._changing.change(*self._queries.declared(), declared=True)
                registrar.registered()
                self._record_catalog()
            self._endpoints.bind_declared(self.network, last=not edited)
            self._data_sets.push(self._ingest, execution.checked)
        except BaseException:
            execution.sinks.close()
            raise

    def _record_catalog(self) -> None:
        """Let the catalog say what there is now."""
        if self._store.durable:
            record_catalog(self._store, self.network, self._declared)

    def story(self, name: str) -> list[dict[str, Any]]:
        """Why a box, output, stream or query ran, waited, was moved or shed; newest last."""
        self._require_running()
        describe_entity(name, self.network, self._loop.execution.plan.unmoved, self.stats())
        return self._context.decisions.story(name)

    def set_qos(self, output: str, qos: QoS | Mapping[str, Any] | None) -> None:
        """Judge an output, or a view, by other graphs from now on; None: by the default.

        It also holds after a restart, until the network file or `modify` say something else of
        the output.
        """
        require_name(output, "an output")
        self._require_running()
        self._context.quality.set_qos(output, qos)
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
        require_executable(network, self._endpoints.sinks, self._tables)
        require_own_files(network, self._endpoints.sources, self._endpoints.sinks, self._dead_path)

    def _change_network(self, network: Network, stored: StoredDataSets) -> None:
        """The network is another from now on."""
        self.network, self._data_sets = network, stored
        self._declared = check(network, self._context.settings.executor.resolver)
        self._record_catalog()

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
        found = self._attaching.attach(point, query, name, since)
        self._loop.wake()
        return found

    def sql(self, query: str) -> pa.Table:
        """The rows of a SELECT over tables and over what connection points and views keep.

        Spark answers it, over what is there now. Only declared names can be read.
        """
        self._require_running()
        executor = self._context.settings.executor
        if not isinstance(executor, SparkExecutor):
            raise UsageError("NO_SPARK", "SQL over what is kept needs Spark")
        with self._loop.between_rounds():
            self._loop.execution.stepper.fold(self._ingest.seal())
        kept = KeptRows(self._store, self._history, self._table_frames())
        return kept.select(executor.session, self._loop.execution, query)

    def _table_frames(self) -> dict[str, ReadTable]:
        """How Spark gets the rows of tables as they are now."""
        declared = (self.network.compact or self.network).tables
        return {name: table_frame(partial(self.table, name)) for name in declared}

    def detach(self, name: str) -> None:
        """End an attached query; what nobody has taken of its results is dropped."""
        self._require_running()
        self._loop.require_outside("detach a query")
        self._attaching.detach(name)
        self._loop.wake()

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
        for reader in self._readers:
            reader.stop()
        self._indexing.maintenance.stop()
        if self._server is not None:
            self._server.close()
        self._loop.stop()
        self._loop.execution.sinks.stop()
        with self._loop.between_rounds(), self._changing.lock, ExitStack() as stack:
            with self._queries.lock:  # who takes results records that before
                self._started = False
            stack.callback(self._store.close)
            stack.callback(self._dead.close)
            stack.callback(self._context.tables.close)
            stack.callback(self._loop.execution.sinks.close)
            stack.callback(self._context.history.close)
            stack.callback(self._ingest.close, seal=self._loop.failure is None)
            return self._statistics()

    def __enter__(self) -> Engine:
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
        self._require_running()
        self._data_sets.require_other(stream)
        batches = [rows]
        if isinstance(rows, DataFrame):
            whole = position is not None
            batches = list(rows_of(rows, self._store.directory, stream, whole=whole))
        accepted = sum(self._ingest.enqueue(stream, batch, position) for batch in batches)
        self._loop.wake()
        return accepted

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
        self._readers.append(reader)
        return reader

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
        for reader in self._readers:
            left = None if timeout_s is None else max(since + timeout_s - time.monotonic(), 0.0)
            if not reader.drain(left):
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
        reading = any(reader.active for reader in self._readers)
        for reader in self._readers:  # after that: one that fails in between has not ended
            reader.require_alive()
        return not reading and self._loop.reached(None)

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

    # ── looking ──

    def typecheck(self, network: Network | None = None) -> dict[str, str]:
        """Every arc of this network, or of another one, with its schema."""
        resolver = self._context.settings.executor.resolver if self._started else None
        arcs = (network or self.network).check(resolver).arcs
        return {name: str(arc.schema) for name, arc in arcs.items()}

    def list_entities(self) -> dict[str, list[str]]:
        """The names of streams, boxes, outputs and the rest."""
        queries = self._queries.catalogue.names() if self._started else None
        return entities(self.network, queries)

    def describe(self, name: str) -> dict[str, Any]:
        """What is known of one entity: its declaration, schema, counts and progress."""
        self._require_running()
        checked = self._loop.execution.plan.unmoved
        found = describe_entity(name, self.network, checked, self.stats())
        if "quality" in found:
            found["quality"] |= self._context.quality.described(name)
        return found

    def stats(self) -> dict[str, Any]:
        """Tuples in and out, steps, times, queues, dead letters and progress."""
        self._require_running()
        return self._statistics()

    def recent_steps_s(self) -> list[float]:
        """How long the latest steps took, a thousand at most."""
        return list(self._loop.execution.stepper.durations_s)

    def _statistics(self) -> dict[str, Any]:
        stats = statistics(
            self._loop.execution, self._store, self._queries, wall=self._clock == "wall"
        )
        stats["connection_points"] = {
            name: point.statistics(self._attachments.on(name)) | self._indexing.statistics(name)
            for name, point in self._context.history.points.items()
        }
        stats["attachments"] = self._attachments.statistics()
        stats["shedding"] = self._context.shedding.statistics()
        stats["connection_points"] |= self._data_sets.statistics()
        for stream, count in self._loop.retries.items():
            if count:
                stats["streams"][stream]["retries"] = count
        return stats

    @property
    def dead_letters(self) -> Path:
        """The file that rows which did not fit are written to; it exists if there are any."""
        return self._dead.path

    def _require_running(self) -> None:
        if not self._started:
            raise UsageError("NOT_STARTED", "start the engine first, or use it in a with block")
        if self._loop.failure is not None:
            raise self._loop.failure
