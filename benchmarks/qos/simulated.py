"""The figures of the papers, simulated: does each come out in the shape that was printed?"""

from __future__ import annotations

from importlib.util import find_spec

from auroral.simulation.figures import FIGURES, FigureScale
from auroral.simulation.plots import save_chart
from benchmarks.lab import Lab
from benchmarks.report import Report

SHAPES = "Figures simulated: what the papers report, and whether it comes out"


def simulated(report: Report, lab: Lab) -> None:
    """Run all figures and the worked example, and draw them if charts are wanted."""
    section = report.section(SHAPES, "figure", "finding", "holds", "detail")
    missed = 0
    for name, figure in FIGURES.items():
        lab.say(name)
        found = figure(FigureScale(1, 0.2 if lab.quick else 1.0))
        if lab.plots is not None and find_spec("matplotlib") is not None:
            save_chart(found, lab.plots)
        for finding in found.findings:
            section.rows.append(
                (name, finding.name, "yes" if finding.holds else "no", finding.detail)
            )
            missed += not finding.holds
    report.bar("findings that do not come out", float(missed), most=0.0)
