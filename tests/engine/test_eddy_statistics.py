"""What eddies tell of their filters, SteMs and panes."""

from __future__ import annotations

from typing import Any

import auroral as au
from tests.conformance import sparkless

from .market import batch, ticks


def _index(engine: au.Engine) -> Any:
    return engine.stats()["eddies"]["ticks"]["arcs"]["ticks"]["index"]


def test_how_queries_are_indexed_is_told_as_it_changes() -> None:
    """Values that come in show that rules are selective; whoever was removed is not counted."""
    rules = [{"rule": n, "limit": 10**6 + n} for n in range(20_000)]
    net = ticks()
    net.query("dear", "SELECT n FROM ticks WHERE price > 1")
    net.family("few", "SELECT n FROM ticks WHERE n > :limit", rules, "rule")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 2000))
        engine.drain()
        assert _index(engine) == {"bitmaps": 1, "access_predicates": 20_000}
        engine.modify(remove=["few[7]"], add={"cheap": "SELECT n FROM ticks WHERE price < 9"})
        assert _index(engine) == {"bitmaps": 2, "access_predicates": 19_999}
        engine.modify(remove=["few"])
        assert _index(engine) == {"bitmaps": 2, "access_predicates": 0}


def test_what_went_is_not_told_any_more() -> None:
    """SteMs, panes and the filters of joins and aggregates; and how often SteMs are probed."""
    net = au.Network("market")
    for name in ("A", "B"):
        net.stream(name, "k int, x int, at bigint", progress=au.Ordered("at"))
    net.query("all", "SELECT x FROM A WHERE x > 0")
    net.query("pairs", "SELECT A.x FROM A [ROWS 10], B [ROWS 10] WHERE A.k = B.k AND A.x > 3")
    net.query("sums", "SELECT k, count(*) AS n FROM A [RANGE 10, WA at] GROUP BY k HAVING n > 1")
    with sparkless.make_engine(net) as engine:

        def told() -> Any:
            return engine.stats()["eddies"]["A+B"]

        engine.enqueue("A", [(1, n, n) for n in range(8)])
        engine.enqueue("B", [(1, 0, 8), (1, 0, 9)])
        engine.drain()
        assert {name.partition("~")[0] for name in told()["held"]} == {
            "stem A",
            "stem B",
            "panes aggregate",
        }
        assert len(told()["arcs"]) == 4, "two streams, what is joined, and HAVING"
        probed = told()["probes"]
        assert (probed["stem A"]["probed"], probed["stem A"]["matched"]) == (2, 8)
        assert probed["stem A"]["us_per_tuple"] > 0
        engine.modify(remove=["pairs", "sums"])
        engine.enqueue("A", [(1, 9, 10)])
        engine.drain()
        assert told()["held"] == told()["probes"] == {}
        assert set(told()["arcs"]) <= {"A", "B"}
