"""Continuous queries of a running engine: they come and go, each sees what arrives after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from auroral.errors import NetworkError, StateError, UsageError
from auroral.storage import Change, Store

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

from .market import ALERTS, RULES, above, alerts, batch, numbers, tick, ticks

pytestmark = pytest.mark.spark


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
    count = 10_000
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
        for name in ("alerts[1]", "alerts+1"):
            with pytest.raises(UsageError, match=f"UNKNOWN_QUERY.*{re.escape(name)}"):
                engine.modify(remove=[name])
        with pytest.raises(NetworkError, match="BAD_VALUES"):
            engine.modify(add={"alerts": [{"rule": "nine", "sym": "B", "limit": 3.0}]})
        engine.modify(remove=["alerts[9]"], add={"alerts": [{"rule": 9, "sym": "C", "limit": 0.0}]})
        engine.enqueue("ticks", batch(30, 60))
        engine.drain()
        changed = [{"rule": 9, "sym": "C", "limit": 0.0}]
        assert numbers(engine.dequeue("alerts[9]")) == [n for _, n in alerts(changed, (30, 60))]
        engine.modify(remove=["alerts"])
        assert engine.list_entities()["queries"] == []


def test_many_members_of_a_large_family_come_and_go(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    """Added one by one and by the thousand, with keys of another type; removed in one call."""
    net = ticks()
    many = [{"rule": rule, "sym": "ABC"[rule % 3], "limit": 18.5} for rule in range(3_000)]
    net.family("alerts", ALERTS, many, "rule")
    late: list[dict[str, Any]] = [
        {"rule": float(rule), "sym": "B", "limit": rule % 20} for rule in range(5_000, 5_040)
    ]
    going = [0, 17, 2_999, 5_001, 5_002]
    rules = [
        rule
        for rule in [*many, *({**row, "rule": int(row["rule"])} for row in late)]
        if rule["rule"] not in going
    ]
    with make_engine(net, state=tmp_path) as engine:
        for row in late:
            engine.modify(add={"alerts": [row]})
        with pytest.raises(NetworkError, match=r"DUPLICATE_NAME.*has a member 2998"):
            engine.modify(add={"alerts": [late[0] | {"rule": 2_998}]}, remove=["alerts[2999]"])
        with pytest.raises(UsageError, match=r"UNKNOWN_QUERY.*alerts\[9\.0\]"):
            engine.modify(remove=["alerts[9]", "alerts[9.0]"])
        engine.modify(remove=[f"alerts[{rule}]" for rule in going])
        engine.enqueue("ticks", batch(0, 30))
        engine.drain()
        found = engine.dequeue("alerts")
        pairs = list(zip(found["rule"].to_pylist(), numbers(found), strict=True))
        assert sorted(pairs) == sorted(alerts(rules, (0, 30)))
    with make_engine(net, state=tmp_path) as engine:
        engine.enqueue("ticks", batch(30, 60))
        engine.drain()
        assert numbers(engine.dequeue("alerts[5003]")) == [
            n for rule, n in alerts(rules, (30, 60)) if rule == 5_003
        ]
        assert engine.stats()["queries"]["alerts"]["members"] == len(rules)


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
    if any(each % 7 == 0 for each in n.to_pylist()):
        raise ValueError("sevens are odd indeed")
    return pc.equal(pc.bit_wise_and(n, 1), 1)


@pytest.mark.parametrize("joined", [False, True], ids=["alone", "beside a join"])
def test_a_function_that_fails_costs_its_query_that_tuple(
    make_engine: MakeEngine, *, joined: bool
) -> None:
    net = ticks()
    net.function("odd", odd, returns="boolean")
    net.query("odds", "SELECT n FROM ticks WHERE odd(n) AND n < 20")
    net.query("counted", "SELECT n FROM ticks WHERE odd(n) AND n < 25", results="count")
    net.query("all", "SELECT n FROM ticks")
    if joined:
        # A tuple may be in one bucket for its key and in another for queries like the above.
        net.query("pairs", "SELECT n FROM ticks [ROWS 9], news [ROWS 9] WHERE ticks.sym = news.sym")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 30))
        engine.drain()
        assert numbers(engine.dequeue("odds")) == [n for n in range(1, 20, 2) if n != 7]
        assert numbers(engine.dequeue("all")) == list(range(30))
        told = engine.stats()["queries"]
        reason = "ValueError: sevens are odd indeed"
        assert (told["odds"]["errors"], told["odds"]["error"]) == (3, reason)
        assert (told["counted"]["matches"], told["counted"]["errors"]) == (10, 4)
        assert told["all"]["errors"] == 0


def test_a_change_that_cannot_be_kept_stops_the_engine(
    make_engine: MakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_store: Store, change: Change) -> None:
        raise StateError("MANIFEST_FAILED", f"disk full, {len(change.queries)} queries")

    def disturbed() -> None:
        with make_engine(net, state=tmp_path / "state") as engine:
            engine.enqueue("ticks", batch(0, 10))
            engine.drain()
            with monkeypatch.context() as patch:
                patch.setattr(Store, "commit", full)
                with pytest.raises(StateError, match="disk full"):
                    engine.modify(add={"hot": "SELECT n FROM ticks WHERE price > 10"})
            # What it has in memory is not what is kept: nothing more is done with it.
            engine.enqueue("ticks", batch(10, 20))

    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    with pytest.raises(StateError, match="1 queries"):
        disturbed()
    with make_engine(net, state=tmp_path / "state") as engine:
        engine.modify(add={"hot": "SELECT n FROM ticks WHERE price > 10"})
        engine.enqueue("ticks", batch(10, 30))
        engine.drain()
        assert numbers(engine.dequeue("all")) == list(range(30))
        assert numbers(engine.dequeue("hot")) == above(10, (10, 30))
