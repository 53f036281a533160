"""Moved boxes on Spark: the same results, dead letters of the declared box, measured functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

import auroral as au
import auroral.engine.parts
from auroral.engine.runtime.reordering import OrderChange, OrderOptimizer
from auroral.engine.runtime.stepping import CommittedStep
from auroral.optimizer import Estimate, Move, Subnetworks
from tests.conformance import sparkless

pytestmark = pytest.mark.spark

MakeEngine = Callable[..., AbstractContextManager[au.Engine]]
ROWS = [{"n": n, "x": n % 7, "k": n % 5} for n in range(200)]


class SwayedOptimizer(OrderOptimizer):
    """Moves filters forward after some steps, and back after as many."""

    def __init__(self, steps: int = 1) -> None:
        super().__init__()
        self._period = steps
        self.called_s: list[float] = []
        self.sifted = False

    def committed(self, step: CommittedStep) -> None:
        self.called_s.append(sum(done.function_s for done in step.work.values()))
        super().committed(step)

    def decide(
        self, subnetworks: Subnetworks | None, current: tuple[Move, ...]
    ) -> OrderChange | None:
        if subnetworks is None:
            return None
        wanted: tuple[Move, ...] = ()
        self.sifted |= any(move.tactic == "sifted" for move in current)
        if len(self.called_s) // self._period % 2:
            known = dict.fromkeys(subnetworks.of_box, Estimate(1e-3, 1.0))
            known["cheap"] = Estimate(1e-6, 0.1)
            wanted = tuple(m for one in subnetworks.all for m in subnetworks.best(one, known))
        return OrderChange(wanted) if wanted != current else None


def network() -> au.Network:
    net = au.Network("n")
    net.function("picky", "tests.conformance.plain_functions:picky", returns="bigint")
    ticks = net.stream("ticks", "n bigint, x bigint, k int", progress=au.Ordered("n"))
    more = net.stream("more", "n bigint, x bigint, k int", progress=au.Ordered("n"))
    called = ticks.map(keep="*", y="picky(x)", name="called")
    other = more.map(keep="*", y="x + 1", name="other")
    net.output("o", net.union(called, other, name="both").filter("k > 1", name="cheap"))
    return net


def results(given: list[dict[str, int]], add: int) -> list[tuple[int, ...]]:
    kept = [r for r in given if r["k"] > 1]
    return [(r["n"], r["x"], r["k"], r["x"] + add) for r in kept if add or r["x"] != 2]


def test_results_and_dead_letters_are_those_of_the_declared_boxes(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    swayed = SwayedOptimizer()
    monkeypatch.setattr(auroral.engine.parts, "OrderOptimizer", lambda: swayed)
    found: list[tuple[Any, ...]] = []
    wanted: list[tuple[int, ...]] = []
    moved, dead = [], []
    with make_engine(network()) as engine:
        for at in range(0, 200, 40):
            moved.append(len(engine.stats()["optimizer"]["moves"]))
            for stream, add in (("ticks", 0), ("more", 1)):
                engine.enqueue(stream, ROWS[at : at + 40])
                wanted += results(ROWS[at : at + 40], add)
            engine.drain()
            found += [tuple(row.values()) for row in engine.dequeue("o").to_pylist()]
            dead.append(engine.stats()["boxes"]["called"]["dead"])
        stats = engine.stats()
    assert found == wanted
    assert 0 in moved
    assert 3 in moved, "past the union, and past both maps"
    assert all(seconds > 0 for seconds in swayed.called_s)
    failing = [sum(r["x"] == 2 for r in ROWS[at : at + 40]) for at in range(0, 200, 40)]
    passing = [
        sum(r["x"] == 2 and r["k"] > 1 for r in ROWS[at : at + 40]) for at in range(0, 200, 40)
    ]
    new = [after - before for before, after in zip([0, *dead], dead, strict=False)]
    expected = [p if m else f for m, f, p in zip(moved, failing, passing, strict=True)]
    assert new == expected, "a tuple that the filter drops before does not fail"
    assert stats["dead"] == sum(expected)
    assert all(stats["boxes"][name]["dead"] == 0 for name in ("both", "cheap", "other"))


def pairs(*, optimize: bool) -> au.Network:
    net = au.Network("n")
    ticks = net.stream("ticks", "n bigint, x bigint, k int", progress=au.Ordered("n"))
    more = net.stream("more", "n bigint, x bigint, k int", progress=au.Ordered("n"))
    band: dict[str, Any] = {"left": au.Order("n"), "right": au.Order("n"), "within": 9}
    joined = ticks.join(more, "left.x = right.x", name="j", **band)
    net.output("o", joined.filter("k > 1 AND right_k + x < 8", name="cheap"))
    net.engine = net.engine.model_copy(update={"optimize": optimize})
    return net


def test_a_join_with_and_without_sieves_gives_the_same(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    swayed = SwayedOptimizer(3)
    monkeypatch.setattr(auroral.engine.parts, "OrderOptimizer", lambda: swayed)
    found = []
    for optimize, make in ((False, sparkless.make_engine), (True, make_engine)):
        with make(pairs(optimize=optimize)) as engine:
            for at in range(0, 160, 40):
                for stream in ("ticks", "more"):
                    engine.enqueue(stream, ROWS[at : at + 40])
                engine.drain()
            found.append(engine.dequeue("o").to_pylist())
    assert swayed.sifted
    assert found[0] == found[1]
    assert len(found[0]) > 40
