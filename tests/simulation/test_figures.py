"""Figures of the papers: the simulation shows what the papers found."""

from __future__ import annotations

import pytest

from auroral.simulation.figures import FIGURES, FigureScale
from auroral.simulation.report import SimulationReport

SMALL = 0.05
KNOWN_TO_DIFFER = {
    ("fig9", "the share of the worker falls with batching"),
    ("superbox", "MC needs less memory than ML"),
}
"""What the papers, or we, would like to see and the simulation does not show; see ADR 52."""


def missed(report: SimulationReport) -> list[str]:
    """Findings that do not come out, except for those that are known."""
    return [
        f"{finding.name} ({finding.detail})"
        for finding in report.findings
        if not finding.holds and (report.name, finding.name) not in KNOWN_TO_DIFFER
    ]


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_has_the_shape_that_the_paper_reports(name: str) -> None:
    report = FIGURES[name](FigureScale(seed=1, size=SMALL))
    assert report.name == name
    assert any(finding.holds for finding in report.findings)
    assert missed(report) == []


@pytest.mark.parametrize("name", ["fig3", "fig6", "fig7", "fig9", "paper1-fig7"])
def test_shapes_do_not_depend_on_the_seed(name: str) -> None:
    report = FIGURES[name](FigureScale(seed=7, size=SMALL))
    assert missed(report) == []


def test_the_same_seed_gives_the_same_figure() -> None:
    def points(seed: int) -> SimulationReport:
        return FIGURES["fig8"](FigureScale(seed, 0.02))

    assert points(3).data() == points(3).data()
    assert points(3).series != points(4).series


def test_the_worked_example_is_printed_to_the_digit() -> None:
    text = FIGURES["superbox"](FigureScale()).text()
    for printed in (
        "15p + 6o   12.5p + 6o     b4 b5 b3 b2 b6 b1",
        "15p + 15o  7.17p + 7.17o  b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1",
        "b3 b6 b2 b5 b3 b2 b1 b4 b2 b1",
    ):
        assert printed in text


def test_findings_are_judged_and_not_given() -> None:
    report = SimulationReport("x", "a figure")
    report.find("up is down", False, "it is not")
    assert "NO   up is down (it is not)" in report.text()
    assert report.data()["findings"] == [
        {"name": "up is down", "holds": False, "detail": "it is not"}
    ]
