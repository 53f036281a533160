"""Predictions against what queueing theory and arithmetic say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auroral import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings
from auroral.simulation.arrivals import PoissonArrivals
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.prediction import SPARK, predict
from auroral.simulation.shedding import ControlledShedder

SETTINGS = SchedulerSettings("rr", "box", "mc", 1)


def one_box(cost_s: float, call_s: float = 0.0, qos: QoS | None = None) -> FlowModel:
    box = FlowBox("b", ("s",), {"b": 1.0}, cost_s, call_s)
    return FlowModel({"b": box}, {"out": FlowOutput("out", "b", qos)})


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_box_and_poisson_arrivals_are_an_md1_queue(load: float) -> None:
    # Pollaczek and Khinchin: the mean wait is ρ / (2 (1 − ρ)) times the service time.
    found = predict(
        one_box(0.01),
        {"s": load / 0.01},
        SETTINGS,
        600.0,
        process=PoissonArrivals(),
        machine=SimulatedMachine(),
    )["out"]
    assert found.mean_latency_s == pytest.approx(0.01 * (1 + load / (2 * (1 - load))), rel=0.1)


def test_two_workers_keep_two_boxes_apart() -> None:
    boxes = {name: FlowBox(name, (f"s{name}",), {name: 1.0}, 0.01) for name in "ab"}
    model = FlowModel(boxes, {name: FlowOutput(name, name) for name in boxes})
    rates = {"sa": 80.0, "sb": 80.0}
    one = predict(model, rates, SETTINGS, 60.0, 1, machine=SimulatedMachine())
    two = predict(model, rates, SETTINGS, 60.0, 2, machine=SimulatedMachine())
    assert two["a"].mean_latency_s == pytest.approx(0.01, rel=0.05)
    assert one["a"].mean_latency_s > 1.0


def test_a_train_is_as_long_as_what_arrives_during_a_call() -> None:
    # Trains of n tuples take 0.1 + 0.001 n = n / 100 seconds: n = 11.1, and 0.11 s each.
    settings = replace(SETTINGS, train=None)
    machine = replace(SPARK, decision_s=0.0)
    found = predict(one_box(0.001, 0.1), {"s": 100.0}, settings, 60.0, machine=machine)["out"]
    assert found.mean_latency_s == pytest.approx(0.111 * 1.5, rel=0.1)


def test_utility_and_quantile_follow_the_latency() -> None:
    tight = one_box(0.0, 0.5, QoS(latency=[(0, 1), (1, 0)]))
    machine = replace(SPARK, decision_s=0.0)
    found = predict(tight, {"s": 1.0}, SETTINGS, 100.0, machine=machine)["out"]
    assert found.mean_latency_s == pytest.approx(0.5)
    assert found.latency_95_s == pytest.approx(0.5)
    assert found.utility == pytest.approx(0.5)
    assert found.tuples == 100


def test_a_simulation_may_stop_with_its_input() -> None:
    overloaded = one_box(0.02)
    rest = predict(overloaded, {"s": 100.0}, SETTINGS, 10.0, drained=False)["out"]
    every = predict(overloaded, {"s": 100.0}, SETTINGS, 10.0)["out"]
    assert every.tuples == 1000
    assert rest.tuples == pytest.approx(500, abs=20)
    assert every.mean_latency_s > rest.mean_latency_s


def test_results_while_warming_up_do_not_count() -> None:
    overloaded = one_box(0.02)
    cold = predict(overloaded, {"s": 100.0}, SETTINGS, 10.0, drained=False)["out"]
    warm = predict(overloaded, {"s": 100.0}, SETTINGS, 10.0, warm_s=10.0, drained=False)["out"]
    # Each second adds half a second to the delay.
    assert cold.mean_latency_s == pytest.approx(2.5, rel=0.1)
    assert warm.mean_latency_s == pytest.approx(7.5, rel=0.1)
    assert warm.tuples == pytest.approx(500, abs=20)


def test_with_shedding_an_overloaded_network_stays_in_its_good_zone() -> None:
    graphs = QoS(latency=[(0, 1), (2, 1), (10, 0)], loss=[(1, 1), (0.5, 0.8), (0, 0)])
    model = one_box(0.002, 0.01, graphs)
    settings = replace(SETTINGS, train="auto")
    rates = {"s": 1000.0}
    drowned = predict(model, rates, settings, 60.0)["out"]
    shedder = ControlledShedder("auto", model, capacity=0.8, headroom=0.8)
    saved = predict(model, rates, settings, 60.0, shedder=shedder)["out"]
    assert drowned.utility < 0.3
    assert saved.utility > 0.95
    assert saved.tuples < 0.6 * drowned.tuples
    assert max(shedder.outside[30:]) == 0.0  # what waited when shedding began is not dropped
