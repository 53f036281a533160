"""`qos` where calls are dear: what a second of work is worth decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.network.declarations import EngineOptions, SchedulerName
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.scheduling.policies.weighed_buckets import LEAST, RATIO, WeighedBuckets
from auroral.scheduling.policies.weighed_trains import WeighedTrains
from auroral.scheduling.queues import BoxQueue, QueueTable
from auroral.scheduling.train_worth import WorthOfTrains, waited
from auroral.scheduling.urgency import urgency_graph
from auroral.simulation.prediction import predict

GRAPHS = {
    "tight": QoS(latency=[(0, 1), (0.001, 1), (1, 0)]),
    "loose": QoS(latency=[(0, 1), (4, 1), (5, 0)]),
}


BOTH: tuple[SchedulerName, ...] = ("qos", "qos-bucketed")


def first_choice(
    weighs: bool, tight_age_s: float, loose_age_s: float, name: SchedulerName = "qos"
) -> str:
    """Which of two applications is called first; both get 100 tuples a second."""
    boxes = {
        name: FlowBox(name, (f"{name}_in",), {name: 1.0}, cost_s=0.0005, call_s=0.03)
        for name in GRAPHS
    }
    outputs = {name: FlowOutput(name, name, qos) for name, qos in GRAPHS.items()}
    settings = SchedulerSettings(
        scheduler=name, superbox="fuse", traversal="mc", weighs_trains=weighs
    )
    scheduler = make_scheduler(settings)
    scheduler.serve(FlowModel(boxes, outputs))
    table = QueueTable(boxes)
    now_s = 100.0
    for box, age_s in ("tight", tight_age_s), ("loose", loose_age_s):
        queued = max(round(100 * age_s), 1)
        oldest_s = now_s - age_s
        table.fill(box, queued, mean_arrival_s=now_s - age_s / 2, oldest_arrival_s=oldest_s)
    (plan,) = scheduler.decide(table, now_s, 1)
    return plan.calls[0].box


def test_the_engine_weighs_trains() -> None:
    assert SchedulerSettings.of(EngineOptions()).weighs_trains


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("weighs", [False, True])
def test_what_has_time_waits(weighs: bool, name: SchedulerName) -> None:
    assert first_choice(weighs, 0.1, 2.0, name) == "tight"


@pytest.mark.parametrize("name", BOTH)
def test_a_long_queue_is_served_before_its_oldest_tuples_are_lost(name: SchedulerName) -> None:
    """A few tuples of a steep graph would otherwise be served again and again."""
    assert first_choice(False, 0.1, 4.3, name) == "tight"
    assert first_choice(True, 0.1, 4.3, name) == "loose"


@pytest.mark.parametrize("name", BOTH)
def test_what_is_past_its_deadline_is_called_while_others_always_have_something(
    name: SchedulerName,
) -> None:
    """Those of its tuples that arrive now could still be in time."""
    assert first_choice(True, 0.3, 30.0, name) == "loose"
    assert first_choice(True, 30.0, 3.0, name) == "tight"


@given(
    st.sampled_from(sorted(GRAPHS)),
    st.floats(0.0, 8.0),
    st.floats(0.0, 8.0),
)
def test_a_stake_is_the_utility_that_tuples_of_all_ages_have_above_the_oldest(
    name: str, way_s: float, age_s: float
) -> None:
    graph, curve = urgency_graph(GRAPHS[name]), GRAPHS[name].curves["latency"]
    found = waited(graph, way_s, age_s)
    last = curve.value(way_s + age_s)
    assert found.loss == pytest.approx(curve.value(way_s) - last, abs=1e-9)
    assert found.stake == pytest.approx(curve.area(way_s, way_s + age_s) - last * age_s, abs=1e-9)


@given(st.integers(0, 3), st.integers(1, 500), st.floats(0.0, 8.0), st.floats(0.0, 1.0))
def test_worth_grows_as_it_says(at: int, queued: int, age_s: float, share: float) -> None:
    model = _many([*GRAPHS.values()] * 2)
    worth = WorthOfTrains()
    worth.serve(model)
    queue = BoxQueue(f"b{at}", queued, 0.0, oldest_arrival_s=0.0)
    now = worth.of(queue, age_s)
    later_s = age_s + share * min(now.steady_s, 5.0) * 0.999
    later = worth.of(queue, later_s)
    assert later.per_s >= now.per_s - 1e-9
    if later.per_s > now.per_s + 1e-6:
        assert now.grows_to_in_s(later.per_s) == pytest.approx(later_s - age_s, abs=1e-4)


@given(st.data())
def test_buckets_choose_what_is_worth_almost_as_much(data: st.DataObject) -> None:
    """Queues come, grow and go while time passes."""
    count = data.draw(st.integers(1, 8))
    model = _many([*GRAPHS.values()] * count)
    exact, bucketed = WeighedTrains(WorthOfTrains()), WeighedBuckets(WorthOfTrains())
    exact.serve(model)
    bucketed.serve(model)
    worth = WorthOfTrains()
    worth.serve(model)
    table, now_s = QueueTable(model.boxes), 10.0
    times = st.floats(0.0, 8.0)
    for _ in range(data.draw(st.integers(1, 6))):
        now_s += data.draw(st.floats(0.0, 2.0))
        for box in data.draw(st.sets(st.sampled_from(sorted(model.boxes)))):
            queued, age_s = data.draw(st.integers(0, 500)), data.draw(times)
            mean_s = now_s - age_s * data.draw(st.floats(0.0, 1.0))
            table.fill(box, queued, mean_arrival_s=mean_s, oldest_arrival_s=now_s - age_s)
        changed = [box for box in model.boxes if box in table.changed]
        table.changed.clear()
        wanted = [one.box for one in exact.rank(table, changed, now_s)]
        found = [one.box for one in bucketed.rank(table, changed, now_s)]
        assert sorted(found) == sorted(wanted)
        if wanted:
            best, chosen = worth.of(table[wanted[0]], now_s), worth.of(table[found[0]], now_s)
            assert chosen.per_s >= best.per_s / RATIO - LEAST
            if best.per_s == 0 and best.square == 0:
                assert chosen.negative_slack_s == pytest.approx(best.negative_slack_s, abs=1e-6)


def _many(graphs: Sequence[QoS]) -> FlowModel:
    boxes = {
        f"b{at}": FlowBox(f"b{at}", (f"s{at}",), {f"b{at}": 1.0}, 0.0005, 0.02 + 0.01 * (at % 5))
        for at in range(len(graphs))
    }
    outputs = {f"o{at}": FlowOutput(f"o{at}", f"b{at}", qos) for at, qos in enumerate(graphs)}
    return FlowModel(boxes, outputs)


@pytest.mark.parametrize("load", [0.5, 0.7, 0.9])
def test_buckets_are_as_good_as_the_exact_order(load: float) -> None:
    """20 applications with calls as dear as those of Spark: utilities differ by less than 3 %."""
    model = _many([*GRAPHS.values()] * 10)
    rates = dict.fromkeys(model.streams, load * 2 / (20 * 0.0005) / 3)
    utilities = []
    for name in BOTH:
        settings = SchedulerSettings(
            scheduler=name, superbox="fuse", traversal="mc", weighs_trains=True
        )
        found = predict(model, rates, settings, 20.0, 2, warm_s=5.0, drained=False)
        utilities.append(sum(one.utility for one in found.values()) / len(found))
        assert all(one.tuples for one in found.values()), "an output has got nothing"
    assert utilities[1] == pytest.approx(utilities[0], rel=0.03)
    assert utilities[0] > 0.3
