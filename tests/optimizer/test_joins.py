"""Filters behind joins: sieves come and go while tuples flow, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import auroral as au
import auroral.engine.parts
from auroral.engine.runtime.reordering import OrderChange, OrderOptimizer
from auroral.engine.topology.rescale import rescale
from auroral.network.arc import Arc
from auroral.optimizer import Estimate, Move, Optimised, Subnetworks, optimize
from tests.conformance.sparkless import make_engine
from tests.optimizer.pricing import PricedExecutor
from tests.optimizer.test_law import PAIR_PREDICATES, rows

SCHEMA = "t bigint, k int, x bigint, s string"
CHEAP, COSTLY = Estimate(1e-7, 0.1), Estimate(1e-5, 1.0)
BAND = {"left": au.Order("t"), "right": au.Order("t"), "within": 2}


def streams(net: au.Network) -> list[Any]:
    return [net.stream(name, schema=SCHEMA, progress=au.Delayed("t", 2)) for name in "ab"]


def pairs(where: str, **how: Any) -> au.Network:
    net = au.Network("n")
    left, right = streams(net)
    joined = left.join(right, "left.k = right.k", name="j", **{**BAND, **how})
    net.output("o", joined.filter(where, name="last"))
    return net


def found(net: au.Network, *fixed: str) -> Optimised:
    return optimize(net.check(), {"j": COSTLY, "last": CHEAP, "m": COSTLY}, fixed=fixed)


def sieves(net: au.Network, *fixed: str) -> list[tuple[str, str]]:
    return [(m.side, m.where) for m in found(net, *fixed).moves if m.tactic == "sifted"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("k > 1", [("left", "`k` > 1")]),
        ("RIGHT_X > 1 OR `right_s` = 'x'", [("right", "`x` > 1 OR `s` = 'x'")]),
        ("x > right_x", []),
        ("x > right_x AND x > 1", [("left", "`x` > 1")]),
        ("x > 1 AND right_x > 1 AND k = 2", [("left", "(`x` > 1\n) AND (`k` = 2\n)"),
                                             ("right", "`x` > 1")]),
        ("1 = 2", []),
        ("exists(array(1), y -> y > x)", []),
    ],
)  # fmt: skip
def test_a_join_sifts_by_the_parts_that_read_one_side(
    where: str, expected: list[tuple[str, str]]
) -> None:
    assert sieves(pairs(where)) == expected


def test_the_filter_stays_behind_the_join_and_arcs_keep_their_names() -> None:
    after = found(pairs("k > 1"))
    boxes = after.checked.network.boxes
    assert {n: (b.kind, b.sources()) for n, b in boxes.items()} == {
        "j": ("join", ("a", "b")),
        "last": ("filter", ("j",)),
    }
    assert after.checked.displaced == {"j"}
    assert boxes["j"].as_declared() == pairs("k > 1").boxes["j"]


@pytest.mark.parametrize("how", [{"timeout": 5.0}, {"within": None, "rows": (3, 3)}])
def test_joins_that_count_or_wait_do_not_sift(how: dict[str, Any]) -> None:
    assert not sieves(pairs("k > 1", **how))


def test_slack_and_late_tuples_do_not_keep_a_join_from_sifting() -> None:
    net = pairs("k > 1", left=au.Order("t", slack=3))
    net.output("missed", "j.left_late")
    assert sieves(net) == [("left", "`k` > 1")]


@pytest.mark.parametrize("reason", ["output", "reader", "point", "fixed", "rest"])
def test_a_join_whose_pairs_somebody_else_reads_does_not_sift(reason: str) -> None:
    net = pairs("k > 1")
    joined = Arc(net, "j")
    fixed = ["j"] if reason in ("fixed", "point") else []
    if reason == "output":
        net.output("pairs", joined)
    elif reason == "reader":
        net.output("more", joined.filter("x > 1", name="other"))
    elif reason == "point":
        net.connection_point("recent", joined, keep={"rows": 5})
    elif reason == "rest":
        net.output("others", "last.rest")
    assert not sieves(net, *fixed)


def test_a_filter_gets_to_a_join_through_boxes_that_it_may_pass() -> None:
    net = au.Network("n")
    left, right = streams(net)
    joined = left.join(right, "left.k = right.k", name="j", **BAND)
    between = joined.map(keep="*", s="concat(s, right_s)", name="m")
    net.output("o", between.filter("right_x > 1 AND k = 1", name="last"))
    assert sieves(net) == [("left", "`k` = 1"), ("right", "`x` > 1")]
    net = au.Network("n")
    left, right = streams(net)
    joined = left.join(right, "left.k = right.k", name="j", **BAND)
    between = joined.map(keep=("k",), x="right_x", name="m")
    net.output("o", between.filter("x > 1 AND k = 1", name="last"))
    assert not sieves(net), "x is another field before the map"


def test_a_sieve_that_costs_more_than_it_saves_is_not_used() -> None:
    known = {"j": Estimate(1e-7, 1.0), "last": Estimate(1e-6, 0.9)}
    assert not optimize(pairs("k > 1").check(), known).moves


class Restless(OrderOptimizer):
    """Gives joins sieves and takes them away at any time."""

    def __init__(self, rng: Random):
        super().__init__()
        self._rng = rng
        self.seen: set[tuple[Move, ...]] = set()

    def decide(
        self, subnetworks: Subnetworks | None, current: tuple[Move, ...]
    ) -> OrderChange | None:
        if subnetworks is None or self._rng.random() < 0.7:
            return None
        known = {
            name: Estimate(10 ** self._rng.uniform(-7, -4), self._rng.random())
            for name in subnetworks.of_box
            if self._rng.random() < 0.8
        }
        moves = tuple(m for part in subnetworks.all for m in subnetworks.best(part, known))
        if moves == current:
            return None
        self.seen.add(moves)
        return OrderChange(moves)


def network(rng: Random) -> au.Network:
    net = au.Network("n")
    left, right = streams(net)
    slack = [rng.choice([None, None, 2]) for _ in "ab"]
    orders = {
        side: au.Order("t", slack=s) for side, s in zip(("left", "right"), slack, strict=True)
    }
    if rng.random() < 0.5:
        left = left.filter("x IS NOT NULL", name="some")
    joined = left.join(right, "left.k = right.k", within=rng.randint(1, 4), name="j", **orders)
    first, second = rng.sample(PAIR_PREDICATES, 2)
    found = joined.filter(first, name="one").filter(second, name="other")
    if rng.random() < 0.6:  # then nobody reads the other fields
        found = found.map(keep=("t",), z="x + right_x", name="sum")
    net.output("o", found)
    net.output("missed", "j.left_late")
    mode = rng.choice(["auto", "fuse", "box"])
    net.engine = net.engine.model_copy(update={"superbox": mode})
    return net


CHANGES: list[Callable[[au.Engine], Any]] = [
    lambda engine: engine.modify(add={"pairs": {"from": "j"}}),
    lambda engine: engine.modify(add={"pairs": "SELECT t, k, x, right_x FROM j"}),
    lambda engine: engine.modify(
        remove=["one"],
        add={"one": {"box": "filter", "input": "j", "where": "x >= 0"}, "pairs": {"from": "one"}},
    ),
]
"""What makes somebody see pairs that the filters have dropped until then."""


def run(
    net: au.Network,
    given: list[list[tuple[str, dict[str, Any]]]],
    change_at: int,
    change: Callable[[au.Engine], Any],
    state: Path,
    restarts: set[int],
) -> dict[str, Any]:
    taken: dict[str, list[Any]] = {"o": [], "missed": [], "pairs": []}
    at = 0
    buckets = [2, 1, 4]
    while at < len(given):
        with make_engine(net, state=state, clock="arrival", train=40) as engine:
            begun = at
            while at < len(given) and (at == begun or at not in restarts):
                if at == change_at:
                    change(engine)
                for stream, row in given[at]:
                    engine.enqueue(stream, [row])
                engine.drain()
                at += 1
            if at == len(given):
                engine.finish()
            for name in taken:
                if name in engine.stats()["outputs"] or name in engine.stats()["queries"]:
                    taken[name] += engine.dequeue(name).to_pylist()
            late = engine.stats()["boxes"]["j"]["late"]
            net = engine.network
        if at < len(given):
            rescale(state, buckets.pop())
    return {**taken, "late": late}


@pytest.mark.parametrize("seed", range(12))
def test_changes_of_the_network_find_all_that_sieves_have_dropped(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    net = network(rng)
    given = [(rng.choice("ab"), row) for row in rows(rng, 200)]
    batches = [given[at : at + 5] for at in range(0, 200, 5)]
    change, change_at = CHANGES[seed % len(CHANGES)], rng.randint(15, 30)
    restarts = {rng.randint(5, 12), change_at + 2}
    made: list[Restless] = []

    def restless() -> Restless:
        made.append(Restless(rng))
        return made[-1]

    still = network(Random(seed))
    still.engine = net.engine.model_copy(update={"optimize": False})
    expected = run(still, batches, change_at, change, tmp_path / "declared", restarts)
    monkeypatch.setattr(auroral.engine.parts, "OrderOptimizer", restless)
    after = run(net, batches, change_at, change, tmp_path / "moved", restarts)
    assert after == expected
    assert expected["pairs"]
    assert any(seen for one in made for seen in one.seen)


def fanned_out(**engine: Any) -> au.Network:
    """Each tuple has ten partners; one in ten of them is in a pair that the filter passes."""
    net = au.Network("n")
    left = net.stream("a", "n bigint, k int", progress=au.Ordered("n"))
    right = net.stream("b", "n bigint, k int", progress=au.Ordered("n"))
    band: dict[str, Any] = {"left": au.Order("n"), "right": au.Order("n"), "within": 5}
    net.output("o", left.join(right, name="j", **band).filter("k = 0", name="last"))
    net.engine = net.engine.model_copy(update=engine)
    return net


def feed(engine: au.Engine, first: int, trains: int, *, every: int) -> None:
    for at in range(first, first + 50 * trains, 50):
        for stream in "ab":
            engine.enqueue(stream, [{"n": n, "k": n % every} for n in range(at, at + 50)])
        engine.drain()


def test_a_running_join_gets_a_sieve_and_loses_it_when_all_tuples_pass() -> None:
    def moves(engine: au.Engine) -> list[tuple[str, str, str]]:
        return [(m["box"], m["past"], m["side"]) for m in engine.stats()["optimizer"]["moves"]]

    found: list[dict[str, list[dict[str, Any]]]] = []
    for optimized in (True, False):
        net = fanned_out(optimize=optimized)
        with make_engine(net, executor=PricedExecutor({"last": 1e-4}), train=100) as engine:
            feed(engine, 0, 10, every=10)
            if optimized:
                assert moves(engine) == [("last", "j", "left")]
                stats = engine.stats()
                (running,) = stats["optimizer"]["subnetworks"]
                assert running == {"declared": ["j", "last"], "runs": ["last@left", "j", "last"]}
                assert stats["optimizer"]["boxes"]["last@left"]["selectivity"] == pytest.approx(0.1)
                assert sum(n for t, n in stats["boxes"]["j"]["state"].items() if "~" in t) > 0
                told = [e for e in engine.story("last") if e["event"] == "moved"]
                assert "in front of the left input of j" in str(told[-1])
            feed(engine, 500, 20, every=1)
            if optimized:
                assert moves(engine) == []
                assert not [t for t in engine.stats()["boxes"]["j"]["state"] if "~" in t]
            found.append({"o": engine.dequeue("o").to_pylist()})
            found[-1]["late"] = [engine.stats()["boxes"]["j"]["late"]]
    assert found[0] == found[1]
