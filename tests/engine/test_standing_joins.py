"""Joins, aggregates, restarts and sinks of queries that come and go."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import auroral as au
from auroral.errors import AuroralError
from auroral.testing import Collector, run
from tests.conformance.running import Crash, Faults

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

from .market import ALERTS, RULES, Row, above, alerts, batch, numbers, ticks

pytestmark = pytest.mark.spark

JOINED = "SELECT n, text FROM ticks [ROWS 4], news [ROWS 2] WHERE ticks.sym = news.sym"


def joined(events: list[tuple[str, Row]], limit: float) -> list[tuple[int, str]]:
    """Pairs of the latest 4 ticks and 2 news with one symbol, in order."""
    seen: dict[str, list[Row]] = {"ticks": [], "news": []}
    found = []
    for stream, row in events:
        other = "news" if stream == "ticks" else "ticks"
        for partner in seen[other][-2:] if other == "news" else seen[other][-4:]:
            a, b = (row, partner) if stream == "ticks" else (partner, row)
            if a["sym"] == b["sym"] and a["price"] is not None and a["price"] > limit:
                found.append((a["n"], b["text"]))
        seen[stream].append(row)
    return found


@pytest.mark.parametrize("train", [1, 7, None])
def test_joins_connect_streams_while_they_run(make_engine: MakeEngine, train: int | None) -> None:
    net = ticks()
    net.query("hot", "SELECT n FROM ticks WHERE price > 10")
    net.query("texts", "SELECT text FROM news")
    events: list[tuple[str, Row]] = []
    with make_engine(net, train=train) as engine:

        def feed(stream: str, rows: list[Row]) -> None:
            engine.enqueue(stream, rows)
            events.extend((stream, row) for row in rows)

        feed("ticks", batch(0, 10))
        engine.modify(add={"low": f"{JOINED} AND price > 2"})
        before = len(events)
        for k in range(10, 40, 5):
            feed("news", [{"sym": "ABC"[k % 3], "text": f"t{k}"}])
            feed("ticks", batch(k, k + 5))
            if k == 20:
                engine.modify(add={"high": f"{JOINED} AND price > 12"})
                between = len(events)
        engine.drain()
        low, high = (
            [tuple(row.values()) for row in engine.dequeue(name).to_pylist()]
            for name in ("low", "high")
        )
        assert low == joined(events[before:], 2)
        assert high == joined(events[between:], 12)
        assert numbers(engine.dequeue("hot")) == above(10, (0, 40))
        assert engine.dequeue("texts").num_rows == 6
        held = engine.stats()["eddies"]["news+ticks"]["held"]
        assert held["stem ticks"] <= 4
        assert held["stem news"] <= 2


def test_queries_that_need_boxes_come_and_go_too(make_engine: MakeEngine) -> None:
    net = ticks()
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"tens": "SELECT count(*) AS c FROM ticks [ROWS 10]"})
        engine.enqueue("ticks", batch(10, 35))
        engine.drain()
        assert engine.dequeue("tens")["c"].to_pylist() == [10, 10]
        engine.modify(remove=["tens"])
        engine.modify(add={"tens": "SELECT sum(n) AS s FROM ticks [ROWS 5]"})
        engine.enqueue("ticks", batch(0, 5))
        engine.drain()
        assert engine.dequeue("tens")["s"].to_pylist() == [10]


def test_aggregates_share_panes(make_engine: MakeEngine) -> None:
    net = au.Network("market")
    net.stream("ticks", "n bigint, sym string, price double", progress=au.Ordered("n"))
    sizes = {f"w{k}": (k % 3 + 1) * 5 for k in range(12)}
    for k, (name, size) in enumerate(sizes.items()):
        net.query(
            name,
            f"SELECT sym, count(*) AS c FROM ticks [RANGE {size}, SLIDE 5, WA n]"
            f" WHERE price > {k} GROUP BY sym",
        )
    expected = run(net, {"ticks": batch(0, 50)})
    with make_engine(net, train=13) as engine:
        engine.enqueue("ticks", batch(0, 50))
        engine.finish()
        for name in sizes:
            assert engine.dequeue(name).to_pylist() == expected[name]
        assert list(engine.stats()["eddies"]) == ["ticks"]


def test_a_family_of_aggregates(make_engine: MakeEngine) -> None:
    net = au.Network("market")
    net.stream("ticks", "n bigint, sym string, price double", progress=au.Ordered("n"))
    sql = "SELECT count(*) AS c FROM ticks [RANGE 10, WA n] WHERE sym = :sym HAVING count(*) > :c"
    rules = [{"rule": f"r{k}", "sym": "ABC"[k % 3], "c": k} for k in range(6)]
    net.family("busy", sql, rules, "rule")
    expected = run(net, {"ticks": batch(0, 50)})
    with make_engine(net, train=13) as engine:
        engine.enqueue("ticks", batch(0, 50))
        engine.finish()
        found = engine.dequeue("busy").to_pylist()
        for rule in rules:
            own = [{"c": row["c"]} for row in found if row["rule"] == rule["rule"]]
            assert own == expected[f"busy[{rule['rule']}]"]
        assert len(found) > 5


def test_what_is_in_no_window_is_counted_by_reason(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = au.Network("market")
    net.stream("ticks", "n bigint, sym string, price double", progress=au.Ordered("n"))
    net.query("all", "SELECT count(*) AS c FROM ticks [RANGE 10, SLIDE 10, WA n]")
    net.query("some", "SELECT count(*) AS c FROM ticks [RANGE 5, SLIDE 10, WA n]")
    rows = [{"n": n, "sym": "A", "price": 1.0} for n in (1, 7, 30, None, 2, 31, 8)]
    found = {"all": {"late": 2, "null": 1}, "some": {"late": 1, "null": 1, "outside": 2}}
    for _ in range(2):  # the second time from the state directory
        with make_engine(net, state=tmp_path) as engine:
            if engine.stats()["streams"]["ticks"]["in"] == 0:
                engine.enqueue("ticks", rows)
                engine.drain()
            stats = engine.stats()
            assert {name: query["late"] for name, query in stats["queries"].items()} == found
            assert stats["late"] == 5


CHANGES: dict[int, dict[str, Any]] = {
    1: {"add": {"second": "SELECT n FROM ticks WHERE price > 4"}},
    2: {"add": {"alerts": au.Family(ALERTS, RULES, "rule")}, "remove": ["first"]},
    3: {"add": {"both": f"{JOINED} AND price > 2"}},
    4: {"remove": ["alerts[3]"]},
}


def run_with_changes(
    make_engine: MakeEngine, net: au.Network, faults: Faults, **options: Any
) -> dict[str, list[Row]]:
    """Batches with a change of queries after each; after a crash it goes on where it was."""
    while True:
        with contextlib.suppress(Crash), make_engine(net, fault=faults, **options) as engine:
            for k in range(6):
                engine.enqueue("ticks", batch(10 * k, 10 * k + 10), position=k) if (
                    engine.position("ticks") or -1
                ) < k else None
                engine.enqueue("news", [{"sym": "ABC"[k % 3], "text": f"t{k}"}], position=k) if (
                    engine.position("news") or -1
                ) < k else None
                change = CHANGES.get(k)
                if change and (engine._store.manifest.meta(f"change {k}") is None):
                    with contextlib.suppress(AuroralError):
                        engine.modify(**change)
                    with engine._store.manifest.transaction():
                        engine._store.manifest.set_meta(f"change {k}", "done")
            engine.drain()
            names = ("second", "alerts", "both")
            found = {name: engine.dequeue(name).to_pylist() for name in names}
            found["matches"] = engine.matches().to_pylist()
            return found


@pytest.mark.parametrize("crashes", [(5, 14), (9, 22, 31), (17, 40), (28, 29, 55)], ids=str)
def test_queries_survive_crashes(
    make_engine: MakeEngine, tmp_path: Path, crashes: tuple[int, ...]
) -> None:
    net = ticks()
    net.query("first", "SELECT n FROM ticks WHERE price > 10")
    plain = run_with_changes(make_engine, net, Faults(frozenset()), train=6)
    faults = Faults(frozenset(crashes))
    found = run_with_changes(make_engine, net, faults, train=6, state=tmp_path)
    assert found == plain
    assert [row["n"] for row in found["second"]] == above(4, (20, 60))


def test_queries_survive_a_restart(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = ticks()
    net.query("first", "SELECT n FROM ticks WHERE price > 10")
    net.query("gone", "SELECT n FROM ticks")
    with make_engine(net, state=tmp_path) as engine:
        engine.modify(add={"alerts": au.Family(ALERTS, RULES, "rule")}, remove=["gone"])
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        assert numbers(engine.dequeue("first")) == above(10, (0, 20))
    with make_engine(net, state=tmp_path) as engine:
        assert engine.list_entities()["queries"] == ["first", "alerts"]
        engine.enqueue("ticks", batch(20, 40))
        engine.drain()
        assert numbers(engine.dequeue("first")) == above(10, (20, 40))
        found = engine.dequeue("alerts")
        pairs = list(zip(found["rule"].to_pylist(), numbers(found), strict=True))
        assert pairs == alerts(RULES, (0, 40))
        assert sum(engine.matches("alerts")["matches"].to_pylist()) == len(pairs)


def test_counts_are_never_inherited(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = ticks()
    with make_engine(net, state=tmp_path) as engine:
        engine.modify(add={"alerts": au.Family(ALERTS, RULES, "rule")})
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        engine.modify(remove=["alerts"])
        engine.enqueue("ticks", batch(20, 21))
        engine.drain()
    for _ in range(2):  # at the first start the removed queries are forgotten
        with make_engine(net, state=tmp_path) as engine:
            assert engine.list_entities()["queries"] == []
    assert not list((tmp_path / "queries").iterdir())
    with make_engine(net, state=tmp_path) as engine:
        engine.modify(add={"all": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(21, 24))
        engine.drain()
        assert engine.matches("all")["matches"].to_pylist() == [3]


def test_a_network_may_change_its_queries_between_runs(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    net = ticks()
    net.query("same", "SELECT n FROM ticks WHERE price > 10")
    net.query("old", "SELECT n FROM ticks WHERE price > 15")
    with make_engine(net, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
    other = ticks()
    other.query("same", "SELECT n FROM ticks WHERE price > 10")
    other.query("new", "SELECT n FROM ticks WHERE price > 5")
    with make_engine(other, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(20, 40))
        engine.drain()
        assert engine.list_entities()["queries"] == ["same", "new"]
        assert numbers(engine.dequeue("same")) == above(10, (0, 40))
        assert numbers(engine.dequeue("new")) == above(5, (20, 40))


def test_results_go_to_sinks(make_engine: MakeEngine) -> None:
    net = ticks()
    net.query("hot", "SELECT n FROM ticks WHERE price > 10")
    net.family("alerts", ALERTS, RULES, "rule")
    net.output("heat", "hot")
    sinks = {name: Collector() for name in ("heat", "alerts")}
    with make_engine(net, bind=list(sinks.items())) as engine:
        engine.enqueue("ticks", batch(0, 40))
        engine.drain()
        later = Collector()
        engine.modify(add={"later": "SELECT n FROM ticks WHERE price > 15"})
        engine.bind_sink("later", later)
        engine.enqueue("ticks", batch(40, 60))
        engine.drain()
    assert [row["n"] for row in sinks["heat"].rows] == above(10, (0, 60))
    assert [(row["rule"], row["n"]) for row in sinks["alerts"].rows] == alerts(RULES, (0, 60))
    assert [row["n"] for row in later.rows] == above(15, (40, 60))


def test_queries_come_while_others_work(make_engine: MakeEngine) -> None:
    """A producer goes on meanwhile: what a new query sees is a suffix, and others miss nothing."""
    net = ticks()
    net.query("first", "SELECT n FROM ticks WHERE price > 10")
    with make_engine(net, background=True, train=50) as engine:

        def produce() -> None:
            for start in range(0, 600, 10):
                engine.enqueue("ticks", batch(start, start + 10))

        producer = threading.Thread(target=produce)
        producer.start()
        for k in range(5):
            engine.modify(add={f"q{k}": f"SELECT n FROM ticks WHERE price > {k}"})
        producer.join()
        engine.drain()
        assert numbers(engine.dequeue("first")) == above(10, (0, 600))
        for k in range(5):
            found = numbers(engine.dequeue(f"q{k}"))
            everything = above(k, (0, 600))
            assert found == everything[len(everything) - len(found) :]
