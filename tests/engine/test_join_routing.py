"""The eddy chooses in which order new tuples probe SteMs, and tells what came of it."""

from __future__ import annotations

from typing import Any

import auroral as au
from tests.conformance import sparkless

JOIN = (
    "SELECT a.x, b.x AS y, c.x AS z"
    " FROM A [ROWS 9999] AS a, B [ROWS 99999] AS b, C [ROWS 99999] AS c"
    " WHERE a.k = b.k AND a.k = c.k"
)
MANY, SOME = range(100), range(1000, 1100)
"""Keys of which B has a hundred tuples each and C one in all; and the other way round."""


def network(policy: str) -> au.Network:
    net = au.Network("joins")
    net.engine = au.EngineOptions(routing=policy)
    for name in "ABC":
        net.stream(name, "k int, x int")
    net.query("q", JOIN)
    return net


def store(engine: au.Engine) -> None:
    engine.enqueue("B", [(k, n) for k in MANY for n in range(100)] + [(SOME[0], 0)])
    engine.enqueue("C", [(k, n) for k in SOME for n in range(100)] + [(MANY[0], 0)])
    engine.drain()


def from_a(engine: au.Engine) -> Any:
    (join,) = engine.stats()["eddies"]["A+B+C"]["joins"].values()
    return join["A"]


def trains(engine: au.Engine, keys: range, count: int) -> list[int]:
    """Feed trains of 200 tuples; how many tuples SteMs returned in each."""
    found = []
    for _ in range(count):
        before = sum(stem["matched"] for stem in from_a(engine)["stems"].values())
        engine.enqueue("A", [(keys[n % 100], n) for n in range(200)])
        engine.drain()
        after = sum(stem["matched"] for stem in from_a(engine)["stems"].values())
        found.append(after - before)
    return found


def test_tickets_follow_when_selectivities_swap() -> None:
    """The best is 2 matches in the one SteM and 200 results; the worst 20,000 and 200."""
    with sparkless.make_engine(network("tickets")) as engine:
        store(engine)
        assert trains(engine, MANY, 4)[1:] == [202] * 3
        assert from_a(engine)["orders"] == {"C, B": 800}
        swapped = trains(engine, SOME, 5)
        assert swapped[0] == 20_200, "it was not known before"
        assert swapped[2:] == [202] * 3
        told = from_a(engine)
        assert told["orders"]["B, C"] >= 600
        assert told["stems"]["B"]["share"] > told["stems"]["C"]["share"] > 0
        assert told["stems"]["B"]["first"] == told["orders"]["B, C"]


def test_orders_change_work_and_never_results() -> None:
    results, joined = {}, {}
    for policy in ("tickets", "random", "fixed", "optimal"):
        with sparkless.make_engine(network(policy)) as engine:
            store(engine)
            joined[policy] = sum(trains(engine, MANY, 3) + trains(engine, SOME, 3))
            engine.enqueue("C", [(3, 7), (1003, 8)])
            engine.drain()
            results[policy] = engine.dequeue("q").to_pylist()
    assert len(results["fixed"]) == 6 * 200 + 6 * 100
    assert all(found == results["fixed"] for found in results.values())
    assert joined["optimal"] <= joined["tickets"] < joined["fixed"]


def test_a_stem_with_very_many_partners_is_put_off() -> None:
    """What was good so far may explode: a sample is asked before too much is made of it."""
    net = au.Network("joins")
    for name in "ABC":
        net.stream(name, "k int, x int")
    net.query("q", JOIN, results="count")
    with sparkless.make_engine(net) as engine:
        others = [(key, 0) for key in range(100, 140)]  # so that no bucket is empty
        engine.enqueue("B", others + [(1, n) for n in range(12_000)])
        engine.enqueue("C", others + [(2, n) for n in range(12_000)])
        engine.drain()
        for key, first in ((2, "B, C"), (1, "C, B")):
            engine.enqueue("A", [(key, n) for n in range(400)])
            engine.drain()
            assert from_a(engine)["orders"][first] == 400
        assert sum(stem["matched"] for stem in from_a(engine)["stems"].values()) == 0
