"""Steps in this process, without Spark: for tests, and where a JVM cannot be had.

Kernels and the tasks around them are the same as on Spark; expressions are evaluated by the
reference interpreter, one tuple at a time. Spark alone is meant for data.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from auroral.boxes import Union
from auroral.ids import ArcId
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.optimizer import Probe, calls_functions
from auroral.reference.network import operator_of
from auroral.reference.operator import Emission, Tuple
from auroral.scheduling.superboxes import Superbox
from auroral.spark.boxes import physical_of
from auroral.spark.plans.counting import inner_arcs
from auroral.spark.plans.physical import Given, Physical
from auroral.spark.plans.plan import arc_schema, in_order
from auroral.spark.plans.stateful import StatefulPlan, layout_of, reads_logs, writes_all
from auroral.spark.running import stateful_runner
from auroral.spark.running.executor import Files
from auroral.spark.running.runner import StepResult
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import NOTE, PORT, Job, reading_task, task, write_job
from auroral.sql.expressions.expression import evaluator

Hidden = dict[str, Any]
Carried = list[tuple[Hidden, dict[str, Any]]]
"""Tuples with their hidden fields."""


class InProcessExecutor:
    """Runs steps in the thread that asks for them."""

    resolver: Resolver | None = None

    def __init__(self, *, workers: int = 2):
        self.workers = self.cores = workers

    def plain(self, checked: CheckedNetwork, _directory: Path) -> InProcessPlainRunner:
        return InProcessPlainRunner(checked)

    def kernel(
        self,
        checked: CheckedNetwork,
        superbox: Superbox,
        given: Given,
        directory: Path,
        *,
        buckets: int,
        progressing: Mapping[str, Sequence[str]],
    ) -> InProcessKernelRunner:
        return InProcessKernelRunner(
            checked, superbox, given, directory, buckets=buckets, progressing=progressing
        )

    def probe(self, probe: Probe, rows: pa.Table) -> float | None:  # noqa: ARG002
        """What the interpreter takes says nothing of Spark."""
        return None

    def enter(self, superbox: str) -> None:
        """Threads need no preparation."""

    def require_alive(self) -> None:
        """This process is."""

    def cancel(self, superbox: str) -> None:
        """A thread cannot be stopped: whoever waits for it gives it up."""


class InProcessPlainRunner:
    """Runs superboxes that remember nothing."""

    is_compiling = False

    def __init__(self, checked: CheckedNetwork):
        self._checked = checked

    def run(self, superbox: Superbox, train: Files, *, through_driver: bool) -> StepResult:  # noqa: ARG002
        result = StepResult()
        made = _through(self._checked, superbox.boxes, train, result.spent_s)
        for arc in superbox.terminals:
            tuples = made.get(arc, [])
            ranked = any("_sub" in hidden for hidden, _ in tuples)
            schema = arc_schema(self._checked.arcs[arc].schema, ranked)
            unread = self._checked.unread.get(arc, frozenset())
            rows = [
                {**hidden, **{name: row[name] for name in row if name not in unread}}
                for hidden, row in tuples
            ]
            columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
            result.tables[arc] = in_order(pa.Table.from_arrays(columns, schema=schema))
            result.counts[arc] = len(rows)
        for arc in inner_arcs(superbox, self._checked):
            result.counts[arc] = len(made.get(arc, ()))
        return result

    def has_room(self, superbox: Superbox, files: Mapping[str, int]) -> bool:  # noqa: ARG002
        return True

    def drops_in_tasks(self, superbox: Superbox, train: Files) -> bool:  # noqa: ARG002
        return False

    def warm_up(self, superbox: Superbox) -> None:
        """Nothing is compiled."""

    def take_over(self, before: Any, kept: Collection[Superbox]) -> None:
        """Nothing was compiled."""

    def wait(self) -> None:
        """Nothing is compiled in the background."""

    def discard(self) -> None:
        """Nothing was compiled."""


class InProcessKernelRunner:
    """Runs one superbox with state."""

    is_compiling = False

    def __init__(
        self,
        checked: CheckedNetwork,
        superbox: Superbox,
        given: Given,
        directory: Path,
        *,
        buckets: int,
        progressing: Mapping[str, Sequence[str]],
    ):
        assert superbox.stateful is not None
        self._checked = checked
        self.superbox = superbox
        box = checked.network.boxes[superbox.stateful]
        self.physical: Physical = physical_of(superbox.stateful, box, given)
        self.buckets = buckets if self.physical.keys is not None else 1
        self._layout = layout_of(self.physical, checked, superbox, progressing, self.buckets)
        self.reads = reads_logs(self.physical, superbox) or self._layout.boxes is not None
        self.writes_all = writes_all(self._layout, checked, superbox)
        directory.mkdir(parents=True, exist_ok=True)
        self._job = directory / "job"

    def has_room(self, files: Mapping[str, int]) -> bool:  # noqa: ARG002
        return True

    def warm_up(self) -> None:
        """Nothing is compiled."""

    def wait(self) -> None:
        """Nothing is compiled in the background."""

    def discard(self) -> None:
        """Nothing was compiled."""

    def run(self, train: Files, job: Job) -> tuple[list[dict[str, Any]], pa.Table | None]:
        made = self._read(train, job) if self.reads else self._given(train, job)
        if not made:
            return [], None
        result = pa.Table.from_batches(made)
        if not self.physical.returns:
            return StatefulPlan(None, None).split(result)  # type: ignore[arg-type]
        assert self.superbox.stateful is not None
        main = arc_schema(self._checked.arcs[self.superbox.stateful].schema, ranked=True)
        plan = StatefulPlan(None, main)  # type: ignore[arg-type]
        return plan.split(self._finished(result))

    @property
    def _arcs(self) -> Sequence[str]:
        assert self.superbox.stateful is not None
        return self._checked.network.boxes[self.superbox.stateful].sources()

    def _read(self, train: Files, job: Job) -> list[pa.RecordBatch]:
        """What tasks give that read the files of the train themselves."""
        files = stateful_runner.files_to_read(self._layout, self._arcs, train)
        rows = sum(file.rows for held in train.values() for file in held)
        tasks = self.buckets if rows > stateful_runner.PARALLEL_ROWS else 1
        drops = stateful_runner.drops_to_apply(self._layout, self._arcs, train)
        write_job(self._job, replace(job, files=files, drops=drops))
        work = reading_task(self.physical.kernel, self._layout, str(self._job), tasks)
        return [
            batch
            for number in range(tasks)
            for batch in work(iter([pa.record_batch([pa.array([number])], ["id"])]))
        ]

    def _given(self, train: Files, job: Job) -> list[pa.RecordBatch]:
        """What a task gives that gets tuples from the boxes before it."""
        write_job(self._job, job)
        given = _through(self._checked, self.superbox.boxes[:-1], train)
        work = task(self.physical.kernel, self._layout, str(self._job))
        batches = [self._batch(port, given.get(arc, [])) for port, arc in enumerate(self._arcs)]
        whole = pa.concat_tables([b for b in batches if b.num_rows] or batches[:1])
        return list(work(iter(whole.combine_chunks().to_batches())))

    def _batch(self, port: int, tuples: Carried) -> pa.Table:
        """What the kernel takes of one input."""
        own = {carrier: name for name, carrier, _ in self._layout.inputs[port]}
        types = {carrier: type for placed in self._layout.inputs for _, carrier, type in placed}
        given = self.physical.inputs[port]
        columns: dict[str, pa.Array] = {
            "_seq": pa.array([h["_seq"] for h, _ in tuples], pa.int64()),
            "_ts": pa.array([h["_ts"] for h, _ in tuples], pa.int64()),
            "_sub": pa.array([_sub(h) for h, _ in tuples], pa.binary()),
        }
        if len(self.physical.inputs) > 1:
            columns[PORT] = pa.array([port] * len(tuples), pa.int8())
        for carrier in sorted(types, key=lambda name: int(name[1:]) if name[1:].isdigit() else 0):
            values = [None] * len(tuples)
            if carrier in own:
                find = evaluator(given.texts[own[carrier]][0], given.schema)
                values = [find(row) for _, row in tuples]
            columns[carrier] = pa.array(values, types[carrier])
        return pa.table(columns)

    def _finished(self, result: pa.Table) -> pa.Table:
        """The rest of a predicate, arithmetic on aggregates."""
        physical = self.physical
        assert not physical.calls, "joins that call Python functions need Spark"
        assert self.superbox.stateful is not None
        returned = physical.returned()
        texts = physical.compute or {name: f"`{name}`" for name, _ in physical.returns}
        finds = [evaluator(text, returned) for text in texts.values()]
        keep = evaluator(physical.where, returned) if physical.where is not None else None
        types = [f.type.arrow() for f in self._checked.arcs[self.superbox.stateful].schema]
        rows: list[list[Any]] = []
        for row in result.to_pylist():
            note = row[NOTE]
            for name, parts in physical.structs.items():
                row[name] = {part: row[column] for column, part in parts}
            if note is None and keep is not None and keep(row) is not True:
                continue
            values = [None if note is not None else find(row) for find in finds]
            rows.append([note, row["_seq"], row["_ts"], row["_sub"], *values])
        names = [NOTE, "_seq", "_ts", "_sub", *(f"v{n}" for n in range(len(finds)))]
        held = [pa.string(), pa.int64(), pa.int64(), pa.binary(), *types]
        columns = [pa.array([row[n] for row in rows], type) for n, type in enumerate(held)]
        return pa.Table.from_arrays(columns, names=names)


def _through(
    checked: CheckedNetwork,
    boxes: Sequence[str],
    train: Files,
    spent_s: dict[str, float] | None = None,
) -> dict[str, Carried]:
    """What boxes that remember nothing make of a train.

    `spent_s` gets how long those took that call Python functions.
    """
    arcs: dict[str, Carried] = {source: _tuples(files) for source, files in train.items()}
    scope = what_boxes_see(checked.network, None)
    for name in boxes:
        box = checked.network.boxes[name]
        operator = operator_of(name, box, checked.schemas_of(name), scope)
        began = time.perf_counter()
        for port, arc in enumerate(box.sources()):
            for hidden, row in arcs.get(arc, ()):
                if isinstance(box, Union):  # one moment may come on several ways
                    hidden = {**hidden, "_sub": port.to_bytes(2, "big") + _sub(hidden)}
                for emitted in operator.push(port, Tuple(row)):
                    assert isinstance(emitted, Emission)
                    if emitted.port is not None:
                        out = str(ArcId(name, emitted.port))
                        arcs.setdefault(out, []).append((hidden, emitted.tuple.row))
        if spent_s is not None and calls_functions(box, scope.functions):
            spent_s[name] = time.perf_counter() - began
    return arcs


def _tuples(files: Sequence[TrainFile]) -> Carried:
    found: Carried = []
    for file in files:
        for row in pq.read_table(str(file.path)).to_pylist():
            hidden = {n: row.pop(n) for n in ("_seq", "_ts", "_sub") if n in row}
            found.append((hidden, row))
    return sorted(found, key=lambda one: (one[0]["_seq"], _sub(one[0])))


def _sub(hidden: Hidden) -> bytes:
    return hidden.get("_sub") or b""
