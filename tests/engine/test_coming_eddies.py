"""Queries that need other eddies or boxes come while tuples wait, and nobody waits for them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import auroral as au
from auroral import Ordered, Query
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless
from tests.conformance.driving import Drive, Manner
from tests.conformance.shared import Action, Maker, Scenario
from tests.conformance.test_shared_queries import feed, modify

from .market import batch, numbers, ticks

_LONG_S = 60
PAIRS = "SELECT ticks.n, text FROM ticks [ROWS 9], news [ROWS 9] WHERE ticks.sym = news.sym"
NEWS = [{"sym": sym, "text": sym.lower()} for sym in "ABC"]


def _network() -> au.Network:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    return net


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def test_the_first_query_over_a_stream_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)
    with sparkless.make_engine(_network(), train=5) as engine:
        engine.enqueue("ticks", batch(0, 20))
        engine.enqueue("news", NEWS)
        steps = engine.stats()["steps"]["count"]
        engine.modify(add={"texts": "SELECT text FROM news"})
        engine.modify(add={"pairs": PAIRS})
        engine.modify(add={"later": "SELECT sym FROM news"}, remove=["texts"])
        assert engine.stats()["steps"]["count"] == steps
        assert engine.list_entities()["queries"] == ["all", "pairs", "later"]
        assert engine.dequeue("pairs").column_names == ["n", "text"]
        assert engine.dequeue("all").num_rows == 0
        engine.enqueue("news", NEWS[:1])
        engine.enqueue("ticks", batch(20, 25))
        engine.drain()
        assert list(engine.stats()["eddies"]) == ["news+ticks"]
        assert numbers(engine.dequeue("all")) == list(range(25))
        assert engine.dequeue("later")["sym"].to_pylist() == ["A"]
        assert numbers(engine.dequeue("pairs")) == [21, 24]


def test_eddies_that_come_and_go_before_anything_is_processed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The eddies of an arc are one, another, and the first again."""
    sparkless.no_spark(monkeypatch)
    net = _network()
    net.stream("other", "n bigint")
    with sparkless.make_engine(net, train=2) as engine:
        engine.enqueue("ticks", batch(0, 5))
        engine.modify(add={"pairs": PAIRS})
        engine.enqueue("ticks", batch(5, 10))
        engine.enqueue("news", NEWS)
        engine.modify(remove=["pairs"], add={"others": "SELECT n FROM other"})
        engine.enqueue("ticks", batch(10, 15))
        engine.modify(add={"high": "SELECT n FROM ticks WHERE n > 12"})
        engine.enqueue("other", [{"n": 1}])
        engine.drain()
        assert sorted(engine.stats()["eddies"]) == ["other", "ticks"]
        assert numbers(engine.dequeue("all")) == list(range(15))
        assert numbers(engine.dequeue("high")) == []
        assert numbers(engine.dequeue("others")) == [1]
        engine.enqueue("ticks", batch(12, 14))
        engine.drain()
        assert numbers(engine.dequeue("high")) == [13]


ACTIONS: list[Action] = [
    feed("A", 4),
    modify(pairs="SELECT A.u FROM A [ROWS 3], B [ROWS 2] WHERE A.k = B.k"),
    feed("B", 3),
    modify(more="SELECT u FROM A WHERE x > 0"),
    feed("A", 4),
    modify("pairs", made="SELECT u, count(*) AS c FROM M [RANGE 2, SLIDE 2, WA n] GROUP BY u"),
    feed("B", 2),
    modify("few", few="SELECT B.u FROM B [ROWS 2], F [ROWS 2] WHERE B.k = F.k"),
    feed("A", 4),
]


def test_a_crash_while_eddies_are_to_come_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At some of the points at which something is written."""
    sparkless.no_spark(monkeypatch)
    progress = {"A": Ordered("n"), "B": Ordered("n")}
    first = {"few": Query("SELECT u FROM A WHERE k > 0")}
    scenario = Scenario(progress, first, ACTIONS, True, "fixed", derived=("M", "F"))
    crashes = itertools.count(3, 9)
    starts = 2
    while starts > 1:
        point = next(crashes)
        how = Manner(3, frozenset((point,)), drains=0)
        drive = Drive(sparkless.make_engine, scenario, how, Random(1))
        drive.go(tmp_path / str(point))
        starts = drive.starts
    assert point > 100


@pytest.mark.parametrize("seed", range(6))
def test_eddies_come_and_go_by_chance(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparkless.no_spark(monkeypatch)
    rng = Random(seed)
    kinds = {"join": 4, "select": 2, "aggregate": 1}
    scenario = Maker(rng, kinds, derived=("M", "F")[: seed % 3]).scenario(20)
    crashes = frozenset(rng.sample(range(150), 6))
    how = Manner(rng.choice([1, 3, None]), crashes, drains=0.05)
    Drive(sparkless.make_engine, scenario, how, rng).go(tmp_path)


BOXED = "SELECT count(*) AS n FROM ticks [ROWS 1]"


@pytest.mark.parametrize("change", [{}, {"add": {"boxed": BOXED}}])
def test_others_go_on_while_a_change_waits(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query goes that has a sink; what it gave is being delivered."""
    sparkless.no_spark(monkeypatch)
    net = _network()
    net.query("going", "SELECT n FROM ticks")
    got: list[int] = []
    others: list[threading.Thread] = []
    with sparkless.make_engine(net, train=5) as engine:

        def meanwhile() -> None:
            engine.enqueue("ticks", batch(10, 20))
            engine.modify(add={"meanwhile": "SELECT n FROM ticks"})
            engine.enqueue("ticks", batch(20, 30))

        def deliver(delivery: Delivery) -> None:
            if not others:
                others.append(_in_thread(meanwhile))
                others[0].join(_LONG_S)
                assert not others[0].is_alive()
            got.extend(numbers(delivery.table))

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(**change, remove=["going"])
        assert others
        assert engine.list_entities()["queries"][:2] == ["all", "meanwhile"]
        assert got == list(range(30))  # the other change came first
        engine.enqueue("ticks", batch(30, 40))
        engine.drain()
        assert got == list(range(30))
        assert numbers(engine.dequeue("all")) == list(range(40))
        assert numbers(engine.dequeue("meanwhile")) == list(range(20, 40))
        if change:
            assert engine.dequeue("boxed").num_rows == 10


def test_boxes_come_at_their_moment_though_queries_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sparkless.no_spark(monkeypatch)
    net = _network()
    done: list[threading.Thread] = []
    with sparkless.make_engine(net, train=5) as engine:

        def meanwhile() -> None:
            engine.enqueue("ticks", batch(10, 20))
            engine.modify(add={"pairs": PAIRS})
            engine.enqueue("news", NEWS)

        def deliver(_delivery: Delivery) -> None:
            if not done:
                done.append(_in_thread(meanwhile))
                done[0].join(_LONG_S)
                assert not done[0].is_alive()

        engine.bind_sink("all", deliver)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": BOXED})
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert engine.dequeue("boxed").num_rows == 13
        assert numbers(engine.dequeue("pairs")) == [20, 21, 22]


def test_queries_that_change_all_the_time_do_not_keep_another_from_going(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sparkless.no_spark(monkeypatch)
    net = _network()
    net.query("going", "SELECT n FROM ticks")
    number = itertools.count()
    with sparkless.make_engine(net, train=5) as engine:

        def deliver(_delivery: Delivery) -> None:
            n = next(number)
            if n < 7:
                engine.enqueue("ticks", batch(100 + n, 101 + n))
                engine.modify(add={f"more{n}": "SELECT n FROM ticks"})

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 5))
        engine.modify(remove=["going"])
        assert next(number) == 8
        engine.drain()
        assert numbers(engine.dequeue("all")) == [*range(5), *range(100, 107)]
        assert [engine.dequeue(f"more{n}").num_rows for n in range(7)] == [6, 5, 4, 3, 2, 1, 0]


def test_what_stays_keeps_what_it_has_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)
    with sparkless.make_engine(_network()) as engine:
        engine.modify(add={"high": "SELECT n FROM ticks WHERE price > 10"})
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        before = engine.stats()["eddies"]["ticks"]
        assert before["arcs"]["ticks"]["tuples"] == 20
        engine.modify(add={"texts": "SELECT text FROM news", "boxed": BOXED})
        engine.drain()
        assert engine.stats()["eddies"]["ticks"] == before
        engine.modify(add={"pairs": PAIRS})
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        assert engine.stats()["eddies"]["news+ticks"]["arcs"]["ticks"]["tuples"] == 20


def test_who_enqueues_when_the_engine_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)
    with sparkless.make_engine(_network()) as engine:
        engine.enqueue("ticks", batch(0, 5))
        ingest, store = engine._ingest, engine._store
    with pytest.raises(au.UsageError, match="NOT_STARTED"):
        ingest.enqueue("ticks", batch(5, 10))
    with pytest.raises(au.UsageError, match="NOT_STARTED"):
        store.manifest.meta("ended")
