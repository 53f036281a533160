"""Two-level scheduling [2 §4]: a ranking says which box, a plan builder says how."""

from __future__ import annotations

from collections.abc import Callable

from auroral.scheduling.decisions import SchedulingPlan
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.choice import choose
from auroral.scheduling.policies.feedback import FeedbackWeights
from auroral.scheduling.policies.plans import PlanBuilder
from auroral.scheduling.policies.rankings import Ranking, is_ready
from auroral.scheduling.policies.settings import SchedulerSettings
from auroral.scheduling.queues import QueueTable


class TwoLevelScheduler:
    """A scheduler out of a ranking and a plan builder; see `Scheduler`.

    What is left to `auto` is chosen for each network that it serves: `settings` says what, and
    its `reasons` why.
    """

    def __init__(
        self, declared: SchedulerSettings, make_ranking: Callable[[SchedulerSettings], Ranking]
    ):
        self.declared = declared
        """What it was asked for; `settings` has each `auto` decided."""
        self._make_ranking = make_ranking
        self._place: dict[str, int] = {}
        self.settings = choose(declared, FlowModel({}))
        self._builder = PlanBuilder(self.settings)
        self.ranking = make_ranking(self.settings)
        self._table: QueueTable | None = None
        self._ready: set[str] = set()
        """The boxes that can be called, as far as plans depend on their number."""

    @property
    def evaluated(self) -> int:
        """How many boxes it has looked at so far."""
        return self.ranking.evaluated

    @property
    def buckets_visited(self) -> int:
        """How many groups of boxes of one priority it has looked into so far."""
        return self.ranking.buckets_visited

    def serve(self, model: FlowModel) -> None:
        """Decide for this network from now on."""
        chosen = choose(self.declared, model)
        if chosen != self.settings:
            self._builder = PlanBuilder(chosen)
            if _first_level(chosen) != _first_level(self.settings):
                self.ranking = self._make_ranking(chosen)
        self.settings = chosen
        self._place = model.place
        self.ranking.serve(model)
        self._builder.serve(model)
        self._table, self._ready = None, set()

    def observe(self, output: str, latency_s: float, in_good_zone: bool) -> None:
        """Hear how late the latest results of an output were; only `feedback` listens."""
        del latency_s  # The good zone says enough.
        if isinstance(self.ranking, FeedbackWeights):
            self.ranking.observe(output, in_good_zone)

    def decide(self, table: QueueTable, now_s: float, free: int) -> list[SchedulingPlan]:
        """At most `free` plans, the most urgent one first."""
        if table is self._table:
            changed = [box for box in table.changed if box in self._place]
            changed.sort(key=self._place.__getitem__)
        else:
            # Nothing is known of this table yet: look at all of it.
            self._table = table
            changed = list(self._place)
        candidates = self.ranking.rank(table, changed, now_s)
        if self.settings.superbox == "fuse":
            for box in changed:
                (self._ready.add if is_ready(table[box]) else self._ready.discard)(box)
        plans: list[SchedulingPlan] = []
        taken: set[str] = set()
        while len(plans) < free:
            candidate = next(candidates, None)
            if candidate is None:
                break
            if candidate.box in taken:
                continue
            is_alone = len(self._ready) <= free
            plan = self._builder.plan(candidate, table, taken, is_alone=is_alone)
            taken.update(call.box for call in plan.calls)
            plans.append(plan)
            self.ranking.served(candidate)
        table.changed.clear()
        return plans


def _first_level(settings: SchedulerSettings) -> tuple[str, str]:
    """What rankings are made from, as far as `auto` decides it."""
    return settings.scheduler, settings.superbox
