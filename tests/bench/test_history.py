"""The experiments about history, with few tuples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from auroral import UsageError
from benchmarks import BENCHMARKS, ad_hoc, history, keeping, live_changes, tables
from benchmarks.lab import Lab
from benchmarks.postgres_server import binaries
from benchmarks.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_every_way_finds_the_same_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_TUPLES", 600_000)
    report = Report("history")
    history.lookup(report, Lab(spark, False, tmp_path))
    organised, looked_up = report.data()["sections"]
    assert organised["rows"][0]["tuples"] == 600_000
    assert organised["rows"][0]["distinct_keys"] == 3_000
    assert len(looked_up["rows"]) == 8
    read = {
        row["way"]: row["rows_read"] for row in looked_up["rows"] if row["question"] == "one key"
    }
    assert read["lookup"] < 50_000
    assert read["scan"] == read["plain Spark"] == 600_000
    assert [bar.name for bar in report.bars] == [
        "rows of one key: scan / lookup",
        "rows of one key: plain Spark / lookup",
    ]


@pytest.mark.spark
def test_attached_queries_give_a_first_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad_hoc, "_KEPT", 4_000)
    monkeypatch.setattr(ad_hoc, "_TIMES", 1)
    report = Report("history")
    ad_hoc.first_row(report, Lab(spark, False, tmp_path))
    (section,) = report.data()["sections"]
    assert {(row["point"], row["query"]) for row in section["rows"]} == {
        (point, query)
        for point in ("no key", "key sid")
        for query in ("all", "filter", "filter on sid")
    }
    assert all(row["kept"] == 4_000 for row in section["rows"])
    (bar,) = report.bars
    assert bar.value == max(row["slowest_s"] for row in section["rows"])


@pytest.mark.spark
def test_live_steps_are_measured_with_and_without_a_query_that_catches_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad_hoc, "_KEPT", 20_000)
    monkeypatch.setattr(ad_hoc, "_STEPS", 8)
    report = Report("history")
    ad_hoc.catching_up(report, Lab(spark, False, tmp_path))
    (section,) = report.data()["sections"]
    assert [row["query"] for row in section["rows"]] == ["filter", "window"]
    for row, bar in zip(section["rows"], report.bars, strict=True):
        assert row["steps_without"] >= 4
        assert row["steps"] >= 1
        assert bar.value == row["median_ms"] / row["median_without_ms"]


@pytest.mark.spark
def test_changes_leave_other_outputs_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_changes, "_TIMES", 2)
    report = Report("history")
    live_changes.changes(report, Lab(spark, False, tmp_path))
    changed, untouched = report.data()["sections"]
    assert [row["times"] for row in changed["rows"]] == [2, 2, 2]
    for row in untouched["rows"]:
        assert row["came"] == row["expected"] > 0
    assert [bar.met for bar in report.bars] == [True]


@pytest.mark.parametrize(
    ("came", "verdict"),
    [
        ([(0,), (1,), (2,)], (0, 0, 0)),
        ([(0,), (2,)], (1, 0, 0)),
        ([(0,), (1,), (1,), (2,)], (0, 1, 0)),
        ([(0,), (1,), (1,)], (1, 1, 0)),
        ([(1,), (0,), (2,)], (0, 0, 2)),
    ],
)
def test_lost_repeated_and_moved_tuples_are_counted(
    came: list[tuple[int, ...]], verdict: tuple[int, int, int]
) -> None:
    assert live_changes.compare([(0,), (1,), (2,)], came) == verdict


@pytest.mark.spark
def test_keeping_history_is_compared_with_keeping_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_TRAIN", 2_000)
    monkeypatch.setattr(keeping, "_TURNS", 1)
    monkeypatch.setattr(keeping, "_TRAINS_PER_TURN", 1)
    report = Report("history")
    keeping.keeping(report, Lab(spark, False, tmp_path))
    (section,) = report.data()["sections"]
    relative = {row["history"]: row["relative"] for row in section["rows"]}
    assert relative["no history"] == 1.0
    assert [bar.value for bar in report.bars] == [relative["rows"], relative["rows by key"]]
    kept = {row["history"]: row["kept_mb"] for row in section["rows"]}
    assert kept["no history"] == 0.0 < kept["rows"]


@pytest.mark.spark
def test_tables_are_measured_on_what_databases_there_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ACCOUNTS", 1_000)
    monkeypatch.setattr(tables, "TRAIN", 500)
    report = Report("history")
    tables.tables(report, Lab(spark, True, tmp_path))
    (section,) = report.data()["sections"]
    stores = ["sqlite", "postgresql"] if binaries() is not None else ["sqlite"]
    kinds = ("update", "read", "update and read")
    measured = [(row["store"], row["box"]) for row in section["rows"]]
    assert measured == [(store, kind) for store in stores for kind in kinds]
    assert len(report.bars) == 2 * len(stores)


def test_every_experiment_can_be_chosen() -> None:
    names = ["lookup", "attach", "catching_up", "changes", "keeping", "tables"]
    assert list(history.EXPERIMENTS) == names


def test_options_that_it_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="BAD_OPTION"):
        BENCHMARKS["history"](plots=tmp_path)
    with pytest.raises(UsageError, match="UNKNOWN_EXPERIMENT"):
        BENCHMARKS["history"](only=["nothing"])
