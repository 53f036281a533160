"""The step runner: a superbox over one train is one Spark job."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.errors import RunError
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.drops import Dropped
from auroral.spark.plans.column_boxes import columns_of_superbox
from auroral.spark.plans.counting import Rows, metric_name
from auroral.spark.plans.plan import SuperboxPlan, compile_plan, log_schemas
from auroral.spark.plans.plans import CompiledPlan, Plans
from auroral.spark.plans.slots import MOST_SLOTS, fit_slots
from auroral.spark.running.column_runner import ColumnRunner
from auroral.spark.running.sheltering import Shelter
from auroral.spark.running.train_file import TrainFile
from auroral.spark.session.causes import translate_spark_errors
from auroral.spark.session.session import is_local
from auroral.storage.segment import MAX_FILE_BYTES

LARGE_ROWS = 50_000
"""Tasks read and write larger trains themselves; smaller ones come through the driver."""


@dataclass
class StepResult:
    """What a step made: tables that came through the driver, or directories Spark wrote."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    written: dict[str, Path] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    spent_s: dict[str, float] = field(default_factory=dict)
    """By box, the seconds that tasks spent in its Python functions, all tasks together."""
    dropped: Dropped = field(default_factory=dict)
    """What drop boxes dropped in tasks."""


class Runner:
    """Runs steps; keeps compiled plans. `reuse_plans=False` compiles anew for each step."""

    def __init__(
        self,
        session: SparkSession,
        checked: CheckedNetwork,
        directory: Path,
        *,
        reuse_plans: bool | None = None,
    ):
        self.session = session
        self.checked = checked
        self._directory = directory
        self._reuse = is_local(session) if reuse_plans is None else reuse_plans
        self._plans: dict[Superbox, Plans[SuperboxPlan]] = {}
        self._columns: dict[Superbox, ColumnRunner | None] = {}
        """Superboxes whose large trains tasks read and write themselves; None: Spark must."""
        self._numbered = 0
        self._shelter = Shelter(session)

    def run(
        self, superbox: Superbox, train: Mapping[str, Sequence[TrainFile]], *, through_driver: bool
    ) -> StepResult:
        """Run a superbox over a train; sources without tuples are left out if a plan can do so."""
        train = {source: files for source, files in train.items() if files}
        if not train:
            return StepResult()

        def job() -> StepResult:
            columns = self._columns_of(superbox) if _is_large(train) else None
            if columns is not None:
                made = columns.run(train)
                return StepResult(
                    written=dict(made.written), counts=dict(made.counts), dropped=made.dropped
                )
            result = StepResult()
            compiled = self._compiled(superbox, train)
            rows = {source: sum(file.rows for file in files) for source, files in train.items()}
            if compiled.slots:
                paths = {s: [file.path for file in files] for s, files in train.items()}
                compiled.slots.link(paths)
                rows = dict.fromkeys(compiled.slots.files, 0) | rows
            before = compiled.plan.function_seconds()
            if through_driver:
                self._collect(compiled.plan, rows, result)
                self._require_all_read(compiled.plan.data, rows, superbox)
            else:
                self._write(compiled.plan, rows, superbox, result)
            spent = compiled.plan.function_seconds()
            result.spent_s = {box: after - before[box] for box, after in spent.items()}
            return result

        with translate_spark_errors(superbox.name):
            return self._shelter.run(superbox.name, job)

    def drops_in_tasks(self, superbox: Superbox, train: Mapping[str, Sequence[TrainFile]]) -> bool:
        """Whether tasks read the files themselves, and apply their drop boxes."""
        return _is_large(train) and self._columns_of(superbox) is not None

    def has_room(self, superbox: Superbox, files: Mapping[str, int]) -> bool:
        """Whether Spark need not compile for so many files of each source."""
        planned = self._reuse and superbox.boxes and max(files.values()) <= MOST_SLOTS
        return not planned or self._plans_of(superbox).has_room(files)

    def take_over(self, before: Runner, kept: Collection[Superbox]) -> None:
        """Go on with what was compiled for superboxes that stay as they were."""
        self._shelter = before._shelter
        for superbox, plans in before._plans.items():
            if superbox in kept:
                self._plans[superbox] = plans
            else:
                plans.close()
        before._plans = {}
        self._columns = {box: held for box, held in before._columns.items() if box in kept}

    @property
    def is_compiling(self) -> bool:
        """Whether something is compiled aside."""
        return any(plans.is_compiling for plans in list(self._plans.values()))

    def wait(self) -> None:
        """Until nothing is compiled aside."""
        for plans in self._plans.values():
            plans.wait()

    def discard(self) -> None:
        """Forget what was compiled."""
        for plans in self._plans.values():
            plans.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def warm_up(self, superbox: Superbox) -> None:
        """Compile a superbox and run it over nothing, so that the first train need not wait."""
        if not self._reuse or not superbox.boxes:
            return
        nothing = {source: [TrainFile(Path(), 0, 0)] for source in superbox.sources}
        with translate_spark_errors(superbox.name):
            compiled = self._compiled(superbox, nothing)
            assert compiled.slots is not None
            compiled.slots.link({})
            compiled.plan.data.coalesce(1).toArrow()  # in one task: others need the other cores

    def compile(self, superbox: Superbox, files: Mapping[str, Sequence[str]]) -> SuperboxPlan:
        """Compile a superbox over files, without running it."""
        return compile_plan(self.session, self.checked, superbox, files)

    def _compiled(
        self, superbox: Superbox, train: Mapping[str, Sequence[TrainFile]]
    ) -> CompiledPlan[SuperboxPlan]:
        if not self._reuse or not fit_slots(train):
            paths = {s: [str(file.path) for file in files] for s, files in train.items()}
            return CompiledPlan(self.compile(superbox, paths), None)
        return self._plans_of(superbox).get({s: len(files) for s, files in train.items()})

    def _plans_of(self, superbox: Superbox) -> Plans[SuperboxPlan]:
        if superbox not in self._plans:
            self._numbered += 1
            directory = self._directory / f"superbox-{self._numbered}"
            schemas = log_schemas(self.checked, superbox.sources)
            compile = partial(self.compile, superbox)
            self._plans[superbox] = Plans(self.session, directory, schemas, compile)
        return self._plans[superbox]

    def _columns_of(self, superbox: Superbox) -> ColumnRunner | None:
        if superbox not in self._columns:
            boxes = columns_of_superbox(self.checked, superbox)
            self._numbered += 1
            directory = self._directory / f"columns-{self._numbered}"
            self._columns[superbox] = None
            if boxes is not None:
                self._columns[superbox] = ColumnRunner(
                    self.session, self.checked, superbox, boxes, directory, reuse=self._reuse
                )
        return self._columns[superbox]

    def _collect(self, plan: SuperboxPlan, rows: Mapping[str, int], result: StepResult) -> None:
        table = plan.data.toArrow()
        result.tables, lanes = plan.split(table)
        result.failed = plan.failed(table)
        known = {(source, ()): count for source, count in rows.items()} | lanes
        inner = plan.counting.totals({**known, **self._observed(plan, plan.data)})
        result.counts = {**inner, **{arc: t.num_rows for arc, t in result.tables.items()}}

    def _write(
        self, plan: SuperboxPlan, rows: Mapping[str, int], superbox: Superbox, result: StepResult
    ) -> None:
        for arc in plan.strands:
            self._numbered += 1
            target = self._directory / f"written-{self._numbered}"
            frame = plan.arc_frame(arc)
            width = 16 + 16 * len(frame.columns)
            per_file = max(MAX_FILE_BYTES // 2 // width, 1)
            writer = frame.write.option("maxRecordsPerFile", per_file)
            writer.option("compression", "uncompressed").parquet(str(target))
            result.written[arc] = target
        # What the driver path learns on the way: how many were read and counted, what failed.
        counted, lanes = plan.count_frame()
        (counts,) = counted.toArrow().to_pylist()
        self._require_all_read(counted, rows, superbox)
        known: dict[Rows, int] = {(source, ()): count for source, count in rows.items()}
        known |= dict(zip(lanes, counts.values(), strict=True))
        result.counts = plan.counting.totals({**known, **self._observed(plan, counted)})
        if plan.failures:
            result.failed = plan.failed(plan.failed_frame().toArrow())

    def _observed(self, plan: SuperboxPlan, run: DataFrame) -> dict[Rows, int]:
        if not plan.counting.observed:
            return {}
        metrics = run._jdf.queryExecution().observedMetrics()
        found: dict[Rows, int] = {}
        for source, counted in plan.counting.observed.items():
            name = metric_name(source)
            if metrics.contains(name):
                row = metrics.apply(name)
                found |= {rows: int(row.getLong(n)) for n, rows in enumerate(counted)}
        return found

    def _require_all_read(
        self, run: DataFrame, rows: Mapping[str, int], superbox: Superbox
    ) -> None:
        """Spark must have read as many tuples as the manifest says there are.

        Unless it found out that it need not read a source at all.
        """
        leaves = run._jdf.queryExecution().executedPlan().collectLeaves()
        scans = [leaves.apply(n) for n in range(leaves.size())]
        if len(scans) != len(rows) or any("Scan parquet" not in s.nodeName() for s in scans):
            return
        read = sum(int(s.metrics().apply("numOutputRows").value()) for s in scans)
        expected = sum(rows.values())
        if read != expected:
            raise RunError(
                "TUPLES_MISSING",
                f"Spark read {read} tuples of a train of {expected}",
                where=superbox.name,
                hint="a segment was changed from outside",
            )


def _is_large(train: Mapping[str, Sequence[TrainFile]]) -> bool:
    return sum(file.rows for files in train.values() for file in files) > LARGE_ROWS
