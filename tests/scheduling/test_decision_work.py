"""How much work a decision is: boxes looked at, and operations, not time."""

from __future__ import annotations

import random
from functools import partial

from auroral.network.declarations import SchedulerName
from auroral.scheduling.decisions import SchedulingPlan
from auroral.scheduling.policies import SchedulerSettings, TwoLevelScheduler, make_scheduler
from auroral.scheduling.queues import QueueTable
from tests.effort import operations
from tests.scheduling.networks import LOOSE, TIGHT, PlannedQueues, chains

DECISIONS = 40


def busy(name: SchedulerName) -> tuple[TwoLevelScheduler, PlannedQueues, random.Random]:
    """200 applications of five boxes, as in [2 §6.3]; a tuple waits for every box."""
    model = chains([TIGHT, LOOSE] * 100, 5)
    scheduler = make_scheduler(SchedulerSettings(name, "box", "mc", None))
    scheduler.serve(model)
    queues = PlannedQueues(model)
    rng = random.Random(1)
    for box in model.boxes:
        queues.put(box, [rng.uniform(0.0, 3.0)])
    scheduler.decide(queues.table, 3.0, 1)
    return scheduler, queues, rng


def decide(
    scheduler: TwoLevelScheduler, table: QueueTable, now_s: float, plans: list[SchedulingPlan]
) -> None:
    plans += scheduler.decide(table, now_s, 1)


def work(name: SchedulerName) -> tuple[float, float]:
    """Boxes looked at, and operations, for a decision of a scheduler that works for a while."""
    scheduler, queues, rng = busy(name)
    before = scheduler.evaluated
    made = 0
    now_s = 3.0
    for _ in range(DECISIONS):
        now_s += 0.0005
        for _ in range(2):
            queues.put(f"a{rng.randrange(200)}.0", [now_s])
        plans: list[SchedulingPlan] = []
        made += operations(partial(decide, scheduler, queues.table, now_s, plans))
        queues.carry_out(plans[0])
    return (scheduler.evaluated - before) / DECISIONS, made / DECISIONS


def test_buckets_look_at_a_tenth_of_the_boxes() -> None:
    exact, exact_operations = work("qos")
    bucketed, bucketed_operations = work("qos-bucketed")
    assert exact > 500
    assert exact / bucketed >= 10
    assert exact_operations / bucketed_operations >= 10


def test_turns_and_ages_cost_what_changes_not_what_waits() -> None:
    for name in ("rr", "fifo", "thread-per-box"):
        looked_at, made = work(name)
        assert looked_at < 10
        assert made < 2000, name
