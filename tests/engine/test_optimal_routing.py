"""The policy `optimal` knows the order that costs least, however predicates depend on another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import auroral as au
from auroral.eddy.routes import routing
from tests.conformance import sparkless

ROWS = 20_000


def _first(net: au.Network, table: pa.Table, trains: int) -> tuple[set[str], float]:
    """Who was first in the last train, and how many filters tuples visited there."""
    with sparkless.make_engine(net, train=ROWS) as engine:
        shown: list[Any] = []
        for _ in range(trains):
            engine.enqueue("s", table)
            engine.drain()
            shown.append(engine.stats()["eddies"]["s"]["arcs"]["s"])
    before, after = shown[-2], shown[-1]
    first = {n for n, f in after["filters"].items() if f["first"] > before["filters"][n]["first"]}
    visits = [s["filters_per_tuple"] * s["tuples"] for s in (before, after)]
    return first, (visits[1] - visits[0]) / ROWS


def _network() -> au.Network:
    net = au.Network("routes")
    net.engine = au.EngineOptions(routing="optimal")
    net.stream("s", "a int, b int")
    return net


@pytest.fixture
def _alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, filters are equally fast."""
    monkeypatch.setattr(routing, "speeds", lambda visits: dict.fromkeys(visits, 1.0))


@pytest.mark.usefixtures("_alike")
def test_a_predicate_that_others_make_look_weak_is_first() -> None:
    """Half of all tuples pass a, four of ten b; but of those that pass a eight of ten."""
    draw = np.random.default_rng(1)
    a = draw.integers(0, 100, ROWS).astype(np.int32)
    b = np.where((a < 50) & (draw.random(ROWS) < 0.8), 10, 90).astype(np.int32)
    net = _network()
    net.query("q", "SELECT a FROM s WHERE a < 50 AND b < 40", results="count")
    first, visited = _first(net, pa.table({"a": a, "b": b}), 3)
    assert first == {"b"}
    assert visited == pytest.approx(1.4, abs=0.03)


def test_a_selective_function_that_is_slow_is_not_first() -> None:
    draw = np.random.default_rng(2)
    table = pa.table({n: draw.integers(0, 100, ROWS).astype(np.int32) for n in "ab"})
    calls: list[int] = []

    def slow(values: pa.Array) -> pa.Array:
        calls.append(len(values))
        return pa.array([sum(range(100)) > 0 and v >= 90 for v in values.to_pylist()])

    net = _network()
    net.function("slow", slow, returns="boolean")
    net.query("q", "SELECT a FROM s WHERE a >= 85 AND slow(b)", results="count")
    assert _first(net, table, 4)[0] == {"a"}


@pytest.mark.usefixtures("_alike")
def test_queries_that_share_predicates_decide_together() -> None:
    """The least selective one first: one query needs nothing else, the others need it too."""
    draw = np.random.default_rng(3)
    table = pa.table({n: draw.integers(0, 100, ROWS).astype(np.int32) for n in "ab"})
    net = _network()
    net.query("one", "SELECT a FROM s WHERE a > 10", results="count")
    net.query("both", "SELECT a FROM s WHERE a > 10 AND b > 90", results="count")
    first, visited = _first(net, table, 3)
    assert first == {"a"}
    assert visited < 2
