"""Cost and selectivity of boxes: estimated, attributed, committed with steps, kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import auroral as au
from auroral.scheduling.costs import BoxCost, attributed
from auroral.storage.manifest import Manifest
from tests.conformance.sparkless import make_engine

SIZES = st.lists(st.integers(1, 1_000_000), min_size=2, max_size=60)


# ── the estimate ──


@given(SIZES, st.floats(0, 1), st.floats(1e-7, 1e-3))
def test_a_line_is_found_again(sizes: list[int], call_s: float, cost_s: float) -> None:
    cost = BoxCost()
    for size in sizes:
        cost = cost.after(size, size // 3, call_s + size * cost_s)
    mean = sum(sizes) / len(sizes)
    spread = (sum((size - mean) ** 2 for size in sizes) / len(sizes)) ** 0.5
    assert cost.calls == len(sizes)
    assert cost.call_s is not None
    assert cost.cost_s is not None
    assert cost.call_s >= 0
    assert cost.cost_s >= 0
    if spread > 0.5 * mean:
        predicted = cost.call_s + mean * cost.cost_s
        assert predicted == pytest.approx(call_s + mean * cost_s, rel=1e-3)
        if cost.cost_s > 0 and cost.call_s > 0:
            assert cost.cost_s == pytest.approx(cost_s, rel=1e-2)


@given(st.lists(st.tuples(st.integers(0, 1_000), st.floats(0, 10)), min_size=1, max_size=60))
def test_estimates_are_never_negative(calls: list[tuple[int, float]]) -> None:
    cost = BoxCost()
    for size, seconds in calls:
        cost = cost.after(size, None, seconds)
    assert cost.selectivity is None
    assert cost.call_s is not None
    assert cost.call_s >= 0
    assert (cost.cost_s is None) == (not any(size for size, _ in calls))
    assert cost.cost_s is None or cost.cost_s >= 0
    assert cost.seconds == pytest.approx(sum(seconds for _, seconds in calls))


def test_trains_of_one_size_cannot_tell_calls_from_tuples() -> None:
    cost = BoxCost().after(100, 50, 0.2).after(100, 50, 0.2)
    assert cost.call_s == 0
    assert cost.cost_s == pytest.approx(0.002)


def test_what_was_long_ago_fades() -> None:
    cost = BoxCost()
    for number in range(200):
        cost = cost.after(100 + number % 7 * 50, 100, 1.0)
    for number in range(200):
        cost = cost.after(100 + number % 7 * 50, 10, 0.1)
    assert cost.call_s == pytest.approx(0.1, rel=0.1)
    assert cost.selectivity == pytest.approx(10 / 250, rel=0.1)
    assert cost.tuples_out == 200 * 110


@given(st.floats(0, 100), st.dictionaries(st.text(min_size=1), st.integers(0, 10**9), min_size=1))
def test_all_seconds_are_somebodys(seconds: float, tuples: dict[str, int]) -> None:
    found = attributed(seconds, tuples)
    assert sum(found.values()) == pytest.approx(seconds)
    assert all(own >= 0 for own in found.values())


# ── what engines measure ──


def network() -> au.Network:
    net = au.Network("costs")
    stream = net.stream("s", schema="t bigint, x int", progress=au.Ordered("t"))
    some = stream.filter("x % 4 = 0", name="some")
    twice = some.map(keep="*", y="x * 2", name="twice")
    net.output("o", twice.filter("y % 16 = 0", name="few"))
    kept = stream.filter("x % 2 = 0", name="even").filter("x % 10 = 0", name="tens")
    net.output("w", kept.aggregate(order=au.Order("t"), window=au.Window(size=10), name="count",
                                   n="count(*)"))  # fmt: skip
    net.query("q", "SELECT x FROM s WHERE x > 50")
    return net


def measured(stats: Any) -> dict[str, tuple[int, int]]:
    return {name: (box["in"], box["out"]) for name, box in stats["boxes"].items()}


ROWS = [(n, n % 100) for n in range(1_000)]


@pytest.mark.parametrize("train", [64, 10_000])
def test_fused_boxes_are_told_apart_by_counts(tmp_path: Path, train: int) -> None:
    with make_engine(network(), state=tmp_path / "state", train=train) as engine:
        engine.enqueue("s", ROWS[:400])
        engine.drain()
        half = engine.stats()["boxes"]
    with make_engine(network(), state=tmp_path / "state", train=train) as engine:
        kept = engine.stats()["boxes"]
        engine.enqueue("s", ROWS[400:])
        engine.drain()
        stats = engine.stats()
    for name, box in half.items():
        assert kept[name] == {**box, "priority": None}, "a restart keeps what was measured"
    found = measured(stats)
    assert found["some"] == (1_000, 250)
    assert found["twice"] == (250, 250)
    assert found["few"][0] == 250
    assert found["few"][1] == stats["arcs"]["few"]["tuples"]
    assert found["even"] == (1_000, 500), "counted between boxes before a window, too"
    assert found["tens"] == (500, 100)
    assert found["count"] == (100, 99)
    assert found["eddy@s"] == (1_000, 490)
    boxes = stats["boxes"]
    assert boxes["some"]["selectivity"] == pytest.approx(0.25, rel=0.1)
    assert boxes["some"]["calls"] == boxes["few"]["calls"] >= 1
    for box in boxes.values():
        assert box["seconds"] > 0
        assert box["cost_s"] >= 0
        assert box["call_s"] >= 0


def test_other_programs_can_read_what_boxes_cost(tmp_path: Path) -> None:
    with make_engine(network(), state=tmp_path / "state") as engine:
        engine.enqueue("s", ROWS)
        engine.drain()
        stats = engine.stats()["boxes"]
    manifest = Manifest(tmp_path / "state" / "manifest.db", expected=True)
    rows = manifest._all("SELECT box, calls, selectivity, cost_s, call_s FROM box_cost")
    manifest.close()
    assert {row[0] for row in rows} == set(stats)
    for box, calls, selectivity, cost_s, call_s in rows:
        assert (calls, selectivity) == (stats[box]["calls"], stats[box]["selectivity"])
        assert (cost_s, call_s) == (stats[box]["cost_s"], stats[box]["call_s"])


def test_costs_of_removed_queries_are_forgotten(tmp_path: Path) -> None:
    with make_engine(network(), state=tmp_path / "state") as engine:
        engine.modify(add={"hot": "SELECT max(x) AS m FROM s [ROWS 10]"})
        engine.enqueue("s", ROWS)
        engine.drain()
        own = {box for box in engine.stats()["boxes"] if box.startswith("hot")}
        assert own
        assert own <= set(engine._store.costs)
        engine.modify(remove=["hot"])
        engine.enqueue("s", ROWS[:1])
        engine.drain()
        assert not own & set(engine._store.costs)
        assert not own & set(engine._store.manifest.costs())
