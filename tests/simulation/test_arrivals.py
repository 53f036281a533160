"""When tuples arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.simulation.arrivals import (
    ArrivalProcess,
    BurstArrivals,
    EvenArrivals,
    PoissonArrivals,
    arriving_runs,
)

PROCESSES = (EvenArrivals(), PoissonArrivals(), BurstArrivals(4), BurstArrivals(4, together=True))


@pytest.mark.parametrize("process", PROCESSES, ids=str)
def test_mean_rates_are_those_asked_for(process: ArrivalProcess) -> None:
    runs = arriving_runs({"s": 50.0}, 200.0, process, seed=1)["s"]
    assert len(runs) == 10_000
    assert runs[-1][0] == pytest.approx(200, rel=0.05)


@pytest.mark.parametrize("process", PROCESSES, ids=str)
@given(rate=st.floats(0.1, 1000), seed=st.integers(0, 100))
def test_times_ascend_and_depend_on_the_seed_alone(
    process: ArrivalProcess, rate: float, seed: int
) -> None:
    first = arriving_runs({"s": rate}, 20 / rate, process, seed)
    times = [run[0] for run in first["s"]]
    assert times == sorted(times)
    assert times[0] >= 0
    assert first == arriving_runs({"s": rate}, 20 / rate, process, seed)


def test_bursts_come_at_once() -> None:
    times = BurstArrivals(3, together=True).times(6.0, 9, np.random.default_rng(1))
    assert times.tolist() == [0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0]


def test_many_tuples_become_runs_without_losing_any() -> None:
    runs = arriving_runs({"s": 1000.0}, 1.0, EvenArrivals(), seed=1, most_runs=64)["s"]
    assert len(runs) <= 64
    assert sum(run[1] for run in runs) == 1000


def test_streams_without_a_rate_bring_nothing() -> None:
    assert arriving_runs({"s": 0.0}, 10.0, EvenArrivals(), seed=1) == {}
