"""Rates and loads of networks, against sums over paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.scheduling.flow import FlowBox, FlowModel
from auroral.shedding.load import (
    analyzed,
    cost_to_go_s,
    effective_cost_s,
    flow_rates,
    load_of,
    train_size,
)
from tests.shedding.models import models


def diamond() -> FlowModel:
    return FlowModel(
        {
            "clean": FlowBox("clean", ("reports",), {"clean": 0.5}, 0.001),
            "far": FlowBox("far", ("clean",), {"far": 0.2}, 0.002),
            "near": FlowBox("near", ("clean",), {"near": 0.8}, 0.001),
            "both": FlowBox("both", ("far", "near"), {"both": 1.0}, 0.004, 0.1),
        }
    )


def test_rates_are_followed_through_a_network() -> None:
    arcs = flow_rates(diamond(), {"reports": 1000})
    assert arcs == {"reports": 1000, "clean": 500, "far": 100, "near": 400, "both": 500}


def test_a_box_on_one_core_gives_at_most_what_it_can_take() -> None:
    found = analyzed(diamond(), {"reports": 2000}, cores=4, headroom=1.0, period_s=1.0)
    assert found.boxes["clean"].utilisation == 2.0
    assert found.boxes["clean"].served == 1000
    assert found.served["clean"] == 500  # min(1/c, r) × s
    assert found.arcs["clean"] == 1000


def test_min_cap_is_compared_with_cores_times_headroom() -> None:
    found = analyzed(diamond(), {"reports": 1000}, cores=4, headroom=0.8)
    # 1000 × 1 ms + 500 × 2 ms + 500 × 1 ms + 500 × 4 ms + one call of 100 ms
    assert found.min_cap == pytest.approx(1 + 1 + 0.5 + 2 + 0.1)
    assert not found.fits
    assert "too small" in found.verdict
    assert analyzed(diamond(), {"reports": 600}, cores=4, headroom=0.8).fits


def test_headroom_alone_is_a_verdict_of_its_own() -> None:
    found = analyzed(diamond(), {"reports": 800}, cores=4, headroom=0.8)
    assert found.capacity < found.min_cap < found.cores
    assert "queries to come" in found.verdict


def test_the_box_that_saturates_first_is_named_with_its_rate() -> None:
    found = analyzed(diamond(), {"reports": 100}, cores=2, headroom=1.0)
    assert found.first_saturated == "both"
    limit = found.box_limits["both"]
    # 0.1 s of calls and 50 tuples of 4 ms at these rates
    assert limit == pytest.approx((1 - 0.1) / (50 * 0.004))
    assert "both" in found.saturation
    assert "reports 450/s" in found.saturation


def test_a_network_without_costs_never_saturates() -> None:
    found = analyzed(
        FlowModel({"f": FlowBox("f", ("s",), {"f": 1}, 0.0)}), {"s": 5}, cores=1, headroom=1
    )
    assert found.first_saturated is None
    assert found.network_limit is None
    assert found.saturation == "No box saturates at any multiple of these rates."


def test_a_call_is_shared_by_the_tuples_of_its_train() -> None:
    box = FlowBox("far", ("s",), {}, 0.001, 0.1)
    assert effective_cost_s(box, 100) == pytest.approx(0.002)
    assert train_size(50, 0.5) == 25
    assert train_size(0.1, 0.5) == 1


@given(models(), st.floats(0.01, 50))
def test_load_without_calls_grows_with_rates(
    drawn: tuple[FlowModel, dict[str, float]], factor: float
) -> None:
    model, rates = drawn
    scaled = {stream: rate * factor for stream, rate in rates.items()}
    assert load_of(model, scaled) == pytest.approx(load_of(model, rates) * factor)


@given(models())
def test_load_is_what_tuples_of_streams_cost_on_all_their_ways(
    drawn: tuple[FlowModel, dict[str, float]],
) -> None:
    model, rates = drawn
    to_go = cost_to_go_s(model)
    whole = sum(rates[s] * to_go[box] for s in model.streams for box in model.readers[s])
    assert load_of(model, rates) == pytest.approx(whole)
    found = analyzed(model, rates, cores=1, headroom=1)
    limit = found.network_limit
    assert limit is not None
    assert load_of(model, {s: rate * limit for s, rate in rates.items()}) == pytest.approx(1)
