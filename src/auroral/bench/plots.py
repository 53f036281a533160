"""Charts of a report as PNG files; needs matplotlib, an optional extra."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from auroral.bench.report import Report, Section

HINT = "no plots: matplotlib is not installed; pip install 'auroral[plots]'"
_MARKERS = "osD^v*"


@dataclass(frozen=True)
class Chart:
    """Which columns of which section to draw: `y` over `x`, one series per value of `by`."""

    file: str
    section: str
    x: str
    y: str
    by: str | None = None
    bars: bool = False


def series(section: Section, chart: Chart) -> dict[str, tuple[list[Any], list[float]]]:
    """The values to draw, by name of the series."""
    columns = list(section.columns)
    x, y = columns.index(chart.x), columns.index(chart.y)
    found: dict[str, tuple[list[Any], list[float]]] = {}
    for row in section.rows:
        name = str(row[columns.index(chart.by)]) if chart.by else chart.y
        xs, ys = found.setdefault(name, ([], []))
        xs.append(row[x])
        ys.append(row[y])
    return found


def save_charts(report: Report, charts: Sequence[Chart], directory: Path) -> list[Path]:
    """Draw the charts whose sections are there; returns the files."""
    if find_spec("matplotlib") is None:
        sys.stderr.write(HINT + "\n")
        return []
    directory.mkdir(parents=True, exist_ok=True)
    sections = {section.title: section for section in report.sections}
    return [
        _save(sections[chart.section], chart, directory / chart.file)
        for chart in charts
        if chart.section in sections and sections[chart.section].rows
    ]


def _save(section: Section, chart: Chart, path: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Not pyplot: nothing global is touched, and no display is needed.
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    found = series(section, chart)
    if chart.bars:
        _draw_bars(axes, found)
    else:
        for marker, (name, (xs, ys)) in zip(_MARKERS, found.items(), strict=False):
            axes.plot(xs, ys, marker=marker, label=name)
    axes.set_title(section.title, fontsize=10)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    if len(found) > 1:
        axes.legend()
    figure.savefig(path, dpi=120)
    return path


def _draw_bars(axes: Any, found: dict[str, tuple[list[Any], list[float]]]) -> None:
    """Groups of bars: one group per value of x, one bar per series."""
    places = list(dict.fromkeys(x for xs, _ in found.values() for x in xs))
    width = 0.8 / len(found)
    for number, (name, (xs, ys)) in enumerate(found.items()):
        at = [places.index(x) + (number - (len(found) - 1) / 2) * width for x in xs]
        axes.bar(at, ys, width, label=name)
    shown = [f"{x:,}" if isinstance(x, int) else str(x) for x in places]
    axes.set_xticks(range(len(places)), shown)
