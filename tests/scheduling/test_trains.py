"""How many tuples a call takes: by count, spread, cost, memory, and as latency graphs allow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.qos.graphs import QoS
from auroral.scheduling.decisions import PlannedCall
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.scheduling.queues import BoxQueue
from auroral.scheduling.trains import (
    FIRST_TRAINS,
    LARGEST_CALL_SHARE,
    TrainLimits,
    least_train,
    sized_calls,
    train_size,
    waiting_room_s,
)
from tests.scheduling.networks import LOOSE, chains, filled, flow_models

BOX = FlowBox("far", ("reports",), {"far": 0.5}, cost_s=0.001, call_s=0.1, tuple_bytes=10)


def queue(queued: int, *, spread_s: float = 0.0) -> BoxQueue:
    return BoxQueue("far", queued, mean_arrival_s=spread_s / 2, oldest_arrival_s=0.0)


def call(queued: int, limits: TrainLimits, box: FlowBox = BOX) -> PlannedCall:
    (made,) = sized_calls(["far"], {"far": box}, lambda _: [], {"far": queue(queued)}, limits)
    return made


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        (TrainLimits(), 1000),
        (TrainLimits(tuples=7), 7),
        (TrainLimits(spread_s=1.0), 250),
        (TrainLimits(spread_s=4.0), 1000),
        (TrainLimits(cost_s=0.3), 200),
        (TrainLimits(cost_s=0.05), 1),
        (TrainLimits(bytes=120), 12),
        (TrainLimits(bytes=3), 1),
        (TrainLimits(tuples=500, spread_s=1.0, cost_s=0.3, bytes=120), 12),
    ],
)
def test_the_least_of_all_limits_counts(limits: TrainLimits, size: int) -> None:
    assert train_size(BOX, queue(1000, spread_s=4.0), limits) == size


def test_an_empty_queue_gives_no_train() -> None:
    assert train_size(BOX, queue(0), TrainLimits(tuples=5)) == 0


def test_a_train_by_count_holds_for_tuples_that_come_before_the_call() -> None:
    assert call(3, TrainLimits(tuples=5)) == PlannedCall("far", 5)
    assert call(3, TrainLimits()) == PlannedCall("far")


def test_a_train_fills_the_room_that_latency_graphs_leave() -> None:
    assert call(5000, TrainLimits(room_s=1.1)) == PlannedCall("far", 1000)
    assert call(900, TrainLimits(room_s=1.1)) == PlannedCall("far")


def test_a_train_is_not_so_short_that_calls_dominate() -> None:
    assert least_train(BOX) == 100
    assert call(5000, TrainLimits(room_s=0.15)) == PlannedCall("far", 100)
    assert call(5000, TrainLimits(room_s=0.0)) == PlannedCall("far", 100)
    assert call(40, TrainLimits(room_s=0.0)) == PlannedCall("far")
    cheap = FlowBox("far", ("reports",), {"far": 0.5}, cost_s=0.001)
    assert call(5000, TrainLimits(room_s=0.0), cheap) == PlannedCall("far", 1)


def test_a_box_whose_cost_is_not_known_takes_few_tuples() -> None:
    unknown = replace(BOX, is_measured=False)
    assert call(1_000_000, TrainLimits(room_s=1e9), BOX).tuples is None
    assert call(1_000_000, TrainLimits(room_s=1e9), unknown).tuples == FIRST_TRAINS
    assert call(FIRST_TRAINS, TrainLimits(room_s=1e9), unknown).tuples is None
    assert call(1_000_000, TrainLimits(), unknown).tuples is None  # nothing is urgent
    assert call(1_000_000, TrainLimits(tuples=50_000), unknown).tuples == 50_000


def test_all_calls_of_a_plan_fit_into_the_room() -> None:
    model = chains([LOOSE], 2, cost_s=0.01, call_s=0.1)
    table = filled(model, {"a0.0": (1000, 0.0), "a0.1": (200, 0.0)})
    # 4 s of the good zone, less the way of a tuple: 2 calls of 0.1 s, 2 × 0.01 s.
    assert waiting_room_s(model) == pytest.approx(3.78)
    settings = SchedulerSettings("fifo", "application", "mc", "auto")
    scheduler = make_scheduler(settings)
    scheduler.serve(model)
    (plan,) = scheduler.decide(table, 0.0, 1)
    # All would take 0.2 + 10 + 12 s; what is left of 3.58 s goes to both queues in proportion.
    share = 3.58 / 22
    first, second = int(1000 * share), int(200 * share)
    assert plan.calls == (PlannedCall("a0.0", first), PlannedCall("a0.1", first + second))
    assert 0.2 + 0.01 * (2 * first + second) <= 3.78


def test_the_tightest_output_decides_for_all() -> None:
    tight = QoS(latency=[(0, 1), (0.5, 1), (1, 0)])
    assert waiting_room_s(chains([LOOSE, None], 1, call_s=0.1, cost_s=0.0)) == pytest.approx(3.9)
    assert waiting_room_s(chains([LOOSE, tight], 1, call_s=0.1, cost_s=0.0)) == pytest.approx(0.4)
    # What cannot be in the good zone may still be worth something: the next point counts.
    assert waiting_room_s(chains([LOOSE, tight], 1, call_s=0.7, cost_s=0.0)) == pytest.approx(0.3)
    assert waiting_room_s(chains([LOOSE, tight], 1, call_s=1.2, cost_s=0.0)) == pytest.approx(2.8)
    assert waiting_room_s(chains([None], 1)) is None
    always_good = QoS(latency=[(0, 1), (5, 1)])
    assert waiting_room_s(chains([always_good], 1)) is None


def test_a_box_that_is_called_twice_takes_the_rest_of_its_own_queue_once() -> None:
    model = chains([None], 2, cost_s=0.01, call_s=0.0)
    boxes, queues = model.boxes, {"a0.0": queue(50), "a0.1": queue(50)}
    calls = sized_calls(
        ["a0.1", "a0.0", "a0.1"],
        boxes,
        lambda box: [("a0.1", 1.0)] if box == "a0.0" else [],
        queues,
        TrainLimits(room_s=0.75),
    )
    assert calls == (PlannedCall("a0.1", 25), PlannedCall("a0.0", 25), PlannedCall("a0.1", 25))


def test_networks_without_latency_graphs_take_all_that_waits() -> None:
    model = chains([None], 1)
    scheduler = make_scheduler(SchedulerSettings())
    scheduler.serve(model)
    (plan,) = scheduler.decide(filled(model, {"a0.0": (10**9, 0.0)}), 0.0, 1)
    assert plan.calls == (PlannedCall("a0.0"),)


@pytest.mark.law
@given(
    st.integers(1, 10**6),
    st.sampled_from([0.0, 1e-6, 0.01]),
    st.sampled_from([0.0, 0.03]),
    st.sampled_from([0.0, 0.02, 0.5, 9.0]),
)
def test_a_train_fits_or_is_as_short_as_it_may_be(
    queued: int, cost_s: float, call_s: float, room_s: float
) -> None:
    box = FlowBox("far", ("reports",), {"far": 0.5}, cost_s, call_s)
    tuples = call(queued, TrainLimits(room_s=room_s), box).tuples
    size = queued if tuples is None else tuples
    lasts_s = call_s + size * cost_s
    if lasts_s > room_s + 1e-9:
        # Nothing shorter is allowed: a tuple less, and the call dominates, or nothing is left.
        assert size <= 1 or cost_s == 0 or call_s > LARGEST_CALL_SHARE * (lasts_s - cost_s)
    elif size < queued:
        assert lasts_s + cost_s > room_s - 1e-9 or size == least_train(box)


@pytest.mark.law
@given(flow_models(), st.sampled_from(["auto", 3, None]))
def test_rooms_are_never_negative(model: FlowModel, train: int | None) -> None:
    room_s = waiting_room_s(model)
    assert room_s is None or room_s >= 0
    scheduler = make_scheduler(SchedulerSettings(train=train))
    scheduler.serve(model)
    table = filled(model, dict.fromkeys(model.boxes, (4, 0.0)))
    sizes = [call.tuples for plan in scheduler.decide(table, 1.0, 3) for call in plan.calls]
    if train == 3:
        assert set(sizes) <= {1, 2, 3}
    elif train is None:
        assert set(sizes) <= {None}


def test_an_output_that_is_a_stream_needs_no_room() -> None:
    model = FlowModel({}, {"raw": FlowOutput("raw", "reports", LOOSE)})
    assert waiting_room_s(model) is None
