"""The QoS monitor against a naive model, and at its edges."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import QoS
from auroral.qos.graphs import default_qos
from auroral.qos.monitor import QoSMonitor
from auroral.qos.output_monitor import HISTORY_S, VALUE_CELLS, WINDOW_S, OutputMonitor

FULL = QoS.model_validate(
    {
        "latency": [(0, 1), (2, 1), (10, 0)],
        "loss": [(1, 1), (0.5, 0.8), (0, 0)],
        "value": {"on": "cnt", "graph": [(3, 0.2), (10, 1)]},
        "throughput": [(0, 0), (5, 1)],
        "weights": {"latency": 2, "value": 0.5},
    }
)


@dataclass
class Happening:
    """One step: so long after the one before, what it delivered and what was shed."""

    after_s: float
    delays: list[tuple[float, float]] = field(default_factory=list)
    shed: int = 0
    values: list[float] = field(default_factory=list)


happenings = st.lists(
    st.builds(
        Happening,
        st.floats(0, 40),
        st.lists(st.tuples(st.floats(0, 20), st.integers(1, 9).map(float)), max_size=4),
        st.integers(0, 9),
        st.lists(st.floats(-5, 20), max_size=5),
    ),
    max_size=12,
)


@given(happenings, st.floats(0, 30))
def test_readings_are_means_over_the_last_minute(steps: list[Happening], later: float) -> None:
    monitor = OutputMonitor(FULL, 0.0)
    now, seen = 0.0, []
    for step in steps:
        now += step.after_s
        monitor.record(
            now, step.delays, shed={"random": step.shed}, values=np.array(step.values, float)
        )
        seen.append((now, step))
    now += later
    recent = [step for at, step in seen if math.floor(at) > math.floor(now) - WINDOW_S]
    delays = [d for step in recent for d, count in step.delays for _ in range(int(count))]
    shed = sum(step.shed for step in recent)
    values = [value for step in recent for value in step.values]

    def mean(found: list[float]) -> float:
        return sum(found) / len(found) if found else 1.0

    latency = mean([FULL.utility("latency", delay) for delay in delays])
    value = mean([FULL.utility("value", one) for one in values])
    share = len(delays) / (len(delays) + shed) if delays or shed else 1.0
    rate = len(delays) / min(max(now, 1.0), WINDOW_S)
    reading = monitor.reading(now)
    assert reading.latency == pytest.approx(latency)
    assert reading.value == pytest.approx(value)
    assert reading.loss == pytest.approx(FULL.utility("loss", share))
    assert reading.throughput == pytest.approx(FULL.utility("throughput", rate))
    weighted = 2 * latency + reading.loss + 0.5 * value + reading.throughput
    assert reading.utility == pytest.approx(weighted / 4.5)
    assert 0 <= reading.utility <= 1
    assert 0 <= monitor.latest(now).utility <= 1
    assert monitor.good_share(now) == pytest.approx(mean([float(d <= 2) for d in delays]))
    assert monitor.delay_s(now) == (pytest.approx(sum(delays) / len(delays)) if delays else None)
    high = monitor.delay_percentile_s(now, 0.95)
    if delays:
        exact = sorted(delays)[math.ceil(0.95 * len(delays)) - 1]
        assert exact / 1.0001 <= (high or 0) <= max(exact * 1.051, 0.001)
    else:
        assert high is None
    found = monitor.value_counts(now)
    assert found is not None
    assert sum(found[1]) == len(values)
    assert monitor.delivered == sum(count for _, step in seen for _, count in step.delays)
    assert sum(monitor.shed.values()) == sum(step.shed for _, step in seen)


@given(happenings)
def test_what_was_lost_never_falls_and_is_never_more_than_the_time_that_passed(
    steps: list[Happening],
) -> None:
    monitor = OutputMonitor(FULL, 0.0)
    now, before = 0.0, 0.0
    for step in steps:
        now += step.after_s
        monitor.record(
            now, step.delays, shed={"random": step.shed}, values=np.array(step.values, float)
        )
        lost = sum(monitor.lost.values())
        assert before <= lost <= now + 1e-9
        before = lost


def test_utility_that_was_lost_is_integrated_over_time_by_reason() -> None:
    graphs = {"latency": [(0, 1), (2, 1), (10, 0)], "loss": [(0, 0), (1, 1)]}
    monitor = OutputMonitor(QoS.model_validate(graphs), 0.0)
    monitor.record(10.0, [(6.0, 3)])
    assert monitor.lost == {"latency": pytest.approx(10 * 0.5 / 2), "loss": 0.0}
    monitor.record(14.0, [(1.0, 6)], shed={"random": 1, "semantic": 2})
    assert monitor.lost == {
        "latency": pytest.approx(10 * 0.5 / 2),
        "loss": pytest.approx(4 * 0.25 / 2),
    }
    monitor.record(1000.0, [(99.0, 1)])
    assert monitor.lost["latency"] == pytest.approx(2.5 + WINDOW_S / 2)


def test_the_good_zone_follows_the_latest_delivery() -> None:
    monitor = QoSMonitor()
    monitor.serve({"tight": QoS(latency=((0, 1), (2, 1), (10, 0))), "any": None}, 0.0)
    assert monitor.outside(0.0) == 0.0
    monitor.record("tight", 1.0, [(5.0, 10)])
    monitor.record("any", 1.0, [(0.5, 10)])
    assert (monitor.outside(1.0), monitor.in_good_zone("tight", 1.0)) == (0.5, False)
    monitor.record("tight", 2.0, [(2.0, 10)])
    assert monitor.outside(2.0) == 0.0
    monitor.record("tight", 3.0, [(9.0, 10)])
    assert not monitor.in_good_zone("tight", 3.0)
    later = 3.0 + WINDOW_S + 1
    assert monitor.in_good_zone("tight", later), "nothing waits for it"
    assert monitor.outside(later) == 0.0
    monitor.wait({"tight": 2.5})
    assert (monitor.in_good_zone("tight", later), monitor.outside(later)) == (False, 0.5)
    monitor.wait({"tight": 2.0, "any": 31.0})
    assert (monitor.in_good_zone("tight", later), monitor.outside(later)) == (True, 0.5)


def test_an_output_that_starves_is_worth_what_its_oldest_tuple_would_be() -> None:
    monitor = OutputMonitor(QoS(latency=((0, 1), (2, 1), (10, 0))), 0.0)
    monitor.record(1.0, [(1.0, 10)])
    monitor.wait(6.0)
    assert monitor.latest(2.0).latency == 0.5
    assert monitor.reading(2.0).latency == 1.0, "what was delivered in the last minute"
    later = 2.0 + WINDOW_S
    assert monitor.reading(later).utility == monitor.latest(later).utility == 0.5
    monitor.record(later, [(8.0, 10)])
    monitor.wait(0.0)
    assert monitor.latest(later).latency == 0.25, "of the delivery: nothing waits"


@given(st.floats(0, 30), st.floats(0, 30))
def test_what_waits_never_makes_an_output_look_better(delay_s: float, waiting_s: float) -> None:
    monitor = OutputMonitor(QoS(latency=((0, 1), (2, 1), (10, 0))), 0.0)
    monitor.record(1.0, [(delay_s, 1)])
    alone, was_good = monitor.latest(1.0).utility, monitor.in_good_zone(1.0)
    monitor.wait(waiting_s)
    assert monitor.latest(1.0).utility == min(alone, monitor.qos.utility("latency", waiting_s))
    assert monitor.in_good_zone(1.0) == (was_good and waiting_s <= 2)


def test_outputs_without_graphs_are_judged_by_the_default() -> None:
    monitor = QoSMonitor()
    monitor.serve({"any": None}, 0.0)
    monitor.record("any", 1.0, [(30.5, 10)], shed={"random": 80})
    monitor.record("any", 1.0, shed={"random": 6, "semantic": 4})
    found = monitor.statistics(1.0)["any"]
    assert found["latency"] == default_qos().utility("latency", 30.5) == 0.5
    assert (found["loss"], found["utility"], found["shed"], found["delivered"]) == (1, 0.5, 90, 10)
    assert found["shed_by"] == {"random": 86, "semantic": 4}
    assert not found["good_zone"]


def test_other_graphs_take_effect_at_once() -> None:
    monitor = QoSMonitor()
    tight, loose = QoS(latency=((0, 1), (1, 0))), QoS(latency=((0, 1), (50, 1), (60, 0)))
    monitor.serve({"o": tight}, 0.0)
    monitor.record("o", 10.0, [(5.0, 10)])
    assert monitor.utility("o", 10.0) == 0.0
    monitor.set_qos("o", loose, 10.0)
    assert monitor.outputs == {"o": loose}
    assert monitor.in_good_zone("o", 10.0)
    monitor.record("o", 11.0, [(5.0, 10)])
    assert monitor.utility("o", 11.0) == 1.0
    found = monitor.statistics(11.0)["o"]
    assert (found["delivered"], found["lost"]["delay"]) == (20, 10.0)
    monitor.set_qos("nobody", tight, 11.0)
    monitor.record("nobody", 11.0, [(5.0, 10)])
    assert list(monitor.statistics(11.0)) == ["o"]


def test_outputs_that_stay_keep_what_is_known_of_them() -> None:
    monitor = QoSMonitor()
    monitor.serve({"a": None, "b": None}, 0.0)
    monitor.record("a", 1.0, [(60.0, 10)])
    monitor.record("b", 1.0, [(60.0, 10)])
    monitor.serve({"a": None, "c": None}, 2.0)
    assert {name: one["delivered"] for name, one in monitor.statistics(2.0).items()} == {
        "a": 10,
        "c": 0,
    }
    assert monitor.utility("a", 2.0) == 0.0


def test_values_are_counted_in_cells_over_the_range_of_their_graph() -> None:
    monitor = OutputMonitor(FULL, 0.0)
    values = np.array([-9.0, 3.0, 3.1, 9.9, 10.0, 99.0, np.nan, np.inf])
    monitor.record(1.0, [(0.0, 8)], values=values)
    found = monitor.value_counts(1.0)
    assert found is not None
    edges, counts = found
    assert (edges[0], edges[-1], len(counts)) == (3, 10, VALUE_CELLS)
    assert (counts[0], counts[-1], sum(counts)) == (3, 4, 7)
    assert monitor.value_counts(1.0 + WINDOW_S) == (edges, (0.0,) * VALUE_CELLS)
    assert OutputMonitor(None, 0.0).value_counts(0.0) is None


def test_delays_are_counted_over_a_minute() -> None:
    monitor = OutputMonitor(None, 0.0)
    monitor.record(0.0, [(0.0, 5)])
    monitor.record(1.0, [(2.0, 3), (0.5, 1), (2.01, 2)])
    found = monitor.delay_counts(1.0)
    assert [count for _, count in found] == [5, 1, 5]
    assert [delay_s for delay_s, _ in found] == pytest.approx([0.001, 0.5, 2.0], rel=0.05)
    assert [count for _, count in monitor.delay_counts(WINDOW_S + 0.5)] == [1, 5]
    assert monitor.delay_counts(WINDOW_S + 2.0) == []


def test_the_history_has_a_point_for_each_second_of_ten_minutes() -> None:
    monitor = OutputMonitor(QoS(latency=((0, 1), (10, 0))), 0.0)
    for at in range(2 * HISTORY_S):
        monitor.record(at + 0.25, [(5.0 if at % 2 else 0.0, 3)])
        monitor.record(at + 0.75, [(5.0 if at % 2 else 0.0, 1)])
    history = monitor.history(2 * HISTORY_S)
    assert len(history) == HISTORY_S - 1
    assert history[-1] == {"ago_s": 0.0, "utility": 0.5, "delay_s": 5.0, "delivered": 4.0}
    assert [point["utility"] for point in history[-4:]] == [1.0, 0.5, 1.0, 0.5]
    assert monitor.reading(2 * HISTORY_S).utility == pytest.approx(0.75, abs=0.01)
