"""Steps of stateful boxes: from what the driver knows to a job, from its notes to a change."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.engine.runtime.train import Train
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.errors import RunError
from auroral.ids import ArcId, StateLogId
from auroral.io.chunk import DeadLetter
from auroral.io.rows import shown
from auroral.kernels.kernel import Context
from auroral.network.box import Box
from auroral.progress.lowwater import moved_since
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.stateful_runner import StatefulRunner
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import Job
from auroral.storage import Change, Segment, Store, UnwrittenSegment

LATE = frozenset(("late", "null", "nan"))
"""Reasons for which a tuple is late; others say why it is in no result all the same."""


@dataclass
class _Result:
    """What a step changes."""

    fresh: list[UnwrittenSegment] = field(default_factory=list)
    written: list[Segment] = field(default_factory=list)
    retired: list[Segment] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)
    held: dict[int, int] = field(default_factory=dict)
    """What each bucket that has worked holds, if its kernel says."""
    pending: int | None = None


class StatefulBox:
    """One stateful box of a running network."""

    def __init__(
        self,
        store: Store,
        watermarks: WatermarkTracker,
        runner: StatefulRunner,
        box: Box,
        fields: Sequence[str],
        tables: Mapping[int, Path],
    ):
        self._store = store
        self._watermarks = watermarks
        self._runner = runner
        self._box = box
        self._fields = fields
        self._tables = {port: str(path) for port, path in tables.items()}
        self.superbox: Superbox = runner.superbox
        assert self.superbox.stateful is not None
        self.name = self.superbox.stateful
        self.pending: int | None = store.manifest.progress().get(self.pending_key)
        """The first moment of which not everything has been emitted."""
        self._held: dict[int, int] = {}
        self._made = _Result()

    @property
    def pending_key(self) -> str:
        return f"pending of {self.name}"

    def log(self, table: str, bucket: int) -> str:
        """The log of a state table."""
        return str(StateLogId(self.name, table, bucket))

    def segments(self, bucket: int | None = None, table: str | None = None) -> list[Segment]:
        """The segments of its state, of one bucket or one table only if that is said."""
        tables = self.tables() if table is None else [table]
        buckets = self._buckets if bucket is None else [bucket]
        return [s for b in buckets for t in tables for s in self._store.segments(self.log(t, b))]

    def tables(self) -> Collection[str]:
        """The names of its state tables."""
        return self._runner.physical.kernel.tables()

    def arc(self, port: str) -> str:
        """The log that a port's tuples go to."""
        return str(ArcId(self.name, port))

    def writes(self, _log: str) -> bool:
        """Whether a log that is no arc is its own."""
        return False

    def boundary(self, _moment: int) -> int | None:
        """The moment at which a train that begins at another must end, whatever its size."""
        return None

    def state(self) -> dict[str, int]:
        """How many rows each state table has."""
        tables = self.tables()
        return {table: sum(s.rows for s in self.segments(table=table)) for table in tables}

    @property
    def held(self) -> int:
        """How many tuples or windows it holds; of a bucket that has not worked yet, its rows."""
        return sum(
            self._held[b] if b in self._held else sum(s.rows for s in self.segments(b))
            for b in self._buckets
        )

    @property
    def _buckets(self) -> range:
        return range(self._runner.buckets)

    @property
    def has_room(self) -> Callable[[Mapping[str, int]], bool] | None:
        """Tells whether Spark has planned for so many files; None if tasks read any number."""
        return None if self._runner.reads else self._runner.has_room

    def go_on(self, watermarks: WatermarkTracker) -> None:
        """Be a part of another network, with the same boxes before it."""
        self._watermarks = watermarks

    def discard(self) -> None:
        """It is no more."""
        self._runner.discard()

    def warm_up(self) -> None:
        self._runner.warm_up()

    def wait(self) -> None:
        """Until Spark compiles nothing for it."""
        self._runner.wait()

    def step(
        self, train: Train, files: Mapping[str, Sequence[TrainFile]]
    ) -> tuple[Change, list[DeadLetter]]:
        """Run a step; `committed` is called once what it changes is true."""
        self._made = made = self._run(train, files)
        change = Change(
            fresh=made.fresh,
            written=made.written,
            retired=made.retired,
            counts=made.counts,
            progress={self.pending_key: made.pending},
        )
        return change, made.letters

    def committed(self) -> None:
        """What the last step changed is true now."""
        self.pending = self._made.pending
        self._held |= self._made.held

    def _run(self, train: Train, files: Mapping[str, Sequence[TrainFile]]) -> _Result:
        rows = {source: sum(f.rows for f in held) for source, held in files.items()}
        context = self._context(train)
        idle = self._idle(context)
        if not any(rows.values()) and not idle:
            return _Result(pending=self.pending)
        job = self._job(context, idle)
        notes, main = self._runner.run({s: held for s, held in files.items() if held}, job)
        self._require_all(notes, rows)
        return self._result(train, notes, main)

    def _job(self, context: Context, idle: Sequence[int]) -> Job:
        return Job(
            context,
            self._files(),
            idle,
            str(self._store.segments_directory),
            self._store.new_number(),
            self._store.power,
            self._tables,
        )

    def _context(self, train: Train) -> Context:
        since, until = train.first - 1, train.last
        marks = tuple(
            mark.since(since).until(until) for mark in self._watermarks.input_watermarks(self.name)
        )
        ended = self._watermarks.ended
        return Context(
            train.first,
            train.last,
            marks,
            self._watermarks.clock.since(since).until(until) if self._box.times_out else None,
            ended if ended is not None and ended < until else None,
        )

    def _idle(self, context: Context) -> list[int]:
        """Buckets in which something may happen although no tuple of theirs came."""
        first = context.first
        moved = any(moved_since(mark, first) for mark in context.marks)
        ticked = context.clock is not None and moved_since(context.clock, first)
        ended = context.ended is not None and context.ended >= first
        if not (moved or ticked or ended or self.pending is not None):
            return []
        return [bucket for bucket in self._buckets if self.segments(bucket)]

    def _files(self) -> dict[int, dict[str, list[str]]]:
        tables = self.tables()
        paths = self._store.path_of
        return {
            bucket: {
                table: [str(paths(s)) for s in self.segments(bucket, table) if s.file]
                for table in tables
            }
            for bucket in self._buckets
        }

    def _require_all(self, notes: Sequence[Mapping[str, Any]], rows: Mapping[str, int]) -> None:
        """The tasks must have got as many tuples as the manifest says there are."""
        if self.superbox.boxes != (self.name,):
            return
        for port, source in enumerate(self._box.sources()):
            got = sum(note["received"][port] for note in notes)
            if source in rows and got != rows[source]:
                raise RunError(
                    "TUPLES_MISSING",
                    f"Spark read {got} tuples of {source} in a train of {rows[source]}",
                    where=self.superbox.name,
                    hint="a segment was changed from outside",
                )

    def _result(
        self, train: Train, notes: Sequence[Mapping[str, Any]], main: pa.Table | None
    ) -> _Result:
        result = _Result()
        result.held = {n["bucket"]: n["held"] for n in notes if n["held"] is not None}
        pending = [note["pending"] for note in notes if note["pending"] is not None]
        result.pending = min(pending, default=None)
        for note in notes:
            self._state_changes(train, note, result)
            for port, files in note["ports"].items():
                result.written += [self._emitted(self.arc(port), file, train) for file in files]
            for reason, count in note["late"].items():
                if reason in LATE:
                    _add(result.counts, (self.name, "late"), count)
                _add(result.counts, (self.name, f"late: {reason}"), count)
            result.letters += [
                DeadLetter(self.name, "python function", None, reason, self._named(row))
                for reason, row in note["dead"]
            ]
        if main is not None and main.num_rows:
            result.fresh.append(UnwrittenSegment(self.name, main, train.last))
            _add(result.counts, (self.name, "tuples"), main.num_rows)
        for segment in result.written:
            if StateLogId.parse(segment.log) is None:
                _add(result.counts, (segment.log, "tuples"), segment.rows)
        return result

    def _named(self, row: str) -> str:
        """The start and group of a window, or the like, under the names of the arc's fields."""
        return shown(dict(zip(self._fields, json.loads(row).values(), strict=False)))

    def _state_changes(self, train: Train, note: Mapping[str, Any], result: _Result) -> None:
        first = min(train.first, train.last - 1)
        for table, made in note["state"].items():
            log = self.log(table, note["bucket"])
            if not made["appended"]:
                result.retired += self._store.segments(log)
            result.written += [
                Segment(
                    0,
                    log,
                    file["file"],
                    file["rows"],
                    file["bytes"],
                    file["crc"],
                    first,
                    train.last - 1,
                    train.last,
                )
                for file in made["files"]
            ]

    def _emitted(self, arc: str, file: Mapping[str, Any], train: Train) -> Segment:
        first, last = file["moments"]
        bounds = {name: tuple(pair) for name, pair in file["bounds"].items()}
        return Segment(
            0,
            arc,
            file["file"],
            file["rows"],
            file["bytes"],
            file["crc"],
            first,
            last,
            train.last,
            (),
            bounds,
        )


def _add(counts: dict[tuple[str, str], int], key: tuple[str, str], more: int) -> None:
    counts[key] = counts.get(key, 0) + more
