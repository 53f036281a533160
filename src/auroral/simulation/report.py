"""Reports of simulations: series, the findings that they show, tables; as text or plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class ShapeFinding:
    """A statement about the shape of a figure, and whether the simulation shows it."""

    name: str
    holds: bool
    detail: str = ""


@dataclass
class SimulationTable:
    """Rows of values under named columns."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)


@dataclass
class SimulationReport:
    """What a simulation shows."""

    name: str
    title: str
    x: str = ""
    y: str = ""
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Points of a figure, by curve."""
    tables: list[SimulationTable] = field(default_factory=list)
    findings: list[ShapeFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    """How a chart is scaled."""
    bars: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """For a chart of stacked bars: the parts of each bar."""

    def add(self, curve: str, x: float, y: float) -> None:
        """Add a point to a curve."""
        self.series.setdefault(curve, []).append((x, y))

    def curve(self, name: str) -> dict[float, float]:
        """A curve as y by x."""
        return dict(self.series[name])

    def find(self, name: str, holds: bool, detail: str = "") -> None:
        """Note whether the figure has a certain shape."""
        self.findings.append(ShapeFinding(name, bool(holds), detail))

    def data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "simulation": self.name,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "series": {name: [list(p) for p in points] for name, points in self.series.items()},
            "bars": {name: dict(parts) for name, parts in self.bars.items()},
            "tables": [
                {
                    "title": table.title,
                    "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
                }
                for table in self.tables
            ],
            "findings": [vars(finding) for finding in self.findings],
            "notes": self.notes,
        }

    def text(self) -> str:
        """The report to be read by a person."""
        lines = [f"{self.name}: {self.title}"]
        if self.series:
            lines += ["", f"{self.y} by {self.x}", *_table_lines(*self._figure())]
        for table in self.tables:
            lines += ["", table.title, *_table_lines(table.columns, table.rows)]
        if self.findings:
            lines.append("")
        for finding in self.findings:
            detail = f" ({finding.detail})" if finding.detail else ""
            lines.append(f"{'yes' if finding.holds else 'NO '}  {finding.name}{detail}")
        lines += [""] * bool(self.notes) + self.notes
        return "\n".join(lines)

    def _figure(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        xs = sorted({x for points in self.series.values() for x, _ in points})
        curves = {name: dict(points) for name, points in self.series.items()}
        rows: list[Sequence[Any]] = [
            [x, *(curve.get(x, "") for curve in curves.values())] for x in xs
        ]
        return [self.x, *curves], rows


def _table_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    shown = [[_shown(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    is_number = [
        all(isinstance(value, int | float) or value in ("", None) for value in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(columns)
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in [list(columns), *shown]
    ]


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:g}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"
