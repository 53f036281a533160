"""The simulated figures as a part of `auroral bench qos`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auroral.simulation.figures import FIGURES
from benchmarks.lab import Lab
from benchmarks.qos import simulated as experiment
from benchmarks.report import Report


def test_charts_of_figures_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(experiment, "FIGURES", {"fig7": FIGURES["fig7"]})
    spark: Any = None  # figures need none
    for plots in (None, tmp_path / "charts"):
        report = Report("qos")
        experiment.simulated(report, Lab(spark, quick=True, place=tmp_path, plots=plots))
        assert {row[0] for row in report.sections[0].rows} == {"fig7"}
    assert [path.name for path in tmp_path.rglob("*.png")] == ["fig7.png"]
