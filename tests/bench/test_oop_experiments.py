"""Every experiment against an engine that does nothing: what is fed, and the report's shape."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

import auroral as au
from benchmarks import data
from benchmarks.lab import Lab
from benchmarks.oop import count as oop_count
from benchmarks.oop import experiments as oop
from benchmarks.oop import join as oop_join
from benchmarks.report import Report
from benchmarks.structured import Batches

WINDOW_US = 10 * data.SECOND_US


class IdleEngine:
    """Takes trains, and gives out one row per call."""

    made: list[IdleEngine]

    def __init__(self, network: au.Network, train: int):
        self.network = network
        self.train = train
        self.fed: Counter[str] = Counter()
        self.finished = False
        self._given = 0
        self._steps_s: list[float] = []
        IdleEngine.made.append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def enqueue(self, stream: str, table: pa.Table) -> None:
        assert stream in self.network.streams
        self.fed[stream] += table.num_rows

    def drain(self) -> None:
        pass

    def wait(self, _seconds: float) -> None:
        raise AssertionError("nothing ever waits")

    def dequeue(self, output: str) -> pa.Table:
        self._steps_s.append(0.1)
        schema = self.network.check().schema_of(self.network.outputs[output].from_).arrow()
        start = data.START_US + (self._given - 6) * WINDOW_US  # long closed
        self._given += 1
        row = {
            f.name: pa.array([start if pa.types.is_timestamp(f.type) else 1]).cast(f.type)
            for f in schema
        }
        return pa.table(row, schema=schema)

    def finish(self) -> None:
        self.finished = True

    def recent_steps_s(self) -> list[float]:
        return self._steps_s

    def stats(self) -> dict[str, Any]:
        ordered = self.network.engine.document().get("order") == "enforce"
        return {
            "steps": {"count": len(self._steps_s)},
            "streams": {name: {"waiting": 0} for name in self.network.streams},
            "boxes": {
                name: {"state": {"t": 4 if ordered else 1}, "held": 4 if ordered else 1}
                for name in self.network.boxes
            },
        }


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    IdleEngine.made = []

    def engine(_lab: Lab, network: au.Network, train: int, *, background: bool = False) -> Any:
        return IdleEngine(network, train)

    def run_query(_spark: Any, _query: Any, store: str) -> Batches:
        idle = IdleEngine(oop_count.count_network(), 1)
        return Batches(store, [0.2] * 100, [1_000] * 100, [5] * 100, [idle.dequeue("counts")] * 100)

    monkeypatch.setattr(Lab, "engine", engine)
    monkeypatch.setattr(oop_count, "run_query", run_query)
    monkeypatch.setattr(oop_join, "run_query", run_query)
    return Lab(None, True, tmp_path)  # type: ignore[arg-type]


def run(lab: Lab, name: str) -> Report:
    report = Report("oop")
    oop.EXPERIMENTS[name](report, lab)
    for section in report.sections:
        assert section.rows
        assert all(len(row) == len(section.columns) for row in section.rows)
    json.dumps(report.data(), allow_nan=False)
    return report


@pytest.mark.parametrize("name", oop.EXPERIMENTS)
def test_report_has_its_sections_and_bars(lab: Lab, name: str) -> None:
    report = run(lab, name)
    titles = {section.title for section in report.sections}
    assert titles <= {chart.section for chart in oop.CHARTS}
    assert report.bars or name == "flush"


def test_charts_draw_columns_that_sections_have(lab: Lab) -> None:
    columns = {
        section.title: set(section.columns)
        for name in ("latency", "skew", "late_join", "band", "join")
        for section in run(lab, name).sections
    }
    for chart in oop.CHARTS:
        if chart.section in columns:
            assert {chart.x, chart.y, chart.by or chart.x} <= columns[chart.section]


def test_both_systems_are_fed_the_same_and_to_the_end(lab: Lab) -> None:
    run(lab, "skew")
    for free, ordered in zip(IdleEngine.made[::2], IdleEngine.made[1::2], strict=True):
        assert free.fed == ordered.fed
        assert free.finished
        assert ordered.finished
        assert ordered.network.engine.document() == {"order": "enforce"}


def test_rows_held_are_compared(lab: Lab) -> None:
    bars = {bar.name: bar for bar in run(lab, "skew").bars}
    assert bars["Figure 1: rows held at 40 s, out of order / in order"].value == 0.25
    assert bars["Figure 1: rows held out of order, 60 s / 10 s"].value == 1.0


def test_every_flush_policy_is_tried(lab: Lab) -> None:
    report = run(lab, "flush")
    assert [row[0] for row in report.sections[0].rows] == ["eager", "slow", "lazy"]
