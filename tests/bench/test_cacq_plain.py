"""What plain Spark and engines do in the benchmark of continuous queries is what numpy counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.cacq import changes as cacq_changes
from benchmarks.cacq import data as cacq_data
from benchmarks.cacq import pauses as cacq_pauses
from benchmarks.cacq.alerts_run import joined
from benchmarks.cacq.data import count_matches, random_queries
from benchmarks.cacq.lab import write_parts
from benchmarks.cacq.niagara import run_plan
from benchmarks.cacq.plans import by_functions, pull_up, push_down
from benchmarks.cacq.spark import run_ways
from benchmarks.lab import Lab
from benchmarks.report import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_every_way_counts_alike(spark: SparkSession, tmp_path: Path) -> None:
    queries = random_queries(4)
    files = write_parts(cacq_data.uniform(200, 1), tmp_path, 4)
    for done in run_ways(spark, files, 50, queries, 0.0, 0.0):
        read = [pq.read_table(path) for path in files[: done.tuples // 50]]
        assert done.counts == count_matches(read, queries), done.way.name


def test_every_plan_has_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    limits = cacq_data.thresholds(3)
    updates = [(cacq_data.stocks(10, n), cacq_data.articles(10, n, 2)) for n in range(2)]
    expected = sum(cacq_data.count_joined(quotes, limits, 2) for quotes, _ in updates)
    lab = Lab(spark, True, tmp_path)
    slow = by_functions(limits, 0, 1)
    for plan in (pull_up(), push_down(3), pull_up(slow), push_down(3, slow)):
        assert run_plan(lab, plan, limits, updates, 0)[1] == expected


def test_a_plan_reads_with_every_core(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    limits = cacq_data.thresholds(3)
    updates = [(cacq_data.stocks(50, n), cacq_data.articles(50, n, 10)) for n in range(2)]
    tasks: list[int] = []

    def plan(quotes: DataFrame, news: DataFrame, queries: DataFrame) -> DataFrame:
        tasks.append(quotes.select(F.spark_partition_id()).distinct().count())
        return pull_up()(quotes, news, queries)

    run_plan(Lab(spark, True, tmp_path), plan, limits, updates, 0)
    assert tasks == [2, 2]


@pytest.mark.parametrize("hint", ["broadcast", "shuffle_hash", "merge"])
def test_a_join_with_rules_fires_them(spark: SparkSession, tmp_path: Path, hint: str) -> None:
    ticks = cacq_data.ticks(200, 1, 5, 7)
    rules = [cacq_data.price_rules(20, 5), cacq_data.range_rules(30, 7)]
    batch = spark.createDataFrame(ticks)
    frames = joined(batch, [spark.createDataFrame(table) for table in rules], hint, counted=True)
    for frame, expected in zip(frames, cacq_data.fired(ticks, *rules), strict=True):
        found = {row["rule"]: row["matches"] for row in frame.collect()}
        assert [found.get(n, 0) for n in range(len(expected))] == expected.tolist()


def test_queries_that_need_other_eddies_count_what_comes_after_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cacq_changes, "_TRAIN", 5_000)
    report = Report("changes")
    section = report.section("changes", "change", "there_are", "calls", "median_ms", "worst_ms")
    cacq_changes._eddies(report, section, Lab(spark, True, tmp_path))
    assert [row[2] for row in section.rows] == [5, 5]
    assert report.bars[-1].value == 1


def test_what_others_notice_is_told_of_every_change(spark: SparkSession, tmp_path: Path) -> None:
    report = Report("pauses")
    cacq_pauses.pauses(report, Lab(spark, True, tmp_path))
    changes, modify_ms, longest_ms = zip(*report.sections[0].rows, strict=True)
    assert changes[0] == "none"
    assert len(changes) == 10
    assert all(ms > 0 for ms in (*modify_ms, *longest_ms))
