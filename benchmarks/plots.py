"""Charts of a report as PNG files; needs matplotlib, an optional extra."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Section

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
    across: bool = False
    """Bars lie, each with its name beside it."""
    log: bool = False
    """The scale is of powers of ten."""


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
    height = max(4.0, 1 + 0.25 * len(section.rows)) if chart.across else 4.0
    figure = Figure(figsize=(9 if chart.across else 6, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    found = series(section, chart)
    if chart.across:
        _draw_across(axes, found)
    elif chart.bars:
        _draw_bars(axes, found)
    else:
        for marker, (name, (xs, ys)) in zip(_MARKERS, found.items(), strict=False):
            axes.plot(xs, ys, marker=marker, label=name)
    axes.set_title(section.title, fontsize=10)
    if chart.across:
        axes.set_xlabel(chart.y)
        axes.set_xscale("log" if chart.log else "linear")
    else:
        axes.set_xlabel(chart.x)
        axes.set_ylabel(chart.y)
        axes.set_yscale("log" if chart.log else "linear")
        axes.set_ylim(bottom=None if chart.log else 0)
    axes.grid(visible=True, alpha=0.3)
    if len(found) > 1:
        figure.legend(loc="outside lower center", ncols=len(found))
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


def _draw_across(axes: Any, found: dict[str, tuple[list[Any], list[float]]]) -> None:
    """A bar for each value, from above; what was not measured is left out."""
    names: list[str] = []
    for name, (xs, ys) in found.items():
        there = [(x, y) for x, y in zip(xs, ys, strict=True) if y]
        at = range(len(names), len(names) + len(there))
        bars = axes.barh(at, [y for _, y in there], label=name)
        axes.bar_label(bars, [f"{y:,.0f}" for _, y in there], padding=3, fontsize=7)
        names += [str(x) for x, _ in there]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
