"""A compiled stateful superbox: order-agnostic boxes as expressions, then one kernel.

    numbers of tasks → mapInArrow(task that reads logs, evaluates, runs the kernel) → SQL

or, where only Spark can evaluate an expression before the kernel:

    logs → expressions → the kernel's columns → mapInArrow(task over all buckets) → SQL

No plan has an exchange: it could not be run again, because Spark keeps what a plan has exchanged
(docs/adr/0009).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from auroral.network.check import CheckedNetwork
from auroral.network.types import Field, Schema, Type
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.attempts import computed
from auroral.spark.plans.column_boxes import arcs_before_kernel, columns_before_kernel
from auroral.spark.plans.frame import Frame, Lane
from auroral.spark.plans.functions import result_column
from auroral.spark.plans.lowering import lower
from auroral.spark.plans.physical import KernelColumns, Physical
from auroral.spark.plans.plan import SUB, arc_schema, source_frames, sub_column
from auroral.spark.running.worker import NOTE, PORT, Layout, reading_task, task
from auroral.spark.running.worker import Port as OutputPort

ERROR = "_error"
"""Why a Python function has no result for a row."""
_HIDDEN = (("_seq", pa.int64()), ("_ts", pa.int64()), ("_sub", SUB))


@dataclass(frozen=True)
class StatefulPlan:
    """Run `data` and take its rows apart."""

    data: DataFrame
    main: pa.Schema | None
    """The schema of the main arc's log, if its tuples come back through Spark."""

    def split(self, result: pa.Table) -> tuple[list[dict[str, Any]], pa.Table | None]:
        """The notes of all buckets, and the tuples of the main arc."""
        column = result[NOTE]
        notes = [json.loads(text) for text in column.drop_null().to_pylist()]
        if self.main is None:
            return notes, None
        rows = result.filter(column.is_null()).drop_columns([NOTE])
        if ERROR in rows.column_names:
            failed = rows.filter(rows[ERROR].is_valid())
            rows = rows.filter(rows[ERROR].is_null()).drop_columns([ERROR])
            if failed.num_rows:
                notes[0]["dead"] += _dead(failed)
        rows = rows.rename_columns(self.main.names).cast(self.main)
        return notes, rows.sort_by([("_seq", "ascending"), ("_sub", "ascending")])


def _dead(failed: pa.Table) -> list[tuple[str, str]]:
    """Why there are no results, and the rows they would have been made of."""
    ordered = failed.sort_by([("_seq", "ascending"), ("_sub", "ascending")])
    reasons = ordered[ERROR].to_pylist()
    rows = ordered.drop_columns(["_seq", "_ts", "_sub", ERROR]).to_pylist(maps_as_pydicts="lossy")
    texts = [json.dumps(row, default=str, ensure_ascii=False) for row in rows]
    return list(zip(reasons, texts, strict=True))


def layout_of(
    physical: Physical,
    checked: CheckedNetwork,
    superbox: Superbox,
    progressing: Mapping[str, Sequence[str]],
    buckets: int,
) -> Layout:
    """How the kernel's rows travel."""
    box = superbox.stateful
    assert box is not None
    boxes = None
    if reads_logs(physical, superbox):
        inputs = _read_inputs(physical)
    else:
        boxes = columns_before_kernel(checked, superbox, physical)
        inputs = _carried(physical) if boxes is None else _computed_inputs(physical)
    kept = {}
    for arc in arcs_before_kernel(checked, superbox) if boxes is not None else ():
        schema = arc_schema(checked.arcs[arc].schema)
        kept[arc] = OutputPort((), schema, tuple(progressing.get(arc, ())))
    ports = {}
    for port, columns in physical.ports.items():
        arc = f"{box}.{port}" if port else box
        if arc in superbox.terminals and not (port == "" and physical.returns):
            schema = arc_schema(checked.arcs[arc].schema, ranked=True)
            ports[port] = OutputPort(columns, schema, tuple(progressing.get(arc, ())))
    returned = None
    if physical.returns:
        own = [pa.field(name, type.arrow()) for name, type in physical.returns]
        returned = pa.schema([*(pa.field(*hidden) for hidden in _HIDDEN), *own])
    keys = physical.keys or tuple(() for _ in physical.inputs)
    return Layout(inputs, keys, buckets, ports, returned, physical.whole, boxes, kept)


def writes_all(layout: Layout, checked: CheckedNetwork, superbox: Superbox) -> bool:
    """Whether tasks can write all arcs of a superbox, also those before the kernel."""
    return all(arc in layout.kept for arc in arcs_before_kernel(checked, superbox))


def reads_logs(physical: Physical, superbox: Superbox) -> bool:
    """Whether the logs hold the kernel's columns: no box before it, no expression to evaluate."""
    plain = all(name.startswith("f") for columns in physical.inputs for name in columns.texts)
    return plain and superbox.boxes == (superbox.stateful,)


def _read_inputs(physical: Physical) -> tuple[tuple[tuple[str, str, pa.DataType], ...], ...]:
    """The kernel's columns are the arcs' fields."""
    return tuple(
        tuple((n, columns.schema.names[int(n[1:])], type) for n, type in columns.types())
        for columns in physical.inputs
    )


def _computed_inputs(physical: Physical) -> tuple[tuple[tuple[str, str, pa.DataType], ...], ...]:
    """The kernel's columns are computed by the tasks."""
    return tuple(tuple((n, n, type) for n, type in c.types()) for c in physical.inputs)


def _carried(physical: Physical) -> tuple[tuple[tuple[str, str, pa.DataType], ...], ...]:
    """Columns of one type share a place."""
    carriers = _Carriers()
    return tuple(carriers.place(columns) for columns in physical.inputs)


class _Carriers:
    """Columns that the inputs of a kernel share: one for each type and occurrence."""

    def __init__(self) -> None:
        self._types: list[Type] = []

    def place(self, columns: KernelColumns) -> tuple[tuple[str, str, pa.DataType], ...]:
        used: set[int] = set()
        placed = []
        for name, (_, type) in columns.texts.items():
            free = (n for n, t in enumerate(self._types) if t == type and n not in used)
            slot = next(free, len(self._types))
            if slot == len(self._types):
                self._types.append(type)
            used.add(slot)
            placed.append((name, f"c{slot}", type.arrow()))
        return tuple(placed)


def compile_reading(
    session: SparkSession,
    checked: CheckedNetwork,
    superbox: Superbox,
    physical: Physical,
    layout: Layout,
    *,
    job: Path,
    tasks: int,
) -> StatefulPlan:
    """Compile a stateful box whose tasks read logs."""
    numbers = session.range(0, tasks, 1, tasks)
    run = reading_task(physical.kernel, layout, str(job), tasks)
    return _planned(numbers.mapInArrow(run, _returned(physical)), checked, superbox, physical)


def compile_stateful(
    session: SparkSession,
    checked: CheckedNetwork,
    superbox: Superbox,
    physical: Physical,
    layout: Layout,
    files: Mapping[str, Sequence[str]],
    *,
    job: Path,
) -> StatefulPlan:
    """Compile a stateful superbox over the files of its sources."""
    assert superbox.stateful is not None
    frames = source_frames(session, checked, files)
    lanes = lower(checked, superbox, frames).arcs
    arcs = checked.network.boxes[superbox.stateful].sources()
    inputs = [(port, lane) for port, arc in enumerate(arcs) for lane in lanes.get(arc, ())]
    ranked = any(lane.rank or frames[lane.source].made for _, lane in inputs)
    taken = _Taken(physical, layout, ranked)
    parts = [taken.rows(frames[lane.source], lane, port) for port, lane in inputs]
    rows = reduce(DataFrame.unionAll, parts).coalesce(1)
    made = rows.mapInArrow(task(physical.kernel, layout, str(job)), _returned(physical))
    return _planned(made, checked, superbox, physical)


def _planned(
    made: DataFrame, checked: CheckedNetwork, superbox: Superbox, physical: Physical
) -> StatefulPlan:
    if not physical.returns:
        return StatefulPlan(made, None)
    assert superbox.stateful is not None
    main = arc_schema(checked.arcs[superbox.stateful].schema, ranked=True)
    return StatefulPlan(_finished(made, physical), main)


@dataclass(frozen=True)
class _Taken:
    """What a kernel takes of its inputs."""

    physical: Physical
    layout: Layout
    ranked: bool

    def rows(self, frame: Frame, lane: Lane, port: int) -> DataFrame:
        """One lane of one input as the kernel wants it."""
        data = frame.data if not lane.conditions else frame.data.where(lane.condition_sql())
        sub = [sub_column(lane.rank, frame.made).alias("_sub")] if self.ranked else []
        fields = [F.col(column).alias(name) for name, column in lane.columns.items()]
        data = data.select("_seq", "_ts", *sub, *fields)
        hidden = ["_seq", "_ts", *(["_sub"] if self.ranked else [])]
        return data.select(*hidden, *self._place(port), *self._columns(port))

    def _place(self, port: int) -> list[Column]:
        """Which input a tuple belongs to, unless there is only one."""
        several = len(self.physical.inputs) > 1
        return [F.lit(port).cast("tinyint").alias(PORT)] if several else []

    def _columns(self, port: int) -> list[Column]:
        own = {carrier: name for name, carrier, _ in self.layout.inputs[port]}
        given = self.physical.inputs[port]
        made = []
        for carrier, type in self._carriers().items():
            column = F.lit(None)
            if carrier in own:
                column = computed(given.texts[own[carrier]][0], given.schema)
            made.append(column.cast(str(type)).alias(carrier))
        return made

    def _carriers(self) -> dict[str, Type]:
        found: dict[str, Type] = {}
        for columns, placed in zip(self.physical.inputs, self.layout.inputs, strict=True):
            found |= {carrier: columns.texts[name][1] for name, carrier, _ in placed}
        return dict(sorted(found.items(), key=lambda item: int(item[0][1:])))


def _returned(physical: Physical) -> str:
    columns = [f"{NOTE} string"]
    if physical.returns:
        columns += ["_seq bigint", "_ts bigint", "_sub binary"]
        columns += [f"`{name}` {type}" for name, type in physical.returns]
    return ", ".join(columns)


def _finished(made: DataFrame, physical: Physical) -> DataFrame:
    """What the kernel could not say: the rest of a predicate, arithmetic on aggregates."""
    for name, parts in physical.structs.items():
        made = made.withColumn(name, F.struct(*(F.col(c).alias(f) for c, f in parts)))
    schema = physical.returned()
    made, schema, failed = _with_calls(made, schema, physical)
    if physical.where is not None:
        holds = F.coalesce(computed(physical.where, schema), F.lit(False))
        told = F.col(NOTE).isNotNull()
        told = told | F.col(ERROR).isNotNull() if failed else told
        made = made.where(told | holds)
    texts = physical.compute or {name: f"`{name}`" for name, _ in physical.returns}
    fields = [computed(text, schema).alias(f"v{n}") for n, text in enumerate(texts.values())]
    return made.select(NOTE, "_seq", "_ts", "_sub", *fields, *([ERROR] if failed else []))


def _with_calls(
    made: DataFrame, schema: Schema, physical: Physical
) -> tuple[DataFrame, Schema, bool]:
    """The rows with the results of functions, and why there are none."""
    if not physical.calls:
        return made, schema, False
    equal = F.coalesce(computed(physical.equal, schema), F.lit(False))
    made = made.where(F.col(NOTE).isNotNull() | equal).withColumn(ERROR, F.lit(None).cast("string"))
    for call in physical.calls:
        args = [computed(arg.text, schema).cast(str(arg.type)) for arg in call.args]
        named = [column.alias(f"_arg{n}") for n, column in enumerate(args)]
        belongs = F.col(NOTE).isNull() & F.col(ERROR).isNull()
        made = made.select("*", *named)
        given = [F.col(f"_arg{n}") for n in range(len(args))]
        function = physical.functions[call.function]
        made = made.withColumn("_result", result_column(function, call.returns, belongs, given))
        made = made.withColumn(call.column, F.col("_result.value"))
        made = made.withColumn(ERROR, F.coalesce(F.col(ERROR), F.col("_result.error")))
        made = made.drop("_result", *(f"_arg{n}" for n in range(len(args))))
        schema = Schema((*schema.fields, Field(call.column, call.returns)))
    return made, schema, True
