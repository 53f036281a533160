"""Boxes that remember: whatever the way, Spark gives what the reference gives."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random

import pytest

import auroral.engine.starting
import auroral.spark.boxes.aggregate
import auroral.spark.running.runner
import auroral.spark.running.stateful_runner
import auroral.storage.store
from auroral import Network, Order
from auroral.boxes import Join
from auroral.network.box import Box
from auroral.testing import Collector, run

from . import sparkless
from .events import TABLE_ROWS, Events
from .networks import Way, way
from .running import MakeEngine, Run
from .stateful import stateful_network

TABLES = {"refs": TABLE_ROWS}


def set_out(monkeypatch: pytest.MonkeyPatch, chosen: Way) -> None:
    """Let the engine work as a way says where it is not asked."""
    runner, flush = auroral.spark.running.stateful_runner, auroral.spark.boxes.aggregate.FLUSH_ROWS
    monkeypatch.setattr(auroral.engine.starting, "default_buckets", lambda _cores: chosen.buckets)
    monkeypatch.setattr(auroral.storage.store, "SPLIT_ROWS", chosen.split_rows)
    monkeypatch.setattr(runner, "PARALLEL_ROWS", chosen.parallel_rows)
    monkeypatch.setattr(auroral.spark.running.runner, "LARGE_ROWS", chosen.parallel_rows)
    monkeypatch.setitem(flush, "slow", chosen.flush_rows)


# Of many that were tried, those that make much of little: emissions, late tuples, few steps.
SEEDS = {
    "aggregate": (0, 2, 3),
    "bsort": (0, 1),
    "dedup": (2, 3),
    "join": (0, 2, 3),
    "latch": (0, 1),
    "number": (0,),
    "resample": (1, 3),
    "stateful_map": (1, 2),
    "wait_for": (0, 1),
}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind, seeds in SEEDS.items() for seed in seeds]
)
def test_one_box_gives_what_the_reference_gives(
    make_engine: MakeEngine,
    kind: str,
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(f"{kind} {seed}")
    net = stateful_network(rng, 1, (kind,))
    batches = Events(rng, net).script(24, drains=0.1)
    chosen = way(rng, crashing=False)
    set_out(monkeypatch, chosen)
    Run(make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_functions_with_state_survive_crashes(
    make_engine: MakeEngine, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"functions {seed}")
    net = stateful_network(rng, 3, ("stateful_map",))
    batches = Events(rng, net).script(24, drains=0.2)
    chosen = way(rng, crashing=True)
    set_out(monkeypatch, chosen)
    Run(make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("crashing", [False, True])
@pytest.mark.parametrize("seed", range(3, 7))
def test_any_network_gives_what_the_reference_gives(
    make_engine: MakeEngine,
    seed: int,
    crashing: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(seed * 2 + crashing)
    net = stateful_network(rng, 8)
    batches = Events(rng, net).script(30, drains=0.1)
    chosen = way(rng, crashing=crashing)
    set_out(monkeypatch, chosen)
    Run(make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.parametrize("seed", range(10))
def test_every_drawn_network_is_valid(seed: int) -> None:
    """The generator asks for nothing that a network refuses, however the draw falls."""
    rng = Random(f"valid {seed}")
    for _ in range(30):
        stateful_network(rng, 6, routed=rng.random() < 0.5).check()


def needs_spark(box: Box) -> bool:
    """Whether a box is a join that calls a Python function, which Spark does behind the kernel."""
    return isinstance(box, Join) and "picky" in (box.on or "")


@pytest.mark.parametrize("crashing", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_any_network_gives_the_same_without_spark(
    seed: int, crashing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same law with kernels in this process: quick, so that a hunt tries many networks."""
    rng = Random(f"without Spark {seed} {crashing}")
    drawn = (stateful_network(rng, 6) for _ in count())
    net = next(net for net in drawn if not any(map(needs_spark, net.boxes.values())))
    batches = Events(rng, net).script(30, drains=0.1)
    chosen = way(rng, crashing=crashing)
    set_out(monkeypatch, chosen)
    Run(sparkless.make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_sorts_behind_sorts_end_in_order(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one sort lets go at the end drives tuples out of the next, then the rest leaves."""
    rng = Random(seed)
    net = Network("sorts")
    arc = net.stream("s", "g int, z int, v int, number int")
    for by in (rng.choice([(), ("g",)]), rng.choice([("g",), ("g", "z")])):
        arc = arc.bsort(Order("v", slack=rng.randint(1, 3), by=by))
    net.output("o", arc)
    few = (None, 0, 1)
    rows = [
        (rng.choice(few), rng.choice(few), rng.choice((None, 0, 1, 2, 3)), number)
        for number in range(30)
    ]
    sink = Collector()
    train = rng.choice((1, 3, 100))
    with sparkless.make_engine(net, bind=[("o", sink)], state=tmp_path, train=train) as engine:
        engine.enqueue("s", rows)
        engine.finish()
    assert sink.rows == run(net, {"s": rows})["o"]
