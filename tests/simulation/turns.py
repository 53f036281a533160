"""A small scheduler for tests: boxes in turn, each with all that waits for it."""

from __future__ import annotations

from auroral.scheduling.decisions import PlannedCall, SchedulingPlan
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable


class BoxesInTurn:
    """Calls boxes in flow order, one after the other, at most `train` tuples at a time."""

    def __init__(self, train: int | None = None):
        self._train = train
        self._order: list[str] = []
        self._next = 0

    def serve(self, model: FlowModel) -> None:
        self._order = list(model.boxes)

    def decide(self, table: QueueTable, now_s: float, free: int) -> list[SchedulingPlan]:
        plans: list[SchedulingPlan] = []
        for step in range(len(self._order)):
            at = (self._next + step) % len(self._order)
            queue = table[self._order[at]]
            if queue.queued and not queue.running and len(plans) < free:
                plans.append(SchedulingPlan((PlannedCall(self._order[at], self._train),)))
        if plans:
            self._next = self._order.index(plans[-1].calls[0].box) + 1
        table.changed.clear()
        return plans
