"""What a task of a stateful box does: run its kernel on the buckets it was given.

Tuples come from Spark as Arrow; what the box remembers is read from and written to segment files
by the task itself, as executors do with a state store. The driver learns of them by notes, one
for each bucket, and makes them true when it commits the step; files of a task that failed or was
repeated are nobody's and are swept away.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from auroral.kernels.kernel import Appended, Context, Emitted, Kernel
from auroral.storage.segment import MAX_FILE_BYTES, bounds_of, encode, write_file

NOTE = "_note"
BUCKET, PORT = "_bucket", "_port"


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
    ports: Mapping[str, Port]
    """Ports whose tuples the task writes to segments itself."""
    returned: pa.Schema | None
    """The columns of the main port if its tuples go on through Spark."""


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
    durable: bool
    tables: Mapping[int, str] = field(default_factory=dict)
    """Inputs that are static tables, and their files."""


def write_job(path: Path, job: Job | None) -> None:
    """Put a job where tasks find it; None makes them do nothing."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(pickle.dumps(job))
    temporary.rename(path)


def task(
    kernel: Kernel, layout: Layout, path: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that `mapInArrow` runs."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = pickle.loads(Path(path).read_bytes())
        held = list(batches)
        if job is None:
            return
        rows = pa.Table.from_batches(held).combine_chunks() if held else None
        for bucket, tuples in _by_bucket(rows, job.idle):
            yield from _Bucket(kernel, layout, job, bucket).run(tuples)

    return run


def _by_bucket(rows: pa.Table | None, idle: Sequence[int]) -> Iterator[tuple[int, pa.Table | None]]:
    present: list[int] = []
    if rows is not None and rows.num_rows:
        if BUCKET not in rows.column_names:
            present = [0]
            yield 0, rows
        else:
            buckets = rows[BUCKET].to_numpy()
            present = np.unique(buckets).tolist()
            for bucket in present:
                chosen = rows if len(present) == 1 else rows.filter(pa.array(buckets == bucket))
                yield bucket, chosen
    for bucket in idle:
        if bucket not in present:
            yield bucket, None


class _Bucket:
    """One bucket's share of a step."""

    def __init__(self, kernel: Kernel, layout: Layout, job: Job, bucket: int):
        self._kernel, self._layout, self._job, self._bucket = kernel, layout, job, bucket

    def run(self, rows: pa.Table | None) -> Iterator[pa.RecordBatch]:
        inputs = [self._input(rows, port) for port in range(len(self._layout.inputs))]
        received = [table.num_rows for table in inputs]
        for port, file in self._job.tables.items():
            inputs[port] = pq.read_table(file, memory_map=True)
        emitted = self._kernel.step(inputs, self._state(), self._job.context)
        note = {
            "bucket": self._bucket,
            "received": received,
            "late": emitted.late,
            "dead": emitted.dead,
            "held": emitted.held,
            "pending": emitted.pending,
            "state": self._write_state(emitted),
            "ports": self._write_ports(emitted),
        }
        yield from self._returned(emitted.ports.get(""), json.dumps(note))

    def _input(self, rows: pa.Table | None, port: int) -> pa.Table:
        carried = self._layout.inputs[port]
        hidden = ["_seq", "_ts"]
        if rows is None:
            fields = [(name, type) for name, _, type in carried]
            return pa.schema([*((name, pa.int64()) for name in hidden), *fields]).empty_table()
        if PORT in rows.column_names:
            rows = rows.filter(pa.array(rows[PORT].to_numpy() == port))
        hidden += ["_sub"] if "_sub" in rows.column_names else []
        columns = [rows[name] for name in (*hidden, *(column for _, column, _ in carried))]
        table = pa.Table.from_arrays(columns, names=[*hidden, *(name for name, _, _ in carried)])
        return _ordered(table)

    def _state(self) -> dict[str, pa.Table]:
        files = self._job.state.get(self._bucket, {})
        found = {}
        for name, schema in self._kernel.tables().items():
            parts = [_read(file) for file in files.get(name, ())]
            found[name] = pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()
        return found

    def _write_state(self, emitted: Emitted) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, made in emitted.state.items():
            table = made.table if isinstance(made, Appended) else made
            written[name] = {
                "appended": isinstance(made, Appended),
                "files": [self._write(piece, name) for piece in _pieces(table)],
            }
        return written

    def _write_ports(self, emitted: Emitted) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, port in self._layout.ports.items():
            table = emitted.ports.get(name)
            if table is None or not table.num_rows:
                continue
            columns = [table[column] for column in ("_seq", "_ts", "_sub", *port.columns)]
            table = pa.Table.from_arrays(columns, names=port.schema.names).cast(port.schema)
            written[name] = []
            for piece in _pieces(_ordered(table)):
                file = self._write(piece, name or "main")
                moments = piece["_seq"].to_numpy()
                file["moments"] = [int(moments[0]), int(moments[-1])]
                file["bounds"] = bounds_of(piece, port.progressing)
                written[name].append(file)
        return written

    def _write(self, table: pa.Table, what: str) -> dict[str, Any]:
        job, context = self._job, self._job.context
        unique = uuid.uuid4().hex[:12]
        name = f"{job.number}-{context.first}-{context.last}-{self._bucket}-{what}-{unique}.parquet"
        size, crc = write_file(Path(job.directory) / name, encode(table), durable=job.durable)
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


def _ordered(table: pa.Table) -> pa.Table:
    """In order of arrival; mostly it is so already."""
    moments = table["_seq"].to_numpy()
    if "_sub" not in table.column_names or table["_sub"].null_count == table.num_rows:
        if np.all(moments[1:] >= moments[:-1]):
            return table
        return table.take(pa.array(np.argsort(moments, kind="stable")))
    if np.all(moments[1:] > moments[:-1]):
        return table
    return table.sort_by([("_seq", "ascending"), ("_sub", "ascending")])


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The table in parts that fit into files; an empty table has none."""
    parts = max(1, -(-2 * table.nbytes // MAX_FILE_BYTES))
    size = max(-(-table.num_rows // parts), 1)
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)


def _read(file: str) -> pa.Table:
    with open(file, "rb") as opened:
        return pq.ParquetFile(opened, page_checksum_verification=True).read()
