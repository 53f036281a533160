"""Many continuous queries over one stream [5], next to plain Spark, NiagaraCQ's plans and peers.

Every ratio is measured in one run over the same data, and what is counted is counted again by
numpy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from auroral.spark.session.session import start_session
from benchmarks.cacq import (
    alerts,
    changes,
    hundred,
    joins,
    niagara,
    pauses,
    random_queries,
    routing,
)
from benchmarks.lab import Experiments, Lab, choose, run_experiments
from benchmarks.peers.running import require_interpreters
from benchmarks.plots import Chart, save_charts
from benchmarks.report import Report

EXPERIMENTS: Experiments = {
    "random": random_queries.throughput,
    "hundred": hundred.hundred,
    "alerts": alerts.alerts,
    "changes": changes.changes,
    "pauses": pauses.pauses,
    "table3": routing.table_3,
    "table4": routing.table_4,
    "joins": joins.joins,
    "niagara": niagara.niagara,
    "udf": niagara.functions,
}
CHARTS = (
    Chart("random.png", random_queries.RANDOM, "queries", "tuples_per_s", bars=True),
    Chart(
        "hundred.png",
        hundred.HUNDRED,
        "way",
        "tuples_per_s",
        "system",
        across=True,
        log=True,
    ),
    Chart("alerts.png", alerts.ALERTS, "system", "tuples_per_s", "results", bars=True),
    Chart("figure-9.png", routing.TABLE_3, "policy", "filters_per_tuple", bars=True),
    *(
        Chart(
            f"figure-10-{number}.png",
            routing.TABLE_4.format(number),
            "batch",
            "share",
            "filter",
        )
        for number in routing.WORKLOADS
    ),
    Chart("figure-12.png", niagara.FIGURE_12, "queries", "update_ms", "system", log=True),
    Chart(
        "figure-13.png",
        niagara.FIGURE_13,
        "articles_per_stock",
        "update_ms",
        "system",
        log=True,
    ),
)


def cacq(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    """Run everything, or the parts named; `peers` are interpreters that have other systems."""
    chosen = choose(EXPERIMENTS, only)
    require_interpreters(peers)
    report = Report("cacq")
    spark = start_session("local[*]")
    with tempfile.TemporaryDirectory() as place:
        run_experiments(EXPERIMENTS, report, Lab(spark, quick, Path(place), peers), chosen)
    if plots is not None:
        save_charts(report, CHARTS, plots)
    return report
