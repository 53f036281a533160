"""What eddies tell of their filters, SteMs and panes."""

from __future__ import annotations

from typing import Any

import pytest

import auroral as au
from tests.conformance import sparkless

from .market import batch, ticks


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)


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
