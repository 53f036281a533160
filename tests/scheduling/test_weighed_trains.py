"""`qos` where calls are dear: what a second of work is worth decides."""

from __future__ import annotations

import pytest

from auroral.network.declarations import EngineOptions
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.scheduling.queues import QueueTable

GRAPHS = {
    "tight": QoS(latency=[(0, 1), (0.001, 1), (1, 0)]),
    "loose": QoS(latency=[(0, 1), (4, 1), (5, 0)]),
}


def first_choice(weighs: bool, tight_age_s: float, loose_age_s: float) -> str:
    """Which of two applications is called first; both get 100 tuples a second."""
    boxes = {
        name: FlowBox(name, (f"{name}_in",), {name: 1.0}, cost_s=0.0005, call_s=0.03)
        for name in GRAPHS
    }
    outputs = {name: FlowOutput(name, name, qos) for name, qos in GRAPHS.items()}
    settings = SchedulerSettings(
        scheduler="qos", superbox="fuse", traversal="mc", weighs_trains=weighs
    )
    scheduler = make_scheduler(settings)
    scheduler.serve(FlowModel(boxes, outputs))
    table = QueueTable(boxes)
    now_s = 100.0
    for name, age_s in ("tight", tight_age_s), ("loose", loose_age_s):
        queued = max(round(100 * age_s), 1)
        oldest_s = now_s - age_s
        table.fill(name, queued, mean_arrival_s=now_s - age_s / 2, oldest_arrival_s=oldest_s)
    (plan,) = scheduler.decide(table, now_s, 1)
    return plan.calls[0].box


def test_the_engine_weighs_trains() -> None:
    assert SchedulerSettings.of(EngineOptions()).weighs_trains


@pytest.mark.parametrize("weighs", [False, True])
def test_what_has_time_waits(weighs: bool) -> None:
    assert first_choice(weighs, tight_age_s=0.1, loose_age_s=2.0) == "tight"


def test_a_long_queue_is_served_before_its_oldest_tuples_are_lost() -> None:
    """A few tuples of a steep graph would otherwise be served again and again."""
    assert first_choice(weighs=False, tight_age_s=0.1, loose_age_s=4.3) == "tight"
    assert first_choice(weighs=True, tight_age_s=0.1, loose_age_s=4.3) == "loose"
