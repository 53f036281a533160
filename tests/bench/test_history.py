"""The experiments about history, with few tuples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from auroral import UsageError
from benchmarks import BENCHMARKS, history
from benchmarks.lab import Lab
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


def test_options_that_it_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="BAD_OPTION"):
        BENCHMARKS["history"](plots=tmp_path)
    with pytest.raises(UsageError, match="UNKNOWN_EXPERIMENT"):
        BENCHMARKS["history"](only=["nothing"])
