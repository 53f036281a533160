"""One attached query while it runs: history first, at low priority, then what flows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from auroral.eddy.registered import NEVER
from auroral.engine.context import EngineContext
from auroral.engine.lifecycle.epochs import DeclaredNetwork, Epoch
from auroral.engine.lifecycle.standalone import ActiveStandalone
from auroral.engine.points.ad_hoc_query import AdHocQuery, Branch
from auroral.engine.points.branch_marks import BranchArrivals, BranchWatermarks
from auroral.engine.points.indexing import PrunedHistory
from auroral.engine.points.point import PointHistory
from auroral.engine.results.views import View
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.stepper import Stepper
from auroral.engine.runtime.train import train_files
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.topology.assembly import kernel_runner
from auroral.engine.topology.plan import ExecutionPlan, new_place
from auroral.engine.topology.steps import superbox_steps
from auroral.errors import AuroralError, RunError
from auroral.ids import WATERMARKS, AttachmentId
from auroral.scheduling.fusion import Fusion
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.scheduling.trains import train_end
from auroral.spark.session.causes import FROM_SPARK, reason
from auroral.storage import Store

_FIRST_TRAIN = 8_192
_GROWTH = 8
POLITE_TRAIN = 50_000
"""The most tuples of a historical step while the network works: one task, on one core."""
_FIRST_SPAN = 1 << 18
_LONGEST_SPAN = 1 << 22
"""The most moments of history whose rows are looked up at a time; their marks are in memory."""
_GRACE_S = 60.0


@dataclass(frozen=True)
class AttachmentRecord:
    """What the manifest knows of an attachment."""

    name: str
    point: str
    query: AdHocQuery
    begins: int
    """The moment of the first tuple that it sees."""
    ends: int = NEVER
    """The moment before which it ends by itself."""
    ended: bool = False
    """Whether it has done so, and needs nothing of its arc any more."""

    def text(self) -> str:
        found = {"point": self.point, "begins": self.begins, **self.query.document()}
        ending = {} if self.ends == NEVER else {"ends": self.ends, "ended": self.ended}
        return json.dumps(found | ending)

    @staticmethod
    def parse(name: str, text: str) -> AttachmentRecord:
        found = json.loads(text)
        query = AdHocQuery(found.get("sql"), found.get("boxes", {}), found.get("output", ""))
        ends, ended = found.get("ends", NEVER), found.get("ended", False)
        return AttachmentRecord(name, found["point"], query, found["begins"], ends, ended)


def plan_branch(context: EngineContext, point: PointHistory, branch: Branch) -> ExecutionPlan:
    """What runs an attached query, compiled when its first step needs it."""
    settings, store = context.settings, context.store
    checked = branch.network.check(settings.executor.resolver)
    found = superboxes(checked, [branch.output], Fusion())
    watermarks = BranchWatermarks(checked, point.arc, point.shape)
    progressing = {arc: list(marks) for arc, marks in watermarks.arcs().items()}
    place = new_place(store)
    stateful = {
        superbox.stateful: kernel_runner(
            settings.executor,
            checked,
            watermarks,
            superbox,
            place / superbox.stateful,
            buckets=store.buckets,
            progressing=progressing,
        )
        for superbox in found
        if superbox.stateful
    }
    return ExecutionPlan(
        Epoch(0, DeclaredNetwork(branch.network), []),
        ActiveStandalone({}, {}),
        checked,
        {},
        found,
        frozenset(),
        None,
        frozenset(),
        progressing,
        settings.executor.plain(checked, place / "plain@"),
        stateful,
        place,
    )


class Attachment:
    """A branch that runs beside the network, with steps, marks and workers of its own."""

    def __init__(
        self,
        context: EngineContext,
        point: PointHistory,
        record: AttachmentRecord,
        plan: ExecutionPlan,
        output: str,
        live: Callable[[], WatermarkTracker],
        *,
        workers: int,
        tell: Callable[[], None],
    ):
        """`output` is the arc of the results, `live` are the marks of the network."""
        self.record = record
        self.point = point
        self._store: Store = context.store
        self._plan = plan
        self._most = context.settings.train
        self.arc = output
        self.failure: AuroralError | None = None
        """Why it does nothing more."""
        self.told = False
        saved = context.store.manifest.progress()
        since = int(saved.get(progress_key(record.name), record.begins))
        self._marks = BranchWatermarks(plan.checked, point.arc, point.shape, saved)
        arrivals = BranchArrivals(context.store, point, self._marks, live, since)
        self._steps = superbox_steps(context, plan, self._marks, {})
        self._pruned = PrunedHistory.of(point, plan.checked.network, output)
        self.stepper = Stepper(
            plan.checked,
            context.store,
            context.settings.executor,
            StepPool[StepOutcome](workers, tell),
            context.dead,
            self._marks,
            list(self._steps.values()),
            train=min(_FIRST_TRAIN, self._most),
            timeout_s=context.settings.step_timeout_s,
            arrivals=arrivals,
            progress_key=progress_key(record.name),
            files=train_files if self._pruned is None else self._pruned.files,
            watch=context.watch,
        )
        self._limit = self.stepper.recorded_until
        """Up to which moment it works now: marks are read so far."""
        self._span = _FIRST_SPAN
        """How many moments of history are looked up at a time."""
        self.live_from = context.store.next_moment
        """The moment at which it has caught up with the network."""
        if self._pruned is not None:
            self._pruned.until = self.live_from
        schema = plan.checked.schema_of(output).arrow()
        self.view = View(output, schema, 0, lambda table: table)
        self.hold()

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def superboxes(self) -> tuple[Superbox, ...]:
        return self._plan.superboxes

    @property
    def is_historical(self) -> bool:
        """Whether it has not caught up yet."""
        waits = self.failure is None and not self.has_ended
        return waits and self.stepper.done_before() < self.live_from

    @property
    def has_ended(self) -> bool:
        """Whether it has processed its stretch of history, and needs nothing any more."""
        return self.record.ended

    # ── working ──

    def step(
        self, complete: int, ended: int | None, *, polite: bool, resting: bool = False
    ) -> bool:
        """Commit what has ended and start what is due before a moment; False if there was nothing.

        While it is `resting` it does not go on to the next train.
        What goes wrong is its own failure, and it does nothing more.
        """
        if self.failure is not None:
            return False
        if self.has_ended:
            return False
        complete = min(complete, self.record.ends)
        if ended is not None and ended < self.record.ends and self._marks.ended is None:
            self._marks.end(ended)
        try:
            if not resting:
                self._extend(complete, polite=polite)
            worked = self.stepper.step(self._limit)
        except Exception as error:
            self._fail(error)
            return True
        self.hold()
        return worked

    @property
    def is_over(self) -> bool:
        """Whether it has just processed its stretch of history."""
        ends = self.record.ends
        if ends == NEVER or self.has_ended or self.failure is not None:
            return False
        return self.stepper.is_done(ends)

    def end(self) -> list[tuple[str, str]]:
        """Need nothing of the arc any more; returns the cursors that are to go."""
        self.record = replace(self.record, ended=True)
        self.hold()
        return self.cursors()

    def cursors(self) -> list[tuple[str, str]]:
        """Where its superboxes are in the logs that they read."""
        return [(source, box.name) for box in self._plan.superboxes for source in box.sources]

    def emitted_before(self, log: str) -> int:
        """All results in a log before this moment are there."""
        return self.record.ends if self.has_ended else self.stepper.emitted_before(log)

    def _extend(self, complete: int, *, polite: bool) -> None:
        """Go on to the next train, if the last one has passed all boxes."""
        head = self.stepper.done_before()
        if head < self._limit or head >= complete:
            return
        if self._look_up(head, complete):
            return
        if self.is_historical:
            grown = min(self.stepper.train * _GROWTH, self._most)
            self.stepper.train = min(grown, POLITE_TRAIN) if polite else grown
        else:
            self.stepper.train = self._most
        waiting = self._store.segments(self.point.arc, head)
        until = min(complete, head + 4 * max(self.stepper.train, POLITE_TRAIN))
        self._limit = train_end(waiting, head, until, self.stepper.train)

    def _look_up(self, head: int, complete: int) -> bool:
        """Take more moments of history at a time if few rows of them can pass the filters."""
        until = min(complete, self.live_from, head + self._span)
        if self._pruned is None or until <= head:
            return False
        if not self._pruned.is_cheaper(head, until, self._most):
            return False
        self._span = min(self._span * _GROWTH, _LONGEST_SPAN)
        self.stepper.train = until - head
        self._limit = until
        return True

    def _fail(self, error: Exception) -> None:
        if isinstance(error, AuroralError):
            self.failure = error.at(f"attached query {self.name}")
        else:
            said = reason(error) if isinstance(error, FROM_SPARK) else f"{error!r}"
            self.failure = RunError("ATTACHMENT_FAILED", said, where=f"attached query {self.name}")

    def hold(self) -> None:
        """Let the point keep the marks that are still needed."""
        if self.has_ended:
            self.point.holds.pop(self.name, None)
        else:
            self.point.holds[self.name] = min(self.stepper.done_before(), self.live_from)

    def is_done(self, moment: int) -> bool:
        """Whether everything before a moment is processed, as far as it can be."""
        until = min(moment, self.record.ends)
        return self.failure is not None or self.has_ended or self.stepper.is_done(until)

    def stop(self, *, commit: bool) -> None:
        """End after the step under way."""
        self.stepper.finish(_GRACE_S, commit=commit and self.failure is None)
        self.stepper.wait()

    def discard(self) -> None:
        """Forget what was compiled; it was detached."""
        self.point.holds.pop(self.name, None)
        for step in self._steps.values():
            step.discard()
        self._plan.discard()

    # ── looking ──

    def statistics(self) -> dict[str, Any]:
        """How far it is, as plain data."""
        head = self.stepper.done_before()
        found = {
            "point": self.record.point,
            "query": self.record.query.shown,
            "caught_up": self.has_ended or (not self.is_historical and self.failure is None),
            "waiting": 0 if self.has_ended else self._store.rows_since(self.point.arc, head),
            "steps": self.stepper.steps,
            **({"ended": self.has_ended} if self.record.ends != NEVER else {}),
        }
        if self._pruned is not None and self._pruned.choice is not None:
            found["history"] = self._pruned.choice.reason
        if self.failure is not None:
            found["failed"] = self.failure.message
        return found


def progress_key(name: str) -> str:
    """Under which the manifest keeps the moment at which an attachment goes on."""
    return f"{WATERMARKS}{AttachmentId(name)}"
