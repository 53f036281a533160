"""The overload experiments on an engine without Spark: what they count, and that they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.engine.runtime.in_process import InProcessExecutor
from benchmarks.lab import Lab
from benchmarks.qos import overload
from benchmarks.qos.battlefield import APPLICATIONS, Delivered, RunResult
from benchmarks.report import Report

BRIEF = overload.Timing(warm_s=0.2, capacity_s=0.1, before_s=0.1, overload_s=1.6, after_s=0.1)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    def engine(network: Any, spark: Any) -> Engine:
        assert spark is None
        return Engine(network, executor=InProcessExecutor())

    monkeypatch.setattr(au, "Engine", engine)
    monkeypatch.setattr(overload, "_WARM_RATE", 100.0)
    none: Any = None
    return Lab(none, quick=True, place=tmp_path)


@pytest.mark.parametrize("heavy", [False, True])
def test_each_way_of_shedding_is_run_beside_no_shedding(lab: Lab, heavy: bool) -> None:
    report = Report("qos")
    (overload.heavy_overload if heavy else overload.overload)(report, lab, BRIEF)
    rows = {row[1]: row for row in report.sections[0].rows}
    assert list(rows)[:4] == ["semantic", "random", "admission", "off"]
    assert len(rows) == (5 if heavy else 4)
    assert all(0 < row[2] <= 1 for row in rows.values())
    assert rows["off"][3] == pytest.approx(0.0)  # all of the value came, if late
    assert rows["off"][7] == 0
    assert len(report.bars) == (8 if heavy else 7)


def test_utility_is_that_of_the_monitor() -> None:
    names = list(APPLICATIONS)
    everything = {name: Delivered(100, 50.0, 100.0) for name in names}
    run = RunResult(1, 100, dict.fromkeys(names, 50.0), everything)
    assert run.utility == pytest.approx((1 + 1 + 0.5) / 3)
    assert run.value_lost == 0.0
    run.delivered["alarms"] = Delivered(50, 20.0, 25.0)
    expected = (3 * 2.5 + 0.5 + 0.5 + 0.4) / 3 / 4
    assert run.utility == pytest.approx(expected)
    assert run.value_lost == pytest.approx(0.6 / 4)
