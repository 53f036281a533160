"""Reads and updates of random networks, cut into random trains and killed at any point."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.conformance.sparkless import make_engine

from .driving import TableRun, way
from .networks import scenario


# The last ones have boxes that would wait for each other in a circle if they were fused.
@pytest.mark.parametrize("seed", [*range(120), 10_104, 10_443])
def test_tables_and_outputs_are_those_of_the_reference(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    TableRun(make_engine, scenario(rng), way(rng)).go(tmp_path)
