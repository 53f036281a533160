"""Many continuous queries over one stream [5], next to plain Spark, NiagaraCQ's plans and peers.

Every ratio is measured in one run over the same data, and what is counted is counted again by
numpy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from auroral.bench import (
    cacq_alerts,
    cacq_changes,
    cacq_hundred,
    cacq_joins,
    cacq_niagara,
    cacq_pauses,
    cacq_random,
    cacq_routing,
)
from auroral.bench.lab import Experiments, Lab, choose, run_experiments
from auroral.bench.peers import require_interpreters
from auroral.bench.plots import Chart, save_charts
from auroral.bench.report import Report
from auroral.spark.session import start_session

EXPERIMENTS: Experiments = {
    "random": cacq_random.throughput,
    "hundred": cacq_hundred.hundred,
    "alerts": cacq_alerts.alerts,
    "changes": cacq_changes.changes,
    "pauses": cacq_pauses.pauses,
    "table3": cacq_routing.table_3,
    "table4": cacq_routing.table_4,
    "joins": cacq_joins.joins,
    "niagara": cacq_niagara.niagara,
    "udf": cacq_niagara.functions,
}
CHARTS = (
    Chart("random.png", cacq_random.RANDOM, "queries", "tuples_per_s", bars=True),
    Chart(
        "hundred.png",
        cacq_hundred.HUNDRED,
        "way",
        "tuples_per_s",
        "system",
        across=True,
        log=True,
    ),
    Chart("alerts.png", cacq_alerts.ALERTS, "system", "tuples_per_s", "results", bars=True),
    Chart("figure-9.png", cacq_routing.TABLE_3, "policy", "filters_per_tuple", bars=True),
    *(
        Chart(
            f"figure-10-{number}.png",
            cacq_routing.TABLE_4.format(number),
            "batch",
            "share",
            "filter",
        )
        for number in cacq_routing.WORKLOADS
    ),
    Chart("figure-12.png", cacq_niagara.FIGURE_12, "queries", "update_ms", "system", log=True),
    Chart(
        "figure-13.png",
        cacq_niagara.FIGURE_13,
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
