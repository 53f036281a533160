"""Benchmark reports: a table for people, JSON for machines, ratios judged against bars."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Section:
    """One table."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Bar:
    """A figure and what it must reach: at least or at most `limit`."""

    name: str
    value: float
    limit: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass
class Report:
    """What one run measured."""

    name: str
    sections: list[Section] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)

    def section(self, title: str, *columns: str) -> Section:
        self.sections.append(Section(title, columns))
        return self.sections[-1]

    def bar(
        self, name: str, value: float, *, least: float | None = None, most: float | None = None
    ) -> None:
        limit = least if least is not None else most
        assert limit is not None
        self.bars.append(Bar(name, value, limit, at_least=least is not None))

    def data(self) -> dict[str, Any]:
        return {
            "benchmark": self.name,
            "machine": machine(),
            "sections": [
                {
                    "title": s.title,
                    "rows": [dict(zip(s.columns, row, strict=True)) for row in s.rows],
                }
                for s in self.sections
            ],
            "bars": [
                {
                    "name": bar.name,
                    "value": bar.value,
                    "at_least" if bar.at_least else "at_most": bar.limit,
                    "met": bar.met,
                }
                for bar in self.bars
            ],
        }

    def text(self) -> str:
        facts = ", ".join(f"{key} {value}" for key, value in machine().items())
        lines = [f"benchmark {self.name} ({facts})"]
        for section in self.sections:
            lines += ["", section.title, *_table(section.columns, section.rows)]
        lines += ["", "bars"]
        rows = [
            (
                bar.name,
                _shown(bar.value),
                f"{'>=' if bar.at_least else '<='} {_shown(bar.limit)}",
                "met" if bar.met else "NOT MET",
            )
            for bar in self.bars
        ]
        return "\n".join([*lines, *_table(("what", "measured", "bar", ""), rows)])


def machine() -> dict[str, Any]:
    """The facts that figures depend on."""
    import pyspark

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "system": platform.system(),
    }


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    cells = [[str(c) for c in columns], *([_shown(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
