"""How steps are executed: an interface, and the implementation that runs them as Spark jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from auroral.errors import RunError
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork
from auroral.optimizer import Probe
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.physical import Given, Physical
from auroral.spark.running.probing import probed_seconds
from auroral.spark.running.runner import Runner, StepResult
from auroral.spark.running.stateful_runner import StatefulRunner
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import Job
from auroral.spark.session.analysis import spark_resolver

Files = Mapping[str, Sequence[TrainFile]]
"""The files of a train, by source."""


class PlainRunner(Protocol):
    """Runs the superboxes of a network that remember nothing."""

    def run(self, superbox: Superbox, train: Files, *, through_driver: bool) -> StepResult:
        """Run a superbox over a train."""
        ...

    def drops_in_tasks(self, superbox: Superbox, train: Files) -> bool:
        """Whether the tasks of a step apply the drop boxes of the files of a train."""
        ...

    def has_room(self, superbox: Superbox, files: Mapping[str, int]) -> bool:
        """Whether nothing has to be compiled for so many files of each source."""
        ...

    def warm_up(self, superbox: Superbox) -> None:
        """Get ready before the first train."""
        ...

    def take_over(self, before: Any, kept: Collection[Superbox]) -> None:
        """Keep what was compiled for superboxes that stay the same."""
        ...

    @property
    def is_compiling(self) -> bool:
        """Whether something is compiled in the background."""
        ...

    def wait(self) -> None:
        """Wait until nothing is compiled in the background."""
        ...

    def discard(self) -> None:
        """Forget what was compiled."""
        ...


class KernelRunner(Protocol):
    """Runs one superbox whose last box remembers tuples or windows."""

    @property
    def superbox(self) -> Superbox: ...
    @property
    def physical(self) -> Physical: ...
    @property
    def buckets(self) -> int: ...
    @property
    def reads(self) -> bool:
        """Whether tasks read the files of a train themselves."""
        ...

    @property
    def writes_all(self) -> bool:
        """Whether tasks can write all arcs of the superbox, also those before the kernel."""
        ...

    def run(self, train: Files, job: Job) -> tuple[list[dict[str, Any]], pa.Table | None]:
        """Run a step: the notes of every bucket, and the main arc's tuples if Spark has them."""
        ...

    def has_room(self, files: Mapping[str, int]) -> bool:
        """Whether nothing has to be compiled for so many files of each source."""
        ...

    def warm_up(self) -> None:
        """Get ready before the first train."""
        ...

    @property
    def is_compiling(self) -> bool:
        """Whether something is compiled in the background."""
        ...

    def wait(self) -> None:
        """Wait until nothing is compiled in the background."""
        ...

    def discard(self) -> None:
        """Forget what was compiled."""
        ...


class StepExecutor(Protocol):
    """Where steps run: on Spark, or in this process for tests and simulations."""

    @property
    def resolver(self) -> Resolver | None:
        """Tells the types of expressions that Auroral does not know itself."""
        ...

    @property
    def workers(self) -> int:
        """How many steps may run at the same time."""
        ...

    @property
    def cores(self) -> int:
        """How many cores they share."""
        ...

    def plain(self, checked: CheckedNetwork, directory: Path) -> PlainRunner:
        """The runner of all superboxes without state."""
        ...

    def kernel(
        self,
        checked: CheckedNetwork,
        superbox: Superbox,
        given: Given,
        directory: Path,
        *,
        buckets: int,
        progressing: Mapping[str, Sequence[str]],
    ) -> KernelRunner:
        """The runner of one superbox with state."""
        ...

    def probe(self, probe: Probe, rows: pa.Table) -> float | None:
        """The seconds that the expressions of a box take for one of some tuples.

        None if it cannot tell.
        """
        ...

    def enter(self, superbox: str) -> None:
        """Tell which superbox the calling thread is about to run."""
        ...

    def cancel(self, superbox: str) -> None:
        """End the step of a superbox that takes too long; its `run` raises."""
        ...

    def require_alive(self) -> None:
        """Raise if no step can run any more, because what runs them has ended."""
        ...


class SparkExecutor:
    """Runs each step as one Spark job, or a few."""

    def __init__(self, session: SparkSession, *, reuse_plans: bool | None = None):
        self.session = session
        self._reuse_plans = reuse_plans
        self.resolver: Resolver | None = spark_resolver(session)
        self.cores = session.sparkContext.defaultParallelism
        self.workers = max(2, min(4, self.cores))

    def plain(self, checked: CheckedNetwork, directory: Path) -> Runner:
        return Runner(self.session, checked, directory, reuse_plans=self._reuse_plans)

    def kernel(
        self,
        checked: CheckedNetwork,
        superbox: Superbox,
        given: Given,
        directory: Path,
        *,
        buckets: int,
        progressing: Mapping[str, Sequence[str]],
    ) -> StatefulRunner:
        return StatefulRunner(
            self.session,
            checked,
            superbox,
            given,
            directory,
            buckets=buckets,
            progressing=progressing,
            reuse_plans=self._reuse_plans,
        )

    def probe(self, probe: Probe, rows: pa.Table) -> float | None:
        return probed_seconds(self.session, probe, rows)

    def enter(self, superbox: str) -> None:
        """Give the thread's jobs a name by which they can be cancelled, and a pool of their own."""
        context = self.session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", superbox)
        context.setJobGroup(self._group(superbox), superbox, interruptOnCancel=True)

    def cancel(self, superbox: str) -> None:
        self.session.sparkContext.cancelJobGroup(self._group(superbox))

    def require_alive(self) -> None:
        java = getattr(self.session.sparkContext._gateway, "proc", None)  # None: started elsewhere
        if java is not None and java.poll() is not None:
            raise RunError(
                "SPARK_ENDED",
                "Spark's Java process has ended",
                hint="the system ends what takes too much memory; a restart goes on with the state",
            )

    def _group(self, superbox: str) -> str:
        return f"auroral {id(self)} {superbox}"
