"""Many continuous queries over one stream [5], next to plain Spark, NiagaraCQ's plans and peers.

Every ratio is measured in one run over the same data, and what is counted is counted again by
numpy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from auroral.bench import cacq_alerts, cacq_niagara, cacq_random, cacq_routing
from auroral.bench.cacq_lab import Lab
from auroral.bench.peers import require_interpreters
from auroral.bench.plots import Chart, save_charts
from auroral.bench.report import Report
from auroral.errors import AuroralError, UsageError, closest
from auroral.spark.session import start_session

EXPERIMENTS: dict[str, Callable[[Report, Lab], None]] = {
    "random": cacq_random.throughput,
    "hundred": cacq_random.hundred,
    "alerts": cacq_alerts.alerts,
    "table3": cacq_routing.table_3,
    "table4": cacq_routing.table_4,
    "niagara": cacq_niagara.niagara,
    "udf": cacq_niagara.functions,
}
CHARTS = (
    Chart("random.png", cacq_random.RANDOM, "queries", "tuples_per_s", bars=True),
    Chart("hundred.png", cacq_random.HUNDRED, "way", "tuples_per_s", "system", bars=True),
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
    Chart("figure-12.png", cacq_niagara.FIGURE_12, "queries", "update_ms", "system"),
    Chart("figure-13.png", cacq_niagara.FIGURE_13, "articles_per_stock", "update_ms", "system"),
)
FAILED = "Experiments that failed"


def cacq(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    """Run everything, or the parts named; `peers` are interpreters that have other systems."""
    chosen = choose(only)
    require_interpreters(peers)
    report = Report("cacq")
    spark = start_session("local[*]")
    with tempfile.TemporaryDirectory() as place:
        run_experiments(report, Lab(spark, quick, Path(place), peers), chosen)
    if plots is not None:
        save_charts(report, CHARTS, plots)
    return report


def choose(only: Sequence[str]) -> list[str]:
    """The experiments to run, in their own order."""
    for name in only:
        if name not in EXPERIMENTS:
            raise UsageError(
                "UNKNOWN_EXPERIMENT",
                f"there is no experiment {name}; there are {', '.join(EXPERIMENTS)}",
                hint=closest(name, EXPERIMENTS),
            )
    return [name for name in EXPERIMENTS if name in only or not only]


def run_experiments(report: Report, lab: Lab, names: Sequence[str]) -> None:
    """Run each; one that fails is told, and the others go on."""
    failed: list[tuple[str, str]] = []
    for name in names:
        try:
            EXPERIMENTS[name](report, lab)
        except AuroralError as error:
            lab.say(f"{name} failed: {error}")
            failed.append((name, str(error)))
    if failed:
        report.section(FAILED, "experiment", "why").rows.extend(failed)
    report.bar("experiments that ran", 1 - len(failed) / len(names), least=1.0)
