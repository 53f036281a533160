"""The law of shedding: results are what the reference gives on what was kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import get_args

import pytest

from auroral.network.declarations import EngineOptions, SchedulerName, TraversalName

from . import sparkless
from .events import Events
from .networks import way
from .running import MakeEngine
from .shedding import SheddingRun
from .stateful import stateful_network
from .test_stateful import TABLES, needs_spark, set_out


@pytest.mark.parametrize("crashing", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_shed_is_as_if_it_had_not_arrived(
    seed: int, crashing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random networks, drop boxes on streams and between boxes, schedulers, trains and crashes."""
    rng = Random(f"shedding {seed} {crashing}")
    drawn = (stateful_network(rng, 6, routed=seed % 3 == 0) for _ in count())
    net = next(net for net in drawn if not any(map(needs_spark, net.boxes.values())))
    net.engine = EngineOptions(
        scheduler=rng.choice(get_args(SchedulerName)),
        superbox=rng.choice(("box", "application", "spanner", "fuse")),  # the same in every run
        traversal=rng.choice(get_args(TraversalName)),
    )
    batches = Events(rng, net).script(40, drains=0.2)
    chosen = way(rng, crashing=crashing)
    set_out(monkeypatch, chosen)
    SheddingRun(sparkless.make_engine, net, batches, chosen, TABLES, rng).go(tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("crashing", [False, True])
def test_what_is_shed_on_spark_is_as_if_it_had_not_arrived(
    make_engine: MakeEngine, crashing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"shedding on Spark {crashing}")
    net = stateful_network(rng, 5)
    batches = Events(rng, net).script(40, drains=0.1)
    chosen = replace(way(rng, crashing=crashing), parallel_rows=2)
    set_out(monkeypatch, chosen)
    SheddingRun(make_engine, net, batches, chosen, TABLES, rng).go(tmp_path)
