"""Reads and updates among boxes that Spark runs."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from auroral.engine.inspect.explanation import explained

from .driving import TableRun, Way
from .networks import scenario
from .test_kills import chain, tolls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", range(6))
def test_spark_gives_what_the_reference_gives(
    make_engine: MakeEngine, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    made = scenario(rng)
    crashes = frozenset(rng.sample(range(60), 2))
    TableRun(make_engine, made, Way(rng.choice([2, 5, None]), crashes)).go(tmp_path)


def test_workers_give_the_same(make_engine: MakeEngine, tmp_path: Path) -> None:
    for at, made in enumerate((tolls(None), chain(None))):
        TableRun(make_engine, made, Way(3, frozenset(), background=True)).go(tmp_path / str(at))


def test_statements_are_explained(spark: SparkSession) -> None:
    text = explained(tolls(None).network)
    assert "superbox charge@write" in text
    assert "runs    look: SELECT balance FROM accounts WHERE vid = :vid" in text
    assert "runs    open: INSERT INTO accounts VALUES (:vid, 100)" in text
