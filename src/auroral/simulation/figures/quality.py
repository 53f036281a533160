"""Figures on scheduling by quality of service: [2 Fig. 11, 13, 14]."""

from __future__ import annotations

from dataclasses import replace

from auroral.scheduling.policies import SchedulerSettings
from auroral.simulation.arrivals import BurstArrivals
from auroral.simulation.figures.lab import (
    CALL_S,
    PROTOTYPE,
    ROUND_ROBIN_BOXES,
    UTILITY_FIRST_BOXES,
    FigureScale,
    run_loaded,
)
from auroral.simulation.report import SimulationReport
from auroral.simulation.results import SimulationResult
from auroral.simulation.workloads import TreeWorkload, mixed_graphs

PARTITIONS = (1, 2, 5, 10, 20, 40, 80, 160, 320)


def utility_by_load(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 11]: utility by load of p-tuple scheduling and of round robin.

    20 applications of five boxes, tight and loose graphs at random. Streams bring bursts, without
    which nothing waits at low loads and all schedules are alike.
    """
    report = SimulationReport(
        "fig11", "QoS-aware scheduling [2 Fig. 11]", "capacity", "mean utility"
    )
    random = scale.random()
    graphs = mixed_graphs(20, random)
    model = TreeWorkload(20, fan_out=1, call_s=CALL_S).model(random, graphs)
    process = BurstArrivals(40, together=True)
    for capacity in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        for name, settings in (("p-tuple", UTILITY_FIRST_BOXES), ("RR", ROUND_ROBIN_BOXES)):
            result = run_loaded(
                model, settings, capacity, scale.tuples(16_000), scale, process=process
            )
            report.add(name, capacity, result.mean_utility)
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
        all(curve[1.0] < 0.75 * curve[0.5] for curve in (aware, turns)),
        f"p-tuple {aware[0.5]:.2f} to {aware[1.0]:.2f}, RR {turns[0.5]:.2f} to {turns[1.0]:.2f}",
    )
    return report
