"""Which box each policy chooses, by example."""

from __future__ import annotations

from typing import Any

import pytest

from auroral.qos.graphs import QoS
from auroral.scheduling.decisions import PlannedCall
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, TwoLevelScheduler, make_scheduler
from auroral.scheduling.queues import QueueTable
from tests.scheduling.networks import LOOSE, TIGHT, PlannedQueues, chains, filled, sample_tree


def scheduler(model: FlowModel, name: str, superbox: str = "box", **more: Any) -> TwoLevelScheduler:
    settings = {"traversal": "mc", "train": None, **more}
    made = make_scheduler(SchedulerSettings(name, superbox, **settings))  # type: ignore[arg-type]
    made.serve(model)
    return made


def chosen(made: TwoLevelScheduler, table: QueueTable, now_s: float, free: int = 1) -> list[str]:
    """The boxes of the plans, each plan as one text."""
    plans = made.decide(table, now_s, free)
    return [" ".join(call.box for call in plan.calls) for plan in plans]


def test_round_robin_goes_on_behind_the_box_that_was_called() -> None:
    model = chains([None] * 4, 1)
    table = filled(model, {f"a{at}.0": (1, 0.0) for at in (0, 1, 3)})
    made = scheduler(model, "rr")
    turns = [chosen(made, table, 0.0)[0] for _ in range(4)]
    assert turns == ["a0.0", "a1.0", "a3.0", "a0.0"]


def test_round_robin_keeps_its_turn_when_costs_change() -> None:
    table = filled(chains([None] * 3, 1), {f"a{at}.0": (1, 0.0) for at in range(3)})
    made = scheduler(chains([None] * 3, 1), "rr")
    assert chosen(made, table, 0.0) == ["a0.0"]
    made.serve(chains([None] * 3, 1, cost_s=0.1))
    assert chosen(made, table, 0.0) == ["a1.0"]


def test_round_robin_keeps_its_turn_when_boxes_come_and_go() -> None:
    boxes = chains([None] * 4, 1).boxes
    made = scheduler(FlowModel({name: boxes[name] for name in ("a1.0", "a2.0", "a3.0")}), "rr")
    assert chosen(made, filled(FlowModel(boxes), {"a1.0": (1, 0.0)}), 0.0) == ["a1.0"]
    # The next turn is that of a2, wherever it is now.
    made.serve(FlowModel(boxes))
    table = filled(FlowModel(boxes), dict.fromkeys(boxes, (1, 0.0)))
    assert chosen(made, table, 0.0, free=4) == ["a2.0", "a3.0", "a0.0", "a1.0"]


def test_round_robin_of_applications_calls_their_boxes_in_one_plan() -> None:
    model = chains([None] * 2, 3)
    table = filled(model, {"a0.0": (1, 0.0), "a1.0": (1, 0.0), "a1.2": (1, 0.0)})
    made = scheduler(model, "rr", "application")
    assert chosen(made, table, 0.0) == ["a0.0 a0.1 a0.2"]
    assert chosen(made, table, 0.0) == ["a1.0 a1.1 a1.2"]
    assert chosen(made, table, 0.0, free=5) == ["a0.0 a0.1 a0.2", "a1.0 a1.1 a1.2"]


def test_fifo_takes_the_oldest_tuple() -> None:
    model = chains([None] * 3, 1)
    table = filled(model, {"a0.0": (1, 5.0), "a1.0": (9, 3.0), "a2.0": (1, 4.0)})
    made = scheduler(model, "fifo")
    assert chosen(made, table, 6.0, free=2) == ["a1.0", "a2.0"]
    table.fill("a1.0", 8, mean_arrival_s=7.0, oldest_arrival_s=7.0)
    assert chosen(made, table, 8.0, free=3) == ["a2.0", "a0.0", "a1.0"]


def test_qos_takes_what_loses_most_then_what_is_next_to_lose_then_what_lost_all() -> None:
    steep, flat = QoS(latency=[(0, 1), (2, 0)]), QoS(latency=[(0, 1), (10, 0)])
    soon, later = QoS(latency=[(0, 1), (3, 1), (4, 0)]), QoS(latency=[(0, 1), (9, 1), (20, 0)])
    over = QoS(latency=[(0, 1), (0.5, 0)])
    model = chains([over, later, soon, flat, steep], 1, cost_s=0.0, call_s=0.0)
    table = filled(model, dict.fromkeys(model.boxes, (1, 0.0)))
    for name in ("qos", "qos-bucketed"):
        made = scheduler(model, name)
        expected = ["a4.0", "a3.0", "a2.0", "a1.0", "a0.0"]
        assert chosen(made, table, 1.0, free=5) == expected
        priorities = [table[box].priority or 0.0 for box in expected]
        assert priorities == sorted(priorities, reverse=True)
        # What has lost all is still served when nothing else waits.
        assert chosen(made, filled(model, {"a0.0": (1, 0.0)}), 1.0) == ["a0.0"]


def test_qos_takes_the_oldest_of_equally_urgent_boxes() -> None:
    model = chains([QoS(latency=[(0, 1), (1, 0)])] * 3, 1)
    table = filled(model, {"a0.0": (1, 3.0), "a1.0": (1, 1.0), "a2.0": (1, 2.0)})
    # All are past their deadline.
    assert chosen(scheduler(model, "qos"), table, 9.0, free=3) == ["a1.0", "a2.0", "a0.0"]


def test_qos_prefers_what_has_more_left_to_lose_once_utility_falls() -> None:
    """Before, the oldest is the most urgent one; when utility falls, it is worth least."""
    graph = QoS(latency=[(0, 1), (4, 1), (8, 0)])
    model = chains([graph] * 3, 1, cost_s=0.0, call_s=0.0)
    table = filled(model, {"a0.0": (1, 1.0), "a1.0": (1, 0.0), "a2.0": (1, 2.0)})
    for name in ("qos", "qos-bucketed"):
        made = scheduler(model, name, partitions=100)
        assert chosen(made, table, 3.0, free=3) == ["a1.0", "a0.0", "a2.0"]
        assert chosen(made, table, 7.0, free=3) == ["a2.0", "a0.0", "a1.0"]
        # What is worth nothing any more comes last.
        assert chosen(made, table, 9.5, free=3)[0] == "a2.0"


def test_qos_expects_the_time_to_the_output() -> None:
    """The tuples of a0 are younger, but will be late because their way is long."""
    graph = QoS(latency=[(0, 1), (2, 1), (4, 0)])
    model = FlowModel(
        {
            "slow": FlowBox("slow", ("s",), {"slow": 1.0}, 0.5),
            "behind": FlowBox("behind", ("slow",), {"behind": 1.0}, 0.4, call_s=0.5),
            "fast": FlowBox("fast", ("s",), {"fast": 1.0}, 0.1),
        },
        {"far": FlowOutput("far", "behind", graph), "near": FlowOutput("near", "fast", graph)},
    )
    table = filled(model, {"slow": (1, 1.0), "fast": (1, 0.5)})
    for name in ("qos", "qos-bucketed"):
        assert chosen(scheduler(model, name), table, 2.0, free=2) == ["slow", "fast"]
    plan = scheduler(model, "qos").decide(table, 2.0, 1)[0]
    assert (plan.application, plan.why) == ("far", "far: waiting costs 0.5 utility per second")


def test_a_box_of_several_applications_adds_their_utilities() -> None:
    half = QoS(latency=[(0, 1), (2, 0)])
    model = FlowModel(
        {
            "alone": FlowBox("alone", ("s",), {"alone": 1.0}, 0.0),
            "shared": FlowBox("shared", ("s",), {"shared": 1.0}, 0.0),
        },
        {
            "one": FlowOutput("one", "alone", QoS(latency=[(0, 1), (1.5, 0)])),
            "two": FlowOutput("two", "shared", half),
            "three": FlowOutput("three", "shared", half),
        },
    )
    table = filled(model, {"alone": (1, 0.0), "shared": (1, 0.0)})
    for name in ("qos", "qos-bucketed"):
        assert chosen(scheduler(model, name), table, 0.5, free=2) == ["shared", "alone"]


def test_the_weight_of_latency_counts() -> None:
    loss = [(0, 0), (1, 1)]
    graph = [(0, 1), (2, 0)]
    light = QoS(latency=graph, loss=loss, weights={"loss": 9})
    model = chains([light, QoS(latency=graph)], 1)
    table = filled(model, {"a0.0": (1, 0.0), "a1.0": (1, 0.0)})
    assert chosen(scheduler(model, "qos"), table, 0.5, free=2) == ["a1.0", "a0.0"]


def test_outputs_without_a_graph_have_the_default_one() -> None:
    model = chains([None, LOOSE], 1)
    table = filled(model, {"a0.0": (1, 0.0), "a1.0": (1, 0.0)})
    for name in ("qos", "qos-bucketed"):
        # After 2 s the default graph falls, by 1/59 per second; the loose one is flat.
        assert chosen(scheduler(model, name), table, 2.0) == ["a0.0"]
        assert chosen(scheduler(model, name), table, 4.5) == ["a1.0"]


def test_buckets_follow_time_without_changes_of_queues() -> None:
    model = chains([TIGHT, LOOSE], 1, cost_s=0.0, call_s=0.0)
    table = filled(model, {"a0.0": (1, 0.0), "a1.0": (1, 0.0)})
    made = scheduler(model, "qos-bucketed")
    assert [chosen(made, table, at)[0] for at in (0.0, 0.5, 3.0, 4.5)] == [
        "a0.0",
        "a0.0",
        "a1.0",
        "a1.0",
    ]


def test_buckets_follow_slack_without_changes_of_queues() -> None:
    late, soon = QoS(latency=[(0, 1), (10, 1), (20, 0)]), QoS(latency=[(0, 1), (4, 1), (14, 0)])
    model = chains([late, soon], 1, cost_s=0.0, call_s=0.0)
    table = filled(model, {"a0.0": (1, 0.0)})
    made = scheduler(model, "qos-bucketed")
    assert chosen(made, table, 0.0) == ["a0.0"]
    # Nine seconds later it has one second left, and the other one has four.
    table.fill("a1.0", 1, mean_arrival_s=9.0, oldest_arrival_s=9.0)
    assert chosen(made, table, 9.0, free=2) == ["a0.0", "a1.0"]


def test_boxes_of_one_bucket_take_turns() -> None:
    model = chains([TIGHT, LOOSE, None], 1)
    table = filled(model, dict.fromkeys(model.boxes, (1, 0.0)))
    made = scheduler(model, "qos-bucketed", partitions=1)
    assert [chosen(made, table, 0.5)[0] for _ in range(4)] == ["a0.0", "a1.0", "a2.0", "a0.0"]


def test_boxes_that_come_into_a_bucket_together_are_in_flow_order() -> None:
    """Not in that of a set, which changes from process to process."""
    model = chains([LOOSE] * 40, 1)
    table = QueueTable(model.boxes)
    made = scheduler(model, "qos-bucketed")
    assert chosen(made, table, 0.0) == []
    for box in reversed(list(model.boxes)):
        table.fill(box, 1, mean_arrival_s=0.0, oldest_arrival_s=0.0)
    assert chosen(made, table, 0.0, free=40) == list(model.boxes)


def test_feedback_raises_what_is_outside_its_good_zone() -> None:
    model = chains([LOOSE, LOOSE], 1)
    table = filled(model, {"a0.0": (1, 0.0), "a1.0": (1, 1.0)})
    made = scheduler(model, "feedback")
    assert chosen(made, table, 5.0) == ["a0.0"]
    made.observe("out 1", latency_s=6.0, in_good_zone=False)
    assert chosen(made, table, 5.0) == ["a1.0"]
    for _ in range(4):
        made.observe("out 1", latency_s=0.1, in_good_zone=True)
    assert chosen(made, table, 5.0) == ["a0.0"]


def test_feedback_forgets_outputs_that_are_gone_and_keeps_the_others() -> None:
    made = scheduler(chains([LOOSE, LOOSE], 1), "feedback")
    for output in ("out 0", "out 1", "out 2"):
        made.observe(output, latency_s=6.0, in_good_zone=False)
    made.serve(chains([LOOSE], 1))
    made.serve(chains([LOOSE, LOOSE], 1))
    table = filled(chains([LOOSE, LOOSE], 1), {"a0.0": (1, 1.0), "a1.0": (1, 0.0)})
    assert chosen(made, table, 4.0) == ["a0.0"]


def test_a_thread_per_box_calls_boxes_one_by_one() -> None:
    model = chains([None], 3)
    table = filled(model, {"a0.0": (1, 0.0), "a0.2": (1, 0.0)})
    made = scheduler(model, "thread-per-box", "application")
    assert chosen(made, table, 0.0, free=3) == ["a0.0", "a0.2"]


def test_an_application_leaves_out_what_runs_and_what_it_alone_feeds() -> None:
    model = sample_tree()
    table = filled(model, {"b5": (1, 0.0), "b4": (1, 0.0)})
    table.set_running("b3", True)
    assert chosen(scheduler(model, "fifo", "application"), table, 0.0) == ["b4 b5 b2 b1"]


def test_a_superbox_ends_upstream_where_a_queue_is_not_in_memory() -> None:
    model = sample_tree()
    table = filled(model, {"b5": (1, 3.0), "b3": (1, 3.0), "b4": (1, 1.0), "b6": (1, 3.0)})
    table["b3"].resident = 0.2
    made = scheduler(model, "fifo", "application")
    assert chosen(made, table, 4.0) == ["b4 b2 b6 b1"]
    # What was left out is served all the same when its own turn comes.
    table = filled(model, {"b5": (1, 3.0), "b3": (1, 1.0)})
    table["b3"].resident = 0.2
    assert chosen(made, table, 4.0) == ["b3 b2 b1"]


def test_a_spanner_takes_the_boxes_of_the_highest_priority_and_what_is_behind_them() -> None:
    model = sample_tree()
    table = filled(model, {"b5": (1, 3.0), "b4": (1, 1.0), "b6": (1, 2.0)})
    two = scheduler(model, "fifo", "spanner", spanner_boxes=2)
    assert chosen(two, table, 4.0) == ["b4 b2 b6 b1"]
    one = scheduler(model, "fifo", "spanner", spanner_boxes=1)
    assert chosen(one, table, 4.0) == ["b4 b2 b1"]


def test_fused_boxes_share_a_worker_only_if_workers_are_short() -> None:
    model = chains([None], 2)
    table = filled(model, {"a0.0": (1, 1.0), "a0.1": (1, 0.0)})
    made = scheduler(model, "fifo", "fuse")
    assert chosen(made, table, 2.0, free=2) == ["a0.1", "a0.0"]
    assert chosen(made, table, 2.0, free=1) == ["a0.0 a0.1"]


def test_memory_is_freed_first_when_queues_take_too_much() -> None:
    selective = {"b3": (0.1, 1.0)}
    model = sample_tree(selective)
    made = scheduler(model, "rr", "application", traversal="auto", memory_bytes=100)
    table = filled(model, {"b4": (1, 0.0), "b3": (1, 0.0)})
    for box in ("b4", "b3"):
        table.fill(box, 1, mean_arrival_s=0.0, oldest_arrival_s=0.0, bytes=60)
    assert chosen(made, table, 0.0)[0].startswith("b3 ")
    table.fill("b4", 1, mean_arrival_s=0.0, oldest_arrival_s=0.0, bytes=30)
    assert made.settings.traversal in ("mc", "ml")
    assert not chosen(made, table, 0.0)[0].startswith("b3 ")


def test_boxes_that_lead_to_no_output_are_served() -> None:
    model = FlowModel(
        {
            "seen": FlowBox("seen", ("s",), {"seen": 1.0}, 0.001),
            "writes": FlowBox("writes", ("s",), {}, 0.001),
        },
        {"out": FlowOutput("out", "seen", LOOSE), "raw": FlowOutput("raw", "s")},
    )
    table = filled(model, {"seen": (1, 0.0), "writes": (1, 0.0)})
    for name in ("rr", "fifo", "qos", "qos-bucketed", "feedback", "thread-per-box"):
        for superbox in ("box", "application", "spanner", "fuse"):
            plans = scheduler(model, name, superbox).decide(table, 0.0, 2)
            found = {plan.calls: plan.application for plan in plans}
            assert found == {(PlannedCall("seen"),): "out", (PlannedCall("writes"),): None}


def test_a_table_that_was_not_seen_before_is_looked_at_as_a_whole() -> None:
    model = chains([LOOSE] * 2, 1)
    made = scheduler(model, "qos-bucketed")
    table = filled(model, {"a0.0": (1, 0.0)})
    assert chosen(made, table, 1.0, free=2) == ["a0.0"]
    other = filled(model, {"a1.0": (1, 0.0)})
    other.changed.clear()
    assert chosen(made, other, 1.0, free=2) == ["a1.0"]


@pytest.mark.parametrize("name", ["rr", "fifo", "feedback", "thread-per-box"])
def test_no_box_starves_while_others_always_have_tuples(name: str) -> None:
    model = chains([TIGHT, TIGHT, LOOSE, None], 1)
    queues = PlannedQueues(model)
    made = scheduler(model, name)
    for output in ("out 0", "out 1"):
        for _ in range(30):
            made.observe(output, latency_s=9.0, in_good_zone=False)
            made.observe("out 3", latency_s=0.0, in_good_zone=True)
    queues.put("a3.0", [0.0])
    for at in range(300):
        for busy in ("a0.0", "a1.0", "a2.0"):
            queues.put(busy, [float(at)])
        (plan,) = made.decide(queues.table, float(at), 1)
        queues.carry_out(plan)
        if not queues.waiting["a3.0"]:
            break
    else:
        pytest.fail("a3.0 was never called")


def test_settings_must_be_above_zero() -> None:
    for wrong in ({"train": 0}, {"partitions": 0}, {"train_cost_s": 0.0}, {"spanner_boxes": -1}):
        with pytest.raises(ValueError, match="above zero"):
            SchedulerSettings(**wrong)
