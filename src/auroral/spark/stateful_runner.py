"""Runs steps of stateful superboxes; keeps their compiled plans."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.boxes import physical_of
from auroral.spark.causes import told
from auroral.spark.physical import Given, Physical
from auroral.spark.plan import arc_schema
from auroral.spark.session import active, is_local
from auroral.spark.sheltering import Shelter
from auroral.spark.slots import Slots, slot_count
from auroral.spark.stateful import (
    StatefulPlan,
    compile_reading,
    compile_stateful,
    layout_of,
    reads_logs,
)
from auroral.spark.train_file import TrainFile
from auroral.spark.worker import Job, Layout, write_job
from auroral.storage.segment import MAX_FILE_BYTES

PARALLEL_ROWS = 50_000
"""Larger trains are spread over the cores; for smaller ones another task costs too much."""


@dataclass
class _Compiled:
    plan: StatefulPlan
    slots: Slots | None


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
        self._layout: Layout = layout_of(
            self.physical, checked, superbox, progressing, self.buckets
        )
        self.reads = reads_logs(self.physical, superbox)
        self._job = directory / "job"
        self._shelter = Shelter(session)
        self._plans: dict[tuple[Any, ...], _Compiled] = {}

    def run(
        self, train: Mapping[str, Sequence[TrainFile]], job: Job
    ) -> tuple[list[dict[str, Any]], pa.Table | None]:
        """Run a step: the notes of every bucket, and the main arc's tuples if Spark has them."""
        with told(self.superbox.name):
            return self._shelter.run(self.superbox.name, lambda: self._run_on(train, job))

    def _run_on(
        self, train: Mapping[str, Sequence[TrainFile]], job: Job
    ) -> tuple[list[dict[str, Any]], pa.Table | None]:
        if not self.reads:
            return self._run(self._compiled(train), train, job)
        assert self.superbox.stateful is not None
        arcs = self._checked.network.boxes[self.superbox.stateful].sources()
        files = {
            port: [str(file.path) for file in train.get(arc, ())] for port, arc in enumerate(arcs)
        }
        rows = sum(file.rows for held in train.values() for file in held)
        tasks = self.buckets if rows > PARALLEL_ROWS else 1
        return self._run(self._reading(tasks), {}, replace(job, files=files))

    def warm_up(self) -> None:
        """Compile, start the workers, all at once, and let them import what they need."""
        if self._reuse:
            with told(self.superbox.name):
                if self.reads:
                    self._run(self._reading(self.buckets), {}, None)
                self._run(self._smallest(), {}, None)

    def discard(self) -> None:
        """Forget what was compiled."""
        self._plans.clear()
        shutil.rmtree(self._directory, ignore_errors=True)

    def explain(self) -> str:
        """Spark's plan for a small train."""
        plan = self._smallest().plan
        return str(plan.data._jdf.queryExecution().executedPlan().toString())

    def _smallest(self) -> _Compiled:
        return self._reading(1) if self.reads else self._compiled({})

    def _run(
        self, compiled: _Compiled, train: Mapping[str, Sequence[TrainFile]], job: Job | None
    ) -> tuple[list[dict[str, Any]], pa.Table | None]:
        if compiled.slots:
            compiled.slots.link({s: [file.path for file in files] for s, files in train.items()})
        write_job(self._job, job)
        return compiled.plan.split(compiled.plan.data.toArrow())

    def _reading(self, tasks: int) -> _Compiled:
        key = ("reading", tasks)
        if key not in self._plans or not self._reuse:
            plan = compile_reading(
                self._session,
                self._checked,
                self.superbox,
                self.physical,
                self._layout,
                job=self._job,
                tasks=tasks,
            )
            self._plans[key] = _Compiled(plan, None)
        return self._plans[key]

    def _compiled(self, train: Mapping[str, Sequence[TrainFile]]) -> _Compiled:
        files = {source: train.get(source, ()) for source in self.superbox.sources}
        counts = {source: slot_count(max(len(held), 1)) for source, held in files.items()}
        fits = all(f.bytes <= MAX_FILE_BYTES for held in files.values() for f in held)
        schemas = {
            source: arc_schema(
                self._checked.arcs[source].schema, source not in self._checked.network.streams
            )
            for source in files
        }
        if not self._reuse or not fits or None in counts.values():
            # Fixed names all the same, for sources that have nothing in this train.
            nothing = Slots(self._directory / "nothing", dict.fromkeys(files, 1), schemas)
            nothing.link({})
            paths = {
                source: [str(file.path) for file in held] or nothing.files[source]
                for source, held in files.items()
            }
            return _Compiled(self._compile(paths), None)
        key = tuple(counts.items())
        if key not in self._plans:
            wanted = {source: count for source, count in counts.items() if count}
            slots = Slots(self._directory / f"plan-{len(self._plans)}", wanted, schemas)
            compiled = _Compiled(self._compile(slots.files), slots)
            # Plan now, while the slots still have the length they are planned at.
            with active(self._session):
                compiled.plan.data._jdf.queryExecution().toRdd()
            self._plans[key] = compiled
        return self._plans[key]

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
