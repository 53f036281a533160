"""What holds for every scheduler, network, queue and setting."""

from __future__ import annotations

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.qos.graphs import QoS
from auroral.scheduling.decisions import SchedulingPlan
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.scheduling.policies.buckets import BoxGraph, slack_borders
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.urgency import EASING_S, output_paths, p_tuple
from tests.scheduling.networks import (
    PlannedQueues,
    chains,
    flow_models,
    latency_graphs,
    scheduler_settings,
)

pytestmark = pytest.mark.law

QUEUES = st.tuples(
    st.sampled_from([0, 0, 1, 2, 7]), st.sampled_from([0.0, 1.0, 3.5]), st.sampled_from([0.0, 0.4])
)
"""How many tuples wait, when the oldest of them arrived, and how much later the mean is."""


@st.composite
def tables(draw: st.DrawFn, model: FlowModel) -> QueueTable:
    table = QueueTable(model.boxes)
    for box in model.boxes:
        change_queue(table, box, draw(QUEUES))
        table.set_running(box, draw(st.booleans()))
        table[box].resident = draw(st.sampled_from([1.0, 0.0]))
    return table


def change_queue(table: QueueTable, box: str, state: tuple[int, float, float]) -> None:
    queued, oldest_s, later_s = state
    oldest_s = oldest_s if queued else 0.0
    mean_s = oldest_s + later_s * (queued > 1)
    table.fill(box, queued, mean_arrival_s=mean_s, oldest_arrival_s=oldest_s, bytes=3 * queued)


def require_protocol(
    model: FlowModel, table: QueueTable, plans: list[SchedulingPlan], free: int
) -> None:
    assert len(plans) <= free
    called: set[str] = set()
    for plan in plans:
        boxes = {call.box for call in plan.calls}
        assert plan.calls
        assert plan.why
        assert not boxes & called
        called |= boxes
        fed: set[str] = set()
        for call in plan.calls:
            assert not table[call.box].running
            assert table[call.box].queued or call.box in fed
            assert call.tuples is None or call.tuples > 0
            for arc, share in model.boxes[call.box].selectivities.items():
                fed.update(model.readers.get(arc, ()) if share else ())
        assert plan.application is None or any(
            plan.application in model.outputs_of(box) for box in boxes
        )


@given(st.data(), flow_models(), scheduler_settings(), st.integers(0, 4))
def test_plans_keep_what_the_protocol_promises(
    data: st.DataObject, model: FlowModel, settings: SchedulerSettings, free: int
) -> None:
    scheduler = make_scheduler(settings)
    scheduler.serve(model)
    table = data.draw(tables(model))
    now_s = 4.0
    for _ in range(3):
        plans = scheduler.decide(table, now_s, free)
        require_protocol(model, table, plans, free)
        assert not table.changed
        ready = [box for box in model.boxes if table[box].queued and not table[box].running]
        assert bool(plans) == bool(ready and free)
        assert all(table[box].priority is not None for box in ready)
        assert all(table[box].priority is None for box in model.boxes if not table[box].queued)
        now_s += data.draw(st.sampled_from([0.0, 0.1, 5.0]))
        for box in data.draw(st.lists(st.sampled_from(list(model.boxes)), max_size=3)):
            table.set_running(box, data.draw(st.booleans()))
            change_queue(table, box, data.draw(QUEUES))


@given(st.data(), flow_models(), scheduler_settings())
def test_nothing_waits_while_workers_are_free(
    data: st.DataObject, model: FlowModel, settings: SchedulerSettings
) -> None:
    scheduler = make_scheduler(settings)
    scheduler.serve(model)
    table = data.draw(tables(model))
    plans = scheduler.decide(table, 90.0, len(model.boxes))
    called = {call.box for plan in plans for call in plan.calls}
    ready = {box for box in model.boxes if table[box].queued and not table[box].running}
    assert ready <= called


@given(st.data(), flow_models(5), scheduler_settings())
def test_one_worker_empties_all_queues(
    data: st.DataObject, model: FlowModel, settings: SchedulerSettings
) -> None:
    scheduler = make_scheduler(settings)
    scheduler.serve(model)
    queues = PlannedQueues(model)
    for box in model.boxes:
        queues.put(box, data.draw(st.lists(st.sampled_from([0.0, 1.0, 3.0]), max_size=3)))
    now_s = 4.0
    while not queues.is_empty:
        plans = scheduler.decide(queues.table, now_s, 1)
        require_protocol(model, queues.table, plans, 1)
        assert queues.carry_out(plans[0])
        now_s += 0.3
    assert scheduler.decide(queues.table, now_s, 1) == []


@given(st.data(), flow_models(), scheduler_settings())
def test_the_same_history_gives_the_same_decisions(
    data: st.DataObject, model: FlowModel, settings: SchedulerSettings
) -> None:
    """The order in which changes were told does not count, nor how they were told."""
    history = [
        (0.5 * at, data.draw(st.lists(st.sampled_from(list(model.boxes)), unique=True)))
        for at in range(data.draw(st.integers(1, 4)))
    ]
    schedulers = [make_scheduler(settings), make_scheduler(settings)]
    queues = [PlannedQueues(model), PlannedQueues(model)]
    for scheduler in schedulers:
        scheduler.serve(model)
    for now_s, boxes in history:
        for box in boxes:
            queues[0].put(box, [now_s])
        for box in reversed(boxes):
            queues[1].put(box, [now_s])
        one, other = (
            scheduler.decide(held.table, now_s, 2)
            for scheduler, held in zip(schedulers, queues, strict=True)
        )
        assert one == other
        for plan in one:
            for held in queues:
                held.carry_out(plan)


@given(st.data(), flow_models(), st.sampled_from(["fifo", "qos", "feedback"]))
def test_decisions_that_need_no_turns_follow_from_table_and_time_alone(
    data: st.DataObject, model: FlowModel, name: str
) -> None:
    settings = SchedulerSettings(name, "application", "ml")  # type: ignore[arg-type]
    experienced, fresh = make_scheduler(settings), make_scheduler(settings)
    experienced.serve(model)
    table = data.draw(tables(model))
    experienced.decide(table, 3.5, 1)
    for box in data.draw(st.lists(st.sampled_from(list(model.boxes)), max_size=4)):
        change_queue(table, box, data.draw(QUEUES))
    found = experienced.decide(table, 4.0, 2)
    fresh.serve(model)
    assert fresh.decide(table, 4.0, 2) == found


@given(st.lists(latency_graphs(), min_size=1, max_size=6), st.data())
def test_buckets_choose_the_largest_gradient_and_nearly_the_least_slack(
    graphs: list[QoS], data: st.DataObject
) -> None:
    model = chains(graphs, 2, cost_s=0.0, call_s=0.1)
    partitions = 30
    settings = SchedulerSettings("qos-bucketed", "box", "mc", None, partitions=partitions)
    scheduler = make_scheduler(settings)
    scheduler.serve(model)
    paths = output_paths(model)
    longest = max(at for found in paths.values() for path in found for at in path.graph.critical)
    borders = slack_borders(longest, partitions)
    table = QueueTable(model.boxes)
    now_s = 4.0
    for _ in range(data.draw(st.integers(1, 6))):
        for box in data.draw(st.lists(st.sampled_from(list(model.boxes)), max_size=3)):
            change_queue(table, box, data.draw(QUEUES))
        exact = {}
        for box in model.boxes:
            queue = table[box]
            if queue.queued:
                times = (queue.mean_arrival_s, queue.oldest_arrival_s, now_s)
                exact[box] = p_tuple(paths[box], queue.queued, *times)
        plans = scheduler.decide(table, now_s, 1)
        assert bool(plans) == bool(exact)
        for plan in plans:
            found = exact[plan.calls[0].box]
            assert found.utility == max(one.utility for one in exact.values())
            equal = [one for one in exact.values() if one.utility == found.utility]
            least = min(-one.negative_slack_s for one in equal)
            assert bisect_left(borders, -found.negative_slack_s - 1e-9) <= bisect_left(
                borders, least + 1e-9
            )
        now_s += data.draw(st.sampled_from([0.0, 0.003, 0.2, 1.7]))


@given(flow_models(), st.integers(1, 50), st.sampled_from([0.0, 1.0, 20.0]))
def test_precomputed_graphs_agree_with_the_p_tuple(
    model: FlowModel, tuples: int, latency_s: float
) -> None:
    """`qos-bucketed` joins the graphs of a box's outputs; `qos` evaluates them one by one."""
    for paths in output_paths(model).values():
        graph = BoxGraph(paths, tuples, [])
        # Away from critical points, where rounding decides.
        near = any(math.isclose(at, latency_s, abs_tol=1e-6) for at in graph.critical)
        if not near:
            at = sum(point <= latency_s for point in graph.critical)
            exact = p_tuple(paths, tuples, -latency_s, -latency_s, 0.0)
            assert graph.gradients[at] == pytest.approx(exact.utility)
            slack_s = -exact.negative_slack_s
            if slack_s < EASING_S / 2:
                assert graph.deadlines[at] - latency_s == pytest.approx(slack_s)
            else:
                assert graph.deadlines[at] == math.inf


def test_ways_that_meet_again_are_counted_once() -> None:
    model = FlowModel(
        {
            "split": FlowBox("split", ("s",), {"split": 0.5, "split.rest": 0.5}, 1.0, 1.0),
            "left": FlowBox("left", ("split",), {"left": 1.0}, 1.0, 1.0),
            "right": FlowBox("right", ("split.rest",), {"right": 1.0}, 1.0, 1.0),
            "both": FlowBox("both", ("left", "right"), {"both": 1.0}, 1.0, 1.0),
        },
        {"out": FlowOutput("out", "both")},
    )
    (path,) = output_paths(model)["split"]
    assert (path.calls_s, path.tuple_s) == (4.0, 1 + 0.5 * 2 + 0.5 * 2)
