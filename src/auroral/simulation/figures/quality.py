"""Figures on scheduling by quality of service: [2 Fig. 11, 13, 14]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowModel
from auroral.simulation.arrivals import BurstArrivals, PoissonArrivals
from auroral.simulation.figures.lab import (
    CALL_S,
    PROTOTYPE,
    ROUND_ROBIN_APPLICATIONS,
    ROUND_ROBIN_BOXES,
    FigureScale,
    run_loaded,
)
from auroral.simulation.report import SimulationReport, SimulationTable
from auroral.simulation.results import SimulationResult
from auroral.simulation.workloads import TreeWorkload, mixed_graphs

PARTITIONS = (1, 2, 5, 10, 20, 40, 80, 160, 320)
BUCKET_S = 15e-9
"""For each bucket, in each decision: the prototype goes through them in order [2 Fig. 12a]. Not
measured: chosen so that many partitions cost as much as the exact method where the paper says so.
Our own scheduler skips empty buckets and does not pay it."""
UTILITY_FIRST = replace(ROUND_ROBIN_APPLICATIONS, scheduler="qos")


def utility_by_load(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 11]: utility by load of p-tuple scheduling and of round robin.

    20 applications of five boxes, tight and loose graphs at random. Streams bring bursts, without
    which nothing waits at low loads and all schedules are alike. p-tuple chooses an application,
    the second level runs all of it; round robin is box-at-a-time, as in the paper, and
    application-at-a-time for comparison. The margin depends on the arrivals: with independent
    tuples (a table of the report) p-tuple starts a plan for each of them, where round robin lets
    trains grow, and falls below round robin at high loads.
    """
    report = SimulationReport(
        "fig11", "QoS-aware scheduling [2 Fig. 11]", "capacity", "mean utility"
    )
    random = scale.random()
    graphs = mixed_graphs(20, random)
    model = TreeWorkload(20, fan_out=1, call_s=CALL_S).model(random, graphs)
    process = BurstArrivals(15, together=True)
    # An overload takes time to show.
    tuples = max(10_000, scale.tuples(16_000))
    for capacity in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2):
        for name, settings in (
            ("p-tuple", UTILITY_FIRST),
            ("RR", ROUND_ROBIN_BOXES),
            ("RR, applications", ROUND_ROBIN_APPLICATIONS),
        ):
            result = run_loaded(model, settings, capacity, tuples, scale, process=process)
            report.add(name, capacity, result.mean_utility)
    report.tables.append(_independent_arrivals(model, scale))
    aware, turns = report.curve("p-tuple"), report.curve("RR")
    margins = {load: aware[load] - turns[load] for load in aware}
    before = [margin for load, margin in margins.items() if load <= 0.7]
    report.find(
        "p-tuple is above round robin up to capacity 0.7",
        min(before) > 0.05,
        f"by {min(before):.2f} to {max(before):.2f}",
    )
    report.find(
        "the margin is stable up to capacity 0.7",
        max(before) - min(before) < 0.1,
        f"it differs by {max(before) - min(before):.2f}",
    )
    report.find(
        "both decrease drastically in an overload",
        all(curve[1.2] < 0.75 * curve[0.5] for curve in (aware, turns)),
        f"p-tuple {aware[0.5]:.2f} to {aware[1.2]:.2f}, RR {turns[0.5]:.2f} to {turns[1.2]:.2f}",
    )
    return report


def _independent_arrivals(model: FlowModel, scale: FigureScale) -> SimulationTable:
    """Mean utilities of the same network without bursts."""
    compared = {
        "p-tuple": UTILITY_FIRST,
        "p-tuple, boxes": replace(UTILITY_FIRST, superbox="box"),
        "RR": ROUND_ROBIN_BOXES,
        "RR, applications": ROUND_ROBIN_APPLICATIONS,
    }
    table = SimulationTable("mean utility with Poisson arrivals", ["capacity", *compared])
    for capacity in (0.3, 0.5, 0.7, 0.9):
        found = [
            run_loaded(
                model, settings, capacity, 4_000, scale, process=PoissonArrivals()
            ).mean_utility
            for settings in compared.values()
        ]
        table.rows.append([capacity, *found])
    return table


def utility_by_partitions(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 13]: utility of bucketed scheduling by the number of partitions."""
    report = SimulationReport(
        "fig13",
        "Bucketing effects on QoS [2 Fig. 13]",
        "partitions",
        "mean utility",
        x_scale="log",
    )
    results = _bucketed(scale)
    exact = results[None]
    for partitions in PARTITIONS:
        report.add("bucketed", partitions, results[partitions].mean_utility)
        report.add("slope-slack (exact)", partitions, exact.mean_utility)
    table = SimulationTable("work of the scheduler", ["scheduler", "decisions", "boxes evaluated"])
    for many, result in results.items():
        name = "exact" if many is None else f"partitions: {many}"
        table.rows.append([name, result.decisions, result.evaluated])
    report.tables.append(table)
    curve = report.curve("bucketed")
    best = max(curve, key=curve.__getitem__)
    report.find(
        "one bucket is poor",
        curve[1] < 0.8 * exact.mean_utility,
        f"{curve[1]:.2f}; exact {exact.mean_utility:.2f}",
    )
    report.find(
        "the maximum is at a moderate number of partitions, around 20",
        5 <= best <= 40,
        f"{curve[best]:.3f} at {best:.0f}",
    )
    report.find("the maximum exceeds the exact method", curve[best] > exact.mean_utility)
    falling = [curve[partitions] for partitions in PARTITIONS if partitions >= best]
    report.find(
        "utility falls beyond it",
        falling == sorted(falling, reverse=True) and falling[-1] < curve[best] - 0.03,
        f"{falling[-1]:.3f} at {PARTITIONS[-1]}",
    )
    report.find("many partitions are worse than the exact method", falling[-1] < exact.mean_utility)
    return report


def overhead_by_partitions(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 14]: the time of the bucketing scheduler by the number of partitions."""
    report = SimulationReport(
        "fig14",
        "Bucketing overheads [2 Fig. 14]",
        "partitions",
        "time in the scheduler [s]",
        x_scale="log",
    )
    results = _bucketed(scale)
    for partitions in PARTITIONS:
        report.add("bucketed", partitions, results[partitions].spent.scheduler_s)
    curve = report.curve("bucketed")
    found = [curve[partitions] for partitions in PARTITIONS]
    report.find("overhead rises with partitions", found == sorted(found))
    early, late = curve[40] / curve[1] - 1, curve[320] / curve[40] - 1
    report.find(
        "it is small up to about 30 partitions and grows after that",
        early < 0.1 and late > 3 * early,
        f"+{early:.0%} from 1 to 40, +{late:.0%} from 40 to 320",
    )
    return report


def _bucketed(scale: FigureScale) -> dict[int | None, SimulationResult]:
    """The exact method (None), and bucketing with numbers of partitions: 200 chains of five boxes.

    The graphs of outputs differ in where they begin to fall and how steeply.
    """
    random = scale.random()
    graphs = {f"a{number}": _random_graph(random) for number in range(200)}
    model = TreeWorkload(200, fan_out=1, call_s=CALL_S).model(random, graphs)
    results: dict[int | None, SimulationResult] = {}
    for partitions in (None, *PARTITIONS):
        settings, machine = UTILITY_FIRST, PROTOTYPE
        if partitions is not None:
            settings = replace(UTILITY_FIRST, scheduler="qos-bucketed", partitions=partitions)
            machine = replace(PROTOTYPE, decision_s=PROTOTYPE.decision_s + BUCKET_S * partitions**2)
        results[partitions] = run_loaded(
            model,
            settings,
            0.3,
            max(2_000, scale.tuples(4_000)),
            scale,
            process=BurstArrivals(2, together=True),
            machine=machine,
        )
    return results


def _random_graph(random: np.random.Generator) -> QoS:
    full_s = float(random.uniform(0, 2))
    falls_s = float(np.exp(random.uniform(np.log(0.1), np.log(4))))
    return QoS(latency=[(0, 1), (full_s, 1), (full_s + falls_s, 0)])
