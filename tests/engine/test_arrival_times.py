"""Ages of queues, told from the times of moments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.engine.runtime.arrival_times import ArrivalTimes

COMMITS = st.lists(st.tuples(st.integers(1, 1_000), st.floats(0.0, 10.0)), max_size=40)


@given(COMMITS, st.integers(0, 30_000), st.integers(1, 30_000), st.integers(0, 500))
def test_the_mean_is_that_of_all_moments(
    commits: list[tuple[int, float]], first: int, count: int, start: int
) -> None:
    clock = [100.0]
    times = ArrivalTimes(start, lambda: clock[0], [(start // 2, 7.0)] if start > 1 else [])
    moment = start
    for moments, pause_s in commits:
        moment += moments
        clock[0] += pause_s
        times.arrived(moment)
    clock[0] += 1.0
    spread = times.spread(first, first + count)
    expected = sum(at * moments for at, moments in spread) / count
    assert times.mean(first, first + count) == pytest.approx(expected, abs=1e-6)


def test_the_mean_stays_right_when_old_entries_are_thinned_out() -> None:
    clock = [0.0]
    times = ArrivalTimes(0, lambda: clock[0])
    for number in range(1, 20_001):
        clock[0] = number * 0.01
        times.arrived(number * 50)
    last = 20_000 * 50
    spread = times.spread(last - 10_000, last)
    expected = sum(at * moments for at, moments in spread) / 10_000
    assert times.mean(last - 10_000, last) == pytest.approx(expected, abs=1e-6)
    assert times.mean(last, last) == times.at(last)
