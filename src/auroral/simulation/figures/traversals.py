"""Figures on the order of boxes in a superbox: [2 Fig. 6, 7] and its worked example."""

from __future__ import annotations

from dataclasses import replace

from auroral.scheduling.decisions import PlannedCall, SchedulingPlan
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.traversals import SuperboxTree, Traversal, mem_rr, run_traversal, traverse
from auroral.simulation.figures.lab import (
    CALL_S,
    PROTOTYPE,
    ROUND_ROBIN_APPLICATIONS,
    FigureScale,
    run_loaded,
)
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.report import SimulationReport, SimulationTable
from auroral.simulation.results import SimulationResult
from auroral.simulation.simulator import simulate
from auroral.simulation.workloads import TreeWorkload, figure_4_tree

BOXES = ("b1", "b2", "b3", "b4", "b5", "b6")
MM_SELECTIVITIES = dict(zip(BOXES, (0.9, 0.4, 0.5, 1.0, 0.4, 0.6), strict=True))
MM_COSTS = dict(zip(BOXES, (2.0, 2.0, 1.0, 2.0, 3.0, 1.0), strict=True))
TRAVERSALS: tuple[Traversal, ...] = ("mc", "ml", "mm")


class OneTraversal:
    """Runs one superbox once, its boxes in the order of a traversal."""

    def __init__(self, root: str, traversal: Traversal):
        self._root, self._traversal = root, traversal
        self._calls: tuple[PlannedCall, ...] = ()

    def serve(self, model: FlowModel) -> None:
        tree = SuperboxTree(model, self._root)
        order = traverse(tree, set(tree.boxes), self._traversal)
        self._calls = tuple(PlannedCall(box) for box in order)

    def decide(self, table: QueueTable, now_s: float, free: int) -> list[SchedulingPlan]:
        """The whole superbox."""
        calls, self._calls = self._calls, ()
        return [SchedulingPlan(calls)] if calls else []


def run_superbox(
    model: FlowModel,
    root: str,
    traversal: Traversal,
    queued: int,
    machine: SimulatedMachine | None = None,
) -> SimulationResult:
    """Simulate one run of a superbox with so many tuples in each queue."""
    waiting = {name: [(0.0, queued, 0.0)] for name in model.boxes}
    return simulate(model, {}, OneTraversal(root, traversal), machine, queued=waiting)


def cost_or_latency(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 6]: latency of `mc` and `ml` by the cost of a tuple, one tree at capacity 0.5."""
    report = SimulationReport(
        "fig6",
        "Min-cost versus min-latency traversals [2 Fig. 6]",
        "cost of a tuple [ms]",
        "mean latency [s]",
    )
    # A traversal is compared by the calls that it needs; storage and scheduler are left out.
    machine = replace(PROTOTYPE, storage_call_s=0.0, storage_tuple_s=0.0)
    for cost_ms in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0):
        model = TreeWorkload(1, call_s=CALL_S, cost_s=cost_ms / 1000).model(scale.random())
        for traversal in ("mc", "ml"):
            settings = replace(ROUND_ROBIN_APPLICATIONS, traversal=traversal)
            result = run_loaded(
                model, settings, 0.5, scale.tuples(20_000), scale, machine=machine
            )
            report.add(traversal.upper(), cost_ms, result.mean_latency_s)
    mc, ml = report.curve("MC"), report.curve("ML")
    costs = sorted(mc)
    report.find("MC is better where boxes are cheap", mc[costs[0]] < ml[costs[0]])
    report.find("ML is better where boxes are expensive", ml[costs[-1]] < mc[costs[-1]])
    better = [ml[cost] < mc[cost] for cost in costs]
    report.find(
        "there is one crossover",
        better == sorted(better) and any(better) and not all(better),
        next((f"ML is better from {c} ms on" for c, b in zip(costs, better, strict=True) if b), ""),
    )
    return report


def memory_over_time(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 7]: memory during the run of a superbox, in proportion to that of `mm`."""
    report = SimulationReport(
        "fig7",
        "Memory requirements of traversals [2 Fig. 7]",
        "share of the time of MM",
        "memory / memory of MM",
    )
    workload = TreeWorkload(1, depth=5, fan_out=3, call_s=CALL_S, selectivity=(0.2, 1.0))
    model = workload.model(scale.random())
    runs = {
        how: run_superbox(model, "a0.0.0", how, max(10, scale.tuples(100))) for how in TRAVERSALS
    }
    end_s = runs["mm"].end_s
    shares = [step / 20 for step in range(1, 20)]
    moments = [share * end_s for share in shares]
    least = runs["mm"].memory.at(moments)
    for how, run in runs.items():
        for share, size, base in zip(shares, run.memory.at(moments), least, strict=True):
            report.add(how.upper(), share, size / base)
    means = {how: sum(y for _, y in points) / len(points) for how, points in report.series.items()}
    detail = ", ".join(f"{how} {mean:.2f}" for how, mean in means.items())
    report.find("MM needs the least memory", means["MM"] < means["MC"], detail)
    report.find("ML needs the most memory", means["ML"] > means["MC"], detail)
    ratio = report.curve("MC")
    late = ratio[shares[-1]]
    report.find(
        "MC catches up with MM towards the end", late < 1.0 < max(ratio.values()), f"×{late:.2f}"
    )
    report.find(
        "MC ends first",
        runs["mc"].end_s < runs["mm"].end_s and runs["mc"].end_s < runs["ml"].end_s,
        ", ".join(f"{how.upper()} {run.end_s:.3g} s" for how, run in runs.items()),
    )
    return report


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
    found: dict[Traversal, tuple[int, float, float, float, float, str]] = {}
    for how in ("mc", "ml"):
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

    def serve(self, model: FlowModel) -> None: ...

    def decide(self, table: QueueTable, now_s: float, free: int) -> list[SchedulingPlan]:
        calls, self._calls = self._calls, ()
        return [SchedulingPlan(calls)] if calls else []


def _one_each() -> dict[str, list[tuple[float, int, float]]]:
    return {box: [(0.0, 1, 0.0)] for box in BOXES}


def _judge_example(
    report: SimulationReport,
    found: dict[Traversal, tuple[int, float, float, float, float, str]],
    crossover: float,
) -> None:
    for how, printed in (
        ("mc", (6, 15.0, 6.0, 12.5, 6.0, "b4 b5 b3 b2 b6 b1")),
        ("ml", (15, 15.0, 15.0, 7.17, 7.17, "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1")),
    ):
        calls, total_p, total_o, latency_p, latency_o, order = found[how]  # type: ignore[index]
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
        how: run_traversal(tree, order, dict.fromkeys(BOXES, 10.0))
        for how, order in orders.items()
    }
    memory = SimulationTable(
        "memory with ten tuples in each queue, mean over calls",
        ["traversal", "calls", "tuples", "order"],
    )
    for how in ("mm", "mc", "ml"):
        run = runs[how]  # type: ignore[index]
        order = " ".join(orders[how])  # type: ignore[index]
        memory.rows.append([how.upper(), run.calls, round(run.mean_memory_bytes, 2), order])
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
    report.find(
        "MM needs less memory than MC, MC less than ML",
        means["mm"] < means["mc"] < means["ml"],
        "paper: about 36, 39 and 40; "
        + ", ".join(f"{how.upper()} {mean:.1f}" for how, mean in means.items()),
    )
