"""The load controller against a small machine: overloads, bursts, quiet times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.queues import QueueTable
from auroral.shedding.control import (
    LoadController,
    Observation,
    SheddingDecision,
    differs_much,
)
from auroral.shedding.histograms import Histogram
from auroral.shedding.planning import _Planner
from tests.shedding.fluid import PERIOD_S, FluidMachine, PeriodReport
from tests.shedding.sampling import same_value

GOOD_ZONE_S = 2.0
LATENCY = [(0, 1), (GOOD_ZONE_S, 1), (10, 0)]
CAPACITY = 1.6


def network(*, graphs: bool = True) -> FlowModel:
    """Two streams, a box that two outputs share, three outputs."""
    boxes = {
        "clean": FlowBox("clean", ("reports",), {"clean": 0.9}, 0.0005),
        "far": FlowBox("far", ("clean",), {"far": 0.2}, 0.001),
        "count": FlowBox("count", ("clean",), {"count": 0.05}, 0.0005),
        "trades": FlowBox("trades", ("quotes",), {"trades": 0.5}, 0.0012),
    }
    loss = {
        "far": [(0, 0), (0.5, 0.8), (1, 1)],
        "count": [(0, 0), (1, 1)],
        "trades": [(0, 0), (0.5, 1), (1, 1)],
    }
    outputs = {
        name: FlowOutput(name, name, QoS(latency=LATENCY, loss=loss[name] if graphs else None))
        for name in loss
    }
    return FlowModel(boxes, outputs)


def rates(load: float) -> dict[str, float]:
    """The rates at which the network offers this multiple of the capacity."""
    whole = load * CAPACITY / ((0.0005 + 0.9 * 0.0015) * 0.6 + 0.0012 * 0.4)
    return {"reports": 0.6 * whole, "quotes": 0.4 * whole}


def machine(
    mode: SheddingMode = "auto", *, graphs: bool = True, cost_factor: float = 1.0
) -> FluidMachine:
    model = network(graphs=graphs)
    controller = LoadController(mode, capacity=CAPACITY)
    controller.serve(model)
    return FluidMachine(model, CAPACITY, controller, cost_factor)


def run(fluid: FluidMachine, load: float, periods: int) -> list[PeriodReport]:
    return [fluid.period(rates(load)) for _ in range(periods)]


def observe_overload(
    controller: LoadController,
    model: FlowModel,
    rates: Mapping[str, float],
    *,
    inactive: frozenset[str] = frozenset(),
    compiling: bool = False,
    periods: int = 6,
) -> SheddingDecision:
    """Let half of what arrives be processed, and the rest wait longer and longer."""
    queues, decision = QueueTable(model.boxes), SheddingDecision()
    entries = {name: box for name, box in model.boxes.items() if box.inputs[0] in model.streams}
    for period in range(1, periods + 1):
        arrived = {name: rates[box.inputs[0]] * PERIOD_S for name, box in entries.items()}
        for name, count in arrived.items():
            queues.fill(name, int(period * count / 2), mean_arrival_s=0, oldest_arrival_s=0)
        processed = {name: count / 2 for name, count in arrived.items()}
        seen = Observation(
            PERIOD_S,
            rates,
            queues,
            period * PERIOD_S,
            processed,
            inactive=inactive,
            compiling=compiling,
        )
        decision = controller.observe(seen)
    return decision


def is_good(report: PeriodReport) -> bool:
    return all(delay_s <= GOOD_ZONE_S for delay_s in report.delays_s.values())


@pytest.mark.parametrize("mode", ["auto", "random", "semantic", "admission"])
@pytest.mark.parametrize("load", [1.2, 1.5, 2.0, 4.0])
def test_overload_is_shed_within_ten_periods_and_shedding_ends_with_it(
    load: float, mode: SheddingMode
) -> None:
    fluid = machine(mode)
    assert not any(report.decision.drops for report in run(fluid, 0.6, 10))
    reports = run(fluid, load, 60)
    assert all(is_good(report) for report in reports[10:])
    most = sum(rates(load).values()) * GOOD_ZONE_S * 2
    assert all(report.queued <= most for report in reports)
    assert sum(report.decision.changed for report in reports[20:]) <= 1
    after = run(fluid, 0.6, 30)
    assert all(is_good(report) for report in after[10:])
    assert not any(report.decision.drops for report in after[10:])


def test_a_fivefold_burst_is_over_within_ten_periods() -> None:
    fluid = machine()
    run(fluid, 0.6, 10)
    reports = [*run(fluid, 3.0, 6), *run(fluid, 0.6, 30)]
    assert any(report.decision.drops for report in reports)
    assert all(is_good(report) for report in reports[10:])
    assert not any(report.decision.drops for report in reports[20:])


@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
def test_what_piles_up_while_spark_compiles_is_worked_off(load: float) -> None:
    fluid = machine()
    fluid.compiling = True
    run(fluid, load, 20)
    fluid.compiling = False
    reports = run(fluid, load, 500)
    assert not any(report.decision.drops for report in reports)
    assert not reports[0].delays_s or max(reports[0].delays_s.values()) > 5 * GOOD_ZONE_S
    assert is_good(reports[-1])


def test_an_overload_that_began_while_spark_compiled_is_shed_afterwards() -> None:
    fluid = machine()
    fluid.compiling = True
    assert not any(report.decision.drops for report in run(fluid, 1.5, 20))
    fluid.compiling = False
    reports = run(fluid, 1.5, 60)
    assert not any(report.decision.drops for report in reports[:8])
    assert all(report.decision.drops for report in reports[20:])
    assert all(is_good(report) for report in reports[30:])


def test_what_waits_while_spark_compiles_counts_if_that_does_not_end() -> None:
    model = network()
    for periods, sheds in ((6, False), (50, False), (90, True)):
        controller = LoadController("auto", capacity=CAPACITY)
        controller.serve(model)
        decision = observe_overload(controller, model, rates(2.0), compiling=True, periods=periods)
        assert bool(decision.drops) == sheds


def test_first_calls_that_come_again_and_again_do_not_hide_an_overload() -> None:
    """As of a box that gets a few tuples now and then, which wait for their turn."""
    fluid = machine()
    for at in range(100):
        fluid.compiling = at % 5 == 0
        report = fluid.period(rates(2.0))
    assert report.decision.drops
    fluid.compiling = False
    assert all(is_good(report) for report in run(fluid, 2.0, 40)[20:])


def test_tuples_that_wait_within_good_zones_are_not_dropped() -> None:
    """Schedulers let them wait by intention; the same queues count if an output is outside."""
    model = network()
    for outside, sheds in ((0.0, False), (0.5, True), (None, True)):
        controller = LoadController("auto", capacity=CAPACITY)
        controller.serve(model)
        queues, decision = QueueTable(model.boxes), SheddingDecision()
        for period in range(1, 9):
            now_s = period * PERIOD_S
            for name in ("clean", "trades"):
                since_s = now_s - 1.5  # the good zone is 2 s
                queues.fill(name, 900, mean_arrival_s=since_s, oldest_arrival_s=since_s)
            done = {"clean": 200.0, "trades": 100.0}
            seen = Observation(PERIOD_S, rates(2.0), queues, now_s, done, outside=outside)
            decision = controller.observe(seen)
        assert bool(decision.drops) == sheds


def test_long_trains_are_no_stall() -> None:
    seen = Observation(PERIOD_S, {}, QueueTable([]), step_s=1.0, running_s=6.0)
    assert seen.is_stalled
    assert not replace(seen, expected_s=3.0).is_stalled


@pytest.mark.parametrize("load", [0.3, 0.8, 0.97])
def test_nothing_is_dropped_without_overload(load: float) -> None:
    fluid = machine()
    reports = run(fluid, load, 50)
    assert not any(report.decision.drops or report.decision.notes for report in reports)


def test_one_large_train_at_low_load_drops_nothing() -> None:
    fluid = machine()
    loads = [2.0 if at % 10 == 3 else 0.2 for at in range(60)]
    assert not any(fluid.period(rates(load)).decision.drops for load in loads)


def test_without_shedding_the_same_overload_drowns() -> None:
    fluid = machine("off")
    assert not is_good(run(fluid, 1.5, 40)[-1])
    assert not machine("off").decision.drops


def test_auto_sheds_nothing_if_no_output_has_a_loss_or_value_graph() -> None:
    fluid = machine(graphs=False)
    assert not any(report.decision.drops for report in run(fluid, 2.0, 20))
    told = machine("random", graphs=False)
    assert any(report.decision.drops for report in run(told, 2.0, 20))


@pytest.mark.parametrize("cost_factor", [1.3, 2.0])
def test_tuples_that_cost_more_than_was_measured_are_learned(cost_factor: float) -> None:
    fluid = machine(cost_factor=cost_factor)
    reports = run(fluid, 1.2, 500)
    assert all(is_good(report) for report in reports[40:])
    assert sum(report.decision.changed for report in reports[300:]) <= 8
    assert not any(report.decision.drops for report in run(fluid, 0.3, 60)[30:])


def test_a_load_at_the_border_does_not_make_drops_come_and_go() -> None:
    fluid = machine()
    reports = [fluid.period(rates(1.0 + 0.08 * (-1) ** at)) for at in range(100)]
    assert sum(report.decision.changed for report in reports) <= 2


def test_outputs_that_lose_are_those_with_the_smallest_slope() -> None:
    fluid = machine()
    (first, *_) = [report for report in run(fluid, 1.08, 10) if report.decision.drops]
    lost = {name for own in first.decision.drops.values() for d in own for name in d.outputs}
    assert lost == {"trades"}  # half of it is worth nothing
    (note,) = first.decision.notes
    assert {"trades", "quotes"} <= {*note.about}
    assert "times the capacity" in note.why
    assert "drop" in note.why


def test_results_per_second_are_those_of_the_machine_that_was_measured() -> None:
    even = [(0, 0), (1, 1)]
    paced = QoS(loss=even, throughput=[(0, 0), (400, 1)], weights={"throughput": 3})
    graphs = {"plain": QoS(loss=even), "paced": paced}
    boxes = {n: FlowBox(n, ("reports",), {n: 1.0}, 0.001) for n in graphs}
    model = FlowModel(boxes, {n: FlowOutput(n, n, qos) for n, qos in graphs.items()})
    for cores, keeps_more in ((0.5, "paced"), (4.0, "plain")):
        controller = LoadController("auto", capacity=cores)
        controller.serve(model)
        fluid = FluidMachine(model, cores, controller)
        for _ in range(20):  # twice as many as it can do: 500 or 4,000 in a second for each box
            decision = fluid.period({"reports": cores * 1000}).decision
        rates = {name: sum(d.rate for d in decision.drops.get(name, ())) for name in graphs}
        assert min(rates, key=rates.__getitem__) == keeps_more


def test_a_long_queue_between_boxes_gets_a_drop_of_its_own_for_a_while() -> None:
    model = FlowModel(
        {
            "clean": FlowBox("clean", ("reports",), {"clean": 1.0}, 0.0001),
            "far": FlowBox("far", ("clean",), {"far": 1.0}, 0.001),
        },
        {"far": FlowOutput("far", "far", QoS(latency=LATENCY, loss=[(0, 0), (1, 1)]))},
    )
    controller = LoadController("auto", capacity=1.0)
    controller.serve(model)
    queues = QueueTable(model.boxes)
    queues.fill("far", 10_000, mean_arrival_s=0, oldest_arrival_s=0)
    now_s = 0.0

    def period() -> SheddingDecision:
        nonlocal now_s
        now_s += PERIOD_S
        done = {"clean": 250.0, "far": 450.0}
        return controller.observe(Observation(PERIOD_S, {"reports": 500.0}, queues, now_s, done))

    decisions = [period() for _ in range(6)]
    assert not decisions[0].drops
    assert {drop.arc for drop in decisions[-1].drops["far"]} == {"clean"}
    assert {drop.arc for drop in decisions[-1].drops["clean"]} == {"reports"}
    queues.fill("far", 100, mean_arrival_s=now_s, oldest_arrival_s=now_s)
    assert "far" not in period().drops
    for _ in range(5):
        queues.fill("far", 100, mean_arrival_s=now_s, oldest_arrival_s=now_s)
        decision = period()
    assert not decision.drops


def test_inactive_outputs_are_left_alone() -> None:
    controller = LoadController("auto", capacity=CAPACITY)
    model = network()
    controller.serve(model)
    decision = observe_overload(controller, model, rates(2.0), inactive=frozenset({"trades"}))
    assert decision.drops
    assert all("trades" not in d.outputs for own in decision.drops.values() for d in own)


def test_work_that_waits_when_nothing_arrives_any_more_is_shed() -> None:
    controller = LoadController("auto", capacity=CAPACITY)
    model = network()
    controller.serve(model)
    queues = QueueTable(model.boxes)
    nothing = dict.fromkeys(("reports", "quotes"), 0.0)
    for period in range(1, 7):
        left = 50_000 - period * 400
        queues.fill("clean", left, mean_arrival_s=0, oldest_arrival_s=0)
        seen = Observation(PERIOD_S, nothing, queues, period * PERIOD_S, {"clean": 400.0})
        decision = controller.observe(seen)
    assert decision.drops


def test_what_waits_while_one_step_takes_unusually_long_is_no_overload() -> None:
    controller = LoadController("auto", capacity=CAPACITY)
    model = network()
    controller.serve(model)
    queues = QueueTable(model.boxes)
    decisions = []
    for period in range(1, 12):
        now_s = period * PERIOD_S
        queues.fill("clean", 500 * period, mean_arrival_s=0, oldest_arrival_s=0)
        seen = Observation(
            PERIOD_S,
            {"reports": 1000.0},
            queues,
            now_s,
            {"trades": 10.0},
            step_s=0.2,
            running_s=1.6 + now_s,
        )
        decisions.append(controller.observe(seen))
    assert not any(decision.drops for decision in decisions)
    seen = replace(seen, running_s=0.1)
    assert any(
        controller.observe(replace(seen, now_s=now_s + at * PERIOD_S)).drops for at in range(16)
    )


@pytest.mark.parametrize("load", [1.2, 2.0, 5.0])
def test_a_prediction_alone_sheds_nothing(load: float) -> None:
    """Tuples cost a sixth of what was measured, and nothing waits."""
    fluid = machine(cost_factor=1 / 6)
    reports = run(fluid, load, 50)
    assert not any(report.decision.drops for report in reports)
    assert reports[-1].decision.load == pytest.approx(load)


def test_how_much_is_dropped_follows_what_the_machine_does() -> None:
    """Tuples cost half of what was measured: a predicted load of 3 is one of 1.5."""
    exact, wrong = machine(), machine(cost_factor=0.5)
    right, found = run(exact, 1.5, 60)[30:], run(wrong, 3.0, 60)[30:]
    assert all(is_good(report) for report in found)
    kept = sum(sum(report.delivered.values()) for report in right)
    assert sum(sum(report.delivered.values()) for report in found) > 0.9 * 2 * kept


def test_what_was_learnt_of_the_machine_outlives_boxes_that_come_and_go() -> None:
    model = network()
    controller = LoadController("auto", capacity=9.0)
    controller.serve(model)
    fluid = FluidMachine(model, CAPACITY, controller)
    reports = run(fluid, 2.0, 12)
    before, capacity = reports[-1].decision, controller._capacity.at(controller._costs)
    assert capacity == pytest.approx(CAPACITY, rel=0.1)
    controller.expect(7.0)
    fewer = {name: box for name, box in model.boxes.items() if name != "trades"}
    outputs = {name: output for name, output in model.outputs.items() if name != "trades"}
    for changed in (FlowModel(fewer, outputs), model):
        controller.serve(changed)
        assert controller._capacity.at(controller._costs) == pytest.approx(capacity)
    assert run(fluid, 2.0, 1)[0].decision.level >= before.level > 1


def test_a_queue_that_gets_shorter_by_itself_is_no_overload() -> None:
    """As after the first call of a plan, for which Spark compiles."""
    fluid = machine()
    fluid.cores = 0.0
    stalled = run(fluid, 0.5, 6)
    fluid.cores = 4 * CAPACITY
    assert not any(report.decision.drops for report in [*stalled, *run(fluid, 0.5, 40)])


@pytest.mark.parametrize("load", [1.2, 2.0, 4.0])
def test_no_plan_is_made_when_an_overload_begins_after_quiet_periods(
    load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def count(name: str, of: Any) -> None:
        def counted(*args: Any) -> Any:
            made.append(name)
            return of(*args)

        monkeypatch.setattr(_Planner, name, counted)

    count("plan", _Planner.plan)
    count("choose", _Planner.choose)
    fluid = machine()
    controller = fluid.controller
    assert controller is not None
    each: list[int] = []
    for _ in range(40):
        run(fluid, 0.3, 1)
        before = made.count("plan")
        controller.prepare()
        each.append(made.count("plan") - before)
    assert (max(each), each[-1]) == (1, 0), "one plan in a period, until all are there"
    assert made.count("choose") == 1
    before = len(made)
    reports = run(fluid, load, 10)
    assert any(report.decision.drops for report in reports)
    assert not made[before:]


def test_plans_are_not_made_in_advance_for_large_networks_or_while_tuples_are_dropped() -> None:
    outputs = {
        f"o{n}": FlowOutput(f"o{n}", "far", QoS(loss=[(0, 0), (1, 1)])) for n in range(8_000)
    }
    controller = LoadController("auto", capacity=CAPACITY)
    controller.serve(FlowModel(network().boxes, outputs))
    controller.observe(Observation(PERIOD_S, rates(0.3), QueueTable(network().boxes)))
    assert not controller.prepare()
    fluid = machine()
    run(fluid, 2.0, 10)
    assert fluid.controller is not None
    assert not fluid.controller.prepare()


def test_plans_are_made_anew_only_if_statistics_change_much() -> None:
    model = network()
    assert not differs_much(model, network())
    dearer = dict(model.boxes)
    dearer["far"] = FlowBox("far", ("clean",), {"far": 0.2}, 0.00105)
    assert not differs_much(model, FlowModel(dearer, model.outputs))
    dearer["far"] = FlowBox("far", ("clean",), {"far": 0.2}, 0.002)
    assert differs_much(model, FlowModel(dearer, model.outputs))


def test_values_that_are_first_seen_while_tuples_are_dropped_by_chance_are_used() -> None:
    boxes = {"far": FlowBox("far", ("reports",), {"far": 1.0}, 0.001)}
    qos = QoS(value={"on": "v", "graph": [(0, 0), (10, 1)]})
    model = FlowModel(boxes, {"far": FlowOutput("far", "far", qos)})
    controller = LoadController("auto", capacity=1.0)
    rates = {"reports": 2000.0}

    def drops(counts: tuple[float, ...]) -> set[bool]:
        histograms = {"far": Histogram((0, 5, 10), counts)}
        controller.serve(model, histograms, same_value(model))
        decision = observe_overload(controller, model, rates)
        return {drop.interval is not None for own in decision.drops.values() for drop in own}

    assert drops((0, 0)) == {False}
    assert drops((50, 50)) == {True}
    before = observe_overload(controller, model, rates).drops
    assert drops((0, 50)) == {True}  # what was dropped is missing now
    assert observe_overload(controller, model, rates).drops == before
