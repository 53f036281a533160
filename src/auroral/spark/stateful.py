"""A compiled stateful superbox: order-agnostic boxes as expressions, then one kernel.

    logs → expressions → columns of the kernel, bucket → [exchange] → mapInArrow(task) → SQL

A small train is one task over all buckets: the plan has no exchange and is run again and again
over slots. A large one is exchanged by bucket and planned anew each time, because Spark keeps
what a plan has exchanged (docs/adr/0009).
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
from pyspark.sql.pandas.types import to_arrow_schema

from auroral.network.check import CheckedNetwork
from auroral.network.types import Type
from auroral.scheduling.superboxes import Superbox
from auroral.spark.boxes import physical_of
from auroral.spark.frame import Frame, Lane
from auroral.spark.lowering import lower
from auroral.spark.physical import Columns, Physical
from auroral.spark.plan import SUB, arc_schema, source_frames, sub_column
from auroral.spark.worker import BUCKET, NOTE, PORT, Layout, task
from auroral.spark.worker import Port as OutputPort

_HIDDEN = (("_seq", pa.int64()), ("_ts", pa.int64()), ("_sub", SUB))


@dataclass(frozen=True)
class StatefulPlan:
    """Run `data` and take its rows apart."""

    data: DataFrame
    exchanges: bool
    main: pa.Schema | None
    """The schema of the main arc's log, if its tuples come back through Spark."""

    def split(self, result: pa.Table) -> tuple[list[dict[str, Any]], pa.Table | None]:
        """The notes of all buckets, and the tuples of the main arc."""
        column = result[NOTE]
        notes = [json.loads(text) for text in column.drop_null().to_pylist()]
        if self.main is None:
            return notes, None
        rows = result.filter(column.is_null()).drop_columns([NOTE])
        rows = rows.rename_columns(self.main.names).cast(self.main)
        return notes, rows.sort_by([("_seq", "ascending"), ("_sub", "ascending")])


def layout_of(
    physical: Physical,
    checked: CheckedNetwork,
    superbox: Superbox,
    progressing: Mapping[str, Sequence[str]],
) -> Layout:
    """How the kernel's rows travel: columns of one type share a place."""
    box = superbox.stateful
    assert box is not None
    carriers = _Carriers()
    inputs = tuple(carriers.place(columns) for columns in physical.inputs)
    ports = {}
    for port, columns in physical.ports.items():
        arc = f"{box}.{port}" if port else box
        if arc in superbox.terminals and not (port == "" and physical.returns):
            schema = arc_schema(checked.arcs[arc].schema, ranked=True)
            names = ["_seq", "_ts", "_sub", *schema.names[3:]]
            ordered = pa.schema([schema.field(name) for name in names])
            ports[port] = OutputPort(columns, ordered, tuple(progressing.get(arc, ())))
    returned = None
    if physical.returns:
        own = [pa.field(name, type.arrow()) for name, type in physical.returns]
        returned = pa.schema([*(pa.field(*hidden) for hidden in _HIDDEN), *own])
    return Layout(inputs, ports, returned)


class _Carriers:
    """Columns that the inputs of a kernel share: one for each type and occurrence."""

    def __init__(self) -> None:
        self.types: list[Type] = []

    def place(self, columns: Columns) -> tuple[tuple[str, str, pa.DataType], ...]:
        used: set[int] = set()
        placed = []
        for name, (_, type) in columns.texts.items():
            free = (n for n, t in enumerate(self.types) if t == type and n not in used)
            slot = next(free, len(self.types))
            if slot == len(self.types):
                self.types.append(type)
            used.add(slot)
            placed.append((name, f"c{slot}", type.arrow()))
        return tuple(placed)


def compile_stateful(
    session: SparkSession,
    checked: CheckedNetwork,
    superbox: Superbox,
    physical: Physical,
    layout: Layout,
    files: Mapping[str, Sequence[str]],
    *,
    job: Path,
    buckets: int,
    exchange: bool,
) -> StatefulPlan:
    """Compile a stateful superbox over the files of its sources."""
    frames = source_frames(session, checked, files)
    lanes = lower(checked, superbox, frames).arcs
    assert superbox.stateful is not None
    arcs = checked.network.boxes[superbox.stateful].sources()
    ranked = any(lane.rank or frames[lane.source].made for a in arcs for lane in lanes.get(a, ()))
    several = len(physical.inputs) > 1
    spread = buckets > 1 and physical.keys is not None
    parts = [
        _rows(frames[lane.source], lane, port, physical, layout, ranked, several, buckets if spread else 1)
        for port, arc in enumerate(arcs)
        for lane in lanes.get(arc, ())
    ]
    rows = reduce(DataFrame.unionAll, parts)
    rows = rows.repartition(buckets, BUCKET) if exchange and spread else rows.coalesce(1)
    made = rows.mapInArrow(task(physical.kernel, layout, str(job)), _returned_ddl(physical))
    assert to_arrow_schema is not None
    main = None
    if physical.returns:
        made = _finished(made, physical)
        schema = checked.arcs[superbox.stateful].schema
        main = pa.schema([*(pa.field(*hidden) for hidden in _HIDDEN), *schema.arrow()])
    return StatefulPlan(made, exchange and spread, main)


def _rows(
    frame: Frame,
    lane: Lane,
    port: int,
    physical: Physical,
    layout: Layout,
    ranked: bool,
    several: bool,
    buckets: int,
) -> DataFrame:
    """One lane of one input as the kernel wants it."""
    columns = physical.inputs[port]
    data = frame.data if not lane.conditions else frame.data.where(lane.condition_sql())
    sub = [sub_column(lane.rank, frame.made).alias("_sub")] if ranked else []
    fields = [F.col(column).alias(name) for name, column in lane.columns.items()]
    data = data.select("_seq", "_ts", *sub, *fields)
    carried = {carrier: name for name, carrier, _ in layout.inputs[port]}
    types = {c: columns_type(physical, layout, c) for c in all_carriers(layout)}
    made: list[Column] = []
    for carrier, type in types.items():
        if carrier in carried:
            text, own = columns.texts[carried[carrier]]
            made.append(F.expr(text).cast(str(own)).alias(carrier))
        else:
            made.append(F.lit(None).cast(str(type)).alias(carrier))
    hidden = ["_seq", "_ts", *(["_sub"] if ranked else [])]
    extra = [F.lit(port).cast("tinyint").alias(PORT)] if several else []
    if buckets > 1:
        assert physical.keys is not None
        keys = [_hashed(columns.texts[name]) for name in physical.keys[port]]
        extra.append(F.pmod(F.hash(*keys), F.lit(buckets)).cast("int").alias(BUCKET))
    return data.select(*hidden, *extra, *made)


def all_carriers(layout: Layout) -> list[str]:
    found = {carrier for placed in layout.inputs for _, carrier, _ in placed}
    return sorted(found, key=lambda carrier: int(carrier[1:]))


def columns_type(physical: Physical, layout: Layout, carrier: str) -> Type:
    for columns, placed in zip(physical.inputs, layout.inputs, strict=True):
        for name, held, _ in placed:
            if held == carrier:
                return columns.texts[name][1]
    raise AssertionError(carrier)


def _hashed(column: tuple[str, Type]) -> Column:
    """A key so that equal keys hash alike: one zero, one NaN."""
    text, type = column
    made = F.expr(text).cast(str(type))
    return made + F.lit(0.0) if type.name in ("float", "double") else made


def _returned_ddl(physical: Physical) -> str:
    columns = [f"{NOTE} string"]
    if physical.returns:
        columns += ["_seq bigint", "_ts bigint", "_sub binary"]
        columns += [f"`{name}` {type}" for name, type in physical.returns]
    return ", ".join(columns)


def _finished(made: DataFrame, physical: Physical) -> DataFrame:
    """What the kernel could not say: the rest of a predicate, arithmetic on aggregates."""
    for name, parts in physical.structs.items():
        made = made.withColumn(name, F.struct(*(F.col(c).alias(f) for c, f in parts)))
    if physical.where is not None:
        made = made.where(f"{NOTE} IS NOT NULL OR coalesce(({physical.where}), false)")
    names = physical.compute or {name: f"`{name}`" for name, _ in physical.returns}
    fields = [F.expr(text).alias(f"v{n}") for n, text in enumerate(names.values())]
    return made.select(NOTE, "_seq", "_ts", "_sub", *fields)


__all__ = ["StatefulPlan", "compile_stateful", "layout_of", "physical_of"]
