"""Steps: decide, record, run, commit. A crash anywhere re-runs the recorded step.

One thread decides and commits; workers run what was decided. Steps of superboxes that do not wait
for each other's results are under way at the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.inspect.kept_statistics import StatisticsKeeper
from auroral.engine.runtime.arrival_progress import ArrivalProgress
from auroral.engine.runtime.deciding import StepScheduler
from auroral.engine.runtime.measuring import BoxWork, CostMeter, after_work
from auroral.engine.runtime.plain_step import PlainStep
from auroral.engine.runtime.pool import Finished, StepPool
from auroral.engine.runtime.queue_memory import QueueMemory
from auroral.engine.runtime.step import StepOutcome, SuperboxStep
from auroral.engine.runtime.stepping import (
    Arrivals,
    CommittedStep,
    DueSpan,
    Limits,
    MarksRecorder,
    StepObserver,
    StepWatch,
    TrainFiles,
    WaitingStep,
)
from auroral.engine.runtime.train import Train, next_train, train_files
from auroral.engine.runtime.train_work import TrainWork
from auroral.engine.runtime.trials import Trials
from auroral.engine.runtime.waiting import WaitingTuples, needs_no_job, waiting_tuples
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.shedding.control import SheddingControl, ShedStep
from auroral.engine.shedding.recorded_step import RecordedStep, record_step
from auroral.errors import RunError
from auroral.ids import WATERMARKS, QueryBoxId, is_eddy
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import StepExecutor
from auroral.storage import Store
from auroral.tables.store import StoreUnavailableError

_RECENT = 1_000
_GRACE_S = 10.0
"""How long a step that was cancelled may take to end before nobody waits for it."""


@dataclass(frozen=True)
class _Running:
    """A step under way."""

    step: SuperboxStep
    train: Train
    number: int
    """Under which the manifest has recorded it."""


class Stepper:
    """Runs the steps of all superboxes; flow order decides which is started first."""

    def __init__(
        self,
        checked: CheckedNetwork,
        store: Store,
        executor: StepExecutor,
        pool: StepPool[StepOutcome],
        dead: DeadLetters,
        watermarks: WatermarkTracker,
        steps: Sequence[SuperboxStep],
        *,
        train: int,
        timeout_s: float | None = None,
        arrivals: Arrivals | None = None,
        progress_key: str = WATERMARKS,
        recorder: MarksRecorder | None = None,
        files: TrainFiles = train_files,
        observers: Sequence[StepObserver] = (),
        scheduler: StepScheduler | None = None,
        shedding: SheddingControl | None = None,
        memory: QueueMemory | None = None,
        watch: StepWatch | None = None,
        statistics: StatisticsKeeper | None = None,
        halting: Callable[[str, str], None] = lambda _superbox, _why: None,
    ):
        """`train` is the most tuples of a step; one that takes longer than `timeout_s` is ended.

        `arrivals` moves the marks on, by default from the logs of streams. The manifest keeps the
        moment that marks are taken up again at under `progress_key`. `recorder` keeps their moves.
        `files` makes the files of a train. `observers` are told of committed steps.
        `scheduler` decides which superbox is next; without one they run in turn.
        `shedding` has the drop boxes in front of superboxes. `memory` keeps queues in memory.
        `watch` intervenes while somebody debugs. `statistics` are written with some commits.
        `halting` hears who was halted, and why.
        """
        self._store = store
        self._executor = executor
        self._pool = pool
        self._dead = dead
        self._watermarks = watermarks
        self._arrivals: Arrivals = arrivals or ArrivalProgress(checked, store, watermarks)
        self._meter = CostMeter(checked)
        self._progress_key = progress_key
        self._recorder = recorder
        self._observers = observers
        self.scheduler = scheduler
        self._shedding = shedding
        self._memory = memory
        self._watch = watch
        self._statistics = statistics
        self._halting = halting
        self._steps = {step.superbox.name: step for step in steps}
        self._writers = {arc: step for step in steps for arc in step.superbox.terminals}
        self._eddies = [step for step in steps if is_eddy(step.superbox.stateful or "")]
        self.train = train
        """The most tuples of a step."""
        self._timeout_s = timeout_s
        self._work = TrainWork(store, executor, files)
        self.durations_s: deque[float] = deque(maxlen=_RECENT)
        self.steps = 0
        self._limits = Limits()
        self._latest = ""
        """The superbox that was started last, if they take turns."""
        self._running: dict[str, _Running] = {}
        self._cancelled: dict[str, float] = {}
        """Steps that took too long, and for how many seconds they have had to end."""
        self.halted: dict[str, RunError] = {}
        """Superboxes that do nothing more until the next start, and why."""
        self.waiting: dict[str, WaitingStep] = {}
        """Superboxes whose step is tried again later: their database cannot be used for now."""
        self._failed: tuple[Train, BaseException] | None = None
        """The step that failed; what others do meanwhile is committed before that is told."""
        # Recorded and not committed: run again on the same moments, after a crash or a failure.
        self._unfinished = {
            step.superbox: RecordedStep.of(step)
            for step in store.manifest.open_steps()
            if step.superbox in self._steps
        }

    def take_over(self, before: Stepper, kept: Collection[str]) -> None:
        """Go on with what was measured, and with steps under way, when boxes come or go.

        Nothing needs to be compiled for the superboxes that were `kept`.
        """
        self._meter.take_over(before._meter, kept)
        self.durations_s, self.steps = before.durations_s, before.steps
        self._latest = before._latest
        self._running = dict(before._running)
        self._cancelled = dict(before._cancelled)
        self.halted = {n: why for n, why in before.halted.items() if n in self._steps}
        self.waiting = {n: one for n, one in before.waiting.items() if n in self._steps}
        if self.scheduler is not None and before.scheduler is not None:
            self.scheduler.take_over(before.scheduler, self._running)

    # ── life ──

    def warm_up(self) -> None:
        """Let Spark get ready while nothing has arrived yet.

        What fails here fails again in its step, which finds out whose fault it is.
        """
        for step in self._steps.values():
            with suppress(Exception):
                step.warm_up()

    def wait(self) -> None:
        """Wait until Spark compiles nothing for later trains."""
        for step in self._steps.values():
            step.wait()

    def finish(self, grace_s: float, *, commit: bool) -> None:
        """Wait for the steps under way, and commit them; without `commit` they stay recorded.

        Those that take longer are cancelled.
        """
        take = self._collect if commit else self._pool.take_finished
        while self._pool.names and self._pool.wait(grace_s if commit else _GRACE_S):
            take()
        for name in self._pool.names:
            self._executor.cancel(name)
        while self._pool.names and self._pool.wait(_GRACE_S):
            take()
        self._pool.close()

    @property
    def starting(self) -> frozenset[str]:
        """Superboxes that have yet to have their first calls, in which Spark compiles."""
        stopped = self.halted.keys() | self.waiting.keys()
        return frozenset(
            name
            for name, step in self._steps.items()
            if step.superbox.boxes and not step.superbox.tables and name not in stopped
            if self._meter.is_starting(name)
        )

    @property
    def is_compiling(self) -> bool:
        """Whether Spark compiles in the background; plain steps share one runner."""
        steps = {
            type(step) if isinstance(step, PlainStep) else id(step): step
            for step in self._steps.values()
        }
        return any(step.is_compiling for step in steps.values())

    @property
    def busy(self) -> bool:
        """Whether steps are under way."""
        return bool(self._running)

    def wait_for_step(self, timeout_s: float) -> None:
        """Wait until a step has ended."""
        self._pool.wait(timeout_s)

    # ── steps ──

    def step(self, complete: int, limits: Limits | None = None) -> bool:
        """Commit steps that have ended, and start those that are due; False if there were none.

        What has failed is raised when no other step is under way.
        """
        self._limits = limits or Limits()
        worked = self._collect()
        self._end_overdue()
        if self._failed is not None:
            if self._running:
                return worked
            raise self._failed[1]
        due = self._limits.later if self._limits.staying else self._limits.due
        self._arrivals.fold(min(complete, due))
        if self._memory is not None:
            self._memory.follow(self.scheduler, list(self.under_way().values()))
        if self.scheduler is not None and not self.scheduler.in_turn():
            return self._start_decided(self.scheduler, complete) or worked
        return self._start_in_turn(complete) or worked

    def _start_in_turn(self, complete: int) -> bool:
        """Start what is due while workers are free, beginning behind what was started last.

        A train that is formed before a worker has time for it lacks what arrives meanwhile.
        """
        if self.scheduler is not None and self._memory is not None:
            self.scheduler.offer_in_turn(self.waiting_tuples, self._running)
        names, worked = list(self._steps), False
        at = names.index(self._latest) + 1 if self._latest in self._steps else 0
        for name in names if self._pool.inline else [*names[at:], *names[:at]]:
            if self._pool.free > 0 and self._start(self._steps[name], complete):
                self._latest, worked = name, True
        return worked

    def _start_decided(self, scheduler: StepScheduler, complete: int) -> bool:
        """Start what the scheduler decides, as long as workers are free.

        Steps that were recorded before a crash, and trains without tuples, which need no job, do
        not wait for a decision, but for a worker.
        """
        if self._pool.free <= 0:
            return False
        waiting, worked = self._waiting_tuples(complete), False
        while self._start_undecided(waiting, complete):
            waiting, worked = self._waiting_tuples(complete), True
        for _ in range(max(len(self._steps), 1)):
            free = self._pool.free
            if free <= 0:
                break
            scheduler.offer(waiting, self._running)
            if not waiting:
                break
            calls = scheduler.next_calls(self._running, waiting, free)
            if not calls:
                for plan in scheduler.decide(free):
                    scheduler.follow(plan)
                calls = scheduler.next_calls(self._running, waiting, free)
            if not calls:
                break
            for name, tuples, why in calls:
                if self._start(self._steps[name], complete, tuples):
                    scheduler.started(name, why)
                    worked = True
            if self._pool.inline:  # what was started has ended, and has left tuples for others
                waiting = self._waiting_tuples(complete)
            else:
                waiting = {n: one for n, one in waiting.items() if n not in self._running}
        return worked

    def _start_undecided(self, waiting: Mapping[str, WaitingTuples], complete: int) -> bool:
        """Start what was recorded before a crash, or has moments to pass that brought nothing."""
        found = [
            step
            for name, step in self._steps.items()
            if name in self._unfinished or needs_no_job(step.superbox, waiting.get(name))
        ]
        return [self._start(step, complete) for step in found].count(True) > 0

    def _waiting_tuples(self, complete: int) -> dict[str, WaitingTuples]:
        """What each superbox could take now, of those that could start."""
        began_s = time.perf_counter()
        found = {
            name: self._waiting_of(step, complete)
            for name, step in self._steps.items()
            if self._may_start(step)
        }
        if self.scheduler is not None:
            self.scheduler.spend(time.perf_counter() - began_s)
        return {name: one for name, one in found.items() if one is not None}

    def waiting_tuples(self, superbox: str) -> WaitingTuples:
        """What waits for a superbox, as far as it is known to be complete."""
        found = self._waiting_of(self._steps[superbox], self._store.next_moment, watched=False)
        return found or WaitingTuples(0, 0, 0)

    def _waiting_of(
        self, step: SuperboxStep, complete: int, *, watched: bool = True
    ) -> WaitingTuples | None:
        superbox = step.superbox
        head = self._head(superbox)
        bound = self._bound(step, self._limits.of(superbox, complete), watched=watched)
        if head >= bound:
            return None if step.pending is None else WaitingTuples(0, head, head)
        held = [s for source in superbox.sources for s in self._store.segments(source, head)]
        held = [s for s in held if s.first < bound]
        resident = self._memory.share(held) if self._memory is not None else 1.0
        return waiting_tuples(held, head, bound, resident)

    def _may_start(self, step: SuperboxStep) -> bool:
        name = step.superbox.name
        if name in self._running or name in self.halted:
            return False
        if self._watch is not None and self._watch.active and not self._watch.may_start(name):
            return False
        return name not in self.waiting or time.monotonic() >= self.waiting[name].until

    def _start(self, step: SuperboxStep, complete: int, tuples: int | None = None) -> bool:
        """Start a step of at most so many tuples, if one is due."""
        if not self._may_start(step):
            return False
        superbox, recorded = step.superbox, self._unfinished.get(step.superbox.name)
        upto = None if recorded is None else recorded.last
        limit = self.train if tuples is None else min(tuples, self.train)
        train = self._next(step, self._limits.of(superbox, complete), upto, limit)
        if train is not None and self._watch is not None and self._watch.active:
            train = self._watch.admit(train, recorded=recorded is not None)
        if train is None:
            return False
        if recorded is None:
            recorded = self._unfinished[superbox.name] = record_step(
                self._store, train, self._shedding
            )
        train = replace(train, drops=recorded.drops)
        self._running[superbox.name] = _Running(step, train, recorded.number)
        if self._memory is not None:
            self._memory.begin(train)
        try:
            work = step.begin(train)
        except Exception as error:
            self._fail(superbox.name, error)
        else:
            self._pool.submit(superbox.name, partial(self._work.run, step, train, work))
        if self._pool.inline:
            self._collect()
            if self._failed is not None:
                raise self._failed[1]
        return True

    def _collect(self) -> bool:
        """Commit what has ended."""
        found = self._pool.take_finished()
        for ended in found:
            self._end(ended)
        return bool(found)

    def _end(self, ended: Finished[StepOutcome]) -> None:
        cancelled = self._cancelled.pop(ended.name, None) is not None
        if cancelled and ended.error is not None:
            self._time_out(ended.name)
            return
        if isinstance(ended.error, StoreUnavailableError):
            self._wait(ended.name, str(ended.error))
            return
        if ended.error is not None:
            self._fail(ended.name, ended.error)
            return
        assert ended.value is not None
        running = self._running[ended.name]
        try:
            self._commit(running, ended.value, ended)
        except BaseException as error:
            self._fail(ended.name, error)
            return
        del self._running[ended.name]
        del self._unfinished[ended.name]
        self.waiting.pop(ended.name, None)
        self.durations_s.append(ended.seconds)
        self.steps += 1

    def _wait(self, name: str, reason: str) -> None:
        """Try a step again later; it stays recorded."""
        del self._running[name]
        self.waiting[name] = WaitingStep.after(self.waiting.get(name), reason, time.monotonic())

    @property
    def retry_s(self) -> float | None:
        """In how many seconds a step that waits for a database is tried again, if one does."""
        untils = [one.until for name, one in self.waiting.items() if name not in self._running]
        return max(min(untils) - time.monotonic(), 0.001) if untils else None

    def _fail(self, name: str, error: BaseException) -> None:
        running = self._running.pop(name)
        if self._failed is None:
            self._failed = running.train, error

    def _commit(self, running: _Running, outcome: StepOutcome, ended: Finished[Any]) -> None:
        train, superbox, change = running.train, running.train.superbox, outcome.change
        outcome.before_commit()
        others = [
            self._head(step.superbox) for name, step in self._steps.items() if name != superbox.name
        ]
        done = min([train.last, *others, self._limits.due])  # the next epoch needs marks from there
        change.heads = {(source, superbox.name): train.last for source in superbox.sources}
        change.heads |= {(log, WATERMARKS): done for log in self._watermarks.logs()}
        saved = {**self._watermarks.saved(done), self._progress_key: done}
        change.progress = {**change.progress, **saved}
        if self._recorder is not None:  # what is forgotten below
            self._recorder.record(change, self._watermarks, done)
        change.counts = {**change.counts, ("steps", superbox.name): 1}
        change.finished_step = running.number
        work: Mapping[str, BoxWork] = {}
        is_first = self._meter.is_starting(superbox.name)
        if outcome.flow is not None:
            known = self._store.costs
            work = self._meter.work(superbox, outcome.flow, change.counts, ended.core_s)
            change.costs = after_work(known, work, self._meter.weight_of_call(superbox))
            counts = self._meter.inner_counts(superbox, outcome.flow, change.counts)
            change.counts = self._meter.declared_counts(counts)
        shed = self._shedding.shed(train, outcome.shed) if self._shedding else ShedStep()
        change.shed, change.counts = shed.rows, {**change.counts, **shed.counts}
        watch = self._watch if self._watch is not None and self._watch.active else None
        if watch is not None:
            watch.committing(train, change)
        if self._statistics is not None and self._statistics.is_due:
            change.statistics = self._statistics.take(self.done_before())
        self._dead.commit(self._store, change, outcome.letters)
        outcome.after_commit()
        if self._shedding is not None:
            self._shedding.committed(shed)
        committed = CommittedStep(train, outcome, ended.seconds, work, is_first)
        for observer in self._observers:
            observer.committed(committed)
        self._watermarks.forget_before(done)
        if watch is not None:
            watch.committed(committed)

    # ── steps that take too long ──

    def _end_overdue(self) -> None:
        """Cancel steps that take too long; of those that cannot be cancelled nobody waits."""
        if self._timeout_s is None:
            return
        for name in self._pool.overdue(self._timeout_s):
            if name not in self._cancelled:
                self._cancelled[name] = self._timeout_s
                self._executor.cancel(name)
        for name in self._pool.overdue(self._timeout_s + _GRACE_S):
            if name in self._cancelled:
                del self._cancelled[name]
                self._pool.abandon(name)
                self._time_out(name)

    def _time_out(self, name: str) -> None:
        """If queries may be the cause it is found out which; a box of the network is halted."""
        superbox = self._running[name].train.superbox
        error = RunError(
            "STEP_TIMEOUT",
            f"a step of {', '.join(superbox.boxes)} took longer than {self._timeout_s:g} s"
            " and was ended",
            where=f"superbox {name}",
            hint="it is tried again at the next start; engine: {step_timeout: …} sets the limit",
        )
        if any(QueryBoxId.query_of(box) for box in superbox.boxes):
            self._fail(name, error)
        else:
            del self._running[name]
            self._halt(name, error)

    def halt(self) -> None:
        """Let the superbox whose step took too long do nothing more; the others go on."""
        assert self._failed is not None
        train, error = self._failed
        assert isinstance(error, RunError)
        self._halt(train.superbox.name, error)
        self._failed = None

    def _halt(self, superbox: str, error: RunError) -> None:
        self.halted[superbox] = error
        self._halting(superbox, error.message)

    # ── failures ──

    def culprits(self, owner: Callable[[str], str]) -> dict[str, str]:
        """The queries that make the failed train fail, and why; none if it is not them."""
        assert self._failed is not None
        limit_s = None if self._pool.inline else self._timeout_s
        step = self._steps[self._failed[0].superbox.name]
        trials = Trials(partial(self._work.attempt, step), self._executor.cancel, limit_s, _GRACE_S)
        return trials.culprits(self._failed[0], owner)

    # ── how far it is ──

    def done_before(self) -> int:
        """Every superbox has processed all moments before this one."""
        heads = [self._head(step.superbox) for step in self._steps.values()]
        return min(heads, default=self._store.next_moment)

    def slowest_head(self) -> int:
        """The moment that the slowest superbox has come to, of those that are not stuck.

        Those that wait for a database, and those behind them, do not hold up the others.
        """
        return self._least_head(self._behind({*self.halted, *self.waiting}))

    def _least_head(self, stuck: Collection[str]) -> int:
        heads = [self._head(s.superbox) for name, s in self._steps.items() if name not in stuck]
        return min(heads, default=self._store.next_moment)

    def is_done(self, moment: int) -> bool:
        """Whether all that can be processed before a moment is, and nothing is held back.

        Superboxes that were halted, and those that wait for them, are left out.
        """
        stuck = self.stuck()
        settled = all(s.pending is None for name, s in self._steps.items() if name not in stuck)
        return settled and not self._running and self._least_head(stuck) >= moment

    def stuck(self) -> set[str]:
        """Superboxes that were halted, and those behind them."""
        return self._behind(self.halted)

    def _behind(self, some: Collection[str]) -> set[str]:
        """Superboxes that do not go on, and those behind them."""
        stuck = set(some)
        if stuck:
            for name, step in self._steps.items():  # in flow order
                writers = (self._writers.get(source) for source in step.superbox.sources)
                if any(w is not None and w.superbox.name in stuck for w in writers):
                    stuck.add(name)
        return stuck

    def held_back(self, moment: int) -> bool:
        """Whether a pause alone keeps what is before a moment from being processed."""
        watch = self._watch
        if watch is None or not watch.active or self._running:
            return False
        held = {
            name
            for name, step in self._steps.items()
            if self._head(step.superbox) < moment
            and not (watch.may_start(name) and self._head(step.superbox) < watch.limit(name))
        }
        stuck = self._behind({*held, *self.halted})
        going = [step.superbox for name, step in self._steps.items() if name not in stuck]
        return bool(held) and all(self._head(superbox) >= moment for superbox in going)

    def due(self, complete: int) -> list[DueSpan]:
        """What each superbox could take if nothing were paused, in flow order."""
        found = []
        for name, step in self._steps.items():
            if name not in self._running and name not in self.halted:
                limit = self._limits.of(step.superbox, complete)
                head, bound = self._head(step.superbox), self._bound(step, limit, watched=False)
                if head < bound or step.pending is not None:
                    found.append(DueSpan(step.superbox, head, bound, step.pending is not None))
        return found

    def emitted_before(self, arc: str, complete: int | None = None) -> int:
        """All tuples of an arc with moments before this one are in its log."""
        step = self._writers.get(arc) or self._eddy_of(arc)
        if step is None:
            return self._store.next_moment if complete is None else complete
        head = self._head(step.superbox)
        late = arc != step.superbox.stateful
        return head if step.pending is None or late else min(head, step.pending)

    def writer_of(self, log: str) -> Superbox | None:
        """The superbox that writes a log; None if none does, as that of a stream."""
        step = self._writers.get(log) or self._eddy_of(log)
        return None if step is None else step.superbox

    def _eddy_of(self, log: str) -> SuperboxStep | None:
        """The eddy that writes a log of results."""
        return next((step for step in self._eddies if step.writes(log)), None)

    def is_settled(self, staying: Collection[Superbox] = ()) -> bool:
        """Whether no box still holds back what it has to emit, nor works; `staying` ones may."""
        going = [step for step in self._steps.values() if step.superbox not in staying]
        return all(s.pending is None and s.superbox.name not in self._running for s in going)

    def _head(self, superbox: Superbox) -> int:
        heads = [self._store.head(source, superbox.name) for source in superbox.sources]
        return min(heads, default=0)

    def _bound(self, step: SuperboxStep, complete: int, *, watched: bool = True) -> int:
        """The moment before which a superbox may work now; `watched`: if somebody debugs."""
        # Who writes what it reads may go on beyond the moment at which it has to stop.
        superbox = step.superbox
        known = [complete, *(self.emitted_before(source, complete) for source in superbox.sources)]
        if watched and self._watch is not None and self._watch.active:
            known.append(self._watch.limit(superbox.name))
        boundary = step.boundary(self._head(superbox))
        return min(known) if boundary is None else min(*known, boundary)

    def _next(
        self, step: SuperboxStep, complete: int, upto: int | None, limit: int
    ) -> Train | None:
        superbox = step.superbox
        train = next_train(self._store, superbox, self._bound(step, complete), limit, upto)
        if train is None and step.pending is not None:
            head = self._head(superbox)
            return Train(superbox, head, head, dict.fromkeys(superbox.sources, ()))
        return train

    def progress(self, moment: int) -> Mapping[str, Any]:
        """What to save so that marks are taken up again at a moment that all have reached."""
        self._arrivals.fold(moment)
        if self._recorder is not None:
            self._recorder.record_until(self._watermarks, moment)
        return {**self._watermarks.saved(moment), self._progress_key: moment}

    def fold(self, complete: int) -> None:
        """Move marks on up to where the logs of streams are complete."""
        self._arrivals.fold(complete)

    @property
    def recorded_until(self) -> int:
        """Steps that were recorded and not committed end at this moment at the latest."""
        return max((step.last for step in self._unfinished.values()), default=0)

    def under_way(self) -> dict[str, Train]:
        """The trains of the steps under way, by superbox."""
        return {name: running.train for name, running in list(self._running.items())}

    def reading(self) -> set[int]:
        """The segments, by id, that steps under way read."""
        trains = self.under_way().values()
        return {s.id for train in trains for held in train.segments.values() for s in held}
