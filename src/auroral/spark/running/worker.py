"""What a task of a stateful box does: run its kernel on the buckets it was given.

Tuples come from Spark as Arrow, or where no expression has to be evaluated the task reads the
train's segments itself, which is several times faster. What the box remembers is read from and
written to segment files by the task, as executors do with a state store. The driver learns of
them by notes, one for each bucket, and makes them true when it commits the step; files of a task
that failed or was repeated are nobody's and are swept away.
"""

from __future__ import annotations

import gc
import json
import pickle
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from auroral.disk import sync_files
from auroral.kernels.grouping import buckets_of
from auroral.kernels.join import JoinKernel
from auroral.kernels.joining.shelf import side_of
from auroral.kernels.kernel import Appended, Context, Emitted, Kernel, StateTables
from auroral.kernels.shelter import sheltering
from auroral.shedding.choosing import columns_of, without_dropped
from auroral.shedding.drops import Drop, Dropped, DropTally
from auroral.spark.running.column_boxes import (
    ColumnBoxes,
    by_moment,
    in_order_of_arrival,
    kernel_input,
)
from auroral.spark.running.sheltering import is_asked
from auroral.storage.segment import MAX_FILE_BYTES, bounds_of, encode, read_file, write_file

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")
_HIDDEN = (
    pa.field("_seq", pa.int64()),
    pa.field("_ts", pa.int64()),
    pa.field("_sub", pa.binary()),
)
NOTE = "_note"
PORT = "_port"


@dataclass(frozen=True)
class Port:
    """An output arc of a box: the kernel's columns, and the schema of the arc's log."""

    columns: tuple[str, ...]
    schema: pa.Schema
    progressing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How a kernel's rows travel; the same for every step."""

    inputs: tuple[tuple[tuple[str, str, pa.DataType], ...], ...]
    """For each input, the kernel's columns, the columns that carry them, their types."""
    keys: tuple[tuple[str, ...], ...]
    """For each input, the kernel's columns that decide on the bucket."""
    buckets: int
    ports: Mapping[str, Port]
    """Ports whose tuples the task writes to segments itself."""
    returned: pa.Schema | None
    """The columns of the main port if its tuples go on through Spark."""
    whole: bool = False
    """Whether the kernel gets all tuples, whatever the bucket, and writes ports of its own."""
    boxes: ColumnBoxes | None = None
    """What is computed of the files that tasks read; None if they hold the kernel's columns."""
    kept: Mapping[str, Port] = field(default_factory=dict)
    """Arcs before the kernel that a task writes to segments; their schemas without `_sub`."""


@dataclass(frozen=True)
class Job:
    """What differs from step to step; the driver writes it where the tasks look."""

    context: Context
    state: Mapping[int, Mapping[str, Sequence[str]]]
    """By bucket and table, the files."""
    idle: Sequence[int]
    """Buckets to run although no tuple of theirs is in the train."""
    directory: str
    number: int
    sync: bool
    """Whether files must be on the disk before the driver hears of them."""
    tables: Mapping[int, str] = field(default_factory=dict)
    """Inputs that are static tables, and their files."""
    files: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """By input, or by source of the boxes before the kernel, the files that tasks read."""
    columns: Mapping[int, frozenset[str]] | None = None
    """By input, those of the kernel's columns that have to be read; None: all."""
    shared_out: bool = False
    """Whether each task reads files of its own, since tuples may be looked at anywhere."""
    bare: bool = False
    """Whether the kernel asks only for fields, not when and in which order tuples came."""
    passed: Mapping[str, int] = field(default_factory=dict)
    """How many tuples arcs between the boxes before the kernel carried, as a task has found."""
    drops: Mapping[int, Sequence[Drop]] = field(default_factory=dict)
    """As `files`: the drop boxes that tasks apply to what they read."""
    dropped: Dropped = field(default_factory=dict)
    """What they dropped, as a task has found."""

    def of_task(self, number: int, tasks: int) -> Job:
        """The share of one task."""
        if not self.shared_out:
            return self
        files = {port: held[number::tasks] for port, held in self.files.items()}
        return replace(self, files=files)


def write_job(path: Path, job: Job | None) -> None:
    """Put a job where tasks find it; None makes them do nothing."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(pickle.dumps(job))
    temporary.rename(path)


Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task(kernel: Kernel, layout: Layout, path: str) -> Task:
    """What `mapInArrow` runs over tuples: all buckets."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = _job(path)
        held = list(batches)
        if job is not None:
            rows = pa.Table.from_batches(held).combine_chunks() if held else None
            inputs = [_carried(rows, layout, port) for port in range(len(layout.inputs))]
            if layout.whole:
                buckets = [0] if job.shared_out else range(layout.buckets)
                yield from _run_whole(kernel, layout, job, inputs, buckets)
            else:
                yield from _run(kernel, layout, job, inputs, range(layout.buckets))

    return run


def reading_task(kernel: Kernel, layout: Layout, path: str, tasks: int) -> Task:
    """What `mapInArrow` runs over the numbers of tasks: each reads the train's files itself."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = _job(path)
        numbers = [int(number) for batch in batches for number in batch.column(0).to_pylist()]
        for number in numbers if job is not None else ():
            assert job is not None
            share = job.of_task(number, tasks)
            inputs, passed, dropped, made = _read_inputs(share, layout)
            told = replace(job, passed=passed, dropped=dropped)
            if number == 0 and any(arc in made for arc in layout.kept):
                # All tasks have made the whole arcs.
                yield from _Bucket(kernel, layout, told, None).write_kept(made)
            if layout.whole:
                buckets = [number] if job.shared_out else range(number, layout.buckets, tasks)
                yield from _run_whole(kernel, layout, told, inputs, buckets)
            else:
                yield from _run(kernel, layout, told, inputs, range(number, layout.buckets, tasks))

    return run


def _job(path: str) -> Job | None:
    freeze_imports()
    job: Job | None = pickle.loads(Path(path).read_bytes())
    return job


@cache
def freeze_imports() -> None:
    """Spark collects garbage after every task; what was imported need not be looked at."""
    gc.freeze()


def _run(
    kernel: Kernel, layout: Layout, job: Job, inputs: Sequence[pa.Table], own: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Run the kernel on those of the buckets that have something to do."""
    places = [
        buckets_of([table[name] for name in keys], table.num_rows, layout.buckets)
        for table, keys in zip(inputs, layout.keys, strict=True)
    ]
    for bucket in own:
        tuples = [
            table if layout.buckets == 1 else table.filter(pa.array(place == bucket))
            for table, place in zip(inputs, places, strict=True)
        ]
        tells = bucket == own[0] and job.dropped  # somebody has to tell what was dropped
        if tells or bucket in job.idle or any(table.num_rows for table in tuples):
            yield from _Bucket(kernel, layout, job, bucket).run(tuples)


def _run_whole(
    kernel: Kernel, layout: Layout, job: Job, inputs: Sequence[pa.Table], own: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Run a kernel that finds out for itself which tuples are a bucket's."""
    for bucket in own:
        buckets = 1 if job.shared_out else layout.buckets
        number, together = (0, True) if job.shared_out else (bucket, len(own) == buckets)
        extra = job.context.extra.at(number, buckets, together=together)
        share = replace(job, context=replace(job.context, extra=extra))
        tells = bucket == own[0] and job.dropped
        if tells or bucket in job.idle or any(table.num_rows for table in inputs):
            counted = job.shared_out or bucket == 0
            yield from _Bucket(kernel, layout, share, bucket).run(inputs, counted=counted)


def _carried(rows: pa.Table | None, layout: Layout, port: int) -> pa.Table:
    """The tuples of one input, as Spark brought them."""
    placed = layout.inputs[port]
    hidden = ["_seq", "_ts"]
    if rows is None:
        fields = [(name, type) for name, _, type in placed]
        return pa.schema([*((name, pa.int64()) for name in hidden), *fields]).empty_table()
    if PORT in rows.column_names:
        rows = rows.filter(pa.array(rows[PORT].to_numpy() == port))
    hidden += ["_sub"] if "_sub" in rows.column_names else []
    columns = [rows[name] for name in (*hidden, *(carrier for _, carrier, _ in placed))]
    return in_order_of_arrival(
        pa.Table.from_arrays(columns, names=[*hidden, *(n for n, _, _ in placed)])
    )


def _read_inputs(
    job: Job, layout: Layout
) -> tuple[list[pa.Table], dict[str, int], Dropped, Mapping[str, pa.Table]]:
    """The tuples of all inputs, from the train's files; how many arcs before them carried.

    And what drop boxes dropped of the files, and the tuples of these arcs.
    """
    ports = range(len(layout.inputs))
    tally = DropTally()
    if layout.boxes is None:
        tables = []
        for port in ports:
            own = DropTally()  # several inputs may be one arc
            tables.append(_read_input(job, layout, port, own))
            tally.dropped |= own.dropped
        return tables, {}, tally.dropped, {}
    arcs = {
        arc: read_arc(job.files[source], fields, job.drops.get(source, ()), tally)
        for source, (arc, fields) in enumerate(layout.boxes.reads.items())
        if job.files.get(source)
    }
    made = layout.boxes.run(arcs)
    apart = {*arcs, *map(kernel_input, ports)}
    passed = {arc: table.num_rows for arc, table in made.items() if arc not in apart}
    return [_computed_input(made, layout, port) for port in ports], passed, tally.dropped, made


def read_arc(
    files: Sequence[str], fields: pa.Schema, drops: Sequence[Drop], tally: DropTally
) -> pa.Table:
    """Some fields of an arc from the files of its log, with the columns that are no fields.

    What drop boxes drop is left out and counted.
    """
    parts = []
    for file in files:
        with open(file, "rb") as opened:
            parquet = pq.ParquetFile(opened, page_checksum_verification=True)
            hidden = [f for f in _HIDDEN if f.name in parquet.schema_arrow.names]
            schema = pa.schema([*hidden, *fields])
            part = _kept(parquet, schema.names, drops, tally).select(schema.names)
        parts.append(part if part.schema == schema else part.cast(schema))
    table = pa.concat_tables(parts, promote_options="default")
    return in_order_of_arrival(table.combine_chunks())


def _kept(
    file: pq.ParquetFile, columns: Sequence[str], drops: Sequence[Drop], tally: DropTally
) -> pa.Table:
    """Some columns of a file, and those by which drop boxes decide, without what these drop."""
    if not drops:
        return file.read(list(dict.fromkeys(columns)))
    table = file.read(list(dict.fromkeys([*columns, *columns_of(drops)])))
    kept, dropped = without_dropped(table, drops)
    tally.add(drops[0].arc, dropped)
    return kept


def _computed_input(arcs: Mapping[str, pa.Table], layout: Layout, port: int) -> pa.Table:
    """What the boxes before the kernel have made for one of its inputs."""
    placed = layout.inputs[port]
    fields = [pa.field(name, type) for name, _, type in placed]
    table = arcs.get(kernel_input(port))
    if table is None:
        return pa.schema([*_HIDDEN[:2], *fields]).empty_table()
    schema = pa.schema([*(f for f in _HIDDEN if f.name in table.column_names), *fields])
    table = table.select(schema.names).combine_chunks()
    return table if table.schema == schema else table.cast(schema)


def _read_input(job: Job, layout: Layout, port: int, tally: DropTally) -> pa.Table:
    """The tuples of one input from the train's files; there carriers are the arc's fields."""
    read = None if job.columns is None else job.columns[port]
    placed = [p for p in layout.inputs[port] if read is None or p[0] in read]
    # Without any column, nobody would know how many tuples there are.
    bare = job.bare and bool(placed)
    moments = [] if bare else [pa.field("_seq", pa.int64()), pa.field("_ts", pa.int64())]
    fields = [pa.field(name, type) for name, _, type in placed]
    parts = []
    for file in job.files.get(port, ()):
        with open(file, "rb") as opened:
            parquet = pq.ParquetFile(opened, page_checksum_verification=True)
            there = not bare and "_sub" in parquet.schema_arrow.names
            hidden = [*moments, *([pa.field("_sub", pa.binary())] if there else [])]
            wanted = [*(f.name for f in hidden), *(field for _, field, _ in placed)]
            part = _kept(parquet, wanted, job.drops.get(port, ()), tally)
        schema = pa.schema([*hidden, *fields])
        part = pa.Table.from_arrays([part[name] for name in wanted], names=schema.names)
        parts.append(part if part.schema == schema else part.cast(schema))
    if not parts:
        return pa.schema([*moments, *fields]).empty_table()
    table = pa.concat_tables(parts, promote_options="default").combine_chunks()
    return table if bare else in_order_of_arrival(table)


def _table_rows(file: str, kernel: Kernel, port: int, inputs: Sequence[pa.Table]) -> pa.Table:
    """The rows of a static table that the tuples at hand may match, or all of them."""
    if not isinstance(kernel, JoinKernel):
        return pq.read_table(file, memory_map=True)
    from auroral.history.stored import probed_rows  # most tasks have no tables

    return probed_rows(file, kernel.probes(port, inputs))


class _Bucket:
    """One bucket's share of a step; without a bucket, what is done once for all."""

    def __init__(self, kernel: Kernel, layout: Layout, job: Job, bucket: int | None):
        self._kernel, self._layout, self._job, self._bucket = kernel, layout, job, bucket
        self._written: list[Path] = []

    def run(self, tuples: Sequence[pa.Table], *, counted: bool = True) -> Iterator[pa.RecordBatch]:
        inputs = list(tuples)
        received = [table.num_rows if counted else 0 for table in inputs]
        for port, file in self._job.tables.items():
            inputs[port] = _table_rows(file, self._kernel, port, inputs)
        with sheltering(is_asked()):
            emitted = self._kernel.step(inputs, self._state(), self._job.context)
        note = {
            "bucket": self._bucket,
            "received": received,
            "passed": dict(self._job.passed),
            "dropped": self._job.dropped,
            "late": emitted.late,
            "dead": emitted.dead,
            "held": emitted.held,
            "pending": emitted.pending,
            "state": self._write_state(emitted),
            "ports": self._write_ports(emitted),
            "more": emitted.note,
        }
        if self._job.sync:
            sync_files(self._written)
        yield from self._returned(emitted.ports.get(""), json.dumps(note))

    def write_kept(self, arcs: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
        """Write arcs before the kernel; the note is of no bucket."""
        written = {}
        for arc, port in self._layout.kept.items():
            table = arcs.get(arc)
            if table is None or not table.num_rows:
                continue
            ranked = "_sub" in table.column_names
            schema = port.schema.insert(2, _HIDDEN[2]) if ranked else port.schema
            ordered = in_order_of_arrival(table.select(schema.names))
            whole = ordered if ordered.schema == schema else ordered.cast(schema)
            written[arc] = self._write_arc(whole, arc, port.progressing)
        if self._job.sync:
            sync_files(self._written)
        note: dict[str, Any] = {"bucket": None}
        note |= {"passed": dict(self._job.passed), "kept": written, "dead": []}
        yield from self._returned(None, json.dumps(note))

    def _state(self) -> Mapping[str, Any]:
        assert self._bucket is not None
        files = self._job.state.get(self._bucket, {})
        if self._layout.whole:
            return files
        schemas = dict(self._kernel.tables())
        for name in files:  # shelves of sieves that a join has no more
            if name not in schemas:
                schemas[name] = schemas[str(side_of(name))]
        return StateTables(
            {
                name: (len(files.get(name, ())), partial(_stored, files.get(name, ()), schema))
                for name, schema in schemas.items()
            }
        )

    def _write_state(self, emitted: Emitted) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, made in emitted.state.items():
            table = made.table if isinstance(made, Appended) else made
            written[name] = {
                "appended": isinstance(made, Appended),
                "files": [self._write(piece, name) for piece in pieces(table)],
            }
        return written

    def _write_ports(self, emitted: Emitted) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, table in emitted.ports.items():
            port = self._layout.ports.get(name)
            if not table.num_rows or (port is None and not self._layout.whole):
                continue
            if port is not None:
                columns = [table[column] for column in ("_seq", "_ts", "_sub", *port.columns)]
                table = pa.Table.from_arrays(columns, names=port.schema.names).cast(port.schema)
            # By moment is enough: whoever reads a log sorts what one moment made.
            progressing = port.progressing if port else ()
            written[name] = self._write_arc(by_moment(table), name or "main", progressing)
        return written

    def _write_arc(
        self, table: pa.Table, name: str, progressing: Sequence[str]
    ) -> list[dict[str, Any]]:
        written = []
        for piece in pieces(table):
            file = self._write(piece, name)
            moments = piece["_seq"].to_numpy()
            file["moments"] = [int(moments[0]), int(moments[-1])]
            file["bounds"] = bounds_of(piece, progressing)
            written.append(file)
        return written

    def _write(self, table: pa.Table, what: str) -> dict[str, Any]:
        job, context = self._job, self._job.context
        what = _UNSAFE.sub("-", what)
        unique = uuid.uuid4().hex[:12]
        bucket = self._bucket or 0
        name = f"{job.number}-{context.first}-{context.last}-{bucket}-{what}-{unique}.parquet"
        path = Path(job.directory) / name
        size, crc = write_file(path, encode(table), sync=False)
        self._written.append(path)
        return {"file": name, "rows": table.num_rows, "bytes": size, "crc": crc}

    def _returned(self, main: pa.Table | None, note: str) -> Iterator[pa.RecordBatch]:
        wanted = self._layout.returned
        notes = pa.field(NOTE, pa.string())
        if wanted is None:
            yield pa.record_batch([pa.array([note])], schema=pa.schema([notes]))
            return
        schema = pa.schema([notes, *wanted])
        nothing = [pa.nulls(1, column.type) for column in wanted]
        yield pa.record_batch([pa.array([note]), *nothing], schema=schema)
        if main is not None and main.num_rows:
            table = main.select(wanted.names).cast(wanted)
            table = table.add_column(0, notes, pa.nulls(table.num_rows, pa.string()))
            yield from table.combine_chunks().to_batches(max_chunksize=50_000)


def _stored(
    files: Sequence[str], schema: pa.Schema, columns: Sequence[str] | None = None
) -> pa.Table:
    """A state table from its files, or some of its columns."""
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    parts = [read_file(file, schema.names).select(schema.names) for file in files]
    return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()


def pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The table in parts that fit into segment files; an empty table has none."""
    parts = max(1, -(-2 * table.nbytes // MAX_FILE_BYTES))
    size = max(-(-table.num_rows // parts), 1)
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)
