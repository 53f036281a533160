"""The figures of the papers, simulated: does each come out in the shape that was printed?"""

from __future__ import annotations

from auroral.simulation.figures import FIGURES, FigureScale
from benchmarks.lab import Lab
from benchmarks.report import Report

SHAPES = "Figures simulated: what the papers report, and whether it comes out"


def simulated(report: Report, lab: Lab) -> None:
    """Run all figures and the worked example."""
    section = report.section(SHAPES, "figure", "finding", "holds", "detail")
    missed = 0
    for name, figure in FIGURES.items():
        lab.say(name)
        for finding in figure(FigureScale(1, 0.2 if lab.quick else 1.0)).findings:
            section.rows.append(
                (name, finding.name, "yes" if finding.holds else "no", finding.detail)
            )
            missed += not finding.holds
    report.bar("findings that do not come out", float(missed), most=0.0)
