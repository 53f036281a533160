"""Runs steps of stateful superboxes; keeps their compiled plans."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.drops import Drop
from auroral.spark.boxes import physical_of
from auroral.spark.plans.physical import Given, Physical
from auroral.spark.plans.plan import log_schemas
from auroral.spark.plans.plans import CompiledPlan, Plans
from auroral.spark.plans.slots import MOST_SLOTS, Slots, fit_slots
from auroral.spark.plans.stateful import (
    StatefulPlan,
    compile_reading,
    compile_stateful,
    layout_of,
    reads_logs,
    writes_all,
)
from auroral.spark.running.sheltering import Shelter
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import Job, Layout, write_job
from auroral.spark.session.causes import translate_spark_errors
from auroral.spark.session.session import cores_of, is_local

PARALLEL_ROWS = 50_000
"""Larger trains are spread over the cores; for smaller ones another task costs too much."""


def files_to_read(
    layout: Layout, arcs: Sequence[str], train: Mapping[str, Sequence[TrainFile]]
) -> dict[int, list[str]]:
    """The files that tasks read themselves: by input of the kernel, or of the boxes before it."""
    sources = arcs if layout.boxes is None else layout.boxes.reads
    return {
        number: [str(file.path) for file in train.get(arc, ())]
        for number, arc in enumerate(sources)
    }


def drops_to_apply(
    layout: Layout, arcs: Sequence[str], train: Mapping[str, Sequence[TrainFile]]
) -> dict[int, tuple[Drop, ...]]:
    """The drop boxes that tasks apply to the files they read, numbered as these."""
    sources = arcs if layout.boxes is None else layout.boxes.reads
    found = {n: next(iter(train.get(arc, ())), None) for n, arc in enumerate(sources)}
    return {n: file.drops for n, file in found.items() if file is not None and file.drops}


class StatefulRunner:
    """One stateful superbox on Spark."""

    def __init__(
        self,
        session: SparkSession,
        checked: CheckedNetwork,
        superbox: Superbox,
        given: Given,
        directory: Path,
        *,
        buckets: int,
        progressing: Mapping[str, Sequence[str]],
        reuse_plans: bool | None = None,
    ):
        assert superbox.stateful is not None
        self._session = session
        self._checked = checked
        self.superbox = superbox
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._reuse = is_local(session) if reuse_plans is None else reuse_plans
        box = checked.network.boxes[superbox.stateful]
        self.physical: Physical = physical_of(superbox.stateful, box, given)
        self.buckets = buckets if self.physical.keys is not None else 1
        # Each task reads the whole train, so that more of them than cores only cost time.
        self._tasks = min(self.buckets, cores_of(str(session.sparkContext.master)))
        self._layout: Layout = layout_of(
            self.physical, checked, superbox, progressing, self.buckets
        )
        self.reads = reads_logs(self.physical, superbox) or self._layout.boxes is not None
        """Whether tasks read the logs themselves, so that Spark has nothing to scan."""
        self.writes_all = writes_all(self._layout, checked, superbox)
        self._job = directory / "job"
        self._shelter = Shelter(session)
        self._reading_plans: dict[int, CompiledPlan[StatefulPlan]] = {}
        self._schemas = log_schemas(checked, superbox.sources)
        self._plans = Plans(session, directory, self._schemas, self._compile)

    def run(
        self, train: Mapping[str, Sequence[TrainFile]], job: Job
    ) -> tuple[list[dict[str, Any]], pa.Table | None]:
        """Run a step: the notes of every bucket, and the main arc's tuples if Spark has them."""
        with translate_spark_errors(self.superbox.name):
            return self._shelter.run(self.superbox.name, lambda: self._run_on(train, job))

    def _run_on(
        self, train: Mapping[str, Sequence[TrainFile]], job: Job
    ) -> tuple[list[dict[str, Any]], pa.Table | None]:
        if not self.reads:
            return self._run(self._compiled(train), train, job)
        assert self.superbox.stateful is not None
        arcs = self._checked.network.boxes[self.superbox.stateful].sources()
        rows = sum(file.rows for held in train.values() for file in held)
        tasks = self._tasks if rows > PARALLEL_ROWS else 1
        files = files_to_read(self._layout, arcs, train)
        drops = drops_to_apply(self._layout, arcs, train)
        return self._run(self._reading(tasks), {}, replace(job, files=files, drops=drops))

    def warm_up(self) -> None:
        """Compile, start the workers, all at once, and let them import what they need."""
        if self._reuse:
            with translate_spark_errors(self.superbox.name):
                if self.reads:
                    self._run(self._reading(self._tasks), {}, None)
                self._run(self._smallest(), {}, None)

    def has_room(self, files: Mapping[str, int]) -> bool:
        """Whether Spark need not compile for so many files of each source."""
        if not self._reuse or max(files.values()) > MOST_SLOTS:
            return True
        return self._plans.has_room({s: files.get(s) or 1 for s in self.superbox.sources})

    @property
    def is_compiling(self) -> bool:
        """Whether something is compiled aside."""
        return self._plans.is_compiling

    def wait(self) -> None:
        """Until nothing is compiled aside."""
        self._plans.wait()

    def discard(self) -> None:
        """Forget what was compiled."""
        self._reading_plans.clear()
        self._plans.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def explain(self) -> str:
        """Spark's plan for a small train."""
        plan = self._smallest().plan
        return str(plan.data._jdf.queryExecution().executedPlan().toString())

    def _smallest(self) -> CompiledPlan[StatefulPlan]:
        return self._reading(1) if self.reads else self._compiled({})

    def _run(
        self,
        compiled: CompiledPlan[StatefulPlan],
        train: Mapping[str, Sequence[TrainFile]],
        job: Job | None,
    ) -> tuple[list[dict[str, Any]], pa.Table | None]:
        if compiled.slots:
            compiled.slots.link({s: [file.path for file in files] for s, files in train.items()})
        write_job(self._job, job)
        return compiled.plan.split(compiled.plan.data.toArrow())

    def _reading(self, tasks: int) -> CompiledPlan[StatefulPlan]:
        if tasks not in self._reading_plans or not self._reuse:
            plan = compile_reading(
                self._session,
                self._checked,
                self.superbox,
                self.physical,
                self._layout,
                job=self._job,
                tasks=tasks,
            )
            self._reading_plans[tasks] = CompiledPlan(plan, None)
        return self._reading_plans[tasks]

    def _compiled(self, train: Mapping[str, Sequence[TrainFile]]) -> CompiledPlan[StatefulPlan]:
        files = {source: train.get(source, ()) for source in self.superbox.sources}
        if self._reuse and fit_slots(files):
            return self._plans.get({source: max(len(held), 1) for source, held in files.items()})
        # Fixed names all the same, for sources that have nothing in this train.
        nothing = Slots(self._directory / "nothing", dict.fromkeys(files, 1), self._schemas)
        nothing.link({})
        paths = {
            source: [str(file.path) for file in held] or nothing.files[source]
            for source, held in files.items()
        }
        return CompiledPlan(self._compile(paths), None)

    def _compile(self, files: Mapping[str, Sequence[str]]) -> StatefulPlan:
        return compile_stateful(
            self._session,
            self._checked,
            self.superbox,
            self.physical,
            self._layout,
            files,
            job=self._job,
        )
