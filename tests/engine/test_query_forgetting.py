"""Of queries that went nothing is remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auroral as au
from tests.conformance import sparkless

from .market import batch


def _network() -> au.Network:
    net = au.Network("market")
    net.stream("ticks", "n bigint, sym string, price double", progress=au.Ordered("n"))
    net.stream("news", "sym string, text string")
    net.query("all", "SELECT n FROM ticks")
    return net


def test_nothing_is_remembered_of_who_read_a_query_that_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = _network()
    rules = [{"rule": n, "p": n} for n in range(3)]
    net.family("rules", "SELECT n FROM ticks WHERE n > :p", rules, key="rule")
    net.query("results", "SELECT n FROM ticks")  # named as the reader that keeps what is unread
    with sparkless.make_engine(net) as engine:

        def read(*names: str) -> None:
            engine.enqueue("ticks", batch(0, 10))
            engine.drain()
            for name in names:
                assert engine.dequeue(name).num_rows

        read("all", "results", "rules[1]", "rules")
        before, counters = engine._store.names()[1], len(engine._store.counters)
        engine.modify(remove=["all", "results", "rules"])
        text = "SELECT n FROM ticks WHERE n > 3"
        engine.modify(add={"all": text, "results": text, "rules": au.Family(text, rules, "rule")})
        engine.bind_sink("all", lambda _delivery: None)
        read("results", "rules[1]", "rules")
        assert len(engine._store.names()[1]) <= len(before)
        assert len(engine._store.counters) <= counters
        assert engine.stats()["outputs"]["all"]["out"] == 6


def test_nothing_is_counted_of_boxes_that_went(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT count(DISTINCT sym) AS c FROM ticks [RANGE 10, WA n]"
    with sparkless.make_engine(_network()) as engine:
        before = set(engine._store.counters)
        for n in (0, 100):
            engine.modify(add={"names": sql})
            engine.enqueue("ticks", [*batch(n, n + 30), *batch(n, n + 3)])
            engine.drain()
            assert engine.stats()["late"] == 3
            engine.modify(remove=["names"])
            left = {key for key in set(engine._store.counters) - before if "#" in key[0]}
            assert not left


PANES = "SELECT sym, count(*) AS c FROM ticks [RANGE 10, WA n] GROUP BY sym"
PAIRS = "SELECT n, text FROM ticks [ROWS 4], news [ROWS 2] WHERE ticks.sym = news.sym"
BOXED = "SELECT sum(n) AS s FROM ticks [ROWS 5]"


@pytest.mark.parametrize("sql", [PANES, PAIRS])
@pytest.mark.parametrize("restarted", [False, True])
def test_state_goes_with_its_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sql: str, restarted: bool
) -> None:
    net = _network()

    def state(engine: au.Engine) -> list[str]:
        return [log for log in engine._store.names()[0] if log.startswith("eddy@")]

    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.modify(add={"q": sql})
        engine.enqueue("ticks", batch(0, 25))
        engine.drain()
        assert state(engine)
        more: dict[str, Any] = {} if restarted else {"add": {"boxed": BOXED}}
        engine.modify(**more, remove=["q"])
        if not restarted:
            assert not state(engine)
    with sparkless.make_engine(net, state=tmp_path) as engine:
        assert not state(engine)
