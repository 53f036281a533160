"""The parts of an engine, put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auroral.engine.context import EngineContext, Settings
from auroral.engine.debug.watch import DebugWatch
from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.ingest.declared_sources import interleaved
from auroral.engine.ingest.ingest import Ingest
from auroral.engine.inspect.kept_statistics import StatisticsKeeper
from auroral.engine.inspect.quality import OutputQuality
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.lifecycle.changes import QueryChanges
from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.engine.lifecycle.network_changes import NetworkChanges
from auroral.engine.locks import EngineLocks
from auroral.engine.points.attaching import Attaching
from auroral.engine.points.attachments import Attachments
from auroral.engine.points.history import KeptHistory
from auroral.engine.points.indexing import HistoryIndexing
from auroral.engine.queries.registrar import Registrar
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.clock import MonotoneClock
from auroral.engine.runtime.loop import ALL_SOURCES, Loop
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.probing import ExpressionCosts
from auroral.engine.runtime.queue_memory import QueueMemory
from auroral.engine.runtime.reordering import OrderOptimizer
from auroral.engine.runtime.round_cost import RoundCost
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.shedding.control import SheddingControl
from auroral.engine.shedding.shedder import LoadShedder
from auroral.engine.tables.live import LiveTables
from auroral.engine.topology.execution import build_execution, initial_plan
from auroral.engine.topology.plan import check_expanded
from auroral.io.sources.source import Source
from auroral.network.network import Network
from auroral.scheduling.rates import ArrivalRates
from auroral.spark.running.executor import StepExecutor
from auroral.storage import Store

_MOST_THREADS = 1_000
"""Of the scheduler `thread-per-box`."""


@dataclass(frozen=True)
class PartOptions:
    """What an engine was told that its parts have to know."""

    tables: Mapping[str, Any]
    train: int
    driver_bytes: int
    step_timeout_s: float | None
    workers: int | None
    background: bool
    arrival: bool
    """Whether the time is what arrivals say."""
    dead_letters: Path | None


@dataclass(frozen=True)
class EngineParts:
    """Everything that a started engine consists of."""

    context: EngineContext
    ingest: Ingest
    loop: Loop
    changing: QueryChanges
    network_changes: NetworkChanges
    attaching: Attaching
    attachments: Attachments
    indexing: HistoryIndexing
    watch: DebugWatch
    network: Network
    """The latest that is declared."""

    def close(self) -> None:
        """End everything, in this order; what fails does not keep the rest from it."""
        context, loop = self.context, self.loop
        with ExitStack() as stack:
            stack.callback(context.store.close)
            stack.callback(context.dead.close)
            stack.callback(context.tables.close)
            if context.expressions is not None:
                stack.callback(context.expressions.close)
            stack.callback(loop.execution.sinks.close)
            stack.callback(context.history.close)
            stack.callback(self.watch.close)
            if loop.failure is None and context.statistics is not None:
                stack.callback(context.statistics.save, loop.execution.stepper.done_before())
            stack.callback(self.ingest.close, seal=loop.failure is None)


def put_together(
    store: Store,
    locks: EngineLocks,
    clock: MonotoneClock,
    executor: StepExecutor,
    registrar: Registrar,
    declared: DeclaredNetwork,
    restored: Callable[[Mapping[str, Any]], DeclaredNetwork],
    sources_of: Callable[[Network], Sequence[Source]],
    options: PartOptions,
) -> EngineParts:
    """Make the parts of an engine, as an earlier run has left them.

    `declared` is the network that there was; `restored` makes those that were planned.
    """
    loops: list[Loop] = []

    def wake() -> None:
        """A worker has ended a step."""
        loops[0].wake()

    dead = DeadLetters(options.dead_letters or store.directory / "dead-letters.jsonl", store)
    timeout_s, most = options.step_timeout_s, options.driver_bytes
    settings = Settings(executor, options.tables, options.train, most, clock, timeout_s)
    queries = QueryRegistry(store, declared, registrar, locks.queries, restored)
    queries.restore()
    latest = queries.epochs.latest
    if latest.declared is not declared:  # it was planned when an earlier run ended
        registrar.serve(latest.declared.network)
    workers = (options.workers or executor.workers) if options.background else 0
    if options.background and latest.declared.network.engine.scheduler == "thread-per-box":
        workers = _MOST_THREADS
    pool = StepPool[StepOutcome](workers, wake, executor.cores)
    threads: dict[str, Any] = {"background": options.background, "tell": wake}
    history = KeptHistory(store, None if options.arrival else clock, **threads)
    attachments = Attachments(store, history, **threads)
    tables = LiveTables(store, options.tables)
    earlier = store.manifest.statistics()
    times = ArrivalTimes(store.next_moment, ages=earlier.ages)
    decisions, rates = DecisionLog(clock), ArrivalRates()
    quality = OutputQuality(store, queries, times, decisions)
    cost = RoundCost()
    keeper = StatisticsKeeper(store, rates, times, quality.monitor, cost)
    keeper.restore(earlier)
    watch = DebugWatch(store, lambda: loops[0].execution)
    context = EngineContext(
        settings,
        store,
        queries,
        dead,
        pool,
        tables,
        history,
        attachments,
        times,
        decisions,
        quality,
        rates,
        SheddingControl(store, decisions, clock),
        locks,
        OrderOptimizer(),
        ExpressionCosts(store),
        QueueMemory(store, background=options.background),
        watch,
        keeper,
    )
    plan = initial_plan(context)
    checked = plan.checked
    if latest.declared is not declared:
        checked = check_expanded(executor.resolver, latest, {})
    with_clock = WatermarkTracker(checked).uses_clock
    ingest = Ingest(
        checked,
        store,
        dead,
        clock,
        with_clock=with_clock,
        arrival=options.arrival,
        after=queries.changed,
        arrived=times.arrived,
        counted=lambda stream, tuples: rates.arrived(stream, tuples, time.monotonic()),
        lock=locks.ingest,
    )
    clock.not_before(ingest.newest_us)
    execution = build_execution(context, plan, ended=ingest.ended)
    attachments.restore(execution)
    network = latest.declared.network
    sources = interleaved(network, sources_of(network), store.manifest.source(ALL_SOURCES))
    loop = Loop(
        ingest,
        execution,
        sources,
        train=options.train,
        background=options.background,
        heartbeats=with_clock and not options.arrival,
        wall=not options.arrival,
        lock=locks.round,
        shedder=None
        if options.arrival or not workers
        else _shedder(context, min(workers, executor.cores)),
        cost=cost,
    )
    loops.append(loop)

    def emitted_before(arc: str) -> int:
        return loop.execution.stepper.emitted_before(arc)

    network_changes = NetworkChanges(context, ingest, loop, locks.changes)
    attaching = Attaching(
        store,
        lambda: queries.epochs.latest.declared.network,
        history,
        attachments,
        ingest,
        loop,
        locks.changes,
        queries.catalogue.names,
        context,
        network_changes,
    )
    return EngineParts(
        context,
        ingest,
        loop,
        QueryChanges(queries, ingest, loop, locks.changes),
        network_changes,
        attaching,
        attachments,
        HistoryIndexing(store, history, emitted_before),
        watch,
        network,
    )


def _shedder(context: EngineContext, workers: int) -> LoadShedder:
    shedding, quality = context.shedding, context.quality
    return LoadShedder(
        context.store, shedding, quality, context.times, context.decisions, workers=workers
    )
