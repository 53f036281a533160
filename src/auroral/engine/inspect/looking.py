"""Looking at a running engine: statistics, descriptions, stories, and SQL over what is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from auroral.engine.ingest.data_sets import StoredDataSets
from auroral.engine.inspect.statistics import describe_entity, statistics
from auroral.engine.parts import EngineParts
from auroral.engine.points.look import KeptRows, table_frame
from auroral.errors import UsageError
from auroral.network.network import Network
from auroral.spark.running.executor import SparkExecutor
from auroral.spark.running.job_names import cancel_jobs, named_jobs
from auroral.storage import Store


class Looking:
    """Answers questions about a running engine; it changes nothing."""

    def __init__(
        self,
        parts: EngineParts,
        store: Store,
        data_sets: Callable[[], StoredDataSets],
        *,
        wall: bool,
    ):
        """`wall` if the clock is that on the wall: only then delays mean something."""
        self._parts = parts
        self._store = store
        self._data_sets = data_sets
        self._wall = wall

    def statistics(self) -> dict[str, Any]:
        """Counts, times, queues, marks and the rest, as plain data."""
        parts, context = self._parts, self._parts.context
        if parts.loop.threaded and not parts.loop.warm.is_set():
            parts.ingest.seal()  # no round does, and what waits would not be seen
        stats = statistics(parts.loop.execution, self._store, context.queries, wall=self._wall)
        attachments = parts.attachments
        stats["connection_points"] = {
            name: point.statistics(attachments.on(name)) | parts.indexing.statistics(name)
            for name, point in context.history.points.items()
        }
        stats["attachments"] = attachments.statistics()
        stats["shedding"] = context.shedding.statistics()
        stats["connection_points"] |= self._data_sets().statistics()
        for stream, count in parts.loop.retries.items():
            if count:
                stats["streams"][stream]["retries"] = count
        return stats

    def describe(self, name: str, network: Network) -> dict[str, Any]:
        """What is known of one entity of the network."""
        checked = self._parts.loop.execution.plan.unmoved
        found = describe_entity(name, network, checked, self.statistics())
        if "quality" in found:
            found["quality"] |= self._parts.context.quality.described(name)
        return found

    def story(self, name: str, network: Network) -> list[dict[str, Any]]:
        """Why something ran, waited, was moved or shed; newest last."""
        checked = self._parts.loop.execution.plan.unmoved
        describe_entity(name, network, checked, self.statistics())
        context = self._parts.context
        eddy = context.quality.eddy_behind(name)
        return context.decisions.story(name, *([eddy] if eddy else []))

    def sql(
        self, query: str, network: Network, limit: int | None = None, job: str | None = None
    ) -> pa.Table:
        """The rows of a SELECT over tables and over what connection points and views keep."""
        parts = self._parts
        executor = parts.context.settings.executor
        if not isinstance(executor, SparkExecutor):
            raise UsageError("NO_SPARK", "SQL over what is kept needs Spark")
        with parts.loop.between_rounds():
            parts.loop.execution.stepper.fold(parts.ingest.seal())
        tables = parts.context.tables
        frames = {
            name: table_frame(partial(tables.rows, network, name))
            for name in (network.compact or network).tables
        }
        kept = KeptRows(self._store, parts.context.history, frames)
        with named_jobs(executor.session, job):
            return kept.select(executor.session, parts.loop.execution, query, limit)

    def cancel_sql(self, job: str) -> None:
        """End what runs under a name, and what would run later."""
        executor = self._parts.context.settings.executor
        if isinstance(executor, SparkExecutor):
            cancel_jobs(executor.session, job)
