"""A compiled superbox: one DataFrame over given files, and how to take its result apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from auroral.io.rows import shown
from auroral.network.check import CheckedNetwork
from auroral.network.types import Field, Schema, Type
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.counting import Counting, Rows, plan_counts, rows_of
from auroral.spark.plans.frame import HIDDEN_COLUMNS, Frame, Lane
from auroral.spark.plans.functions import FunctionFailures
from auroral.spark.plans.lowering import lower
from auroral.spark.session.analysis import spark_schema

_BITS = 62
SUB = pa.binary()


@dataclass(frozen=True)
class Strand:
    """One lane in the result: which bit marks its rows, which columns are which of its fields."""

    bit: int
    columns: Mapping[str, str]
    rank: bytes
    rows: Rows
    made: bool = False

    @property
    def ranked(self) -> bool:
        """Whether one moment can bring several of its tuples to the arc."""
        return bool(self.rank) or self.made


@dataclass(frozen=True)
class SuperboxPlan:
    """A superbox over given files: run `data`, then `split` what it gives."""

    data: DataFrame
    strands: Mapping[str, tuple[Strand, ...]]
    failures: tuple[tuple[str, Strand], ...]
    schemas: Mapping[str, Schema]
    bits: int
    counting: Counting
    spent_s: tuple[tuple[str, Accumulator[float]], ...] = ()
    """By box, the seconds that tasks have spent in a Python function."""

    def function_seconds(self) -> dict[str, float]:
        """The seconds that tasks have spent in the Python functions of each box, so far."""
        found: dict[str, float] = {}
        for box, spent_s in self.spent_s:
            found[box] = found.get(box, 0.0) + spent_s.value
        return found

    def split(self, result: pa.Table) -> tuple[dict[str, pa.Table], dict[Rows, int]]:
        """The tuples of each terminal arc, in order, with their hidden columns; lanes' counts."""
        tables: dict[str, pa.Table] = {}
        counts: dict[Rows, int] = {}
        for arc, strands in self.strands.items():
            ranked = any(strand.ranked for strand in strands)
            wanted = arc_schema(self.schemas[arc], ranked)
            parts = []
            for strand in strands:
                part = self._strand(result, strand, ranked, wanted)
                counts[strand.rows] = part.num_rows
                parts.append(part)
            tables[arc] = in_order(pa.concat_tables(parts))
        return tables, counts

    def failed(self, result: pa.Table) -> list[tuple[str, str, str]]:
        """(box, reason, tuple as JSON) of tuples on which a Python function failed."""
        found: list[tuple[str, str, str]] = []
        for box, strand in self.failures:
            rows = result.filter(self._marked(result, strand)).sort_by("_seq")
            reasons, tuples = (
                rows[column].to_pylist(maps_as_pydicts="lossy")
                for column in strand.columns.values()
            )
            found += [(box, why, shown(row)) for why, row in zip(reasons, tuples, strict=True)]
        return found

    def count_frame(self) -> tuple[DataFrame, list[Rows]]:
        """One row with the number of tuples of each terminal lane."""
        strands = [strand for held in self.strands.values() for strand in held]
        counts = [
            f"count_if({self._mark_sql(s)})" if self.bits > 1 else "count(1)" for s in strands
        ]
        return self.data.selectExpr(*counts), [strand.rows for strand in strands]

    def _mark_sql(self, strand: Strand) -> str:
        return f"(_mask{strand.bit // _BITS} & {1 << strand.bit % _BITS}L) != 0"

    def failed_frame(self) -> DataFrame:
        """The rows on which some Python function failed."""
        return self.data.where(" OR ".join(self._mark_sql(s) for _, s in self.failures))

    def arc_frame(self, arc: str) -> DataFrame:
        """The tuples of one terminal arc as a DataFrame, for Spark to write."""
        schema = self.schemas[arc]
        ranked = any(strand.ranked for strand in self.strands[arc])
        parts = []
        for strand in self.strands[arc]:
            rows = self.data
            if self.bits > 1:
                rows = rows.where(self._mark_sql(strand))
            sub = [sub_column(strand.rank, strand.made).alias("_sub")] if ranked else []
            fields = [_field(field, strand.columns).alias(field.name) for field in schema]
            parts.append(rows.select(*HIDDEN_COLUMNS, *sub, *fields))
        return reduce(DataFrame.unionAll, parts)

    def _strand(
        self, result: pa.Table, strand: Strand, ranked: bool, wanted: pa.Schema
    ) -> pa.Table:
        rows = result if self.bits == 1 else result.filter(self._marked(result, strand))
        columns = [rows[name] for name in HIDDEN_COLUMNS]
        if ranked:
            rank = pa.repeat(pa.scalar(strand.rank, SUB), rows.num_rows)
            if strand.made:
                rest = pc.fill_null(rows["_sub"].cast(SUB), b"")
                rank = pc.binary_join_element_wise(rank, rest, b"")
            columns.append(rank)
        columns += [
            rows[strand.columns[field.name]]
            if field.name in strand.columns
            else pa.nulls(rows.num_rows, field.type)
            for field in list(wanted)[len(columns) :]
        ]
        table = pa.Table.from_arrays(columns, names=wanted.names)
        return table if table.schema == wanted else table.cast(wanted)

    def _marked(self, result: pa.Table, strand: Strand) -> pa.ChunkedArray:
        mask = result[f"_mask{strand.bit // _BITS}"]
        bit = pa.scalar(1 << strand.bit % _BITS, pa.int64())
        return pc.not_equal(pc.bit_wise_and(mask, bit), pa.scalar(0, pa.int64()))


def arc_schema(schema: Schema, ranked: bool = False) -> pa.Schema:
    """The Arrow schema of an arc's log: hidden columns first."""
    hidden = [pa.field("_seq", pa.int64()), pa.field("_ts", pa.int64())]
    hidden += [pa.field("_sub", SUB)] if ranked else []
    return pa.schema([*hidden, *schema.arrow()])


def log_schemas(checked: CheckedNetwork, sources: Iterable[str]) -> dict[str, pa.Schema]:
    """The Arrow schemas of the logs of some arcs; only what boxes made is ranked."""
    streams = checked.network.streams
    return {s: arc_schema(checked.arcs[s].schema, s not in streams) for s in sources}


def sub_column(rank: bytes, made: bool) -> Column:
    """What orders tuples of one moment: a lane's rank, then what their source says."""
    literal = F.expr(f"X'{rank.hex()}'")
    return F.concat(literal, F.expr("coalesce(_sub, X'')")) if made else literal


def in_order(table: pa.Table) -> pa.Table:
    """Sort by (`_seq`, `_sub`) unless it is so already."""
    moments = table["_seq"].to_numpy()
    if "_sub" in table.column_names:
        return table.sort_by([("_seq", "ascending"), ("_sub", "ascending")])
    if np.all(moments[1:] >= moments[:-1]):
        return table
    return table.sort_by("_seq")


def compile_plan(
    session: SparkSession,
    checked: CheckedNetwork,
    superbox: Superbox,
    files: Mapping[str, Sequence[str]],
) -> SuperboxPlan:
    """Compile a superbox over the files of each source that has tuples."""
    frames = source_frames(session, checked, files)
    lanes = lower(checked, superbox, frames)
    wanted = [
        (arc, _read_of(lane, checked.unread.get(arc, frozenset())))
        for arc in superbox.terminals
        for lane in lanes.arcs.get(arc, [])
    ]
    wanted_failures = [(box, _failure_lane(failure)) for box, failure in lanes.failures]
    everything = [lane for _, lane in (*wanted, *wanted_failures)]
    slots = _Slots(frames)
    bits = {id(lane): bit for bit, lane in enumerate(everything)}
    strands: dict[str, tuple[Strand, ...]] = {}
    for arc, lane in wanted:
        strand = Strand(
            bits[id(lane)],
            slots.take(lane),
            lane.rank,
            rows_of(lane),
            frames[lane.source].made,
        )
        strands[arc] = (*strands.get(arc, ()), strand)
    failures = tuple(
        (checked.origin(box), Strand(bits[id(lane)], slots.take(lane), b"", rows_of(lane)))
        for box, lane in wanted_failures
    )
    counting = plan_counts(superbox, checked, lanes.arcs)
    masks = -(-len(everything) // _BITS) if len(everything) > 1 else 0
    parts = []
    for source, frame in frames.items():
        own = [(bits[id(lane)], lane) for lane in everything if lane.source == source]
        if own:
            data = counting.observe(frame, source)
            if any(held.made for held in frames.values()) and not frame.made:
                data = data.withColumn("_sub", F.lit(None).cast("binary"))
            parts.append(_result(own, slots, masks, data, frame))
    return SuperboxPlan(
        reduce(DataFrame.unionAll, parts),
        strands,
        failures,
        {arc: checked.arcs[arc].schema for arc in superbox.terminals},
        len(everything),
        counting,
        tuple((box, failure.spent_s) for box, failure in lanes.failures),
    )


def _read_of(lane: Lane, unread: frozenset[str]) -> Lane:
    """A lane with those of its fields that somebody reads."""
    if not unread:
        return lane
    columns = {field: column for field, column in lane.columns.items() if field not in unread}
    return replace(lane, columns=columns)


def _field(field: Field, columns: Mapping[str, str]) -> Column:
    """A field of an arc; NULL if nobody reads it."""
    if field.name in columns:
        return F.col(columns[field.name])
    return F.lit(None).cast(str(field.type))


def source_frames(
    session: SparkSession, checked: CheckedNetwork, files: Mapping[str, Sequence[str]]
) -> dict[str, Frame]:
    """A frame for each source that has files."""
    frames = {}
    for source, paths in files.items():
        schema, made = checked.arcs[source].schema, source not in checked.network.streams
        frames[source] = Frame(source, _scan(session, schema, paths, made), schema, made=made)
    return frames


def _scan(session: SparkSession, schema: Schema, paths: Sequence[str], made: bool) -> DataFrame:
    reader = session.read.schema(_with_hidden(schema, made))
    return reader.option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)


def _with_hidden(schema: Schema, made: bool) -> str:
    fields = spark_schema(schema)
    names = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in fields)
    return f"_seq bigint, _ts bigint, {'_sub binary, ' if made else ''}{names}"


def _failure_lane(failure: FunctionFailures) -> Lane:
    return replace(failure.lane, columns={"reason": failure.reason, "row": failure.row})


def _result(
    own: list[tuple[int, Lane]], slots: _Slots, masks: int, data: DataFrame, frame: Frame
) -> DataFrame:
    """The rows of a frame that belong to some lane, marked with which."""
    conditions = [lane.condition_sql() for _, lane in own]
    if "true" not in conditions:
        data = data.where(" OR ".join(f"({c})" for c in dict.fromkeys(conditions)))
    marks = []
    for number in range(masks):
        terms = [
            f"CASE WHEN {lane.condition_sql()} THEN {1 << bit % _BITS}L ELSE 0L END"
            for bit, lane in own
            if bit // _BITS == number
        ]
        marks.append(F.expr(" + ".join(terms) or "0L").alias(f"_mask{number}"))
    hidden = [name for name in (*HIDDEN_COLUMNS, "_sub") if name in data.columns]
    return data.select(*hidden, *marks, *slots.columns(frame))


class _Slots:
    """Result columns shared by all frames: each frame puts its columns into slots of their type."""

    def __init__(self, frames: Mapping[str, Frame]):
        self._frames = frames
        self._types: list[Type] = []
        self._taken: dict[str, dict[str, int]] = {source: {} for source in frames}

    def take(self, lane: Lane) -> dict[str, str]:
        """By field of a lane, its column."""
        return {
            field: f"s{self._slot(lane.source, column)}" for field, column in lane.columns.items()
        }

    def _slot(self, source: str, column: str) -> int:
        taken = self._taken[source]
        if column not in taken:
            type = self._frames[source].type_of(column)
            used = set(taken.values())
            free = (n for n, t in enumerate(self._types) if t == type and n not in used)
            slot = next(free, len(self._types))
            if slot == len(self._types):
                self._types.append(type)
            taken[column] = slot
        return taken[column]

    def columns(self, frame: Frame) -> list[Column]:
        held = {slot: column for column, slot in self._taken[frame.source].items()}
        return [
            (F.col(held[n]) if n in held else F.lit(None).cast(str(type))).alias(f"s{n}")
            for n, type in enumerate(self._types)
        ]
