"""Figures on the order of boxes in a superbox: [2 Fig. 6, 7] and its worked example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from auroral.scheduling.decisions import PlannedCall, SchedulingPlan
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.traversals import (
    SuperboxTree,
    Traversal,
    TraversalRun,
    mem_rr,
    run_traversal,
    traverse,
)
from auroral.simulation.arrivals import BurstArrivals
from auroral.simulation.figures.lab import (
    CALL_S,
    ROUND_ROBIN_APPLICATIONS,
    FigureScale,
    run_loaded,
)
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.report import SimulationReport, SimulationTable
from auroral.simulation.simulator import simulate
from auroral.simulation.workloads import TreeWorkload, figure_4_tree

Array = npt.NDArray[np.floating[Any]]

BOXES = ("b1", "b2", "b3", "b4", "b5", "b6")
MM_SELECTIVITIES = dict(zip(BOXES, (0.9, 0.4, 0.5, 1.0, 0.4, 0.6), strict=True))
MM_COSTS = dict(zip(BOXES, (2.0, 2.0, 1.0, 2.0, 3.0, 1.0), strict=True))
TRAVERSALS: tuple[Traversal, ...] = ("mm", "mc", "ml")
_TREES = 6

_Coefficients = tuple[int, float, float, float, float, str]
"""Calls, total time by p and o, mean latency by p and o, the order of the boxes."""
_PRINTED: dict[Traversal, _Coefficients] = {
    "mc": (6, 15.0, 6.0, 12.5, 6.0, "b4 b5 b3 b2 b6 b1"),
    "ml": (15, 15.0, 15.0, 7.17, 7.17, "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1"),
}


def cost_or_latency(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 6]: latency of `mc` and `ml` by the cost of a tuple, one tree at capacity 0.5."""
    report = SimulationReport(
        "fig6",
        "Min-cost versus min-latency traversals [2 Fig. 6]",
        "cost of a tuple [ms]",
        "mean latency [s]",
    )
    # Calls make the difference; storage and scheduler, which are the same for both, are left out.
    machine = SimulatedMachine()
    process = BurstArrivals(1, together=True)
    for cost_ms in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0):
        model = TreeWorkload(1, call_s=CALL_S, cost_s=cost_ms / 1000).model(scale.random())
        for traversal in ("mc", "ml"):
            settings = replace(ROUND_ROBIN_APPLICATIONS, traversal=traversal)
            result = run_loaded(
                model,
                settings,
                0.5,
                scale.tuples(10_000),
                scale,
                process=process,
                machine=machine,
            )
            report.add(traversal.upper(), cost_ms, result.mean_latency_s)
    mc, ml = report.curve("MC"), report.curve("ML")
    costs = sorted(mc)
    report.find("MC is better where boxes are cheap", mc[costs[0]] < ml[costs[0]])
    report.find("ML is better where boxes are expensive", ml[costs[-1]] < mc[costs[-1]])
    report.find(
        "both get worse with the cost of a tuple",
        all(curve[costs[-1]] > curve[0.4] > curve[0.2] for curve in (mc, ml)),
    )
    better = [ml[cost] < mc[cost] for cost in costs]
    report.find(
        "there is one crossover",
        better == sorted(better) and any(better) and not all(better),
        next((f"ML is better from {c} ms on" for c, b in zip(costs, better, strict=True) if b), ""),
    )
    return report


def memory_over_time(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 7]: memory during the run of a superbox, in proportion to that of `mm`.

    One tuple waits for each box; results count as memory, as in the paper's example. Six trees
    are drawn, and their curves averaged. ML is the worst only while calls are a large part of
    the cost: with many tuples in each queue it needs less memory than MC.
    """
    report = SimulationReport(
        "fig7",
        "Memory requirements of traversals [2 Fig. 7]",
        "share of the time of MM",
        "memory / memory of MM",
    )
    workload = TreeWorkload(1, call_s=CALL_S, selectivity=(0.5, 1.0))
    shares = [step / 20 for step in range(1, 21)]
    ratios = {how: np.zeros(len(shares)) for how in TRAVERSALS}
    total_s = dict.fromkeys(TRAVERSALS, 0.0)
    for number in range(_TREES):
        model = workload.model(np.random.default_rng([scale.seed, number]))
        tree = SuperboxTree(model, "a0.0.0")
        queued = dict.fromkeys(tree.boxes, 1.0)
        runs = {how: run_traversal(tree, traverse(tree, queued, how), queued) for how in TRAVERSALS}
        moments = np.array(shares) * runs["mm"].total_s
        least = _memory_at(runs["mm"], moments, len(queued))
        for how, run in runs.items():
            ratios[how] += _memory_at(run, moments, len(queued)) / least / _TREES
            total_s[how] += run.total_s / _TREES
    for how, found in ratios.items():
        report.series[how.upper()] = list(zip(shares, found.tolist(), strict=True))
    _judge_memory(report, total_s)
    return report


def _memory_at(run: TraversalRun, moments: Array, at_first: int) -> Array:
    places = np.searchsorted(run.ended_s, moments, side="right")
    found: Array = np.array([at_first, *run.memory_bytes])[places]
    return found


def _judge_memory(report: SimulationReport, total_s: dict[Traversal, float]) -> None:
    means = {how: sum(y for _, y in points) / len(points) for how, points in report.series.items()}
    detail = ", ".join(f"{how} {mean:.2f}" for how, mean in means.items())
    report.find("MM needs the least memory", means["MM"] < means["MC"], detail)
    report.find("ML needs the most memory", means["ML"] > means["MC"], detail)
    ratio = report.curve("MC")
    late = min(ratio, key=ratio.__getitem__)
    report.find(
        "MC catches up with MM towards the end",
        late > 0.7 and ratio[late] < 1.0,
        f"×{ratio[late]:.2f} at {late:g}",
    )
    report.find(
        "MC ends first",
        total_s["mc"] < total_s["mm"] < total_s["ml"],
        ", ".join(f"{how.upper()} {seconds:.3g} s" for how, seconds in total_s.items()),
    )


def worked_example(_scale: FigureScale) -> SimulationReport:
    """The worked example of [2 §4.1.2] on the tree of its Fig. 4.

    Latencies are linear in the cost of a tuple p and of a call o: two simulations, with p = 1 and
    with o = 1, give their coefficients.
    """
    report = SimulationReport("superbox", "Traversals of the tree of [2 Fig. 4]")
    free = dict.fromkeys(BOXES, 0.0)
    tuples_cost = figure_4_tree(dict.fromkeys(BOXES, 1.0), 0.0)
    calls_cost = figure_4_tree(free, 1.0)
    table = SimulationTable(
        "one tuple in each queue, cost of a tuple p, of a call o",
        ["traversal", "calls", "total", "mean latency", "order"],
    )
    report.tables.append(table)
    found: dict[Traversal, _Coefficients] = {}
    both: tuple[Traversal, ...] = ("mc", "ml")
    for how in both:
        # The order is that of equal costs; without costs all output costs would be equal.
        tree = SuperboxTree(tuples_cost, "b1")
        order = traverse(tree, set(BOXES), how)
        p = simulate(tuples_cost, {}, _Calls(order), queued=_one_each())
        o = simulate(calls_cost, {}, _Calls(order), queued=_one_each())
        found[how] = (
            o.calls,
            p.end_s,
            o.end_s,
            p.mean_latency_s,
            o.mean_latency_s,
            " ".join(order),
        )
        calls, total_p, total_o, latency_p, latency_o, shown = found[how]
        total = f"{total_p:g}p + {total_o:g}o"
        latency = f"{round(latency_p, 2):g}p + {round(latency_o, 2):g}o"
        table.rows.append([how.upper(), calls, total, latency, shown])
    crossover = (found["ml"][4] - found["mc"][4]) / (found["mc"][3] - found["ml"][3])
    _judge_example(report, found, crossover)
    _min_memory(report)
    return report


class _Calls:
    """One plan with given calls."""

    def __init__(self, order: list[str]):
        self._calls = tuple(PlannedCall(box) for box in order)

    def serve(self, _model: FlowModel) -> None: ...

    def decide(self, _table: QueueTable, _now_s: float, _free: int) -> list[SchedulingPlan]:
        calls, self._calls = self._calls, ()
        return [SchedulingPlan(calls)] if calls else []


def _one_each() -> dict[str, list[tuple[float, int, float]]]:
    return {box: [(0.0, 1, 0.0)] for box in BOXES}


def _judge_example(
    report: SimulationReport,
    found: dict[Traversal, _Coefficients],
    crossover: float,
) -> None:
    for how, printed in _PRINTED.items():
        calls, total_p, total_o, latency_p, latency_o, order = found[how]
        rounded = (calls, total_p, total_o, round(latency_p, 2), round(latency_o, 2), order)
        report.find(f"{how.upper()} is as printed in the paper", rounded == printed)
    report.find(
        "ML has the lower latency if p / o > 0.22",
        round(crossover, 2) == 0.22,
        f"crossover at {crossover:.4f}",
    )


def _min_memory(report: SimulationReport) -> None:
    model = figure_4_tree(MM_COSTS, 0.0, MM_SELECTIVITIES)
    rates = {box: mem_rr(model.boxes[box]) for box in BOXES}
    table = SimulationTable("boxes for MM", ["box", "selectivity", "cost", "mem_rr"])
    table.rows += [
        [box, MM_SELECTIVITIES[box], MM_COSTS[box], round(rates[box], 9)] for box in BOXES
    ]
    report.tables.append(table)
    tree = SuperboxTree(model, "b1")
    orders = {how: traverse(tree, set(BOXES), how) for how in TRAVERSALS}
    runs = {
        how: run_traversal(tree, order, dict.fromkeys(BOXES, 10.0)) for how, order in orders.items()
    }
    memory = SimulationTable(
        "memory with ten tuples in each queue, mean over calls",
        ["traversal", "calls", "tuples", "order"],
    )
    memory.rows += [
        [how.upper(), run.calls, round(run.mean_memory_bytes, 2), " ".join(orders[how])]
        for how, run in runs.items()
    ]
    report.tables.append(memory)
    report.find(
        "mem_rr is 0.05, 0.3, 0.5, 0, 0.2, 0.4",
        [round(rates[box], 9) for box in BOXES] == [0.05, 0.3, 0.5, 0.0, 0.2, 0.4],
    )
    report.find(
        "MM is b3 b6 b2 b5 b3 b2 b1 b4 b2 b1",
        " ".join(orders["mm"]) == "b3 b6 b2 b5 b3 b2 b1 b4 b2 b1",
    )
    means = {how: run.mean_memory_bytes for how, run in runs.items()}
    printed = {"mm": 36, "mc": 39, "ml": 40}
    report.find(
        "memory of MM, MC and ML is about 36, 39 and 40 tuples, within 5 %",
        all(abs(means[how] / printed[how] - 1) < 0.05 for how in TRAVERSALS),
        ", ".join(f"{how.upper()} {means[how]:.1f}" for how in TRAVERSALS),
    )
    report.find("MM needs the least memory", means["mm"] < min(means["mc"], means["ml"]))
    report.find("MC needs less memory than ML", means["mc"] < means["ml"])
