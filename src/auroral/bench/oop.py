"""Out-of-order processing: windows, joins and order boxes [3 §8], next to plain Spark.

Throughput and latency are compared with plain Structured Streaming on the same files and cores;
memory with the same network made to keep order everywhere (`engine: {order: enforce}`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from auroral.bench import oop_band, oop_count, oop_join, oop_memory, oop_order
from auroral.bench.lab import Experiments, Lab, choose, run_experiments
from auroral.bench.plots import Chart, save_charts
from auroral.bench.report import Report
from auroral.spark.session import start_session

EXPERIMENTS: Experiments = {
    "count": oop_count.count,
    "latency": oop_count.latency,
    "flush": oop_count.flush,
    "skew": oop_memory.skew,
    "sliding": oop_memory.sliding,
    "late_join": oop_memory.late_join,
    "band": oop_band.band,
    "order": oop_order.order,
    "join": oop_join.join,
}
CHARTS = (
    Chart("count.png", oop_count.COUNT, "groups", "tuples_per_s", "system", bars=True),
    Chart("latency.png", oop_count.LATENCY, "what", "median_ms", bars=True),
    Chart("figure-9-throughput.png", oop_count.FLUSH, "flush", "tuples_per_s", bars=True),
    Chart("figure-9-slowest.png", oop_count.FLUSH, "flush", "slowest_ms", bars=True),
    Chart("figure-1.png", oop_memory.SKEW, "delay_s", "rows_held", "system"),
    Chart("figure-13.png", oop_memory.SLIDING, "delay_s", "rows_held", "system"),
    Chart("figure-12.png", oop_memory.LATE_JOIN, "delay_s", "rows_held", "system"),
    Chart("figure-11a.png", oop_band.BAND, "band_s", "rows_held", "system"),
    Chart("figure-11b.png", oop_band.BAND, "band_s", "latency_ms", "system"),
    Chart("figure-11c.png", oop_band.BAND, "band_s", "execution_s", "system"),
    Chart("order.png", oop_order.ORDER, "groups", "tuples_per_s", "box", bars=True),
    Chart("join.png", oop_join.JOIN, "system", "tuples_per_s", bars=True),
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
