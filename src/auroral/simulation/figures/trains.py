"""The figure on trains: [2 Fig. 8]."""

from __future__ import annotations

from auroral.scheduling.policies import make_scheduler
from auroral.simulation.arrivals import BurstArrivals
from auroral.simulation.figures.lab import (
    CALL_S,
    ROUND_ROBIN_BOXES,
    FigureScale,
    TrainShare,
    run_loaded,
)
from auroral.simulation.report import SimulationReport
from auroral.simulation.workloads import TreeWorkload, work_per_tuple

BURSTS = (1, 2, 4)


def train_sizes(scale: FigureScale) -> SimulationReport:
    """[2 Fig. 8]: overhead by the size of trains, for bursts of several sizes.

    The overhead of a tuple is its latency less the time for which boxes process it.
    """
    report = SimulationReport(
        "fig8",
        "Train scheduling effects [2 Fig. 8]",
        "train size [share of the queue]",
        "mean overhead of a tuple [ms]",
    )
    model = TreeWorkload(1, fan_out=2, call_s=CALL_S).model(scale.random())
    work = work_per_tuple(model)
    work_s = sum(work.values()) / len(work)
    for burst in BURSTS:
        for share in (0.2, 0.4, 0.6, 0.8, 1.0):
            scheduler = TrainShare(make_scheduler(ROUND_ROBIN_BOXES), share)
            result = run_loaded(
                model,
                scheduler,
                0.1,
                scale.tuples(4_000),
                scale,
                process=BurstArrivals(burst),
            )
            overhead_ms = (result.mean_latency_s - work_s) * 1000
            report.add(f"burst size {burst}", share, overhead_ms)
    _judge(report)
    return report


def _judge(report: SimulationReport) -> None:
    curves = [report.curve(f"burst size {burst}") for burst in BURSTS]
    single, pair, four = curves
    spread = max(single.values()) / min(single.values())
    report.find("without bursts the curve is flat", spread < 1.15, f"×{spread:.2f}")
    report.find(
        "overhead falls with the size of trains",
        all(curve[0.2] > 1.1 * curve[1.0] for curve in (pair, four)),
        f"×{pair[0.2] / pair[1.0]:.2f} and ×{four[0.2] / four[1.0]:.2f}",
    )
    report.find(
        "small trains: the larger the burst, the larger the overhead",
        four[0.2] > pair[0.2] > single[0.2] and four[0.2] > 2.5 * single[0.2],
        f"×{four[0.2] / single[0.2]:.1f} for bursts of 4; paper about ×4",
    )
    report.find(
        "whole queues come near the case without bursts, but do not reach it",
        single[1.0] < four[1.0] and four[1.0] / single[1.0] < four[0.2] / single[0.2],
        f"×{four[1.0] / single[1.0]:.2f}",
    )
