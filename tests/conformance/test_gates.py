"""Streams that route late tuples: trains, partitions, queries and crashes change nothing."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Window
from auroral.testing import Collector, run

from . import sparkless
from .driving import Drive, manner
from .events import Events
from .networks import way
from .running import Crash, Faults, MakeEngine, Run
from .shared import Maker
from .stateful import stateful_network
from .test_origins import attempt, partitions
from .test_shared_queries import set_out as share_work
from .test_stateful import TABLES, set_out

ALONE = ("aggregate", "bsort", "dedup", "stateful_map")
"""The boxes that remember and need nothing of Spark's but a task."""


@pytest.mark.parametrize("seed", range(20))
def test_any_network_gives_what_the_reference_gives(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"gates {seed}")
    net = stateful_network(rng, 4, ALONE, routed=True)
    batches = Events(rng, net).script(40, drains=0.2)
    chosen = replace(
        way(rng, crashing=rng.random() < 0.5), driver_bytes=1 << 20, partition_bytes=None
    )
    set_out(monkeypatch, chosen)
    Run(sparkless.make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_queries_give_what_they_would_give_alone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries come and go over streams that route, and over what boxes make of these."""
    rng = Random(seed)
    kinds = {"join": 2, "aggregate": 3, "select": 3}
    grouped = rng.random() < 0.5
    kinds |= {} if grouped else {"family": 1, "count": 1}
    scenario = Maker(rng, kinds, derived=("M", "F", "U"), grouped=grouped).scenario(20)
    routed = {
        name: declared and declared.model_copy(update={"below": "route"})
        for name, declared in scenario.progress.items()
    }
    share_work(monkeypatch, rng)
    Drive(sparkless.make_engine, replace(scenario, progress=routed), manner(rng), rng).go(tmp_path)


def network(**options: Any) -> Network:
    net = Network("routed")
    s = net.stream("s", "k int, n bigint", progress=Delayed("n", 2, below="route", **options))
    net.output("all", s)
    net.output("late", s.late)
    windows = s.aggregate(Order("n", by=["k"]), Window(size=5), c="count(*)", name="w")
    net.output("wide", windows)
    net.output("late_windows", windows.late)
    net.output("both", net.union(s.filter("k > 0"), s.late))
    return net


@pytest.mark.parametrize("seed", range(10))
def test_marks_of_several_sources_judge(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    net, parts = network(), partitions(rng, timed=rng.random() < 0.3)
    late = {"k": 1, "n": -50}
    parts = {name: [*rows, *([late] if rows else [])] for name, rows in parts.items()}
    expected = run(net, {"s": parts}, hold=True)
    sinks = {name: Collector() for name in net.outputs}
    faults = Faults(frozenset(rng.sample(range(60), rng.choice([0, 2, 6]))))
    train = rng.randint(1, 40)
    while True:
        with contextlib.suppress(Crash), attempt(net, parts, rng, sinks, tmp_path, faults, train):
            break
    assert {name: sink.rows for name, sink in sinks.items()} == dict(expected)


ROWS = [
    *({"k": n % 3, "n": 2 * n - (9 if n % 7 == 6 else 0)} for n in range(40)),
    {"k": 1, "n": None},
    {"k": 2, "n": 0},
]


@pytest.mark.parametrize("by", [(), ("k",)])
@pytest.mark.parametrize("train", [1, 4, 50])
def test_trains_and_restarts_change_nothing(
    train: int, by: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = network(by=by)
    net.query("few", "SELECT n FROM s WHERE k = 1")
    net.query("missed", "SELECT n FROM s.late")
    expected = run(net, {"s": ROWS}, hold=True)
    assert len(expected["late"]) == 6
    assert expected["late_windows"] == [{"k": 1, "n": None}]
    taken: dict[str, list[Any]] = {name: [] for name in expected}
    for part in (ROWS[:13], ROWS[13:20], ROWS[20:]):
        with sparkless.make_engine(net, train=train, state=tmp_path) as engine:
            engine.enqueue("s", part)
            engine.drain()
            for name, found in taken.items():
                found += engine.dequeue(name).to_pylist()
            stats, described = engine.stats(), engine.describe("s")
    assert taken == expected
    assert stats["streams"]["s"]["late"] == {"late": 6}
    assert stats["streams"]["s"]["in"] == len(ROWS)
    assert stats["arcs"]["s.late"]["tuples"] == 6
    assert set(stats["boxes"]) >= {"w"}
    assert not {"s", "s@in"} & set(stats["boxes"])
    assert described["kind"] == "stream"
    assert by or described["progress"]["n"] == expected.reference.mark("s", "n")


def test_the_clock_moves_the_mark_that_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(heartbeat=10)
    rows = [{"k": 1, "n": n, "_at": at} for n, at in [(5, 5), (6, 6), (20, 40), (40, 41)]]
    expected = run(net, {"s": rows}, hold=True)
    assert [row["n"] for row in expected["late"]] == [20]
    with sparkless.make_engine(net, train=2, clock="arrival") as engine:
        engine.enqueue("s", rows)
        engine.drain()
        for name in net.outputs:
            assert engine.dequeue(name).to_pylist() == expected[name]


def test_enforced_order_sorts_behind_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network()
    net.engine = net.engine.model_copy(update={"order": "enforce"})
    with sparkless.make_engine(net) as engine:
        engine.enqueue("s", ROWS)
        engine.finish()
        entered = [row["n"] for row in engine.dequeue("all").to_pylist() if row["n"] is not None]
        assert entered == sorted(entered)
        assert engine.dequeue("late").num_rows == 6


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_spark_gives_what_the_reference_gives(
    make_engine: MakeEngine, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"gates on Spark {seed}")
    net = stateful_network(rng, 3, routed=True)
    batches = Events(rng, net).script(30, drains=0.1)
    chosen = way(rng, crashing=seed == 1)
    set_out(monkeypatch, chosen)
    Run(make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.spark
def test_late_tuples_leave_a_stream_on_spark(make_engine: MakeEngine) -> None:
    net = network()
    net.query("few", "SELECT n FROM s WHERE k = 1")
    expected = run(net, {"s": ROWS}, hold=True)
    with make_engine(net, train=9) as engine:
        engine.enqueue("s", ROWS)
        engine.drain()
        for name in expected:
            assert engine.dequeue(name).to_pylist() == expected[name]
        assert engine.stats()["streams"]["s"]["late"] == {"late": 6}
