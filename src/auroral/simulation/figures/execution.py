"""Figures on what execution costs: [2 Fig. 3, 5, 9] and [1 Fig. 7]."""

from __future__ import annotations

from dataclasses import replace

from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.simulation.arrivals import BurstArrivals, PoissonArrivals, arriving_runs
from auroral.simulation.figures.lab import (
    CALL_S,
    PROTOTYPE,
    ROUND_ROBIN_APPLICATIONS,
    ROUND_ROBIN_BOXES,
    FigureScale,
    TupleAtATime,
    run_loaded,
)
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.report import SimulationReport, SimulationTable
from auroral.simulation.results import SimulationResult
from auroral.simulation.simulator import simulate
from auroral.simulation.workloads import TreeWorkload

_SATURATED_S = 2.5
"""A mean latency above this counts as saturated."""


def thread_per_box(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 3]: latency by the number of boxes, a thread for each box or one scheduler.

    Each query is a chain of five boxes whose stream brings a tuple per second, so the load grows
    with the number of boxes, as in the paper.
    """
    report = SimulationReport(
        "fig3",
        "Stream execution models [2 Fig. 3]",
        "boxes",
        "mean latency [s]",
        y_scale="log",
    )
    threads = SimulatedMachine(switch_s=0.00005, cached_threads=50)
    for boxes in (50, 100, 200, 300, 400, 500, 600):
        workload = TreeWorkload(boxes // 5, depth=5, fan_out=1, call_s=CALL_S)
        model = workload.model(scale.random())
        rates = dict.fromkeys(model.streams, 1.0)
        duration_s = max(10, scale.tuples(40))
        arriving = arriving_runs(rates, duration_s, PoissonArrivals(), scale.seed)
        state_based = simulate(model, arriving, make_scheduler(ROUND_ROBIN_APPLICATIONS), PROTOTYPE)
        per_box = make_scheduler(SchedulerSettings("thread-per-box", "box", "mc", None))
        by_thread = simulate(model, arriving, per_box, threads)
        report.add("state-based", boxes, state_based.mean_latency_s)
        report.add("thread per box", boxes, by_thread.mean_latency_s)
    _judge_threads(report)
    return report


def _judge_threads(report: SimulationReport) -> None:
    state, thread = report.curve("state-based"), report.curve("thread per box")
    first, last = min(state), max(state)
    state_grows, thread_grows = state[last] / state[first], thread[last] / thread[first]
    report.find(
        "thread-per-box degrades faster than state-based",
        thread_grows > 2 * state_grows,
        f"×{thread_grows:.1f} and ×{state_grows:.1f} from {first:.0f} to {last:.0f} boxes",
    )
    report.find("state-based is better with many boxes", state[last] < thread[last])
    grown = last / first
    report.find(
        "state-based degrades at most linearly, thread-per-box much faster than that",
        state_grows <= grown and thread_grows > 2 * grown,
        f"×{grown:.0f} boxes",
    )


def box_or_application(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 5]: latency by load, boxes scheduled one by one or as applications."""
    report = SimulationReport(
        "fig5",
        "Box versus application scheduling [2 Fig. 5]",
        "capacity",
        "mean latency [s]",
        y_scale="log",
    )
    model = TreeWorkload(5, call_s=CALL_S).model(scale.random())
    for capacity in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
        for name, settings in (
            ("RR-BAAT", ROUND_ROBIN_BOXES),
            ("MC-AAAT", ROUND_ROBIN_APPLICATIONS),
        ):
            result = run_loaded(model, settings, capacity, max(4_000, scale.tuples(20_000)), scale)
            report.add(name, capacity, result.mean_latency_s)
    boxes, applications = report.curve("RR-BAAT"), report.curve("MC-AAAT")
    ends = {name: _saturation(report.curve(name), _SATURATED_S) for name in report.series}
    report.find(
        "RR-BAAT saturates much earlier than MC-AAAT",
        ends["RR-BAAT"] + 0.2 <= ends["MC-AAAT"],
        f"below {_SATURATED_S:.2g} s until {ends['RR-BAAT']} and {ends['MC-AAAT']}",
    )
    report.find("MC-AAAT holds on until 0.9", ends["MC-AAAT"] >= 0.9)
    report.find(
        "MC-AAAT is better at every load",
        all(applications[load] < boxes[load] for load in boxes),
    )
    return report


def _saturation(curve: dict[float, float], limit_s: float) -> float:
    """The largest load up to which latency stays below a limit."""
    reached = 0.0
    for load in sorted(curve):
        if curve[load] > limit_s:
            break
        reached = load
    return reached


def overhead_distribution(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 9]: what tuples cost, a tuple, a train or a superbox at a time.

    All streams bring a tuple at once, and the next ones after all is done, so that trains have
    the same length with each of the three.
    """
    report = SimulationReport("fig9", "Distribution of execution overheads [2 Fig. 9]")
    model = TreeWorkload(4, call_s=CALL_S).model(scale.random())
    tuples = scale.tuples(20_000)
    process = BurstArrivals(1, together=True)
    boxes, applications = ROUND_ROBIN_BOXES, ROUND_ROBIN_APPLICATIONS
    results = {
        name: run_loaded(model, scheduler, 0.2, tuples, scale, process=process)
        for name, scheduler in (
            ("TAAT", TupleAtATime(make_scheduler(boxes))),
            ("BAAT", make_scheduler(boxes)),
            ("MC", make_scheduler(applications)),
        )
    }
    _tell_overheads(report, results)
    taat, baat, mc = (results[name].spent for name in ("TAAT", "BAAT", "MC"))
    report.find(
        "tuple at a time is significantly worse than trains",
        taat.total_s > 1.4 * baat.total_s,
        f"×{taat.total_s / baat.total_s:.2f}",
    )
    report.find(
        "superboxes cost less than trains alone",
        mc.total_s < 0.8 * baat.total_s,
        f"×{mc.total_s / baat.total_s:.2f}; paper: almost half",
    )
    shares = [spent.overhead_shares()["scheduler"] for spent in (taat, baat, mc)]
    report.find(
        "the scheduler's share of the overhead rises with batching",
        shares[0] < shares[1] < shares[2],
        ", ".join(f"{share:.0%}" for share in shares),
    )
    report.find("the scheduler dominates with superboxes", shares[2] > 0.5, f"{shares[2]:.0%}")
    for part in ("worker", "storage"):
        found = [spent.overhead_shares()[part] for spent in (taat, baat, mc)]
        report.find(
            f"the share of the {part} falls with batching",
            found[0] > found[1] > found[2],
            ", ".join(f"{share:.0%}" for share in found),
        )
    return report


def execution_overhead(scale: FigureScale) -> SimulationReport:
    """[1 Fig. 7]: time in the scheduler and in all, 40 boxes of depth four, trains of two."""
    report = SimulationReport("paper1-fig7", "Execution overhead of 40 boxes [1 Fig. 7]")
    # Ten applications of four boxes, one behind the other.
    model = TreeWorkload(10, depth=4, fan_out=1, call_s=CALL_S).model(scale.random())
    tuples = scale.tuples(20_000)
    process = BurstArrivals(2, together=True)
    one_each = replace(ROUND_ROBIN_BOXES, train=1)
    results = {
        name: run_loaded(model, settings, 0.2, tuples, scale, process=process)
        for name, settings in (
            ("box at a time", one_each),
            ("trains", ROUND_ROBIN_BOXES),
            ("trains and superboxes", ROUND_ROBIN_APPLICATIONS),
        )
    }
    _tell_overheads(report, results)
    single, trains, superboxes = (result.spent for result in results.values())
    first = trains.scheduler_s / single.scheduler_s
    second = superboxes.scheduler_s / trains.scheduler_s
    report.find(
        "trains reduce the time in the scheduler", first < 0.8, f"×{first:.2f}; paper ×0.48"
    )
    report.find("superboxes reduce it further", second < 0.8, f"×{second:.2f}; paper ×0.43")
    report.find(
        "execution costs fall as well",
        single.overhead_s > trains.overhead_s > superboxes.overhead_s,
        ", ".join(f"{one.overhead_s:.0f} s" for one in (single, trains, superboxes)),
    )
    return report


def _tell_overheads(report: SimulationReport, results: dict[str, SimulationResult]) -> None:
    table = SimulationTable(
        "seconds, by what they were spent on",
        [
            *("run", "tuples", "calls", "decisions"),
            *("processing", "worker", "storage", "scheduler", "all"),
        ],
    )
    for name, result in results.items():
        spent = result.spent
        parts = (spent.processing_s, spent.worker_s, spent.storage_s, spent.scheduler_s)
        table.rows.append(
            [name, result.arrived, result.calls, result.decisions, *parts, spent.total_s]
        )
    report.tables.append(table)
    report.bars = {
        name: {
            "worker": result.spent.worker_s,
            "storage": result.spent.storage_s,
            "scheduler": result.spent.scheduler_s,
        }
        for name, result in results.items()
    }
    report.y = "overhead [s]"
