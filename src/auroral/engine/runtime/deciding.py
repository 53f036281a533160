"""Which superbox is started next: a scheduler decides, and its plans are followed."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.passed_over import PassedOver
from auroral.engine.runtime.waiting import WaitingTuples
from auroral.scheduling.decisions import PlannedCall, SchedulingPlan
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies import TwoLevelScheduler, choose
from auroral.scheduling.queues import QueueTable

_FRESH_S = 1.0
"""How long measured costs are used before they are looked at again …"""
_OFFER_S = 0.25
"""How often the table is filled while superboxes take turns, at most."""
_PAUSE = 100.0
"""… or so many times as long as looking took: large networks have no more than 1 % of the time."""


@dataclass
class _RunningPlan:
    """A plan that a worker follows: the calls that are left, and the one that is under way."""

    plan: SchedulingPlan
    left: deque[PlannedCall]
    current: str | None = None


@dataclass(frozen=True)
class SchedulingEffort:
    """How much deciding has cost so far."""

    decisions: int = 0
    seconds: float = 0.0
    """Looking at what waits, and at costs, is part of it."""
    plans: int = 0
    calls: int = 0


@dataclass
class StepScheduler:
    """Lets a scheduler decide which superboxes run, and follows its plans call by call.

    `model` gives the network with the costs that are known by now. Times are of the monotonic
    clock.
    """

    scheduler: TwoLevelScheduler
    model: Callable[[], FlowModel]
    concerned: Mapping[str, Sequence[str]]
    """By superbox, the names whose stories its decisions belong to."""
    times: ArrivalTimes
    decisions: DecisionLog
    in_turn: Callable[[], bool] = lambda: False
    """Whether superboxes take turns for now, because no result is more urgent than another."""
    doing: Callable[[], Iterable[tuple[str, float, bool]]] = tuple
    """For each output its delay, and whether it is in its good zone."""
    version: Callable[[], int] = lambda: 0
    """Rises whenever outputs or their graphs change."""
    now_s: Callable[[], float] = time.monotonic
    table: QueueTable = field(default_factory=QueueTable)
    effort: SchedulingEffort = SchedulingEffort()
    _plans: list[_RunningPlan] = field(default_factory=list)
    _next_serve_s: float = -math.inf
    _version: int = -1
    _next_offer_s: float = -math.inf
    _passed: PassedOver = field(default_factory=PassedOver)

    def take_over(self, before: StepScheduler, running: Collection[str]) -> None:
        """Go on with what was measured, and with the steps under way, when boxes come or go."""
        self.effort = before.effort
        self._plans = [
            _RunningPlan(one.plan, deque(), one.current)
            for one in before._plans
            if one.current in running
        ]

    def offer(self, waiting: Mapping[str, WaitingTuples], running: Collection[str]) -> None:
        """Say what waits for which superbox; the others have nothing to do."""
        began_s = time.perf_counter()
        table, planned = self.table, self.planned
        for name in self.concerned:
            if name not in table.queues:
                table.add(name)
            found = waiting.get(name)
            if found is None:
                table.fill(name, 0, mean_arrival_s=0.0, oldest_arrival_s=0.0)
            else:
                table.fill(
                    name,
                    max(found.rows, 1),
                    mean_arrival_s=self.times.mean(found.first, found.last),
                    oldest_arrival_s=self.times.at(found.first),
                    bytes=found.bytes,
                    resident=found.resident,
                )
            table.set_running(name, running=name in running or name in planned)
        self.spend(time.perf_counter() - began_s)

    def offer_in_turn(
        self, waiting: Callable[[str], WaitingTuples], running: Collection[str]
    ) -> None:
        """While superboxes take turns, keep the queues of the oldest tuples in memory first.

        Memory is looked after now and then, and the table is filled as often at most.
        """
        now_s = self.now_s()
        if now_s < self._next_offer_s:
            return
        began_s = time.perf_counter()
        found = {name: waiting(name) for name in self.concerned}
        self.offer({name: one for name, one in found.items() if one.rows}, running)
        for queue in self.table.queues.values():
            age_s = max(now_s - queue.oldest_arrival_s, 0.0)
            queue.priority = age_s if queue.queued else None
        spent_s = time.perf_counter() - began_s
        self._next_offer_s = now_s + max(_OFFER_S, _PAUSE * spent_s)

    def spend(self, seconds: float) -> None:
        """Count time that went into decisions."""
        self.effort = replace(self.effort, seconds=self.effort.seconds + seconds)

    @property
    def planned(self) -> set[str]:
        """Superboxes that are called later in plans which are followed."""
        return {call.box for one in self._plans for call in one.left}

    def decide(self, free: int) -> list[SchedulingPlan]:
        """Plans for workers that are free, the most urgent one first."""
        began = time.perf_counter()
        now_s = self.now_s()
        if now_s >= self._next_serve_s or self.version() != self._version:
            self._version = self.version()
            self.scheduler.serve(self.model())
            for output, delay_s, in_good_zone in self.doing():
                self.scheduler.observe(output, delay_s, in_good_zone)
            self._tell_who_waits(now_s)
            spent_s = time.perf_counter() - began
            self._next_serve_s = now_s + max(_FRESH_S, _PAUSE * spent_s)
        plans = self.scheduler.decide(self.table, now_s, free)
        self._passed.chose(plans, now_s, self.scheduler.settings.scheduler)
        known = self.effort
        calls = sum(len(plan.calls) for plan in plans)
        self.effort = SchedulingEffort(
            known.decisions + 1,
            known.seconds + time.perf_counter() - began,
            known.plans + len(plans),
            known.calls + calls,
        )
        return plans

    def follow(self, plan: SchedulingPlan) -> None:
        """Begin to make the calls of a plan."""
        self._plans.append(_RunningPlan(plan, deque(plan.calls)))

    def next_calls(
        self, running: Collection[str], waiting: Collection[str], free: int
    ) -> list[tuple[str, int | None, str]]:
        """The calls that plans have come to: superbox, tuples and why; one per plan.

        Calls of superboxes for which nothing waits are left out: boxes before them gave nothing.
        """
        found: list[tuple[str, int | None, str]] = []
        for one in list(self._plans):
            if one.current is not None and one.current in running:
                continue
            one.current = None
            while one.left and one.left[0].box not in waiting:
                one.left.popleft()
            if not one.left:
                self._plans.remove(one)
            elif len(found) < free:
                call = one.left.popleft()
                one.current = call.box
                found.append((call.box, call.tuples, one.plan.why))
        return found

    def chosen(self) -> dict[str, Any]:
        """How it decides, and why so."""
        settings = self.scheduler.settings
        if self.in_turn():  # then nobody tells it what costs are by now
            settings = choose(self.scheduler.declared, self.model())
        return {
            "scheduler": settings.scheduler,
            "superbox": settings.superbox,
            "traversal": settings.traversal,
            "reasons": list(settings.reasons),
        }

    def started(self, superbox: str, why: str) -> None:
        """A step was started: tell it in the stories that it belongs to."""
        self._tell_why_waited(superbox, self.now_s())
        self.decisions.note(self.concerned[superbox], "ran", why)

    def _tell_who_waits(self, now_s: float) -> None:
        """Tell of superboxes that have waited for long and still do; not at every decision."""
        for name, queue in self.table.queues.items():
            if queue.queued and not queue.running and now_s - queue.oldest_arrival_s > _FRESH_S:
                self._tell_why_waited(name, now_s)

    def _tell_why_waited(self, superbox: str, now_s: float) -> None:
        queue = self.table[superbox]
        why = self._passed.why(superbox, queue.oldest_arrival_s, now_s) if queue.queued else None
        if why is not None:
            about = self.concerned.get(superbox, (superbox,))
            self.decisions.note(about, "waited", why, same="passed over")
