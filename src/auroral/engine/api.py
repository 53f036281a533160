"""The engine: a network running on Spark."""

from __future__ import annotations

import copy
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.engine.context import EngineContext, Settings
from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.ingest.declared_sources import declared_sources, interleaved, named
from auroral.engine.ingest.ingest import Ingest
from auroral.engine.ingest.streaming import StreamReader, declared_frames, rows_of
from auroral.engine.ingest.tables import require_tables, snapshot
from auroral.engine.inspect.statistics import describe_entity, entities, statistics
from auroral.engine.lifecycle.changes import QueryChanges
from auroral.engine.locks import EngineLocks
from auroral.engine.points.attach_socket import AttachServer
from auroral.engine.points.attaching import Attaching
from auroral.engine.points.attachments import Attachments
from auroral.engine.points.history import KeptHistory
from auroral.engine.points.look import KeptRows, ReadTable, table_frame
from auroral.engine.queries.modification import requested
from auroral.engine.queries.registrar import Registrar
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.clock import MonotoneClock, last_time_us
from auroral.engine.runtime.loop import ALL_SOURCES, Loop, not_drained
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.sinks.declared import declared_sinks
from auroral.engine.sinks.file_ownership import require_own_files
from auroral.engine.topology.execution import build_execution, initial_plan
from auroral.engine.topology.identity import identity
from auroral.engine.topology.superboxes import declared_jars, require_executable, require_jars
from auroral.errors import AuroralError, RunError, UsageError, require_name, too_late
from auroral.io.open import as_sink, naming
from auroral.io.paths import require_local
from auroral.io.sinks.sink import Delivery, Sink
from auroral.io.sources.source import Source
from auroral.network.arc import Arc
from auroral.network.check import CheckedNetwork, check
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.spark.running.executor import SparkExecutor, StepExecutor
from auroral.spark.session.causes import FROM_SPARK, reason
from auroral.spark.session.session import cores_of, start_session, step_session
from auroral.storage import DURABILITIES, Store
from auroral.storage.identity import default_buckets

_LOG = logging.getLogger("auroral")
_MOST_QUERIES_WARNED_OF = 1_000
"""Of more queries the start does not ask whether their windows can close; `net.check()` does."""

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
        if clock not in ("wall", "arrival"):
            raise UsageError("BAD_OPTION", f"clock is wall or arrival, found {clock!r}")
        if durability not in (None, *DURABILITIES):
            known_levels = " or ".join(DURABILITIES)
            problem = f"durability is {known_levels}, found {durability!r}"
            raise UsageError("BAD_OPTION", problem)
        if train is not None and not (isinstance(train, Integral) and train >= 1):
            raise UsageError("BAD_OPTION", f"a train needs at least one tuple, found {train!r}")
        if workers is not None and not (isinstance(workers, Integral) and workers >= 1):
            raise UsageError("BAD_OPTION", f"steps need at least one worker, found {workers!r}")
        if not (isinstance(sink_grace_s, int | float) and sink_grace_s >= 0):
            problem = f"sink_grace_s is a number of seconds, found {sink_grace_s!r}"
            raise UsageError("BAD_OPTION", problem)
        if buckets is not None and not (isinstance(buckets, Integral) and 1 <= buckets <= 4096):
            raise UsageError("BAD_OPTION", f"buckets are 1 to 4096, found {buckets!r}")
        self.network = network.importing()
        self._master = master
        self._state = state
        self._durability = durability or network.engine.durability
        self._train = train or network.engine.train or DEFAULT_TRAIN
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
        self._sources: list[Source] = []
        self._sinks: dict[str, Sink] = {}

    # ── life ──

    def start(self) -> Engine:
        """Check the network, open its state, start Spark and begin to work."""
        if self._started:
            raise UsageError("ALREADY_STARTED", "the engine runs already")
        self.network = with_late_outputs(self.network, self._sinks)
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
            if self._store.durable:
                # Before Spark starts: a wrong directory should be told at once.
                self._store.bind_network(identity(self.network, self._sinks))
            executor = self._executor or self._start_spark()
            registrar = Registrar(self.network, executor.resolver)
            check(self.network, executor.resolver, registrar.check)
            self._open(registrar, executor)
        except BaseException as error:
            self._store.close()
            if isinstance(error, FROM_SPARK):
                raise RunError("SPARK_FAILED", reason(error), where="start") from error
            raise
        self._warn()
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
        if self._background and self._store.durable:
            self._server = AttachServer(self._store.directory, self._attach_for_a_while)
        self._read_declared_streams()
        return self

    def _attach_for_a_while(self, point: str, sql: str) -> LiveAttachment:
        """Attach a query that another process asks for."""
        self._require_running()
        name = self._attaching.attach(point, sql, None, None, lasting=False)
        self._loop.wake()
        return LiveAttachment(self, name)

    def _has_caught_up(self, name: str, moment: int) -> bool:
        return self._attachments.has_reached(name, moment)

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
        require_executable(self.network, self._sinks, self._tables)
        if self._given_spark is None:
            require_jars(self.network)
        if self._state is not None:
            require_local(self._state, "state")
        require_own_files(self.network, self._sources, self._sinks, self._dead_path)

    def _warn(self) -> None:
        """Log what is allowed but hardly meant; of very many queries, what boxes alone show."""
        network = self.network
        if len(network.queries) > _MOST_QUERIES_WARNED_OF:
            network = copy.copy(network)
            network.queries = {}
        with suppress(AuroralError):  # only Spark's analyzer may know some expression's type
            for caution in CheckedNetwork(network, {}, ()).warnings:
                _LOG.warning(caution)

    def _read_declared_streams(self) -> None:
        """Sources in a format of Spark's own run as Structured Streaming queries."""
        try:
            if self._executor is None:
                for name, frame in declared_frames(self.network, self._sources, self.spark):
                    self.read_stream(name, frame)
        except AuroralError:
            self.shutdown()
            raise

    def _open(self, registrar: Registrar, executor: StepExecutor) -> None:
        store = self._store
        self._dead = DeadLetters(self._dead_path or store.directory / "dead-letters.jsonl", store)
        self._readers: list[StreamReader] = []
        settings = Settings(
            self.network,
            executor,
            self._tables,
            self._sinks,
            self._train,
            self._driver_bytes,
            self._now_us,
            self._step_timeout_s,
        )
        self._queries = QueryRegistry(store, self.network, registrar, self._locks.queries)
        self._queries.restore()
        workers = (self._workers or executor.workers) if self._background else 0
        pool = StepPool[StepOutcome](workers, self._wake)
        threads: dict[str, Any] = {"background": self._background, "tell": self._wake}
        now_us = None if self._clock == "arrival" else self._now_us
        self._history = KeptHistory(store, now_us, **threads)
        self._attachments = Attachments(store, self._history, **threads)
        self._context = EngineContext(
            settings,
            store,
            self._queries,
            self._dead,
            pool,
            self._history,
            self._attachments,
            self._locks,
        )
        context = self._context
        plan = initial_plan(context)
        checked = plan.checked
        with_clock = WatermarkTracker(checked).uses_clock
        arrival = self._clock == "arrival"
        self._ingest = Ingest(
            checked,
            store,
            self._dead,
            self._now_us,
            with_clock=with_clock,
            arrival=arrival,
            after=self._queries.changed,
            lock=self._locks.ingest,
        )
        self._now_us.not_before(self._ingest.newest_us)
        execution = build_execution(context, plan, ended=self._ingest.ended)
        self._attachments.restore(execution)
        sources = [*self._sources, *declared_sources(self.network, self._sources)]
        self._endless = not all(source.finite for source in sources)
        self._loop = Loop(
            self._ingest,
            execution,
            interleaved(self.network, sources, store.manifest.source(ALL_SOURCES)),
            train=self._train,
            background=self._background,
            heartbeats=with_clock and self._clock == "wall",
            lock=self._locks.round,
        )
        self._changing = QueryChanges(self._queries, self._ingest, self._loop, self._locks.changes)
        self._attaching = Attaching(
            store,
            self.network,
            self._history,
            self._attachments,
            self._ingest,
            self._loop,
            self._locks.changes,
            self._queries.catalogue.names,
        )
        try:
            self._bind(last=False)  # what waits for sinks of queries that the network has no more
            self._changing.change(*self._queries.declared(), declared=True)
            registrar.registered()
            self._bind(last=True)
        except BaseException:
            execution.sinks.close()
            raise

    def _wake(self) -> None:
        """A worker has ended a step."""
        self._loop.wake()

    def _bind(self, *, last: bool) -> None:
        execution = self._loop.execution
        own = self._sinks
        declared = declared_sinks(self.network, execution.checked, execution.sinks.schema, own)
        execution.sinks.bind_all({**declared, **own}, self.network, last=last)

    # ── queries come and go ──

    def modify(self, *, add: Mapping[str, Any] | None = None, remove: Sequence[str] = ()) -> None:
        """Add and remove continuous queries while data flow, all of them or none.

        `add` maps names to SQL, `Query` or `Family`; to rows, for more members of a family that
        is there. `remove` lists queries, families, or members as in `alerts[17]`. Queries see the
        tuples that arrive after the call.
        """
        self._require_running()
        self._attachments.require_free(add or {})
        self._changing.change(*requested(add, remove))
        self._loop.wake()

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
        """How Spark reads the static tables."""
        network, store = self.network, self._store

        def path(name: str) -> str:
            return str(snapshot(network, name, store.directory, self._tables, sync=store.power))

        return {
            name: table_frame(partial(path, name), table.schema_)
            for name, table in network.tables.items()
        }

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
        if self._server is not None:
            self._server.close()
        self._loop.stop()
        self._loop.execution.sinks.stop()
        with self._loop.between_rounds(), self._changing.lock, ExitStack() as stack:
            with self._queries.lock:  # who takes results records that before
                self._started = False
            stack.callback(self._store.close)
            stack.callback(self._dead.close)
            stack.callback(self._loop.execution.sinks.close)
            stack.callback(self._history.close)
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

    def dequeue(self, output: str, limit: int | None = None) -> pa.Table:
        """What came on an output since the last call, in order of emission."""
        require_name(output, "an output or a query")
        self._require_running()
        outputs = self._loop.execution.outputs
        if output in self._attachments and outputs.found(output) is None:
            self._attachments.require_well(output)
        table = outputs.dequeue(output, limit, self._require_running)
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
        self._loop.drain(timeout_s, endless=self._endless, since=since)

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
        """Feed a stream from a source; before `start`.

        Several sources may feed one stream: each has a `name`, a number if none is given, and a
        mark of its own, and the stream's mark is the least of these. One that brings nothing for
        `idle` (seconds, or text as `30 s`) is not waited for.
        """
        if self._started:
            raise too_late()
        label, idle_s = naming({"name": name, "idle": idle})
        if label is not None or idle_s is not None:
            own = [other for other in self._sources if other.stream == source.stream]
            label = label or str(len(own) + 1)
            source = named(self.network, source, label, idle_s)
        self._sources.append(source)

    def bind_sink(self, output: str, sink: Sink | Callable[[Delivery], object]) -> None:
        """Deliver an output to a sink or a function; before `start`, or a query at any time.

        If its sink has failed, this one takes what is left.
        """
        require_name(output, "an output or a query")
        sink = as_sink(sink)
        if not self._started:
            self._sinks[output] = sink
            return
        self._require_running()
        self._changing.await_ready_for(output)
        with self._loop.between_rounds(), self._changing.lock:  # a query that is here stays
            self._require_running()
            sinks = self._changing.ready_for(output)
            require_own_files(self.network, self._sources, {**sinks.all, output: sink})
            sinks.bind(output, sink)
        self._loop.wake()

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
        checked = self._loop.execution.checked
        return describe_entity(name, self.network.streams, checked, self.stats())

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
            name: point.statistics(self._attachments.on(name))
            for name, point in self._history.points.items()
        }
        stats["attachments"] = self._attachments.statistics()
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


class LiveAttachment:
    """A query that was attached for another process."""

    def __init__(self, engine: Engine, name: str):
        self._engine = engine
        self._name = name
        self._moment = engine._ingest.next_moment

    def take(self) -> pa.Table:
        """What has come since the last call."""
        return self._engine.dequeue(self._name)

    @property
    def has_caught_up(self) -> bool:
        """Whether everything before the moment of attaching is there."""
        return self._engine._has_caught_up(self._name, self._moment)

    def wait(self, timeout_s: float) -> None:
        """Wait until something has happened."""
        self._engine.wait(timeout_s)

    def detach(self) -> None:
        """Leave nothing of it."""
        self._engine.detach(self._name)
