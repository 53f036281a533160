"""One run of a kernel over a train: from what a step asks for to what its tasks have written."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from auroral.boxes.join import SiftedJoin
from auroral.engine.runtime.measuring import StepFlow
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.dropping import DropCount, counts_of
from auroral.errors import RunError
from auroral.ids import StateLogId
from auroral.io.chunk import DeadLetter
from auroral.io.rows import shown
from auroral.kernels.kernel import Context
from auroral.network.box import Box
from auroral.shedding.drops import Dropped, DropTally
from auroral.spark.running.executor import Files, KernelRunner
from auroral.spark.running.worker import Job
from auroral.storage import Change, Segment, Store, UnwrittenSegment

LATE = frozenset(("late", "null", "nan"))
"""Reasons for which a tuple is late; others say why it is in no result all the same."""


@dataclass(frozen=True)
class KernelRequest:
    """What a step asks of its kernel."""

    context: Context
    tables: Collection[str]
    """The state tables that the kernel reads and may write."""
    idle: Sequence[int]
    """Buckets in which something may happen although no tuple of theirs came."""
    columns: Mapping[int, frozenset[str]] | None = None
    shared_out: bool = False
    bare: bool = False
    """As in `Job`."""


@dataclass
class KernelResult:
    """What a run has written and found out; nothing of it is committed yet."""

    unwritten: list[UnwrittenSegment] = field(default_factory=list)
    written: list[Segment] = field(default_factory=list)
    retired: list[Segment] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)
    held: dict[int, int] = field(default_factory=dict)
    """How many tuples or windows each bucket that has worked holds, if its kernel says."""
    pending: int | None = None
    """The first moment of which not everything has been emitted."""
    notes: Sequence[Mapping[str, Any]] = ()
    """What tasks report, one for each bucket that has worked."""
    flow: StepFlow | None = None
    """The tuples that it read; None if there was nothing to run."""
    shed: Mapping[str, DropCount] = field(default_factory=dict)
    """What tasks have dropped, by source."""

    def change(self) -> Change:
        return Change(
            fresh=self.unwritten, written=self.written, retired=self.retired, counts=self.counts
        )


class KernelRun:
    """Runs the kernel of one box on Spark, or wherever steps run."""

    def __init__(
        self,
        store: Store,
        runner: KernelRunner,
        box: Box,
        *,
        arc: Callable[[str], str],
        state_log: Callable[[str, int], str],
        fields: Sequence[str] = (),
        tables: Mapping[int, str] | None = None,
    ):
        """`arc` names the log of a port, `state_log` that of a state table in a bucket.

        `fields` are what dead letters show, `tables` the files of inputs that are static tables.
        """
        self._store = store
        self.runner = runner
        self._box = box
        self._arc = arc
        self._state_log = state_log
        self._fields = fields
        self._tables = dict(tables or {})

    @property
    def name(self) -> str:
        name = self.runner.superbox.stateful
        assert name is not None
        return name

    @property
    def buckets(self) -> range:
        return range(self.runner.buckets)

    def segments(self, tables: Collection[str], bucket: int | None = None) -> list[Segment]:
        """The segments of some state tables, in one bucket only if that is given."""
        buckets = self.buckets if bucket is None else [bucket]
        logs = [self._state_log(table, number) for number in buckets for table in tables]
        return [segment for log in logs for segment in self._store.segments(log)]

    def rows(self, tables: Collection[str]) -> dict[str, int]:
        """How many rows each state table has."""
        return {table: sum(s.rows for s in self.segments([table])) for table in tables}

    def held(self, tables: Collection[str], told: Mapping[int, int]) -> int:
        """How many tuples or windows are held: what buckets told, or how many rows they have."""
        return sum(
            told[bucket]
            if bucket in told
            else sum(segment.rows for segment in self.segments(tables, bucket))
            for bucket in self.buckets
        )

    @property
    def has_room(self) -> Callable[[Mapping[str, int]], bool] | None:
        """Tells whether Spark has planned for so many files; None if tasks read any number."""
        return None if self.runner.reads else self.runner.has_room

    def busy_buckets(self, tables: Collection[str]) -> list[int]:
        """The buckets that have state."""
        return [bucket for bucket in self.buckets if self.segments(tables, bucket)]

    def run(self, train: Train, files: Files, request: KernelRequest) -> KernelResult:
        """Run the kernel; without tuples and without idle buckets there is nothing to run."""
        rows = {source: sum(file.rows for file in held) for source, held in files.items()}
        if not any(rows.values()) and not request.idle:
            return KernelResult()
        given = {source: held for source, held in files.items() if held}
        told, main = self.runner.run(given, self._job(request))
        notes = [note for note in told if note["bucket"] is not None]
        result = self._result(train, notes, main)
        result.shed = counts_of(rows, _dropped(notes, shared_out=request.shared_out))
        rows = {s: n - (result.shed[s].dropped if s in result.shed else 0) for s, n in rows.items()}
        self._require_all(notes, rows)
        for note in [note for note in told if note["bucket"] is None]:
            self._keep_arcs(train, note, result)
        received = sum(sum(note["received"]) for note in notes)
        passed: Mapping[str, int] = next((note["passed"] for note in told), {})
        result.flow = StepFlow(rows, passed, received, sifted=_sifted(self._box, notes))
        return result

    def _job(self, request: KernelRequest) -> Job:
        paths = self._store.path_of
        state = {
            bucket: {
                table: [str(paths(s)) for s in self.segments([table], bucket) if s.file]
                for table in request.tables
            }
            for bucket in self.buckets
        }
        return Job(
            request.context,
            state,
            request.idle,
            str(self._store.segments_directory),
            self._store.new_number(),
            self._store.power,
            self._tables,
            columns=request.columns,
            shared_out=request.shared_out,
            bare=request.bare,
        )

    def _require_all(self, notes: Sequence[Mapping[str, Any]], rows: Mapping[str, int]) -> None:
        """The tasks must have got as many tuples as the manifest says there are."""
        superbox = self.runner.superbox
        if superbox.boxes != (self.name,):
            return
        for port, source in enumerate(self._box.sources()):
            got = sum(note["received"][port] for note in notes)
            if source in rows and got != rows[source]:
                raise RunError(
                    "TUPLES_MISSING",
                    f"Spark read {got} tuples of {source} in a train of {rows[source]}",
                    where=superbox.name,
                    hint="a segment was changed from outside",
                )

    def _result(
        self, train: Train, notes: Sequence[Mapping[str, Any]], main: pa.Table | None
    ) -> KernelResult:
        result = KernelResult(notes=notes)
        result.held = {n["bucket"]: n["held"] for n in notes if n["held"] is not None}
        pending = [note["pending"] for note in notes if note["pending"] is not None]
        result.pending = min(pending, default=None)
        for note in notes:
            self._state_changes(train, note, result)
            for port, files in note["ports"].items():
                result.written += [_emitted(self._arc(port), file, train) for file in files]
            for reason, count in note["late"].items():
                if reason in LATE:
                    _add(result.counts, (self.name, "late"), count)
                _add(result.counts, (self.name, f"late: {reason}"), count)
            result.letters += self._letters(note)
        if main is not None and main.num_rows:
            result.unwritten.append(UnwrittenSegment(self.name, main, train.last))
            _add(result.counts, (self.name, "tuples"), main.num_rows)
        for segment in result.written:
            if StateLogId.parse(segment.log) is None:
                _add(result.counts, (segment.log, "tuples"), segment.rows)
        return result

    def _keep_arcs(self, train: Train, note: Mapping[str, Any], result: KernelResult) -> None:
        """Take in the arcs before the kernel that a task has written."""
        for arc, files in note["kept"].items():
            written = [_emitted(arc, file, train) for file in files]
            result.written += written
            _add(result.counts, (arc, "tuples"), sum(segment.rows for segment in written))
        result.letters += self._letters(note)

    def _letters(self, note: Mapping[str, Any]) -> list[DeadLetter]:
        return [
            DeadLetter(self.name, "python function", None, reason, self._named(row))
            for reason, row in note["dead"]
        ]

    def _named(self, row: str) -> str:
        """The start and group of a window, or the like, under the names of the arc's fields."""
        return shown(dict(zip(self._fields, json.loads(row).values(), strict=False)))

    def _state_changes(self, train: Train, note: Mapping[str, Any], result: KernelResult) -> None:
        first = min(train.first, train.last - 1)
        for table, made in note["state"].items():
            log = self._state_log(table, note["bucket"])
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


def _dropped(notes: Sequence[Mapping[str, Any]], *, shared_out: bool) -> Dropped:
    """What tasks dropped: each one of all files, or if these are shared out of its own."""
    tally = DropTally()
    for note in notes if shared_out else notes[:1]:
        tally.add_all(note["dropped"])
    return tally.dropped


def _sifted(box: Box, notes: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """By sieve of a join, how many tuples it got and let through."""
    if not isinstance(box, SiftedJoin):
        return {}
    told = [(note["received"], note["more"]["sifted"]) for note in notes]
    return {
        sieve.name: (
            sum(received[sieve.side] for received, _ in told),
            sum(passed[sieve.side][at] for _, passed in told),
        )
        for side in (0, 1)
        for at, sieve in enumerate(box.of_side(side))
    }


def _emitted(arc: str, file: Mapping[str, Any], train: Train) -> Segment:
    first, last = file["moments"]
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
        {name: tuple(pair) for name, pair in file["bounds"].items()},
    )


def _add(counts: dict[tuple[str, str], int], key: tuple[str, str], more: int) -> None:
    counts[key] = counts.get(key, 0) + more
