"""Continuous queries of a running engine: they come and go, each sees what arrives after it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import auroral as au
from auroral.errors import AuroralError, NetworkError, UsageError
from auroral.testing import Collector, run
from tests.conformance.running import Crash, Faults

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark
Row = dict[str, Any]


def ticks() -> au.Network:
    net = au.Network("market")
    net.stream("ticks", "n bigint, sym string, price double")
    net.stream("news", "sym string, text string")
    return net


def tick(n: int) -> Row:
    return {"n": n, "sym": "ABC"[n % 3], "price": float(n * 7 % 20) if n % 11 else None}


def batch(start: int, stop: int) -> list[Row]:
    return [tick(n) for n in range(start, stop)]


def numbers(table: pa.Table) -> list[int]:
    return list(table["n"].to_pylist())


def above(limit: float, *spans: tuple[int, int]) -> list[int]:
    """The ticks of some spans with a price above a limit."""
    found = (tick(n) for span in spans for n in range(*span))
    return [row["n"] for row in found if row["price"] is not None and row["price"] > limit]


def test_a_query_sees_what_arrives_while_it_is_there(make_engine: MakeEngine) -> None:
    net = ticks()
    net.query("first", "SELECT n FROM ticks WHERE price > 10")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 20))
        engine.modify(add={"second": "SELECT n, price * 2 AS twice FROM ticks WHERE price > 15"})
        engine.enqueue("ticks", batch(20, 40))
        engine.modify(remove=["first"])
        engine.enqueue("ticks", batch(40, 60))
        engine.drain()
        second = engine.dequeue("second")
        assert numbers(second) == above(15, (20, 60))
        assert second["twice"].to_pylist() == [2 * tick(n)["price"] for n in numbers(second)]
        with pytest.raises(UsageError, match="UNKNOWN_OUTPUT"):
            engine.dequeue("first")
        assert engine.list_entities()["queries"] == ["second"]
        assert engine.stats()["queries"]["second"]["matches"] == second.num_rows


def test_many_queries_in_one_call(make_engine: MakeEngine) -> None:
    count = 2_000
    texts = {
        f"q{k}": f"SELECT n FROM ticks WHERE price > {k % 20} AND sym = '{'ABC'[k % 3]}'"
        for k in range(count)
    }
    with make_engine(ticks()) as engine:
        engine.modify(add=texts)
        engine.enqueue("ticks", batch(0, 60))
        engine.drain()
        expected = {
            f"q{k}": [n for n in above(k % 20, (0, 60)) if n % 3 == k % 3] for k in range(count)
        }
        matches = engine.matches()
        found = dict(zip(matches["query"].to_pylist(), matches["matches"].to_pylist(), strict=True))
        assert found == {name: len(rows) for name, rows in expected.items()}
        for name in ("q0", "q7", "q1999"):
            assert numbers(engine.dequeue(name)) == expected[name]


RULES = [
    {"rule": 1, "sym": "A", "limit": 5.0},
    {"rule": 2, "sym": "B", "limit": 15.0},
    {"rule": 3, "sym": "A", "limit": 0.0},
    {"rule": 4, "sym": "C", "limit": None},
]
ALERTS = "SELECT n, price, :limit AS over FROM ticks WHERE sym = :sym AND price > :limit"


def alerts(rules: list[Row], span: tuple[int, int]) -> list[tuple[int, int]]:
    """Rule and tick of every alert, in order."""
    return [
        (rule["rule"], n)
        for n in range(*span)
        for rule in rules
        if rule["limit"] is not None
        and n in above(rule["limit"], (n, n + 1))
        and tick(n)["sym"] == rule["sym"]
    ]


def _as_rows(_path: Path) -> Any:
    return RULES


def _as_arrow(_path: Path) -> Any:
    return pa.Table.from_pylist(RULES)


def _as_parquet(path: Path) -> Any:
    pq.write_table(pa.Table.from_pylist(RULES), path / "rules.parquet")
    return str(path / "rules.parquet")


@pytest.mark.parametrize("form", [_as_rows, _as_arrow, _as_parquet])
def test_a_family_has_a_query_for_each_row(
    make_engine: MakeEngine, tmp_path: Path, form: Callable[[Path], Any]
) -> None:
    net = ticks()
    net.family("alerts", ALERTS, form(tmp_path), "rule")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 60))
        engine.drain()
        one = engine.dequeue("alerts[2]")
        assert numbers(one) == [n for rule, n in alerts(RULES, (0, 60)) if rule == 2]
        assert one["over"].to_pylist() == [15.0] * one.num_rows
        found = engine.dequeue("alerts")
        assert found.column_names == ["rule", "n", "price", "over"]
        pairs = list(zip(found["rule"].to_pylist(), numbers(found), strict=True))
        assert pairs == alerts(RULES, (0, 60))


def test_a_tuple_comes_once_with_all_its_queries(make_engine: MakeEngine) -> None:
    net = ticks()
    net.family("alerts", ALERTS, RULES, "rule")
    net.query("all", "SELECT n FROM ticks")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 30))
        engine.drain()
        found = engine.dequeue_all("ticks")
        assert numbers(found) == list(range(30))
        for row in found.to_pylist():
            rules = [rule for rule, n in alerts(RULES, (0, 30)) if n == row["n"]]
            assert sorted(row["queries"]) == sorted(["all", *(f"alerts[{r}]" for r in rules)])
        assert engine.dequeue_all("ticks").num_rows == 0
        assert engine.dequeue("all").num_rows == 0
        engine.enqueue("ticks", batch(30, 60))
        engine.drain()
        of_family = engine.dequeue_all("alerts")
        assert numbers(of_family) == sorted({n for _, n in alerts(RULES, (30, 60))})
        assert numbers(engine.dequeue("all")) == list(range(30, 60))


def test_members_come_and_go(make_engine: MakeEngine) -> None:
    net = ticks()
    net.family("alerts", ALERTS, RULES, "rule")
    with make_engine(net) as engine:
        engine.modify(add={"alerts": [{"rule": 9, "sym": "B", "limit": 3.0}]}, remove=["alerts[1]"])
        engine.enqueue("ticks", batch(0, 30))
        engine.drain()
        rules = [*RULES[1:], {"rule": 9, "sym": "B", "limit": 3.0}]
        found = engine.dequeue("alerts")
        pairs = list(zip(found["rule"].to_pylist(), numbers(found), strict=True))
        assert sorted(pairs) == sorted(alerts(rules, (0, 30)))
        with pytest.raises(NetworkError, match=r"DUPLICATE_NAME.*has a member 9"):
            engine.modify(add={"alerts": [{"rule": 9, "sym": "B", "limit": 3.0}]})
        with pytest.raises(UsageError, match=r"UNKNOWN_QUERY.*alerts\[1\]"):
            engine.modify(remove=["alerts[1]"])
        with pytest.raises(NetworkError, match="BAD_VALUES"):
            engine.modify(add={"alerts": [{"rule": "nine", "sym": "B", "limit": 3.0}]})
        engine.modify(remove=["alerts[9]"], add={"alerts": [{"rule": 9, "sym": "C", "limit": 0.0}]})
        engine.enqueue("ticks", batch(30, 60))
        engine.drain()
        changed = [{"rule": 9, "sym": "C", "limit": 0.0}]
        assert numbers(engine.dequeue("alerts[9]")) == [n for _, n in alerts(changed, (30, 60))]
        engine.modify(remove=["alerts"])
        assert engine.list_entities()["queries"] == []


def test_counted_queries_keep_nothing(make_engine: MakeEngine) -> None:
    net = ticks()
    net.query("hits", "SELECT * FROM ticks WHERE price > 10", results="count")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 60))
        engine.drain()
        assert engine.matches("hits").to_pylist() == [
            {"query": "hits", "matches": len(above(10, (0, 60))), "errors": 0}
        ]
        with pytest.raises(UsageError, match="ONLY_COUNTED"):
            engine.dequeue("hits")


BAD = {
    "UNKNOWN_STREAM": "SELECT * FROM tocks",
    "UNKNOWN_FIELD": "SELECT n FROM ticks WHERE prise > 1",
    "AMBIGUOUS_FIELD": "SELECT text FROM ticks [ROWS 3], news [ROWS 3] WHERE sym = 'A'",
    "NO_WINDOW": "SELECT text FROM ticks, news WHERE ticks.sym = news.sym",
    "TYPE_MISMATCH": "SELECT n FROM ticks WHERE sym + 1",
    "SYNTAX_ERROR": "SELECT n FROM ticks WHERE price >",
}


@pytest.mark.parametrize("code", BAD)
def test_a_bad_query_disturbs_no_other(make_engine: MakeEngine, code: str) -> None:
    net = ticks()
    net.query("good", "SELECT n FROM ticks WHERE price > 10")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 10))
        with pytest.raises(NetworkError, match=code) as error:
            engine.modify(add={"fine": "SELECT n FROM ticks", "bad": BAD[code]}, remove=["good"])
        assert "bad" in str(error.value)
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert engine.list_entities()["queries"] == ["good"]
        assert numbers(engine.dequeue("good")) == above(10, (0, 20))


def test_names_are_told_apart(make_engine: MakeEngine) -> None:
    net = ticks()
    net.query("hot", "SELECT n FROM ticks WHERE price > 10")
    with make_engine(net) as engine:
        for name in ("hot", "ticks"):
            with pytest.raises(NetworkError, match="DUPLICATE_NAME"):
                engine.modify(add={name: "SELECT n FROM ticks"})
        with pytest.raises(NetworkError, match="BAD_NAME"):
            engine.modify(add={"no good": "SELECT n FROM ticks"})
        with pytest.raises(UsageError, match=r"UNKNOWN_QUERY.*hat.*hot"):
            engine.modify(remove=["hat"])
        engine.modify(remove=["hot"], add={"hot": "SELECT n FROM ticks WHERE price > 15"})
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        assert numbers(engine.dequeue("hot")) == above(15, (0, 20))


def odd(n: pa.Array) -> pa.Array:
    if 7 in n.to_pylist():
        raise ValueError("sevens are odd indeed")
    return pc.equal(pc.bit_wise_and(n, 1), 1)


def test_a_function_that_fails_costs_its_query_that_tuple(make_engine: MakeEngine) -> None:
    net = ticks()
    net.function("odd", odd, returns="boolean")
    net.query("odds", "SELECT n FROM ticks WHERE odd(n) AND n < 20")
    net.query("all", "SELECT n FROM ticks")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 30))
        engine.drain()
        assert numbers(engine.dequeue("odds")) == [n for n in range(1, 20, 2) if n != 7]
        assert numbers(engine.dequeue("all")) == list(range(30))
        odds = engine.stats()["queries"]["odds"]
        assert (odds["errors"], odds["error"]) == (1, "ValueError: sevens are odd indeed")
        assert engine.stats()["queries"]["all"]["errors"] == 0


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
