"""Large networks: the work of the simulator grows with calls, not with boxes times decisions."""

from __future__ import annotations

import numpy as np
import pytest

from auroral.network.declarations import SchedulerName
from auroral.scheduling.decisions import Scheduler
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.simulation.arrivals import PoissonArrivals, arriving_runs
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.simulator import simulate
from auroral.simulation.workloads import TreeWorkload, mixed_graphs, rates_at, work_per_tuple

TUPLES = 4_000


def ten_thousand(scheduler: Scheduler) -> tuple[int, int, int, int]:
    random = np.random.default_rng(1)
    workload = TreeWorkload(2_000, depth=5, fan_out=1, call_s=0.0001)
    model = workload.model(random, mixed_graphs(2_000, random))
    assert len(model.boxes) == 10_000
    rates = rates_at(model, 0.7, workers=2)
    arriving = arriving_runs(rates, TUPLES / sum(rates.values()), PoissonArrivals(), seed=1)
    result = simulate(model, arriving, scheduler, SimulatedMachine(workers=2))
    tuples = sum(output.tuples for output in result.outputs.values())
    assert tuples == result.arrived
    return result.arrived, result.calls, result.events, result.evaluated


@pytest.mark.parametrize("name", ["rr", "fifo", "qos-bucketed"])
def test_ten_thousand_boxes_need_few_events(name: SchedulerName) -> None:
    settings = SchedulerSettings(scheduler=name, superbox="application", traversal="mc", train=None)
    arrived, calls, events, evaluated = ten_thousand(make_scheduler(settings))
    assert calls <= 5 * arrived
    # Each tuple arrives, each plan starts, each call ends.
    assert events <= arrived + calls + arrived
    # All boxes once, and then those whose queue has changed or that went to another bucket.
    assert evaluated <= 10_000 + 25 * arrived


def test_half_a_million_tuples_in_runs_need_few_events() -> None:
    model = TreeWorkload(1, depth=3, fan_out=1, cost_s=0.000001).model(np.random.default_rng(1))
    rates = {"a0.2.0.in": 100_000.0}
    arriving = arriving_runs(rates, 5.0, PoissonArrivals(), seed=1, most_runs=20_000)
    assert sum(run[1] for run in arriving["a0.2.0.in"]) == 500_000
    settings = SchedulerSettings("rr", "application", "mc", None)
    result = simulate(model, arriving, make_scheduler(settings))
    assert result.outputs["a0"].tuples == 500_000
    assert result.events < 120_000


def test_rates_load_a_network_as_asked() -> None:
    model = TreeWorkload(3, depth=3, fan_out=2, selectivity=0.5).model(np.random.default_rng(1))
    work = work_per_tuple(model)
    rates = rates_at(model, 0.6, workers=2)
    assert sum(rates[stream] * work[stream] for stream in rates) == pytest.approx(1.2)
