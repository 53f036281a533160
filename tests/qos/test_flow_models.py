"""The flow model of a network: costs of boxes and superboxes, and how tuples are divided."""

from __future__ import annotations

import pytest

from auroral import Network
from auroral.qos.graphs import QoS
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.flow_models import (
    DEFAULT_AGGREGATE_SELECTIVITY,
    DEFAULT_CALL_S,
    DEFAULT_COST_S,
    flow_model,
    longest_path_s,
)
from auroral.scheduling.superboxes import superboxes

QUALITY = {"latency": [[0, 1], [2, 1], [10, 0]]}
CHECKED = Network.parse(
    {
        "network": "roads",
        "streams": {"reports": {"schema": {"vid": "int", "pos": "int", "speed": "int"}}},
        "boxes": {
            "far": {"box": "filter", "input": "reports", "where": "pos > 30"},
            "kmh": {"box": "map", "input": "far", "compute": {"pos": "pos", "v": "speed * 1.6"}},
            "counts": {
                "box": "aggregate",
                "input": "kmh",
                "order": {"on": "pos"},
                "compute": {"cnt": "count(*)"},
                "window": {"size": 10},
            },
        },
        "outputs": {
            "alerts": {"from": "counts", "qos": QUALITY},
            "others": {"from": "far.rest"},
        },
    }
).check()


def measured(call_s: float, cost_s: float, selectivity: float) -> BoxCost:
    """The cost of a box after calls that were as stated."""
    cost = BoxCost()
    for tuples in (100, 200, 400):
        cost = cost.after(tuples, round(tuples * selectivity), call_s + tuples * cost_s)
    return cost


COSTS = {
    "far": measured(0.02, 0.001, 0.8),
    "kmh": measured(0.01, 0.002, 1.0),
    "counts": measured(0.05, 0.01, 0.05),
}


def test_a_box_has_what_was_measured_of_it() -> None:
    model = flow_model(CHECKED, COSTS, tuples={"far": 300, "far.rest": 100})
    assert list(model.boxes) == ["far", "kmh", "counts"]
    far = model.boxes["far"]
    assert far.call_s == pytest.approx(0.02)
    assert far.cost_s == pytest.approx(0.001)
    assert far.selectivities == {"far": pytest.approx(0.6), "far.rest": pytest.approx(0.2)}
    assert model.boxes["counts"].selectivities["counts"] == pytest.approx(0.05)
    assert model.streams == ("reports",)
    assert model.outputs_of("kmh") == ("alerts",)
    assert model.outputs["alerts"].qos == QoS.model_validate(QUALITY)
    assert model.outputs["others"].qos is None


def test_what_was_not_measured_has_the_stated_defaults() -> None:
    model = flow_model(CHECKED, {})
    far, counts = model.boxes["far"], model.boxes["counts"]
    assert (far.cost_s, far.call_s) == (DEFAULT_COST_S, DEFAULT_CALL_S)
    assert far.selectivities == {"far": 0.5, "far.rest": 0.5}
    assert counts.selectivities["counts"] == DEFAULT_AGGREGATE_SELECTIVITY
    fused = flow_model(CHECKED, {}, superboxes=superboxes(CHECKED, ["counts"]))
    assert fused.boxes["counts"].call_s == DEFAULT_CALL_S


def test_arcs_that_nobody_reads_get_nothing_of_what_was_measured() -> None:
    alerts = {"alerts": FlowOutput("alerts", "counts")}
    far = flow_model(CHECKED, COSTS, alerts).boxes["far"]
    assert far.selectivities == {"far": pytest.approx(0.8), "far.rest": 0.0}


def test_a_superbox_costs_what_its_boxes_cost_the_tuples_that_reach_them() -> None:
    (superbox,) = superboxes(CHECKED, ["counts"])
    alerts = {"alerts": FlowOutput("alerts", "counts")}
    model = flow_model(CHECKED, COSTS, alerts, [superbox])
    box = model.boxes[superbox.name]
    assert box.inputs == ("reports",)
    assert box.call_s == pytest.approx(0.02 + 0.01 + 0.05)
    assert box.cost_s == pytest.approx(0.001 + 0.8 * 0.002 + 0.8 * 0.01)
    assert box.selectivities == {"counts": pytest.approx(0.8 * 0.05)}
    assert model.outputs_of(superbox.name) == ("alerts",)


def test_superboxes_are_connected_by_the_arcs_between_them() -> None:
    found = superboxes(CHECKED, ["counts", "far.rest"])
    model = flow_model(CHECKED, COSTS, superboxes=found)
    # An output without graphs is of another worth, so what leads to both is apart.
    assert [one.boxes for one in found] == [("far",), ("kmh",), ("counts",)]
    assert set(model.outputs_of("far")) == {"alerts", "others"}
    assert model.outputs_of("kmh") == model.outputs_of("counts") == ("alerts",)


def test_the_longest_path_counts_calls_and_the_tuples_that_are_left() -> None:
    model = flow_model(CHECKED, COSTS, {"alerts": FlowOutput("alerts", "counts")})
    expected = 0.02 + 100 * 0.001 + 0.01 + 80 * 0.002 + 0.05 + 80 * 0.01
    assert longest_path_s(model, "counts", 100) == pytest.approx(expected)
    assert longest_path_s(model, "reports", 100) == 0.0
