"""Steps of superboxes that remember nothing, in tasks that read and write segment files."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.disk import PRIVATE_DIRECTORY
from auroral.errors import RunError
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.drops import Dropped, Drops, DropTally
from auroral.spark.plans.counting import inner_arcs
from auroral.spark.plans.plan import arc_schema
from auroral.spark.running.column_boxes import ColumnBoxes, in_order_of_arrival
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import freeze_imports, pieces, read_arc
from auroral.storage.adoption import write_part

_NOTE = "_note"


@dataclass(frozen=True)
class ColumnJob:
    """One step: what tasks read, and the directory each terminal arc's files go to."""

    files: Mapping[str, Sequence[str]]
    targets: Mapping[str, str]
    drops: Drops = field(default_factory=dict)
    """The drop boxes that tasks apply to what they read."""

    def write(self, path: Path) -> None:
        """Put it where tasks find it."""
        path.write_bytes(pickle.dumps(self))


@dataclass(frozen=True)
class ColumnResult:
    """What a step has made: by terminal arc the directory with its files; tuples of inner arcs."""

    written: Mapping[str, Path]
    counts: Mapping[str, int]
    dropped: Dropped
    """What drop boxes dropped."""


class ColumnRunner:
    """Runs one superbox; the plan is the same for all trains: numbers of tasks, one task each."""

    def __init__(
        self,
        session: SparkSession,
        checked: CheckedNetwork,
        superbox: Superbox,
        boxes: ColumnBoxes,
        directory: Path,
        *,
        reuse: bool,
    ):
        self._session = session
        self._superbox = superbox
        self._boxes = boxes
        self._directory = directory
        self._reuse = reuse
        self._schemas = {arc: arc_schema(checked.arcs[arc].schema) for arc in superbox.terminals}
        self._inner = tuple(inner_arcs(superbox, checked))
        self._steps = 0
        self._plans: dict[int, DataFrame] = {}

    def run(self, train: Mapping[str, Sequence[TrainFile]]) -> ColumnResult:
        """Run a step over the files of a train, each read by one task."""
        self._steps += 1
        targets = {
            arc: self._directory / f"{self._steps}-{number}"
            for number, arc in enumerate(self._schemas)
        }
        for target in targets.values():
            target.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
        files = {source: [str(file.path) for file in held] for source, held in train.items()}
        drops = {s: held[0].drops for s, held in train.items() if held and held[0].drops}
        job = ColumnJob(files, {arc: str(path) for arc, path in targets.items()}, drops)
        tasks = max(map(len, files.values()))
        job.write(self._directory / "job")
        told = self._plan(tasks).toArrow()[_NOTE].to_pylist()
        notes = [json.loads(text) for text in told]
        tally = DropTally()
        for note in notes:
            tally.add_all(note["dropped"])
        self._require_all_read(notes, tally, train)
        counts = {arc: sum(note["counts"].get(arc, 0) for note in notes) for arc in self._inner}
        return ColumnResult(targets, counts, tally.dropped)

    def _plan(self, tasks: int) -> DataFrame:
        if tasks not in self._plans or not self._reuse:
            work = column_task(
                self._boxes, self._schemas, self._inner, str(self._directory / "job"), tasks
            )
            numbers = self._session.range(0, tasks, 1, tasks)
            self._plans[tasks] = numbers.mapInArrow(work, f"{_NOTE} string")
        return self._plans[tasks]

    def _require_all_read(
        self,
        notes: Sequence[Mapping[str, Any]],
        tally: DropTally,
        train: Mapping[str, Sequence[TrainFile]],
    ) -> None:
        read = sum(sum(note["read"].values()) for note in notes)
        read += sum(map(tally.total, tally.dropped))
        expected = sum(file.rows for held in train.values() for file in held)
        if read != expected:
            raise RunError(
                "TUPLES_MISSING",
                f"Spark read {read} tuples of a train of {expected}",
                where=self._superbox.name,
                hint="a segment was changed from outside",
            )


def column_task(
    boxes: ColumnBoxes,
    schemas: Mapping[str, pa.Schema],
    inner: Sequence[str],
    path: str,
    tasks: int,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What `mapInArrow` runs over the numbers of tasks."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        job: ColumnJob = pickle.loads(Path(path).read_bytes())
        for batch in batches:
            for number in batch.column(0).to_pylist():
                note = _run_share(boxes, schemas, inner, job, number, tasks)
                yield pa.record_batch([pa.array([json.dumps(note)])], [_NOTE])

    return run


def _run_share(
    boxes: ColumnBoxes,
    schemas: Mapping[str, pa.Schema],
    inner: Sequence[str],
    job: ColumnJob,
    number: int,
    tasks: int,
) -> dict[str, Any]:
    own = {source: held[number::tasks] for source, held in job.files.items()}
    tally = DropTally()
    read = {
        source: read_arc(own[source], fields, job.drops.get(source, ()), tally)
        for source, fields in boxes.reads.items()
        if own.get(source)
    }
    arcs = boxes.run(read)
    for arc, schema in schemas.items():
        if arc in arcs and arcs[arc].num_rows:
            _write(arcs[arc], schema, Path(job.targets[arc]), number)
    return {
        "read": {source: table.num_rows for source, table in read.items()},
        "counts": {arc: arcs[arc].num_rows for arc in inner if arc in arcs},
        "dropped": tally.dropped,
    }


def _write(table: pa.Table, schema: pa.Schema, target: Path, number: int) -> None:
    if "_sub" in table.column_names:
        schema = schema.insert(2, pa.field("_sub", pa.binary()))
    for unread in [one for one in schema if one.name not in table.column_names]:
        table = table.append_column(unread, pa.nulls(table.num_rows, unread.type))
    ordered = in_order_of_arrival(table.select(schema.names))
    for part, piece in enumerate(pieces(ordered)):
        whole = piece if piece.schema == schema else piece.cast(schema)
        write_part(target / f"part-{number:04}-{part:04}.parquet", whole)
