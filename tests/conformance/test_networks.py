"""The law that matters most: whatever the way, Spark gives what the reference gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import auroral.spark.running.runner
import auroral.storage.store

from .networks import network, script, way
from .running import MakeEngine, Run

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("crashing", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_any_way_gives_what_the_reference_gives(
    make_engine: MakeEngine,
    seed: int,
    crashing: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(seed * 2 + crashing)
    net = network(rng)
    batches = script(rng, net)
    chosen = way(rng, crashing=crashing)
    monkeypatch.setattr(auroral.storage.store, "SPLIT_ROWS", chosen.split_rows)
    monkeypatch.setattr(auroral.spark.running.runner, "LARGE_ROWS", chosen.parallel_rows)
    Run(make_engine, net, batches, chosen).go(tmp_path)
