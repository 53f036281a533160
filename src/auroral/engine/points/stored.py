"""Attaching to the history in a state directory whose network does not run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from auroral.engine.context import EngineContext, Settings
from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.inspect.quality import OutputQuality
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.lifecycle.epochs import RUNNING
from auroral.engine.points.attaching import beginning
from auroral.engine.points.attachment import Attachment
from auroral.engine.points.attachments import Attachments
from auroral.engine.points.history import KeptHistory
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.batches import visible
from auroral.engine.results.readers import consumer
from auroral.engine.results.unread import find_unread
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.stateful_step import PENDING
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.shedding.control import SheddingControl
from auroral.engine.tables.live import LiveTables
from auroral.engine.topology.assembly import expanded_network
from auroral.engine.topology.identity import restored
from auroral.engine.topology.plan import empty_slots
from auroral.errors import StateError
from auroral.ids import WATERMARKS
from auroral.network.check import CheckedNetwork
from auroral.network.data_sets import with_data_sets
from auroral.network.network import Network
from auroral.scheduling.rates import ArrivalRates
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.spark.running.executor import StepExecutor
from auroral.storage import Change, Store
from auroral.storage.contents import has_state

_NAME = "looking"
_DRIVER_BYTES = 256 << 20


@dataclass(frozen=True)
class _CompleteArcs:
    """How far the arcs of a network that stands still have come."""

    complete: int

    def emitted_before(self, _arc: str, _complete: int | None = None) -> int:
        return self.complete


@dataclass(frozen=True)
class _StandingNetwork:
    """What attached queries need of a network, which does nothing."""

    context: EngineContext
    checked: CheckedNetwork
    watermarks: WatermarkTracker
    stepper: _CompleteArcs

    @property
    def unmoved(self) -> CheckedNetwork:
        """The network as it is declared."""
        return self.checked


class StoredHistory:
    """The history in a state directory; nothing of the network is run or changed."""

    def __init__(self, store: Store, network: Network, executor: StepExecutor):
        self._store = store
        empty_slots(store)
        self._history = KeptHistory(store, None, background=False)
        self._attachments = Attachments(store, self._history, background=False)
        self._attachments.leave_asleep()
        settings = Settings(executor, {}, DEFAULT_TRAIN, _DRIVER_BYTES, lambda: 0, None)
        queries = cast("QueryRegistry", None)  # which only the steps of eddies need
        times, decisions = ArrivalTimes(), DecisionLog(lambda: 0)
        context = EngineContext(
            settings,
            store,
            queries,
            DeadLetters(store.directory / "dead-letters.jsonl", store),
            StepPool[StepOutcome](0),
            LiveTables(store, {}),
            self._history,
            self._attachments,
            times,
            decisions,
            OutputQuality(store, queries, times, decisions),
            ArrivalRates(),
            SheddingControl(store, decisions, lambda: 0),
        )
        checked = expanded_network(network, executor.resolver, {}).check(executor.resolver)
        saved = store.manifest.progress()
        watermarks = WatermarkTracker(checked, saved)
        held = [moment for key, moment in saved.items() if key.startswith(PENDING)]
        complete = min([int(saved.get(WATERMARKS, 0)), *(m for m in held if m is not None)])
        self._standing = _StandingNetwork(context, checked, watermarks, _CompleteArcs(complete))
        self._history.serve(checked, watermarks)

    def rows(self, point: str, sql: str) -> Iterator[pa.Table]:
        """What a query gives over the kept history of a point, in order; an empty table first."""
        standing = cast("Any", self._standing)
        found = self._history.require(point, standing.checked.network)
        branch, plan = self._attachments.prepare(standing, found, _NAME, sql)
        complete = self._standing.stepper.complete
        begins = beginning(self._history, found, standing.watermarks, complete, None)
        ended = self._store.manifest.meta("ended")
        try:
            attachment = self._attachments.add(
                standing, found, _NAME, branch, plan, begins, lasting=False
            )
            yield attachment.view.schema.empty_table()
            while attachment.step(complete, None if ended is None else int(ended), polite=False):
                yield from self._taken(attachment)
            if attachment.failure is not None:
                raise attachment.failure
        finally:
            self._attachments.remove(_NAME)

    def _taken(self, attachment: Attachment) -> Iterator[pa.Table]:
        view, reader = attachment.view, consumer(_NAME)
        complete = attachment.stepper.emitted_before(view.log)
        unread = find_unread(self._store, view, self._store.head(view.log, reader), complete)
        for complete_before, table in unread.batches(self._store):
            if table.num_rows:
                yield visible(table).cast(view.schema)
            self._store.commit(Change(heads={(view.log, reader): complete_before}))


def stored_network(store: Store, file: Path | None) -> Network:
    """The network that a state directory is of; its file tells where Python functions are."""
    running = json.loads(store.manifest.meta(RUNNING) or "{}")
    if not running:
        raise StateError("NO_STATE", "no network has run here", where=os.fspath(store.directory))
    if file is None:
        network = Network.parse(running["network"])
    else:
        network = restored(running, Network.load(file, imports=True)).network
    return with_data_sets(network.importing().flattened())


@contextmanager
def opened(state: Path) -> Iterator[Store]:
    """The store of a state directory that there must be, and that nobody uses."""
    if not (state / "segments").is_dir() or not has_state(state):
        raise StateError("NO_STATE", "there is no state of a network", where=os.fspath(state))
    store = Store(state)
    try:
        yield store
    finally:
        store.close()
