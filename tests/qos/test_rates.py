"""Arrival rates: steady streams have theirs, and those that end fade away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.scheduling.rates import ArrivalRates


@given(st.integers(1, 100_000), st.floats(0.01, 1.0), st.integers(2, 200))
def test_a_steady_stream_has_its_rate(tuples: int, every_s: float, times: int) -> None:
    """Arrivals are lumps, so that the rate just after one and just before the next differ."""
    rates = ArrivalRates()
    for number in range(times):
        rates.arrived("s", tuples, number * every_s)
    last = (times - 1) * every_s
    high, low = rates.rate("s", last), rates.rate("s", last + every_s)
    if last >= 1.0:
        assert low * 0.98 <= tuples / every_s <= high * 1.02
    assert rates.all(last) == {"s": high}


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000)), max_size=30))
def test_rates_are_never_negative_and_fade(arrivals: list[tuple[float, int]]) -> None:
    rates = ArrivalRates()
    now = 0.0
    for after, tuples in arrivals:
        now += after
        rates.arrived("s", tuples, now)
    found = [rates.rate("s", now + later) for later in (1.0, 2.0, 10.0, 300.0)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.0, abs=1e-6)
    assert min(found) >= 0


def test_a_burst_is_seen_within_seconds() -> None:
    rates = ArrivalRates()
    for number in range(600):
        rates.arrived("s", 10, number * 0.1)
    for number in range(50):
        rates.arrived("s", 50, 60 + number * 0.1)
    assert 300 < rates.rate("s", 65.0) < 500
