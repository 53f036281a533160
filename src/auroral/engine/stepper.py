"""Steps: decide, record, run, commit. A crash anywhere re-runs the recorded step."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.engine.dead import DeadLetters
from auroral.engine.ingest import CLOCK_LOG
from auroral.engine.plane import ProgressPlane
from auroral.engine.train import Train, cut, next_train, train_files
from auroral.errors import RunError
from auroral.io.chunk import DeadLetter
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.runner import Runner, StepResult, TrainFile
from auroral.storage import Change, Fresh, Segment, Store
from auroral.storage.segment import verify

_RECENT = 1_000


class Stepper:
    """Runs the steps of all superboxes in turn."""

    def __init__(
        self,
        checked: CheckedNetwork,
        store: Store,
        runner: Runner,
        dead: DeadLetters,
        plane: ProgressPlane,
        superboxes: Sequence[Superbox],
        *,
        train: int,
        driver_bytes: int,
    ):
        self._checked = checked
        self._store = store
        self._runner = runner
        self._dead = dead
        self._plane = plane
        self._superboxes = superboxes
        self._train = train
        self._driver_bytes = driver_bytes
        self._cuts = store.directory / "cuts"
        shutil.rmtree(self._cuts, ignore_errors=True)
        self._cuts.mkdir()
        self._yield: dict[str, float] = {}
        self.durations_s: deque[float] = deque(maxlen=_RECENT)
        self.steps = 0
        # Recorded and not committed: run again on the same moments, after a crash or a failure.
        self._unfinished = {box: (i, last) for i, box, _, last in store.manifest.open_steps()}

    def warm_up(self) -> None:
        """Let Spark get ready while nothing has arrived yet."""
        for superbox in self._superboxes:
            self._runner.warm_up(superbox)

    def step(self, complete: int) -> bool:
        """Run one step of every superbox that has something to do; False if none had."""
        ran = False
        for superbox in self._superboxes:
            step, upto = self._unfinished.get(superbox.name, (None, None))
            train = next_train(self._store, superbox, complete, self._train, upto)
            if train is None:
                continue
            ran = True
            started = time.perf_counter()
            if step is None:
                step = self._store.record_step(superbox.name, train.first, train.last)
                self._unfinished[superbox.name] = (step, train.last)
            self._run(train, step)
            del self._unfinished[superbox.name]
            self.durations_s.append(time.perf_counter() - started)
            self.steps += 1
        return ran

    def done_before(self) -> int:
        """Every superbox has processed all moments before this one."""
        heads = [
            self._store.head(source, superbox.name)
            for superbox in self._superboxes
            for source in superbox.sources
        ]
        return min(heads, default=self._store.next_moment)

    def _run(self, train: Train, step: int) -> None:
        superbox = train.superbox
        files = train_files(self._store, train, self._cuts)
        rows = sum(file.rows for held in files.values() for file in held)
        result = self._spark(train, files) if superbox.boxes and rows else StepResult()
        fresh = [
            Fresh(arc, table, train.last) for arc, table in result.tables.items() if table.num_rows
        ]
        written = [
            segment
            for arc, path in result.written.items()
            for segment in self._store.adopt(arc, path, train.last)
        ]
        made = sum(table.num_rows for table in result.tables.values())
        self._learn(superbox, made + sum(segment.rows for segment in written), rows)
        self._advance(train)
        self._store.fault("computed")
        change = Change(
            fresh=fresh,
            written=written,
            heads={(source, superbox.name): train.last for source in superbox.sources}
            | ({(CLOCK_LOG, superbox.name): train.last} if self._plane.has_heartbeats else {}),
            progress=self._saved(train),
            counts={**_counts(result, written), ("steps", superbox.name): 1},
            finished_step=step,
        )
        self._dead.commit(self._store, change, _letters(result))
        for path in self._cuts.iterdir():
            path.unlink()

    def _spark(self, train: Train, files: dict[str, list[TrainFile]]) -> StepResult:
        through_driver = self._expected_bytes(train, files) <= self._driver_bytes
        try:
            result = self._runner.run(train.superbox, files, through_driver=through_driver)
        except RunError as error:
            self._blame_segments(train)
            if not through_driver or "maxResultSize" not in str(error):
                raise
            result = self._runner.run(train.superbox, files, through_driver=False)
        return result

    def _learn(self, superbox: Superbox, made: int, rows: int) -> None:
        """Remember how many tuples come out for each that goes in."""
        if rows:
            before = self._yield.get(superbox.name, made / rows)
            self._yield[superbox.name] = 0.5 * before + 0.5 * made / rows

    def _expected_bytes(self, train: Train, files: dict[str, list[TrainFile]]) -> float:
        """How large the result will be, if boxes make as many tuples as they did before."""
        size = sum(file.bytes for held in files.values() for file in held)
        default = float(len(train.superbox.terminals))
        return size * self._yield.get(train.superbox.name, default)

    def _blame_segments(self, train: Train) -> None:
        """A failed job may be a damaged segment's fault; then say which."""
        for held in train.segments.values():
            for segment in held:
                if segment.file:
                    verify(self._store.path_of(segment), segment, deep=True)

    def _advance(self, train: Train) -> None:
        """Move the marks of the train's streams past it."""
        if self._plane.has_heartbeats:
            for segment in self._store.segments(CLOCK_LOG, train.first):
                ticks = cut(self._store.table(segment), train.first, train.last)
                moments, times = ticks["_seq"].to_numpy(), ticks["_ts"].to_numpy()
                self._plane.tick(train.segments, moments, times)
        for source, segments in train.segments.items():
            columns = self._plane.needs(source)
            if columns is None:
                continue
            for segment in segments:
                noted = [p for p in segment.punctuations if train.first <= p[0] < train.last]
                tuples = self._tuples(segment, columns, train)
                self._plane.advance(source, tuples, noted)
            self._plane.forget_before(source, train.last)

    def _tuples(self, segment: Segment, columns: list[str], train: Train) -> pa.Table:
        if segment.file is None:
            schema = self._checked.arcs[segment.log].schema.arrow()
            fields = [pa.field("_seq", pa.int64()), *(schema.field(n) for n in columns[1:])]
            return pa.schema(fields).empty_table()
        return cut(self._store.table(segment, columns), train.first, train.last)

    def _saved(self, train: Train) -> dict[str, Any]:
        return {s: self._plane.saved(s) for s in train.segments if self._plane.needs(s)}


def _counts(result: StepResult, written: Sequence[Segment]) -> dict[tuple[str, str], int]:
    counts = {(arc, "tuples"): count for arc, count in result.counts.items()}
    for segment in written:
        key = (segment.log, "tuples")
        counts[key] = counts.get(key, 0) + segment.rows
    return counts


def _letters(result: StepResult) -> list[DeadLetter]:
    return [DeadLetter(box, "python function", None, why, row) for box, why, row in result.failed]


def slots_directory(store: Store) -> Path:
    """Where compiled plans have their slots; made anew by each run."""
    path = store.directory / "slots"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path
