"""State stays as small as disorder allows, however long it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import auroral as au
from auroral.engine import Engine

MakeEngine = Callable[..., AbstractContextManager[Engine]]
pytestmark = pytest.mark.spark

ROWS, DELAY, STEPS = 200, 30, 40
SCHEMA = "k int, t bigint"


def network() -> au.Network:
    net = au.Network("soak")
    a, b = (net.stream(n, schema=SCHEMA, progress=au.Delayed("t", DELAY)) for n in "ab")
    order = au.Order("t")
    pairs = a.join(b, "left.k = right.k", left=order, right=order, within=10, name="pairs")
    by_key = au.Order("t", by=["k"])
    net.output("pairs", pairs)
    net.output("counts", a.aggregate(by_key, au.Window(size=20), n="count(*)", name="counts"))
    net.output("once", a.dedup("k", "t", order=order, name="once"))
    net.output("sorted", b.bsort(order, name="sorted"))
    return net


def arrivals(rng: np.random.Generator, step: int) -> pa.Table:
    """A hundred units of time per step, each tuple at most DELAY late."""
    on = np.sort(rng.integers(step * 100, step * 100 + 100, ROWS))
    late = on - rng.integers(0, DELAY, ROWS)
    return pa.table({"k": rng.integers(0, 5, ROWS).astype(np.int32), "t": late})


def test_state_is_bounded_by_disorder(make_engine: MakeEngine, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    held: dict[str, list[int]] = {}
    files: list[int] = []
    emitted: dict[str, int] = dict.fromkeys(("pairs", "counts", "once", "sorted"), 0)
    with make_engine(network(), state=tmp_path / "state") as engine:
        for step in range(STEPS):
            for stream in "ab":
                engine.enqueue(stream, arrivals(rng, step))
            engine.drain()
            for name in emitted:
                emitted[name] += engine.dequeue(name).num_rows
            stats = engine.stats()
            for name, box in stats["boxes"].items():
                held.setdefault(name, []).append(box["held"])
                # What is dead and not swept yet is at most about as much again.
                assert sum(box["state"].values()) <= 2 * box["held"] + 4 * ROWS, (name, step)
            files.append(len(list(engine._store.segments_directory.iterdir())))
    # A tuple lives while one of the other side may come that is within reach of it.
    reach = {"pairs": 2 * (DELAY + 10), "counts": DELAY + 20, "once": DELAY, "sorted": DELAY}
    for name, units in reach.items():
        most = 2 * ROWS * units / 100 + 2
        assert 0 < max(held[name]) <= most, (name, held[name], most)
        early, late = held[name][5:15], held[name][-10:]
        assert max(late) <= 1.25 * max(early) + 2, (name, held[name])
    assert max(files[-10:]) <= max(files[5:15]) + 4, files
    assert min(emitted.values()) > 0, emitted
