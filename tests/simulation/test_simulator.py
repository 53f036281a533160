"""The event loop on networks that can be computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import QoS
from auroral.scheduling.decisions import PlannedCall, SchedulingPlan
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.queues import QueueTable
from auroral.shedding.drops import Drop, DropInterval
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.runs import RunQueue, TupleRun
from auroral.simulation.simulator import SimulatedPeriod, simulate
from tests.simulation.turns import BoxesInTurn


def chain(*costs_s: float, call_s: float = 0.0, qos: QoS | None = None) -> FlowModel:
    """Boxes b0, b1, … one behind the other, and an output `last` behind all."""
    boxes = {
        f"b{at}": FlowBox(f"b{at}", (f"b{at - 1}" if at else "s",), {f"b{at}": 1.0}, cost_s, call_s)
        for at, cost_s in enumerate(costs_s)
    }
    return FlowModel(boxes, {"last": FlowOutput("last", f"b{len(costs_s) - 1}", qos)})


def at(*times_s: float, count: int = 1) -> dict[str, list[TupleRun]]:
    return {"s": [(time_s, count, 0.0) for time_s in times_s]}


class OnePlan:
    """Makes the same calls whenever something waits."""

    def __init__(self, *calls: PlannedCall):
        self._calls = calls

    def serve(self, model: FlowModel) -> None: ...

    def decide(self, table: QueueTable, now_s: float, free: int) -> list[SchedulingPlan]:
        idle = not any(table[call.box].running for call in self._calls)
        return [SchedulingPlan(self._calls)] if idle else []


def test_a_tuple_takes_the_time_of_its_boxes() -> None:
    result = simulate(chain(1.0, 2.0, call_s=0.25), at(5.0), BoxesInTurn())
    assert result.outputs["last"].mean_latency_s == pytest.approx(3.5)
    assert result.end_s == pytest.approx(8.5)
    assert (result.spent.processing_s, result.spent.worker_s) == (3.0, 0.5)


def test_tuples_that_wait_run_as_one_train() -> None:
    result = simulate(chain(1.0), at(0.0, 0.5, 0.75), BoxesInTurn())
    # The first runs from 0 to 1; the others from 1 to 3, one result after the other.
    assert result.calls == 2
    assert result.outputs["last"].mean_latency_s == pytest.approx((1 + 1.5 + 2.25) / 3)


def test_results_of_a_call_may_come_at_its_end() -> None:
    machine = SimulatedMachine(emits_at_end=True)
    result = simulate(chain(1.0), at(0.0, 0.5, 0.75), BoxesInTurn(), machine)
    assert result.outputs["last"].mean_latency_s == pytest.approx((1 + 2.5 + 2.25) / 3)


def test_a_run_of_tuples_is_as_late_as_the_tuples_are_on_average() -> None:
    single = simulate(chain(1.0, 0.5), at(*[0.0] * 4), BoxesInTurn())
    one_run = simulate(chain(1.0, 0.5), at(0.0, count=4), BoxesInTurn())
    assert single.mean_latency_s == pytest.approx(one_run.mean_latency_s)


def test_workers_run_different_boxes_at_the_same_time() -> None:
    boxes = {name: FlowBox(name, ("s",), {name: 1.0}, 1.0) for name in ("left", "right")}
    model = FlowModel(boxes, {name: FlowOutput(name, name) for name in boxes})
    one = simulate(model, at(0.0, count=3), BoxesInTurn())
    two = simulate(model, at(0.0, count=3), BoxesInTurn(), SimulatedMachine(workers=2))
    assert (one.end_s, two.end_s) == (6.0, 3.0)


def test_the_loop_commits_one_call_after_the_other() -> None:
    boxes = {name: FlowBox(name, ("s",), {name: 1.0}, 1.0) for name in ("left", "right")}
    model = FlowModel(boxes, {name: FlowOutput(name, name) for name in boxes})
    machine = SimulatedMachine(workers=2, loop_s=0.25, emits_at_end=True)
    result = simulate(model, at(0.0), BoxesInTurn(), machine)
    assert sorted(one.mean_latency_s for one in result.outputs.values()) == [1.25, 1.5]
    # A worker has nothing to do until its call is committed.
    result = simulate(model, at(0.0, 0.1), BoxesInTurn(), machine)
    assert result.end_s == 2.75


def test_a_box_does_not_run_twice_at_the_same_time() -> None:
    result = simulate(
        chain(1.0), at(0.0, 0.1, 0.2), BoxesInTurn(train=1), SimulatedMachine(workers=3)
    )
    assert result.end_s == 3.0


def test_the_scheduler_takes_time_before_its_plans_start() -> None:
    machine = SimulatedMachine(decision_s=0.5, planning_s=0.125)
    result = simulate(chain(1.0, 1.0), at(0.0), BoxesInTurn(), machine)
    assert result.spent.scheduler_s == pytest.approx(1.25)
    assert result.end_s == pytest.approx(3.25)
    assert result.decisions == 2


def test_storage_is_asked_once_by_a_plan_and_not_for_what_the_plan_made() -> None:
    machine = SimulatedMachine(storage_call_s=10.0, storage_tuple_s=1.0)
    apart = simulate(chain(0.0, 0.0), at(0.0, count=3), BoxesInTurn(), machine)
    plan = OnePlan(PlannedCall("b0"), PlannedCall("b1"))
    together = simulate(chain(0.0, 0.0), at(0.0, count=3), plan, machine)
    assert apart.spent.storage_s == 2 * (10 + 3)
    assert together.spent.storage_s == 10 + 3
    assert together.outputs["last"].tuples == 3


def test_calls_without_tuples_are_skipped() -> None:
    plan = OnePlan(PlannedCall("b1"), PlannedCall("b0"), PlannedCall("b1"))
    result = simulate(chain(1.0, 1.0, call_s=1.0), at(0.0), plan)
    assert (result.calls, result.end_s) == (2, 4.0)


def test_selectivities_carry_fractions_over() -> None:
    boxes = {"f": FlowBox("f", ("s",), {"f": 0.3, "f.rest": 0.7}, 0.0)}
    outputs = {"yes": FlowOutput("yes", "f"), "no": FlowOutput("no", "f.rest")}
    times = [float(second) for second in range(100)]
    result = simulate(FlowModel(boxes, outputs), at(*times), BoxesInTurn())
    assert (result.outputs["yes"].tuples, result.outputs["no"].tuples) == (30, 70)


def test_threads_switch_at_a_price_that_grows_with_their_number() -> None:
    machine = SimulatedMachine(switch_s=1.0, cached_threads=2)
    assert machine.switching_s(2) == 2.0
    assert machine.switching_s(4) == 5.0
    assert simulate(chain(0.0, 0.0), at(0.0), BoxesInTurn(), machine).spent.worker_s == 4.0


def test_utility_is_that_of_the_latency_graph() -> None:
    model = chain(1.0, qos=QoS(latency=[(0, 1), (1, 1), (3, 0)]))
    result = simulate(model, at(*[0.0] * 4), BoxesInTurn(), SimulatedMachine())
    assert result.mean_utility == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert result.outputs["last"].latency_quantile_s(0.5) == pytest.approx(2.0)


def test_memory_is_traced_over_time() -> None:
    result = simulate(chain(1.0), at(0.0, 0.0, 2.0), BoxesInTurn())
    assert result.memory.at([0.0, 1.0, 2.5, 4.0]) == [2.0, 2.0, 1.0, 0.0]
    assert result.memory.most == 2.0
    assert result.memory.mean == pytest.approx((2 * 2 + 1 * 1) / 3)


def test_a_simulation_can_be_stopped() -> None:
    result = simulate(chain(1.0), at(0.0, 0.1, 0.2), BoxesInTurn(train=1), until_s=1.5)
    assert (result.outputs["last"].tuples, result.waiting) == (1, 1)


def test_tuples_may_wait_at_the_beginning() -> None:
    result = simulate(chain(1.0, 1.0), {}, BoxesInTurn(), queued={"b1": [(0.0, 2, 0.0)]})
    assert result.outputs["last"].tuples == 2
    assert result.end_s == 2.0


class EveryOther:
    """Drops half of all tuples of a stream from the first period on."""

    def __init__(self, interval: DropInterval | None = None):
        self.period_s = 1.0
        self.periods: list[SimulatedPeriod] = []
        self._drop = Drop("b0", "s", 0.5 if interval is None else 1.0, 1, ("last",), interval)

    def drops(self, period: SimulatedPeriod) -> Sequence[Drop]:
        self.periods.append(period)
        return [self._drop]


def test_a_shedder_drops_a_share_from_its_first_period_on() -> None:
    shedder = EveryOther()
    times = [tick / 10 for tick in range(1, 31)]
    result = simulate(chain(0.01), at(*times), BoxesInTurn(), shedder=shedder)
    assert result.dropped == {("b0", "s"): 10}
    assert result.outputs["last"].tuples == 20
    assert result.arrived == 30
    assert shedder.periods[0].arrived == {"s": 10}
    assert shedder.periods[0].latencies_s["last"] == pytest.approx(0.01)


def test_a_shedder_drops_by_value() -> None:
    shedder = EveryOther(DropInterval("x", None, 5.0))
    arriving = {"s": [(second / 10, 1, float(second % 10)) for second in range(1, 41)]}
    result = simulate(chain(0.01), arriving, BoxesInTurn(), shedder=shedder)
    # Ten in the first second pass; of thirty others those with values 0 to 4 are dropped.
    assert result.outputs["last"].tuples == 10 + 15


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), max_size=20),
    st.lists(st.integers(1, 6), max_size=20),
)
def test_queues_of_runs_are_queues_of_tuples(put: list[tuple[int, int]], take: list[int]) -> None:
    queue = RunQueue()
    naive: list[float] = []
    takes = iter(take)
    for arrival_s, count in put:
        queue.put([(float(arrival_s), count, 0.0)])
        naive += [float(arrival_s)] * count
        most = next(takes, None)
        if most is not None:
            taken = [run[0] for run in queue.take(most) for _ in range(run[1])]
            assert taken == naive[:most]
            naive = naive[most:]
        assert queue.queued == len(naive)
        if naive:
            assert queue.mean_arrival_s == pytest.approx(sum(naive) / len(naive))
            assert queue.oldest_arrival_s == min(naive)


@given(
    st.lists(st.floats(0, 20), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_every_tuple_comes_out_and_time_adds_up(
    times: list[float], train: int, workers: int
) -> None:
    machine = SimulatedMachine(workers=workers, decision_s=0.01, storage_call_s=0.02)
    model = chain(0.1, 0.2, 0.3, call_s=0.05)
    result = simulate(model, at(*sorted(times)), BoxesInTurn(train), machine)
    output = result.outputs["last"]
    assert output.tuples == result.arrived == len(times)
    assert output.mean_latency_s >= 0.6
    assert result.spent.processing_s == pytest.approx(0.6 * len(times))
    busy_s = result.spent.total_s - result.spent.scheduler_s
    assert busy_s <= workers * result.end_s + 1e-9
    assert result.memory.bytes[-1] == 0


def test_an_output_that_gets_nothing_is_worth_what_its_late_tuples_are() -> None:
    graph = QoS(latency=[(0, 1), (4, 1), (8, 0)])
    model = chain(10.0, qos=graph)
    starved = simulate(model, at(0.0, 0.0), BoxesInTurn(train=1), until_s=6.0).outputs["last"]
    assert starved.tuples == 0
    assert (starved.mean_latency_s, starved.utility) == (6.0, 0.5)
    assert simulate(model, at(), BoxesInTurn(train=1), until_s=6.0).outputs["last"].utility == 1.0
