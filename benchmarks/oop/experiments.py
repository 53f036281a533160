"""Out-of-order processing: windows, joins and order boxes [3 §8], next to plain Spark.

Throughput and latency are compared with plain Structured Streaming on the same files and cores;
memory with the same network made to keep order everywhere (`engine: {order: enforce}`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from auroral.spark.session.session import start_session
from benchmarks.lab import Experiments, Lab, choose, run_experiments
from benchmarks.oop import band, join, memory, order
from benchmarks.oop import count as counting
from benchmarks.plots import Chart, save_charts
from benchmarks.report import Report

EXPERIMENTS: Experiments = {
    "count": counting.count,
    "latency": counting.latency,
    "flush": counting.flush,
    "skew": memory.skew,
    "sliding": memory.sliding,
    "late_join": memory.late_join,
    "band": band.band,
    "order": order.order,
    "join": join.join,
}
CHARTS = (
    Chart("count.png", counting.COUNT, "groups", "tuples_per_s", "system", bars=True),
    Chart("latency.png", counting.LATENCY, "what", "median_ms", bars=True),
    Chart("figure-9-throughput.png", counting.FLUSH, "flush", "tuples_per_s", bars=True),
    Chart("figure-9-slowest.png", counting.FLUSH, "flush", "slowest_ms", bars=True),
    Chart("figure-1.png", memory.SKEW, "delay_s", "rows_held", "system"),
    Chart("figure-13.png", memory.SLIDING, "delay_s", "rows_held", "system"),
    Chart("figure-12.png", memory.LATE_JOIN, "delay_s", "rows_held", "system"),
    Chart("figure-11a.png", band.BAND, "band_s", "rows_held", "system"),
    Chart("figure-11b.png", band.BAND, "band_s", "latency_ms", "system"),
    Chart("figure-11c.png", band.BAND, "band_s", "execution_s", "system"),
    Chart("order.png", order.ORDER, "groups", "tuples_per_s", "box", bars=True),
    Chart("join.png", join.JOIN, "system", "tuples_per_s", bars=True),
)


def oop(*, quick: bool = False, plots: Path | None = None, only: Sequence[str] = ()) -> Report:
    """Run everything; about twelve minutes, `quick` about three."""
    chosen = choose(EXPERIMENTS, only)
    report = Report("oop")
    spark = start_session("local[*]")
    with tempfile.TemporaryDirectory() as place:
        run_experiments(EXPERIMENTS, report, Lab(spark, quick, Path(place)), chosen)
    if plots is not None:
        save_charts(report, CHARTS, plots)
    return report
