"""Attached queries: row by row what the same boxes give that begin where the history begins."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from . import sparkless
from .attached import AttachRun, scenario
from .running import MakeEngine


@pytest.mark.parametrize("seed", range(24))
def test_attached_boxes_give_what_the_reference_gives(seed: int, tmp_path: Path) -> None:
    given = scenario(Random(f"attached {seed}"), crashing=False)
    AttachRun(sparkless.make_engine, given).go(tmp_path)


@pytest.mark.parametrize("seed", range(24))
def test_attached_boxes_survive_the_death_of_the_process(seed: int, tmp_path: Path) -> None:
    given = scenario(Random(f"attached and killed {seed}"), crashing=True)
    AttachRun(sparkless.make_engine, given).go(tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_attached_boxes_give_the_same_on_spark(
    make_engine: MakeEngine, seed: int, tmp_path: Path
) -> None:
    given = scenario(Random(f"attached on spark {seed}"), crashing=seed > 0)
    AttachRun(make_engine, given).go(tmp_path)
