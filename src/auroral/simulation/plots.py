"""Charts of simulation reports as PNG files; needs matplotlib, the extra `plots`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from auroral.errors import UsageError
from auroral.simulation.report import SimulationReport

_MARKERS = "osD^v*"


def require_plots() -> None:
    """Refuse to draw if there is nothing to draw with."""
    if find_spec("matplotlib") is None:
        raise UsageError(
            "NO_PLOTS",
            "charts need matplotlib, which is not installed",
            hint="pip install 'auroral[plots]', or leave --plots out",
        )


def save_chart(report: SimulationReport, directory: Path) -> Path | None:
    """Draw the curves or bars of a report into a directory; None if it has none."""
    if not report.series and not report.bars:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    directory.mkdir(parents=True, exist_ok=True)
    # Not pyplot: nothing global is touched, and no display is needed.
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if report.bars:
        _draw_bars(axes, report)
    else:
        _draw_curves(axes, report)
    axes.set_title(report.title, fontsize=10)
    axes.set_ylabel(report.y)
    axes.grid(visible=True, alpha=0.3)
    _, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(labels), 3))
    path = directory / f"{report.name}.png"
    figure.savefig(path, dpi=120)
    return path


def _draw_curves(axes: Any, report: SimulationReport) -> None:
    for number, (name, points) in enumerate(report.series.items()):
        marker = _MARKERS[number % len(_MARKERS)]
        axes.plot([x for x, _ in points], [y for _, y in points], marker=marker, label=name)
    axes.set_xlabel(report.x)
    axes.set_xscale(report.x_scale)
    axes.set_yscale(report.y_scale)
    if report.y_scale == "linear":
        axes.set_ylim(bottom=0)
    if report.x_scale == "log":
        ticks = sorted({x for points in report.series.values() for x, _ in points})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()


def _draw_bars(axes: Any, report: SimulationReport) -> None:
    """Stacked bars, the whole written above each."""
    names = list(report.bars)
    below = [0.0] * len(names)
    for part in next(iter(report.bars.values())):
        heights = [report.bars[name][part] for name in names]
        drawn = axes.bar(names, heights, 0.6, bottom=below, label=part)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.bar_label(drawn, [f"{whole:.3g}" for whole in below], padding=2)
    axes.margins(y=0.1)
