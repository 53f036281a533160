"""Costs of boxes without what first calls and crowded cores add to the time of steps."""

from __future__ import annotations

import pytest

from auroral import Network
from auroral.engine.runtime.measuring import CostMeter, StepFlow, after_work
from auroral.network.check import check
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.superboxes import Superbox


def test_first_calls_of_a_plan_hardly_count() -> None:
    net = Network("calls")
    net.output("o", net.stream("s", schema="n int").filter("n > 0", name="far"))
    meter, superbox = CostMeter(check(net)), Superbox("far", ("s",), ("far",), ("far",))
    known: dict[str, BoxCost] = {}
    for call in range(6):
        tuples = 1_000 + 500 * (call % 2)
        seconds = (3.0 if call == 0 else 0.5 if call == 1 else 0.05) + tuples * 1e-5
        work = meter.work(superbox, StepFlow({"s": tuples}), {("far", "tuples"): 10}, seconds)
        known = after_work(known, work, meter.weight_of_call(superbox))
    cost = known["far"]
    assert cost.calls == 6
    assert cost.call_s is not None
    assert cost.cost_s is not None
    assert cost.call_s + 1_250 * cost.cost_s == pytest.approx(0.0625, rel=0.35)
    assert cost.seconds == pytest.approx(3.0 + 0.5 + 4 * 0.05 + 7_500 * 1e-5)


def test_a_single_call_is_used_until_there_are_better_ones() -> None:
    once = BoxCost().after(1_000, 500, 2.0, weight=0.01)
    # What Spark compiled is no cost of tuples: a scheduler would not call the box again.
    assert (once.call_s, once.cost_s) == (2.0, 0.0)
    assert once.after(1_000, 500, 0.2).cost_s == pytest.approx(0.0002, rel=0.1)
