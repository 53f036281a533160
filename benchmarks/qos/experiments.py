"""`auroral bench qos`: what QoS decides, on Spark and simulated."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from auroral.spark.session.session import start_session
from benchmarks.lab import Experiments, Lab, choose, run_experiments
from benchmarks.optimizing import optimizing
from benchmarks.plots import Chart, save_charts
from benchmarks.qos.overheads import OVERHEADS, overheads
from benchmarks.qos.overload import OVERLOAD, heavy_overload, overload
from benchmarks.qos.predictions import predictions
from benchmarks.qos.scheduling import SUPERBOXES, UTILITY, deciding, scheduling, superboxes
from benchmarks.qos.simulated import simulated
from benchmarks.report import Report

EXPERIMENTS: Experiments = {
    "simulated": simulated,
    "deciding": deciding,
    "scheduling": scheduling,
    "superboxes": superboxes,
    "overheads": overheads,
    "overload": overload,
    "heavy-overload": heavy_overload,
    "optimizing": optimizing,
    "predictions": predictions,
}
CHARTS = (
    Chart("utility.png", UTILITY, "load", "utility", "scheduler"),
    Chart("superboxes.png", SUPERBOXES, "load", "delay_s", "superbox"),
    Chart("overheads.png", OVERHEADS, "way", "milliseconds_per_1000", bars=True),
    Chart("overload.png", OVERLOAD, "load", "utility", "shedding"),
)


def qos(*, quick: bool = False, plots: Path | None = None, only: Sequence[str] = ()) -> Report:
    """Run all experiments, or those in `only`; `quick` with about a tenth of the work."""
    chosen = choose(EXPERIMENTS, only)
    report = Report("qos")
    spark = start_session(f"local[{os.cpu_count() or 2}]")
    with tempfile.TemporaryDirectory() as place:
        run_experiments(EXPERIMENTS, report, Lab(spark, quick, Path(place), plots=plots), chosen)
    if plots is not None:
        save_charts(report, CHARTS, plots)
    return report
