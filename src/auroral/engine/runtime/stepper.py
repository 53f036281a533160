"""Steps: decide, record, run, commit. A crash anywhere re-runs the recorded step."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from auroral.disk import PRIVATE_DIRECTORY
from auroral.eddy.registered import NEVER
from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.runtime.stateful_step import StatefulBox
from auroral.engine.runtime.train import Train, cut, next_train, train_files
from auroral.engine.runtime.watermarks import WatermarkTracker, origins_log
from auroral.errors import RunError
from auroral.ids import CLOCK_LOG, WATERMARKS
from auroral.io.chunk import DeadLetter
from auroral.network.check import CheckedNetwork
from auroral.progress.origins import OriginRows
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.runner import Runner, StepResult
from auroral.spark.running.train_file import TrainFile
from auroral.storage import Change, Segment, Store, UnwrittenSegment
from auroral.storage.adoption import adopt
from auroral.storage.segment import verify

_RECENT = 1_000


@dataclass(frozen=True)
class Limits:
    """Up to which moments superboxes may work, as there are other boxes from then on."""

    due: int = NEVER
    staying: Collection[Superbox] = ()
    """Those that stay, and may go on,"""
    later: int = NEVER
    """up to when there are still others."""

    def of(self, superbox: Superbox, complete: int) -> int:
        return min(complete, self.later if superbox in self.staying else self.due)


class Stepper:
    """Runs the steps of all superboxes in turn, in flow order."""

    def __init__(
        self,
        checked: CheckedNetwork,
        store: Store,
        runner: Runner,
        dead: DeadLetters,
        watermarks: WatermarkTracker,
        superboxes: Sequence[Superbox],
        stateful: Mapping[str, StatefulBox],
        *,
        train: int,
        driver_bytes: int,
    ):
        self._checked = checked
        self._store = store
        self._runner = runner
        self._dead = dead
        self._watermarks = watermarks
        self._superboxes = superboxes
        self._stateful = stateful
        self._writers = {arc: box for box in superboxes for arc in box.terminals}
        self._train = train
        self._driver_bytes = driver_bytes
        self._cuts = store.directory / "cuts"
        shutil.rmtree(self._cuts, ignore_errors=True)
        self._cuts.mkdir(mode=PRIVATE_DIRECTORY)
        self._yield: dict[str, float] = {}
        self._folded: int = store.manifest.progress().get(WATERMARKS, 0)
        self.durations_s: deque[float] = deque(maxlen=_RECENT)
        self.steps = 0
        self._limits = Limits()
        self._running: Train | None = None
        """Of the step under way, or the one that failed."""
        # Recorded and not committed: run again on the same moments, after a crash or a failure.
        self._unfinished = {box: (i, last) for i, box, _, last in store.manifest.open_steps()}

    def take_over(self, before: Stepper) -> None:
        """Remember what was measured before boxes came or went."""
        self.durations_s, self.steps, self._yield = before.durations_s, before.steps, before._yield

    def warm_up(self) -> None:
        """Let Spark get ready while nothing has arrived yet.

        What fails here fails again in its step, which finds out whose fault it is.
        """
        for superbox in self._superboxes:
            with suppress(Exception):
                if superbox.stateful:
                    self._stateful[superbox.stateful].warm_up()
                else:
                    self._runner.warm_up(superbox)

    def wait(self) -> None:
        """Until Spark compiles nothing for later trains."""
        self._runner.wait()
        for box in self._stateful.values():
            box.wait()

    def step(self, complete: int, limits: Limits | None = None) -> bool:
        """Run one step of every superbox that has something to do; False if none had."""
        self._limits = limits or Limits()
        self._fold(complete)
        ran = False
        for superbox in self._superboxes:
            step, upto = self._unfinished.get(superbox.name, (None, None))
            train = self._next(superbox, self._limits.of(superbox, complete), upto)
            if train is None:
                continue
            ran = True
            started = time.perf_counter()
            if step is None:
                step = self._store.record_step(superbox.name, train.first, train.last)
                self._unfinished[superbox.name] = (step, train.last)
            self._running = train
            self._run(train, step)
            self._running = None
            del self._unfinished[superbox.name]
            self.durations_s.append(time.perf_counter() - started)
            self.steps += 1
        return ran

    def culprits(self, owner: Callable[[str], str]) -> dict[str, str]:
        """The queries whose boxes fail on the train that has failed, each by itself, and why.

        None if the train fails without any query, or if all goes well now: then it was not them.
        """
        assert self._running is not None
        train, superbox = self._running, self._running.superbox
        found: dict[str, str] = {}
        for name in dict.fromkeys(map(owner, superbox.boxes)):
            if superbox.stateful and owner(superbox.stateful) != name:
                continue  # what runs before a box that remembers serves nobody else
            alone = superbox.having({b for b in superbox.boxes if owner(b) in ("", name)})
            try:
                first = next(box for box in superbox.boxes if owner(box) == name)
                self._attempt(replace(train, superbox=replace(alone, name=first)))
            except RunError as error:
                found[name] = str(error)
        return {} if "" in found else found

    def _attempt(self, train: Train) -> None:
        """Run a train and forget what came of it."""
        files = self._files(train)
        if train.superbox.stateful:
            self._stateful[train.superbox.stateful].step(train, files)
        elif train.superbox.boxes:
            self._runner.run(train.superbox, files, through_driver=True)

    def done_before(self) -> int:
        """Every superbox has processed all moments before this one."""
        heads = [self._head(superbox) for superbox in self._superboxes]
        return min(heads, default=self._store.next_moment)

    def emitted_before(self, arc: str, complete: int | None = None) -> int:
        """All tuples of an arc with moments before this one are in its log."""
        superbox = self._writers.get(arc) or self._eddy_of(arc)
        if superbox is None:
            return self._store.next_moment if complete is None else complete
        head = self._head(superbox)
        pending = self._stateful[superbox.stateful].pending if superbox.stateful else None
        late = arc != superbox.stateful
        return head if pending is None or late else min(head, pending)

    def _eddy_of(self, log: str) -> Superbox | None:
        """The eddy that writes a log of results."""
        return next((box.superbox for box in self._stateful.values() if box.writes(log)), None)

    def is_settled(self, staying: Collection[Superbox] = ()) -> bool:
        """Whether no box still holds back what it has to emit; some may."""
        going = [box for box in self._stateful.values() if box.superbox not in staying]
        return all(box.pending is None for box in going)

    def _head(self, superbox: Superbox) -> int:
        heads = [self._store.head(source, superbox.name) for source in superbox.sources]
        return min(heads, default=0)

    def _next(self, superbox: Superbox, complete: int, upto: int | None) -> Train | None:
        # Who writes what it reads may go on beyond the moment at which it has to stop.
        known = [complete, *(self.emitted_before(source, complete) for source in superbox.sources)]
        box = self._stateful.get(superbox.stateful or "")
        boundary = box.boundary(self._head(superbox)) if box is not None else None
        if boundary is not None:
            known.append(boundary)
        train = next_train(self._store, superbox, min(known), self._train, upto)
        if train is None and box is not None and box.pending is not None:
            head = self._head(superbox)
            return Train(superbox, head, head, dict.fromkeys(superbox.sources, ()))
        return train

    def _run(self, train: Train, step: int) -> None:
        superbox = train.superbox
        files = self._files(train)
        if superbox.stateful:
            change, letters = self._kernel(self._stateful[superbox.stateful], train, files)
        else:
            change, letters = self._plain(train, files)
        self._store.fault("computed")
        others = [self._head(box) for box in self._superboxes if box is not superbox]
        done = min([train.last, *others, self._limits.due])  # boxes to come need marks from there
        change.heads = {(source, superbox.name): train.last for source in superbox.sources}
        change.heads |= {(log, WATERMARKS): done for log in self._watermarks.logs()}
        change.progress = {**change.progress, **self._watermarks.saved(done), WATERMARKS: done}
        change.counts = {**change.counts, ("steps", superbox.name): 1}
        change.finished_step = step
        self._dead.commit(self._store, change, letters)
        if superbox.stateful:
            self._stateful[superbox.stateful].committed()
        self._watermarks.forget_before(done)
        for path in self._cuts.iterdir():
            path.unlink()

    def _files(self, train: Train) -> dict[str, list[TrainFile]]:
        box = self._stateful.get(train.superbox.stateful or "")
        has_room = partial(self._runner.has_room, train.superbox) if box is None else box.has_room
        return train_files(self._store, train, self._cuts, has_room=has_room)

    def _kernel(
        self, box: StatefulBox, train: Train, files: Mapping[str, Sequence[TrainFile]]
    ) -> tuple[Change, list[DeadLetter]]:
        try:
            return box.step(train, files)
        except RunError:
            self._blame_segments(
                [*box.segments(), *(s for h in train.segments.values() for s in h)]
            )
            raise

    # ── boxes that remember nothing ──

    def _plain(
        self, train: Train, files: Mapping[str, Sequence[TrainFile]]
    ) -> tuple[Change, list[DeadLetter]]:
        superbox = train.superbox
        rows = sum(file.rows for held in files.values() for file in held)
        result = self._spark(train, files) if superbox.boxes and rows else StepResult()
        fresh = [
            UnwrittenSegment(arc, table, train.last)
            for arc, table in result.tables.items()
            if table.num_rows
        ]
        written = [
            segment
            for arc, path in result.written.items()
            for segment in adopt(self._store, arc, path, train.last)
        ]
        made = sum(table.num_rows for table in result.tables.values())
        self._learn(superbox, made + sum(segment.rows for segment in written), rows)
        change = Change(fresh=fresh, written=written, counts=_counts(result, written))
        return change, _letters(result)

    def _spark(self, train: Train, files: Mapping[str, Sequence[TrainFile]]) -> StepResult:
        through_driver = self._expected_bytes(train, files) <= self._driver_bytes
        try:
            result = self._runner.run(train.superbox, files, through_driver=through_driver)
        except RunError as error:
            self._blame_segments([s for held in train.segments.values() for s in held])
            if not through_driver or "maxResultSize" not in str(error):
                raise
            result = self._runner.run(train.superbox, files, through_driver=False)
        return result

    def _learn(self, superbox: Superbox, made: int, rows: int) -> None:
        """Remember how many tuples come out for each that goes in."""
        if rows:
            before = self._yield.get(superbox.name, made / rows)
            self._yield[superbox.name] = 0.5 * before + 0.5 * made / rows

    def _expected_bytes(self, train: Train, files: Mapping[str, Sequence[TrainFile]]) -> float:
        """How large the result will be, if boxes make as many tuples as they did before."""
        size = sum(file.bytes for held in files.values() for file in held)
        default = float(len(train.superbox.terminals))
        return size * self._yield.get(train.superbox.name, default)

    def _blame_segments(self, segments: Iterable[Segment]) -> None:
        """A failed job may be a damaged segment's fault; then say which."""
        for segment in segments:
            if segment.file:
                verify(self._store.path_of(segment), segment, deep=True)

    # ── progress ──

    def progress(self, moment: int) -> dict[str, Any]:
        """What to save so that marks are taken up again at a moment that all have reached."""
        self._fold(moment)
        return {**self._watermarks.saved(moment), WATERMARKS: moment}

    def _fold(self, complete: int) -> None:
        """Move the marks of all streams up to where logs are complete."""
        first = self._folded
        if complete <= first:
            return
        if self._watermarks.uses_clock:
            for segment in self._store.segments(CLOCK_LOG, first):
                ticks = cut(self._store.table(segment), first, complete)
                self._watermarks.tick(ticks["_seq"].to_numpy(), ticks["_ts"].to_numpy())
        for stream in self._checked.network.streams:
            columns = self._watermarks.needs(stream)
            if not columns:
                continue
            held = self._store.segments(stream, first)
            noted = [[p for p in s.punctuations if first <= p[0] < complete] for s in held]
            tuples = [self._tuples(s, columns, first, complete) for s in held]
            origins = self._origins(stream, first, complete)
            if origins is None:
                for some, punctuations in zip(tuples, noted, strict=True):
                    self._watermarks.advance(stream, some, punctuations)
            else:  # which may say something where there is no tuple
                whole = pa.concat_tables(tuples) if tuples else self._no_tuples(stream, columns)
                self._watermarks.advance(
                    stream, whole, [p for some in noted for p in some], origins
                )
        self._folded = complete

    def _origins(self, stream: str, first: int, last: int) -> OriginRows | None:
        """Which origin the moments of a stream concern; None if it has no more than one source."""
        held = self._store.segments(origins_log(stream), first)
        if not held:
            return None
        rows = pa.concat_tables([cut(self._store.table(s), first, last) for s in held])
        if not rows.num_rows:
            return None
        return OriginRows(*(rows[name].to_numpy() for name in ("_seq", "origin", "event")))

    def _tuples(self, segment: Segment, columns: list[str], first: int, last: int) -> pa.Table:
        if segment.file is None:
            return self._no_tuples(segment.log, columns)
        return cut(self._store.table(segment, columns), first, last)

    def _no_tuples(self, stream: str, columns: list[str]) -> pa.Table:
        schema = self._checked.arcs[stream].schema.arrow()
        fields = [pa.field("_seq", pa.int64()), *(schema.field(n) for n in columns[1:])]
        return pa.schema(fields).empty_table()


def _counts(result: StepResult, written: Sequence[Segment]) -> dict[tuple[str, str], int]:
    counts = {(arc, "tuples"): count for arc, count in result.counts.items()}
    for segment in written:
        key = (segment.log, "tuples")
        counts[key] = counts.get(key, 0) + segment.rows
    return counts


def _letters(result: StepResult) -> list[DeadLetter]:
    return [DeadLetter(box, "python function", None, why, row) for box, why, row in result.failed]
