"""What an engine needs before its parts are put together: Spark, and its state."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from auroral.engine.locks import EngineLocks
from auroral.engine.topology.superboxes import declared_jars
from auroral.network.network import Network
from auroral.spark.running.executor import SparkExecutor
from auroral.spark.session.session import cores_of, start_session, step_session
from auroral.storage import Store
from auroral.storage.identity import default_buckets


@dataclass(frozen=True)
class SparkOptions:
    """Which Spark an engine uses: a session that it was given, or one of its own."""

    master: str
    session: SparkSession | None
    jars: Sequence[str | Path]
    reuse_plans: bool | None

    @property
    def cores(self) -> int:
        """How many tasks run at once; asked before Spark starts."""
        given = self.session
        return cores_of(self.master if given is None else str(given.sparkContext.master))

    def start(self, network: Network) -> tuple[SparkSession, SparkExecutor]:
        """The session of the application, and what runs steps in one of their own."""
        jars = [*declared_jars(network), *self.jars]
        session = self.session or start_session(self.master, jars=jars)
        return session, SparkExecutor(step_session(session), reuse_plans=self.reuse_plans)


@dataclass(frozen=True)
class StateOptions:
    """Where the state of an engine is, and how safe it is kept."""

    directory: str | Path | None
    durability: str
    buckets: int | None
    fault: Callable[[str], None]

    def open(self, locks: EngineLocks, cores: int) -> Store:
        """Open the state; `cores` decides how many buckets a new one has."""
        return Store(
            self.directory,
            cores=min(os.cpu_count() or 2, 8),
            buckets=self.buckets,
            default_buckets=default_buckets(cores),
            durability=self.durability,
            fault=self.fault,
            lock=locks.store,
        )
