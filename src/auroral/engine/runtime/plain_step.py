"""Steps of superboxes that remember nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from auroral.engine.runtime.measuring import StepFlow
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.dropping import counts_of
from auroral.errors import RunError
from auroral.io.chunk import DeadLetter
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files, PlainRunner
from auroral.spark.running.runner import StepResult
from auroral.storage import Change, Segment, Store, UnwrittenSegment
from auroral.storage.adoption import adopt


class PlainStep:
    """One superbox of filters, maps and unions; or of nothing, so that its log moves on."""

    pending: int | None = None

    def __init__(self, store: Store, runner: PlainRunner, superbox: Superbox, driver_bytes: int):
        """Results that are expected to be larger than `driver_bytes` are written by Spark."""
        self._store = store
        self.runner = runner
        self.superbox = superbox
        self._driver_bytes = driver_bytes
        self._yield: float | None = None
        """How many tuples came out for each that went in, lately."""

    @property
    def has_room(self) -> Callable[[Mapping[str, int]], bool]:
        return partial(self.runner.has_room, self.superbox)

    def drops_in_tasks(self, files: Files) -> bool:
        return bool(self.superbox.boxes) and self.runner.drops_in_tasks(self.superbox, files)

    def boundary(self, _moment: int) -> int | None:
        return None

    def writes(self, _log: str) -> bool:
        return False

    def segments(self) -> Iterable[Segment]:
        return ()

    def warm_up(self) -> None:
        self.runner.warm_up(self.superbox)

    @property
    def is_compiling(self) -> bool:
        return self.runner.is_compiling

    def wait(self) -> None:
        self.runner.wait()

    def discard(self) -> None:
        """Nothing to forget: the runner keeps what was compiled for all superboxes."""

    def begin(self, train: Train) -> Callable[[Files], StepOutcome]:
        return partial(self._run, train)

    def _run(self, train: Train, files: Files) -> StepOutcome:
        rows = sum(file.rows for held in files.values() for file in held)
        result = self._result(train.superbox, files) if self.superbox.boxes and rows else None
        if result is None:
            return StepOutcome(Change())
        unwritten = [
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
        taken = {source: sum(file.rows for file in held) for source, held in files.items()}
        shed = counts_of(taken, result.dropped)
        read = {s: n - (shed[s].dropped if s in shed else 0) for s, n in taken.items()}
        if any(read.values()):
            self._learn(made + sum(segment.rows for segment in written), sum(read.values()))
        change = Change(fresh=unwritten, written=written, counts=_counts(result, written))
        flow = StepFlow(read, result.counts, spent_s=result.spent_s)
        return StepOutcome(change, _letters(result), flow=flow, shed=shed)

    def _result(self, superbox: Superbox, files: Files) -> StepResult:
        through_driver = self._expected_bytes(files) <= self._driver_bytes
        try:
            return self.runner.run(superbox, files, through_driver=through_driver)
        except RunError as error:
            if not through_driver or "maxResultSize" not in str(error):
                raise
            return self.runner.run(superbox, files, through_driver=False)

    def _learn(self, made: int, rows: int) -> None:
        before = made / rows if self._yield is None else self._yield
        self._yield = 0.5 * before + 0.5 * made / rows

    def _expected_bytes(self, files: Files) -> float:
        """How large the result will be, if boxes make as many tuples as they did before."""
        size = sum(file.bytes for held in files.values() for file in held)
        default = float(len(self.superbox.terminals))
        return size * (default if self._yield is None else self._yield)


def _counts(result: StepResult, written: Sequence[Segment]) -> dict[tuple[str, str], int]:
    counts = {(arc, "tuples"): count for arc, count in result.counts.items()}
    for segment in written:
        key = (segment.log, "tuples")
        counts[key] = counts.get(key, 0) + segment.rows
    return counts


def _letters(result: StepResult) -> list[DeadLetter]:
    return [DeadLetter(box, "python function", None, why, row) for box, why, row in result.failed]
