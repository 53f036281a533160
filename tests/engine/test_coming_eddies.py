"""Queries that need other eddies or boxes come while tuples wait, and nobody waits for them."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import auroral as au
from auroral import Ordered, Query
from auroral.continuous.sharing.sharing import QueryReader, Shared
from auroral.engine.runtime.loop import Loop
from tests.conformance import sparkless
from tests.conformance.driving import Drive, Manner
from tests.conformance.running import Crash
from tests.conformance.shared import Action, Maker, Scenario
from tests.conformance.test_shared_queries import feed, modify

from .market import BOXED, NEWS, PAIRS, all_ticks, batch, numbers


def test_the_first_query_over_a_stream_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with sparkless.make_engine(all_ticks(), train=5) as engine:
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
    net = all_ticks()
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
    rng = Random(seed)
    kinds = {"join": 4, "select": 2, "aggregate": 1}
    scenario = Maker(rng, kinds, derived=("M", "F")[: seed % 3]).scenario(20)
    crashes = frozenset(rng.sample(range(150), 6))
    how = Manner(rng.choice([1, 3, None]), crashes, drains=0.05)
    Drive(sparkless.make_engine, scenario, how, rng).go(tmp_path)


def test_what_stays_keeps_what_it_has_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    with sparkless.make_engine(all_ticks()) as engine:
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
    with sparkless.make_engine(all_ticks()) as engine:
        engine.enqueue("ticks", batch(0, 5))
        ingest, store = engine._ingest, engine._store
    with pytest.raises(au.UsageError, match="NOT_STARTED"):
        ingest.enqueue("ticks", batch(5, 10))
    with pytest.raises(au.UsageError, match="NOT_STARTED"):
        store.manifest.meta("ended")


@pytest.mark.parametrize("restarted", [False, True])
def test_each_declared_query_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    net = all_ticks()
    net.query("high", "SELECT n FROM ticks WHERE price > 10")
    net.query("boxed", BOXED)
    rows = [{"rule": 1, "sym": "A"}]
    net.family("rules", "SELECT n FROM ticks WHERE sym = :sym", rows, key="rule")
    if restarted:
        with sparkless.make_engine(net, state=tmp_path):
            pass
        net.queries["high"] = Query("SELECT n FROM ticks WHERE price > 11")
    shared = QueryReader.shared
    read: list[str] = []

    def counted(self: QueryReader, name: str, query: Query) -> Shared:
        read.append(name)
        return shared(self, name, query)

    monkeypatch.setattr(QueryReader, "shared", counted)
    with sparkless.make_engine(net, state=tmp_path) as engine:
        assert sorted(set(read)) == ["all", "boxed", "high", "rules"]
        assert read.count("all") == 1
        assert read.count("high") == 1 + restarted  # what it was, and what it is
        assert read.count("rules") == 1 + restarted  # its values are in the state
        engine.enqueue("ticks", batch(0, 5))
        engine.drain()
        assert numbers(engine.dequeue("high")) == [2]
        assert engine.dequeue("rules").num_rows == 2


def test_what_was_removed_before_anything_came_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = all_ticks()
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.modify(add={"pairs": PAIRS})
        monkeypatch.setattr(Loop, "move_on", lambda _self, **_: False)
        engine.modify(remove=["all", "pairs"], add={"texts": "SELECT text FROM news"})
    monkeypatch.undo()
    with sparkless.make_engine(net, state=tmp_path) as engine:
        assert engine.list_entities()["queries"] == ["texts"]
        engine.enqueue("news", NEWS)
        engine.drain()
        assert engine.matches()["query"].to_pylist() == ["texts"]


def test_a_change_outlives_tuples_that_were_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure takes the end of the journal: what comes then is later all the same."""
    net = all_ticks()
    with suppress(Crash), sparkless.make_engine(net, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"texts": "SELECT text FROM news"})
        raise Crash
    (tmp_path / "journal").write_bytes(b"")
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.drain()
        assert sorted(engine.stats()["eddies"]) == ["news", "ticks"]
        engine.enqueue("news", NEWS)
        engine.drain()
        assert engine.dequeue("texts").num_rows == 3
