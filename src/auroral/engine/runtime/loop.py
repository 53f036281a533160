"""The loop: forms trains, runs steps and delivers, in a thread of its own or when asked."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from auroral.engine.ingest.ingest import Ingest
from auroral.engine.locks import ReentrantLock
from auroral.engine.runtime.failure import failure_of
from auroral.engine.runtime.round_cost import RoundCost
from auroral.engine.runtime.stepping import EngineWatch, Limits
from auroral.engine.shedding.shedder import LoadShedder
from auroral.engine.topology.background import BackgroundCompilation
from auroral.engine.topology.execution import (
    Execution,
    is_epoch_complete,
    is_latest,
    next_epoch_start,
    next_execution,
    plan_next,
    reorder,
    retain_for_next,
    without_failed_queries,
)
from auroral.engine.topology.plan import ExecutionPlan
from auroral.errors import AuroralError, RunError, UsageError, ended
from auroral.io.sources.interleave import Interleaver
from auroral.io.sources.source import Source
from auroral.network.types import Schema
from auroral.scheduling.superboxes import Superbox

ALL_SOURCES = "all sources"
"""The name under which the manifest keeps how far the sources were read."""
_HEARTBEAT_S = 0.5
_IDLE_S = 1.0
_POLL_S = 0.05
_GRACE_S = 60.0
"""How long the steps under way may take to end when the engine stops."""
_BACKLOG_TRAINS = 4
_MOST_ROWS = 250_000
_ASKED = ("soundex(text)", "soundex('text')", "levenshtein(text, 'text')")
"""Functions that only Spark knows, of fields and of constants: each kind is slow the first time."""


class Loop:
    """Two threads: one feeds from the sources, one runs steps and wakes the threads of sinks.

    Without them (`background=False`) every round is run by whoever waits, who delivers too. What
    goes wrong in a thread is kept in `failure` and raised at the next call.
    """

    def __init__(
        self,
        ingest: Ingest,
        execution: Execution,
        sources: Interleaver | None,
        *,
        train: int,
        background: bool,
        heartbeats: bool,
        wall: bool = True,
        lock: ReentrantLock | None = None,
        shedder: LoadShedder | None = None,
        cost: RoundCost | None = None,
    ):
        self._shedder = shedder
        self._cost = cost or RoundCost()
        self._ingest = ingest
        self.execution = execution
        """The boxes that run now; who changes them holds `_busy`."""
        self._sources = sources
        self._feeding = threading.Lock()
        """Held while sources are asked, or changed."""
        self._has_feeder = False
        self._train = train
        self._background = background
        self._heartbeats = heartbeats
        self._wall = wall
        self._ticked = time.monotonic()
        self._changed = threading.Condition()
        self._wakes = 0
        """How often something has happened that may give the loop something to do."""
        self._stopping = threading.Event()
        self.warm = threading.Event()  # Spark is ready: there are rounds from then on
        self._threads: list[threading.Thread] = []
        self._worker: int | None = None
        self._drafting: BackgroundCompilation | None = None
        """Of the boxes that come next, if there are any."""
        self._given_up: list[BackgroundCompilation] = []
        """Of boxes that were to come, while others are drafted."""
        self._busy = lock or threading.RLock()
        """Held during a round: whoever holds it sees no step started or committed."""
        self._asking = 0
        """How many wait for the end of a round."""
        self.failure: AuroralError | None = None
        self.exhausted = sources is None
        """Whether all sources have ended; set by whoever feeds, who alone may ask them."""

    def start(self, sink_grace_s: float) -> None:
        """Begin to work; see `Engine` for the time that sinks have to end."""
        if self._background:
            self.execution.sinks.start(
                sink_grace_s,
                tell=self.wake,
                fail=self.fail,
                is_well=lambda: self.failure is None,
            )
            for target in [self._run, self._ask] + ([self._feed] if self._sources else []):
                self._start_thread(target)

    def _start_thread(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guarded, args=(target,), daemon=True)
        self._threads.append(thread)
        self._has_feeder = self._has_feeder or target == self._feed
        thread.start()

    def stop(self) -> None:
        """End after the step under way."""
        self._stopping.set()
        self.wake()
        for thread in self._threads:
            thread.join()
        for drafting in [*self._given_up, *filter(None, [self._drafting])]:
            drafting.wait()
        with self._busy:
            self.execution.stepper.finish(_GRACE_S, commit=self.failure is None)
            self.execution.context.attachments.close(commit=self.failure is None)
        self.execution.stepper.wait()
        if self._sources:
            self._sources.close()

    def wake(self) -> None:
        """Something has happened: look whether there is something to do."""
        with self._changed:
            self._wakes += 1
            self._changed.notify_all()

    def _notify(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Sleep until something happened; without threads, do a round instead."""
        if self._background:
            with self._changed:
                self._changed.wait(timeout_s)
        else:
            self.work()

    def drain(self, timeout_s: float | None, *, endless: bool, since: float) -> None:
        """Wait until all that has arrived is processed; from sources that end, all they have.

        The time counts from `since`, of the monotonic clock.
        """
        self.require_outside("wait until everything is delivered")
        deadline = None if timeout_s is None else since + timeout_s
        if not self._background:
            self._work_until(deadline, timeout_s, endless=endless)
            return
        target = self._ingest.next_moment
        while not self.reached(None if self._sources and not endless else target):
            if self.failure:
                raise self.failure
            self.require_going()
            self.require_unpaused(self._ingest.next_moment)
            left = _IDLE_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise not_drained(timeout_s)
            self.wait(min(left, _IDLE_S))

    def _work_until(
        self, deadline: float | None, timeout_s: float | None, *, endless: bool
    ) -> None:
        """Do rounds until there is nothing to do; the time is looked at between them."""
        while True:
            worked = self.work()
            pause_s = self._sources.pause_s if self._sources and not endless else 0.0
            pause_s = self.execution.stepper.retry_s or pause_s
            if not worked and not pause_s:
                self.require_unpaused(self._ingest.next_moment)
                return
            left = pause_s if deadline is None else deadline - time.monotonic()
            if deadline is not None and left <= 0:
                raise not_drained(timeout_s)
            if not worked:
                self._stopping.wait(min(left, pause_s))

    def reached(self, moment: int | None) -> bool:
        """Whether everything before a moment is done; None: and all sources have ended."""
        if moment is None:
            if not self.exhausted:
                return False
            moment = self._ingest.next_moment
        others, execution = next_epoch_start(self.execution), self.execution
        if others is not None and others <= moment:
            return False
        done = execution.stepper.is_done(moment)
        done = done and execution.context.attachments.reached(moment)
        return done and execution.sinks.delivered and is_latest(execution)

    def work(self, until: int | None = None) -> bool:
        """One round: form trains, run steps, deliver; False if there was nothing to do.

        With `until` nothing is read from sources, and nothing from that moment on is processed.

        After a failure there are no more rounds: only a restart knows what is true.
        """
        if self.failure:
            raise self.failure
        with self.failing():
            return self._round(until)

    def _round(self, until: int | None) -> bool:
        nested = self.in_round  # a sink waits, and is not to see other boxes
        with self._busy, self._working():
            fed = not self._background and until is None and self._pull()
            began, steps = time.perf_counter(), self.execution.stepper.steps
            complete = self._ingest.seal()
            complete = complete if until is None else min(complete, until)
            self._shed()
            worked = self._step(complete)
            worked = self._step_attached(complete, live=worked) or worked
            worked = (not nested and self._move_on()) or worked
            worked = (not nested and self._reorder()) or worked
            delivered = self.execution.sinks.deliver()
            if worked:
                self.execution.outputs.compact()
                self._tend_history(nested)
                if self._background:  # otherwise the work of the steps is in it
                    committed = self.execution.stepper.steps - steps
                    self._cost.note(time.perf_counter() - began, committed)
            elif until is None and self._tick_due():
                self._ingest.tick()
                worked = True
        self._notify()
        return bool(fed or worked or delivered)

    def _shed(self) -> None:
        """Decide what is dropped; tuples of files that end need not be, as they can wait."""
        watch, execution = self.execution.context.watch, self.execution
        if self._shedder is not None and execution.checked.network.engine.shedding == "off":
            self._shedder.stop()
        if watch is not None and (watch.is_paused or self._recovers(watch)):
            return  # queues are long because of the pause, not of the load
        if self._shedder is not None and self._shedder.is_due:
            sources = self._sources
            live = sources is None or self.exhausted or not sources.finite
            stepper, drafting = execution.stepper, self._drafting
            drafts = drafting is not None and not drafting.ready
            self._shedder.tick(
                execution.checked,
                execution.superboxes,
                stepper.under_way(),
                live=live,
                starting=stepper.starting,
                compiling=drafts or stepper.is_compiling,
            )

    def _recovers(self, watch: EngineWatch) -> bool:
        """Whether tuples are left that have waited because of a pause."""
        until = watch.recovers_until
        return until > 0 and self.execution.stepper.slowest_head() < until

    def _reorder(self) -> bool:
        """Let boxes change places if that is better; not while somebody looks at each of them."""
        watch = self.execution.context.watch
        if watch is not None and watch.is_paused:
            return False
        return reorder(self.execution, self._ingest.at_moment)

    def _tend_history(self, nested: bool) -> None:
        """Let kept history expire, and merge what is small."""
        execution = self.execution
        if not nested:
            now = not self._background
            attachments = execution.context.attachments
            in_use = lambda: execution.stepper.reading() | attachments.reading()  # noqa: E731
            execution.context.history.tend(execution.watermarks, in_use, now=now)

    def _step_attached(self, complete: int, *, live: bool) -> bool:
        """Let attached queries work, after the network has started what it can."""
        return self.execution.context.attachments.step(self.execution, complete, live=live)

    def _step(self, complete: int) -> bool:
        limits = self._limits()  # who looks after that: what comes next is the same from now on
        try:
            return self.execution.stepper.step(complete, limits)
        except RunError as error:
            self.execution = without_failed_queries(self.execution, error)
            return True

    def move_on(self) -> None:
        """Go on with boxes that come, and without sinks that have everything; if nobody works."""
        if not self.in_round and self._busy.acquire(blocking=False):
            try:
                self._move_on()
                self.execution.sinks.close_done()
            finally:
                self._busy.release()

    def _limits(self) -> Limits:
        """How far superboxes may go before others come; those that stay need not wait."""
        moment = next_epoch_start(self.execution)
        if moment is None:
            return Limits()
        drained = self.execution.context.queries.epochs.next.drained
        self.execution.watermarks.drain(drained, moment - 1)
        if not self._threads:
            return Limits(moment)
        following = self._drafting.plan if self._drafting is not None else None
        if self._drafting is None or not self._drafting.fits(self.execution, following):
            self._draft()
            following = None
        staying = following.same if following is not None else frozenset[Superbox]()
        changed = following.changed if following is not None else None
        if changed is not None and changed.blocks_streams:
            staying = frozenset()
        return Limits(moment, staying, self.execution.context.queries.epochs.later_start)

    def _draft(self) -> None:
        """Begin to make ready what comes next."""
        if self._drafting is not None:
            self._drafting.give_up()
            self._given_up = [*filter(lambda one: one.is_alive, self._given_up), self._drafting]
        retain_for_next(self.execution)
        self._drafting = BackgroundCompilation(self.execution, self.wake)

    def _move_on(self) -> bool:
        """Go on with the boxes that come next, if all before them is done."""
        following = self._following()
        execution = next_execution(self.execution, following) if following is not None else None
        if execution is None:
            if following is not None and not self._threads:
                following.discard()
            return False
        self.execution, self._drafting = execution, None
        return True

    def _following(self) -> ExecutionPlan | None:
        """The network that comes next, if it may."""
        if not self._threads:
            return plan_next(self.execution) if is_epoch_complete(self.execution) else None
        drafting = self._drafting
        if drafting is None or not drafting.ready:
            return None
        if drafting.error is not None:
            raise drafting.error
        return drafting.plan if drafting.fits(self.execution, drafting.plan) else None

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """Remember whose round it is; sinks are called in it, and may begin others."""
        before, self._worker = self._worker, threading.get_ident()
        try:
            yield
        finally:
            self._worker = before

    @property
    def retries(self) -> dict[str, int]:
        """How often the sources of streams were asked again after a failure."""
        return self._sources.retries if self._sources else {}

    @property
    def in_round(self) -> bool:
        """Whether a sink asks that is called in a round, or in a thread of its own."""
        return self._worker == threading.get_ident() or self.execution.sinks.is_called_here

    def require_outside(self, what: str) -> None:
        """Refuse what would wait for the round that it is called in."""
        if self.in_round:
            raise UsageError("NOT_HERE", f"a sink cannot {what}", hint="let another thread do it")

    def require_going(self) -> None:
        """Refuse what comes when the engine ends; sinks may still do what they have begun."""
        if self._stopping.is_set() and not self.in_round:
            raise ended()

    def require_unpaused(self, moment: int) -> None:
        """Refuse to wait for what only a pause keeps from being processed."""
        execution = self.execution
        held = execution.stepper.held_back(moment)
        if held or execution.context.attachments.held_back(moment):
            self._ingest.seal()  # so that statistics and samples show what waits
            raise UsageError(
                "PAUSED",
                "tuples wait for boxes that are paused, and what comes after them has to wait",
                hint="resume first, or step",
            )

    @property
    def threaded(self) -> bool:
        """Whether threads of its own do the rounds."""
        return self._background

    def pull(self) -> bool:
        """Take the next rows of the sources; False if there were none."""
        return self._pull()

    def change_sources(
        self, gone: Collection[str], fresh: Sequence[Source], streams: Collection[str]
    ) -> None:
        """Read no more from some sources, and from others besides; see `Interleaver.change`."""
        with self._feeding:
            if self._sources is None:
                self._sources = Interleaver([])
            position = self._ingest.source_position(ALL_SOURCES)
            self._sources.change(gone, fresh, position, streams)
            self.exhausted = False
        if self._background and not self._has_feeder:
            self._start_thread(self._feed)

    def uses_clock(self, used: bool) -> None:
        """Whether the clock has to pass while nothing arrives; with a wall clock."""
        self._heartbeats = used and self._wall

    def await_epoch(self, start: int) -> None:
        """Wait until the epoch that starts at a moment was entered."""
        while not self._has_entered(start):
            if self.failure:
                raise self.failure
            self.require_going()
            self.require_unpaused(start)
            if self._background:
                self.wait(_IDLE_S)
            else:
                self.settle(start)

    def _has_entered(self, start: int) -> bool:
        """Whether no epoch up to a moment is planned, and the latest one has its execution.

        Several epochs may start at one moment, if no tuple arrives between two changes.
        """
        queries = self.execution.context.queries
        with queries.lock:
            planned, generation = queries.epochs.next_start, queries.epochs.generation
        return (planned is None or planned > start) and self.execution.generation == generation

    def settle(self, moment: int) -> None:
        """Process and deliver all before a moment, and nothing after it."""
        with self.between_rounds():
            while not self.reached(moment):
                if not self.work(moment):
                    if self.execution.stepper.busy:
                        self.execution.stepper.wait_for_step(_IDLE_S)
                    elif self._drafting is None or self._drafting.ready:
                        break
                    else:
                        self._drafting.wait()

    def settle_or_wait(self, moment: int, timeout_s: float) -> bool:
        """Get further before a moment; False if there is nothing more to wait for."""
        if not self._background:
            self.settle(moment)
            return False
        self.wake()
        self.wait(timeout_s)
        return True

    @contextlib.contextmanager
    def between_rounds(self) -> Iterator[None]:
        """Let no step be started or committed: the next round waits."""
        with self._changed:
            self._asking += 1
        try:
            with self._busy:
                yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def _let_others(self) -> None:
        """Wait for those who ask; a lock alone would be taken again before they wake up."""
        with self._changed:
            self._changed.wait_for(lambda: not self._asking or self._stopping.is_set())

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """After an error in here do nothing more: what is in memory may not be what is true."""
        try:
            yield
        except Exception as error:
            self.failure = self._told(error)
            self.wake()
            if self.failure is error:
                raise
            raise self.failure from error

    def fail(self, error: BaseException) -> None:
        """Do nothing more: something went wrong in another thread."""
        self.failure = self.failure or self._told(error)
        self.wake()

    def await_sink(self, output: str) -> None:
        """Wait until an output whose query was removed has a sink no more, or that has failed."""
        if not self._background:
            self.settle(self._ingest.next_moment)
            return
        sinks = self.execution.sinks
        while output in sinks.ending and output not in sinks.failed:
            if self.failure:
                raise self.failure
            self.require_going()
            self.wait(_IDLE_S)

    def _told(self, error: BaseException) -> AuroralError:
        return failure_of(error, self.execution.context.settings.executor)

    # ── the threads ──

    def _guarded(self, target: object) -> None:
        assert callable(target)
        try:
            target()
        except BaseException as error:  # whoever waits would wait for ever
            self.failure = self._told(error)
        self.wake()

    def _run(self) -> None:
        with self._busy:  # queries may come that need other boxes
            self.execution.stepper.warm_up()
        self.warm.set()
        while not self._stopping.is_set():
            self._let_others()
            seen = self._wakes
            if not self.work():
                self._sleep(seen)
                self.execution.context.settings.executor.require_alive()

    def _sleep(self, seen: int) -> None:
        """Wait for something to happen, unless it has since `_wakes` was `seen`."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._wakes != seen or self._stopping.is_set(), self._idle_s
            )

    @property
    def _idle_s(self) -> float:
        idle_s = _HEARTBEAT_S if self._heartbeats else _IDLE_S
        rest_s = self.execution.context.attachments.rest_s
        return min(idle_s, self.execution.stepper.retry_s or idle_s, rest_s or idle_s)

    def _await_warm(self) -> None:
        while not self._stopping.is_set() and not self.warm.wait(_POLL_S):
            pass

    def _ask(self) -> None:
        """Let Spark load what it tells types with, before a query asks for some."""
        self._await_warm()
        resolver = self.execution.context.settings.executor.resolver
        for text in _ASKED if resolver is not None else ():
            if not self._stopping.is_set() and resolver is not None:
                with contextlib.suppress(Exception):
                    resolver(text, Schema.parse("text string"))

    def _feed(self) -> None:
        # A live source must not run ahead while Spark's first job loads half the JVM.
        self._await_warm()
        while not self._stopping.is_set():
            behind = self._ingest.next_moment - self.execution.stepper.slowest_head()
            if behind < _BACKLOG_TRAINS * self._train and self._pull():
                self.wake()
            else:
                self._stopping.wait(_POLL_S)

    def _pull(self) -> bool:
        """Take the next rows of the sources; False if there were none."""
        with self._feeding:
            if self._ingest.ended is not None:
                self.exhausted = True
            if self._sources is None or self.exhausted:
                return False
            parts = self._sources.next(min(self._train, _MOST_ROWS))
            if parts:
                self._ingest.feed(parts, {ALL_SOURCES: self._sources.offset})
            else:
                self.exhausted = self._sources.exhausted
            return bool(parts)

    def _tick_due(self) -> bool:
        """With heartbeats the clock passes although nothing arrives."""
        now = time.monotonic()
        if not self._heartbeats or not self._background or now - self._ticked < _HEARTBEAT_S:
            return False
        self._ticked = now
        return True


def not_drained(timeout_s: float | None) -> RunError:
    """Something took longer than it was given."""
    return RunError("TIMEOUT", f"not drained within {timeout_s} s")
