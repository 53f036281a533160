"""The engine: a network running on Spark."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.engine.dead import DeadLetters
from auroral.engine.delivery import Outputs, consumer
from auroral.engine.feeder import Feeder
from auroral.engine.ingest import CLOCK_LOG, Ingest
from auroral.engine.plane import ProgressPlane
from auroral.engine.statistics import describe_entity, entities, statistics
from auroral.engine.stepper import Stepper, slots_directory
from auroral.engine.streaming import StreamReader, rows_of
from auroral.errors import AuroralError, RunError, UsageError
from auroral.io.open import open_sink
from auroral.io.sinks.sink import Sink
from auroral.io.source import Source
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.spark.analysis import spark_resolver
from auroral.spark.lowering import not_executable
from auroral.spark.runner import Runner
from auroral.spark.session import start_session
from auroral.storage import Change, Store

_IDLE_S = 0.05
_HEARTBEAT_S = 0.5
_DRIVER_BYTES = 256 << 20


class Engine:
    """Runs a network: tuples in by `enqueue` or sources, results out by `dequeue` or sinks.

    With `state` everything survives a crash of the process; the same call goes on. `train` is
    the most tuples of one step. `clock` is `wall`, or `arrival`: time is what the column `_at`
    says. `spark` is a session to use instead of an own one.
    """

    def __init__(
        self,
        network: Network,
        *,
        master: str = "local[*]",
        state: str | Path | None = None,
        train: int | None = None,
        clock: str = "wall",
        spark: SparkSession | None = None,
        dead_letters: str | Path | None = None,
        driver_bytes: int = _DRIVER_BYTES,
        reuse_plans: bool | None = None,
        background: bool = True,
        now_us: Callable[[], int] | None = None,
        fault: Callable[[str], None] = lambda _point: None,
    ):
        if clock not in ("wall", "arrival"):
            raise UsageError("BAD_OPTION", f"clock is wall or arrival, found {clock!r}")
        if train is not None and train < 1:
            raise UsageError("BAD_OPTION", f"a train needs at least one tuple, found {train}")
        self.network = network
        self._master = master
        self._state = state
        self._train = train or network.engine.train or DEFAULT_TRAIN
        self._clock = clock
        self._given_spark = spark
        self._dead_path = Path(dead_letters) if dead_letters else None
        self._driver_bytes = driver_bytes
        self._reuse_plans = reuse_plans
        self._background = background
        self._now_us = now_us or (lambda: time.time_ns() // 1000)
        self._fault = fault
        self._started = False
        self._failure: AuroralError | None = None
        self._changed = threading.Condition()
        self._busy = threading.RLock()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._sources: list[Source] = []
        self._sinks: dict[str, Sink] = {}

    # ── life ──

    def start(self) -> Engine:
        """Check the network, open its state, start Spark and begin to work."""
        if self._started:
            raise UsageError("ALREADY_STARTED", "the engine runs already")
        self.require_executable()
        self.spark = self._given_spark or start_session(self._master)
        self._owns_spark = self._given_spark is None
        self._checked = self.network.check(spark_resolver(self.spark))
        cores = self.spark.sparkContext.defaultParallelism
        self._store = Store(self._state, cores=min(cores, 8), fault=self._fault)
        try:
            self._open()
        except BaseException:
            self._store.close()
            raise
        self._started = True
        if self._background:
            self._thread = threading.Thread(target=self._loop, name="auroral", daemon=True)
            self._thread.start()
            self._feeder.start()
        return self

    def require_executable(self) -> None:
        """Refuse what can be declared but not run yet, by name."""
        for name, box in self.network.boxes.items():
            if not box.executable:
                raise not_executable(self.network.place("boxes", name), box)
        for name in self.network.queries:
            raise UsageError(
                "QUERY_NOT_EXECUTABLE",
                "this version checks continuous queries but does not run them yet",
                where=self.network.place("queries", name),
            )

    def _open(self) -> None:
        store = self._store
        store.bind_network(self.network.document())
        dead_path = self._dead_path or store.directory / "dead-letters.jsonl"
        self._dead = DeadLetters(dead_path, store)
        self._plane = ProgressPlane(self._checked, store.manifest.progress())
        arcs = self._output_arcs(self._checked)
        self._superboxes = self._all_superboxes(self._checked, arcs)
        self._register_consumers()
        self._outputs = Outputs(self._checked, store, arcs)
        self._ingest = Ingest(
            self._checked, store, self._dead, self._now_us, with_clock=self._plane.has_heartbeats
        )
        runner = Runner(
            self.spark, self._checked, slots_directory(store), reuse_plans=self._reuse_plans
        )
        self._stepper = Stepper(
            self._checked,
            store,
            runner,
            self._dead,
            self._plane,
            self._superboxes,
            train=self._train,
            driver_bytes=self._driver_bytes,
        )
        self._runner = runner
        self._readers: list[StreamReader] = []
        for name, output in self.network.outputs.items():
            if output.sink and name not in self._sinks:
                root = self.network.directory or Path()
                schema = self._checked.schema_of(output.from_)
                self._sinks[name] = open_sink(name, output.sink, schema, root=root)
        for name, sink in self._sinks.items():
            self._outputs.bind(name, sink)
        self._feeder = Feeder(self, self._sources, self._train)

    def shutdown(self) -> None:
        """Stop after the step under way; what is not processed stays for the next start."""
        if not self._started:
            return
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for reader in self._readers:
            reader.stop()
        self._feeder.stop()
        if self._thread:
            self._thread.join()
        self._started = False
        with contextlib.ExitStack() as stack:
            stack.callback(self._store.close)
            stack.callback(self._dead.close)
            stack.callback(self._outputs.close)
            stack.callback(self._ingest.close)
            if self._failure is None:
                stack.callback(self._ingest.seal)

    def __enter__(self) -> Engine:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        if error is None and self._failure is not None:
            raise self._failure

    # ── data in and out ──

    def enqueue(self, stream: str, rows: Any, *, position: Any | None = None) -> int:
        """Push tuples: dicts, tuples, Arrow, pandas or a Spark DataFrame; returns how many fit.

        Rows that do not fit become dead letters. With `position` (any JSON value) the batch is
        taken once: after a restart `position(stream)` tells which was the last.
        """
        self._require_running()
        accepted = 0
        for batch in rows_of(rows, self._store.directory) if _is_frame(rows) else [rows]:
            accepted += self._ingest.enqueue(stream, batch, position)
        self._wake()
        return accepted

    def position(self, stream: str) -> Any | None:
        """The position of the last batch or source chunk that was taken."""
        self._require_running()
        return self._store.manifest.source(stream)

    def read_stream(
        self, stream: str, frame: DataFrame, *, trigger: Mapping[str, Any] | None = None
    ) -> StreamReader:
        """Feed a stream from any Spark `readStream`, each micro-batch exactly once."""
        self._require_running()
        reader = StreamReader(self, stream, frame, self._store, trigger=trigger or {})
        self._readers.append(reader)
        return reader

    def dequeue(self, output: str, limit: int | None = None) -> pa.Table:
        """What came on an output since the last call, in order of emission."""
        self._require_running()
        with self._store.lock:
            return self._outputs.dequeue(output, limit)

    def drain(self, timeout_s: float | None = None) -> None:
        """Wait until everything that has been enqueued is processed and delivered."""
        self._require_running()
        for reader in self._readers:
            reader.drain()
        if not self._background:
            while self._work():
                pass
            return
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            target = self._ingest.next_moment
            while not self._reached(target):
                self._require_running()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise RunError("TIMEOUT", f"not drained within {timeout_s} s")
                self._changed.wait(timeout=1.0 if left is None else min(left, 1.0))
                target = max(target, self._ingest.next_moment if self._feeder.finite else target)

    def finish(self) -> None:
        """Declare the end of all input: every window closes, marks go to the end."""
        self.drain()
        if self._store.manifest.meta("ended") is None:
            with self._busy:
                moment = self._ingest.end()
                self._plane.end(moment)
                saved = {
                    s: self._plane.saved(s) for s in self.network.streams if self._plane.needs(s)
                }
                self._store.commit(Change(progress=saved))

    @property
    def idle(self) -> bool:
        """Whether all sources have ended and everything is processed and delivered."""
        self._require_running()
        return self._feeder.exhausted and self._reached(self._ingest.next_moment)

    def wait(self, timeout_s: float) -> None:
        """Sleep until something happened, at most so long."""
        if not self._background:
            self._work()
            return
        with self._changed:
            self._changed.wait(timeout_s)
        self._require_running()

    @property
    def ended(self) -> bool:
        """Whether the input was declared to have ended, now or in an earlier run."""
        return self._store.manifest.meta("ended") is not None

    # ── sources and sinks ──

    def bind_source(self, source: Source) -> None:
        """Feed a stream from a source; before `start`."""
        self._require_stopped()
        self._sources.append(source)

    def bind_sink(self, output: str, sink: Sink) -> None:
        """Deliver an output to a sink; before `start`."""
        self._require_stopped()
        self._sinks[output] = sink

    @property
    def sources_exhausted(self) -> bool:
        """Whether every source has given all it will ever give."""
        return self._feeder.exhausted

    # ── looking ──

    def typecheck(self, network: Network | None = None) -> dict[str, str]:
        """Every arc of this network, or of another one, with its schema."""
        resolver = spark_resolver(self.spark) if self._started else None
        checked = (network or self.network).check(resolver)
        return {name: str(arc.schema) for name, arc in checked.arcs.items()}

    def list_entities(self) -> dict[str, list[str]]:
        """The names of streams, boxes, outputs and the rest."""
        return entities(self.network)

    def describe(self, name: str) -> dict[str, Any]:
        """What is known of one entity: its declaration, schema, counts and progress."""
        self._require_running()
        return describe_entity(name, self._checked, self.stats())

    def stats(self) -> dict[str, Any]:
        """Tuples in and out, steps, times, queues, dead letters and progress."""
        self._require_running()
        return statistics(
            self._checked,
            self._store,
            self._stepper,
            self._outputs,
            self._plane,
            self._superboxes,
            self._now_us() if self._clock == "wall" else None,
        )

    @property
    def dead_letters(self) -> Path:
        """The file that rows which did not fit are written to; it exists if there are any."""
        return self._dead.path

    # ── the loop ──

    def _loop(self) -> None:
        try:
            while not self._stopping:
                if not self._work():
                    with self._changed:
                        self._changed.notify_all()
                        if not self._stopping and not self._pending():
                            self._changed.wait(self._idle_s())
        except AuroralError as error:
            self._fail(error)
        except Exception as error:  # the thread must not die silently
            self._fail(RunError("INTERNAL", f"{type(error).__name__}: {error}"))

    def _work(self) -> bool:
        """One round: form trains, run steps, deliver; False if there was nothing to do."""
        with self._busy:
            if not self._background:
                self._feeder.pull()
            complete = self._ingest.seal()
            worked = self._stepper.step(complete)
            delivered = self._outputs.deliver()
            if worked:
                self._outputs.compact()
            elif self._heartbeat_due():
                self._ingest.tick()
                worked = True
        if worked or delivered:
            with self._changed:
                self._changed.notify_all()
        return bool(worked or delivered)

    def _pending(self) -> bool:
        return self._stepper.done_before() < self._ingest.next_moment

    def _reached(self, moment: int) -> bool:
        fed = self._feeder.exhausted if self._feeder.finite else True
        done = fed and self._stepper.done_before() >= moment
        return done and all(self._outputs.delivered(name) for name in self._sinks)

    def _heartbeat_due(self) -> bool:
        if self._clock != "wall" or not self._plane.has_heartbeats or not self._background:
            return False
        now = time.monotonic()
        due = now - getattr(self, "_ticked", 0.0) >= _HEARTBEAT_S
        if due:
            self._ticked = now
        return due

    def _idle_s(self) -> float:
        return _HEARTBEAT_S if self._plane.has_heartbeats else 1.0

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _fail(self, error: AuroralError) -> None:
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def _require_running(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._started:
            raise UsageError("NOT_STARTED", "start the engine first, or use it in a with block")

    def _require_stopped(self) -> None:
        if self._started:
            raise UsageError("ALREADY_STARTED", "sources and sinks are bound before the start")

    # ── wiring ──

    def _output_arcs(self, checked: CheckedNetwork) -> dict[str, str]:
        arcs = {name: output.from_ for name, output in checked.network.outputs.items()}
        return arcs | {
            name: name for name in self._sinks if name not in arcs and name in checked.arcs
        }

    def _all_superboxes(
        self, checked: CheckedNetwork, outputs: Mapping[str, str]
    ) -> tuple[Superbox, ...]:
        """Fused boxes, and one empty superbox per stream that feeds none: its log moves on too."""
        fused = superboxes(checked, outputs.values())
        read = {source for superbox in fused for source in superbox.sources}
        alone = [
            Superbox(name, (name,), (), ()) for name in checked.network.streams if name not in read
        ]
        return (*fused, *alone)

    def _register_consumers(self) -> None:
        """A log keeps what any consumer needs, so all are known before anything is deleted."""
        wanted = {(s, box.name): 0 for box in self._superboxes for s in box.sources}
        if self._plane.has_heartbeats:
            wanted |= {(CLOCK_LOG, box.name): 0 for box in self._superboxes}
        wanted |= {(a, consumer(o)): 0 for o, a in self._output_arcs(self._checked).items()}
        found = self._store.manifest.cursors()
        new = {key: head for key, head in wanted.items() if key not in found}
        if new:
            self._store.commit(Change(heads=new))


def _is_frame(rows: Any) -> bool:
    return isinstance(rows, DataFrame)
