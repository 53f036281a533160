"""The benchmark of continuous queries without Spark: data, what numpy counts, report and peers."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import auroral as au
from auroral.cli.bench import bench
from auroral.errors import RunError, UsageError
from benchmarks import BENCHMARKS, plots
from benchmarks.cacq import data as cacq_data
from benchmarks.cacq import experiments as cacq
from benchmarks.cacq import lab as cacq_lab
from benchmarks.cacq import niagara as cacq_niagara
from benchmarks.cacq import routing as cacq_routing
from benchmarks.cacq.alerts_run import FAMILIES
from benchmarks.cacq.data import (
    Predicate,
    Queries,
    condition,
    count_matches,
    random_queries,
    select,
)
from benchmarks.cacq.niagara import count_results, join_network
from benchmarks.cacq.plans import spin_above
from benchmarks.cacq.random_queries import agreement, median_within, random_network
from benchmarks.lab import Lab
from benchmarks.peers import running as peers
from benchmarks.report import Report

# ── data ──


def test_random_queries_are_as_the_paper_says_and_the_same_every_time() -> None:
    queries = random_queries(2_000)
    assert queries == random_queries(2_000)
    assert queries[:100] == random_queries(2_000)[:100]
    predicates = [predicate for query in queries for predicate in query]
    assert 0.47 < len(predicates) / (2_000 * len(cacq_data.FIELDS)) < 0.53
    assert {predicate.op for predicate in predicates} == {"<", ">", "<=", ">="}
    assert {predicate.constant for predicate in predicates} == set(range(100))
    assert {predicate.field for predicate in predicates} == set("abcde")
    assert all(len({p.field for p in query}) == len(query) for query in queries)


def test_queries_are_sql() -> None:
    query = (Predicate("a", "<", 3), Predicate("e", ">=", 50))
    assert condition(query) == "a < 3 and e >= 50"
    assert select(query) == "select index from S where a < 3 and e >= 50"
    assert select(()) == "select index from S"
    assert condition(()) == "true"


def test_streams_have_their_schemas() -> None:
    for schema, table in (
        (cacq_data.SCHEMA, cacq_data.uniform(5, 1)),
        (cacq_data.TICKS, cacq_data.ticks(5, 1)),
        (cacq_data.STOCKS, cacq_data.stocks(5, 1)),
        (cacq_data.ARTICLES, cacq_data.articles(5, 1)),
    ):
        assert table.schema.equals(au.Schema.parse(schema).arrow())


def test_trains_go_on_where_the_last_ended() -> None:
    first, second = cacq_data.uniform_trains(2, 10)
    assert [*first["index"].to_pylist(), *second["index"].to_pylist()] == list(range(20))
    values = cacq_data.uniform(5_000, 3)["c"].to_numpy()
    assert (values.min(), values.max()) == (0, 99)


def test_numpy_counts_what_a_loop_counts() -> None:
    tables = cacq_data.uniform_trains(2, 200)
    queries = [(), *random_queries(30)]
    rows = [row for table in tables for row in table.to_pylist()]
    for query, count in zip(queries, count_matches(tables, queries), strict=True):
        test = compile(condition(query).replace("true", "True"), "query", "eval")
        assert count == sum(eval(test, {}, row) for row in rows)


def test_a_table_that_comes_again_counts_again() -> None:
    one, other = cacq_data.uniform_trains(2, 100)
    queries = random_queries(10)
    once, twice = count_matches([one, other], queries), count_matches([one, other, one], queries)
    again = count_matches([one], queries)
    assert twice == [a + b for a, b in zip(once, again, strict=True)]


def test_what_is_uncertain_has_a_spread() -> None:
    low, middle, high = median_within([0.2, -0.1, 0.0, 0.3, 0.1] * 5)
    assert low < middle == 0.1 < high
    assert median_within([4.0]) == (4.0, 4.0, 4.0)


def test_rules_fire_about_once_per_tuple_and_are_counted() -> None:
    ticks = cacq_data.ticks(300, 1, 5, 7)
    prices, ranges = cacq_data.price_rules(20, 5), cacq_data.range_rules(30, 7)
    by_price, by_range = cacq_data.fired(ticks, prices, ranges)
    rows = ticks.to_pylist()
    assert by_price.tolist() == [
        sum(row["sym"] == rule["sym"] and row["price"] > rule["limit"] for row in rows)
        for rule in prices.to_pylist()
    ]
    assert by_range.tolist() == [
        sum(row["id"] == rule["id"] and rule["low"] <= row["v"] <= rule["high"] for row in rows)
        for rule in ranges.to_pylist()
    ]
    many = cacq_data.ticks(20_000, 2, 200, 1_000)
    per_tuple = [
        counts.sum() / 20_000
        for counts in cacq_data.fired(
            many, cacq_data.price_rules(5_000, 200), cacq_data.range_rules(5_000, 1_000)
        )
    ]
    assert per_tuple == pytest.approx([0.5, 0.5], abs=0.05)


def test_a_tick_of_an_unknown_symbol_fires_nothing() -> None:
    ticks = pa.table({"sym": ["none"], "price": [999.0], "id": [-1], "v": [1.0]})
    prices, ranges = cacq_data.price_rules(4, 2), cacq_data.range_rules(4, 2)
    assert [int(each.sum()) for each in cacq_data.fired(ticks, prices, ranges)] == [0, 0]


def test_parameters_of_families_are_columns_of_the_rules() -> None:
    for (name, sql), rules in zip(
        FAMILIES.items(), (cacq_data.price_rules(4, 2), cacq_data.range_rules(4, 2)), strict=True
    ):
        parameters = {word[1:] for word in sql.split() if word.startswith(":")}
        assert parameters | {"rule"} == set(rules.column_names), name


def test_articles_are_of_their_stocks() -> None:
    quotes, news = cacq_data.stocks(5, 3), cacq_data.articles(5, 3, per_stock=4)
    assert sorted(news["symbol"].to_pylist()) == sorted(quotes["symbol"].to_pylist() * 4)
    assert all(200 <= len(body) < 1_000 for body in news["body"].to_pylist())
    assert all(0 < price <= 100 for price in quotes["price"].to_pylist())
    assert not set(quotes["symbol"].to_pylist()) & set(cacq_data.stocks(5, 4)["symbol"].to_pylist())
    assert cacq_data.thresholds(3)[0] == 0.0
    assert cacq_data.count_joined(quotes, [0.0, 101.0], per_stock=4) == 20


# ── networks ──


def test_networks_are_sound() -> None:
    random_network(random_queries(20)).check()
    join_network(["stocks.price > 0.0", "stocks.price > 3.5"], 50).check()


def test_agreement_is_the_part_that_agrees() -> None:
    tables, queries = cacq_data.uniform_trains(1, 100), random_queries(4)
    right = {f"q{n}": count for n, count in enumerate(count_matches(tables, queries))}
    assert agreement(right, tables, queries) == 1.0
    assert agreement(right | {"q2": -1}, tables, queries) == 0.75
    many = random_queries(200)
    right = {f"q{n}": count for n, count in enumerate(count_matches(tables, many))}
    assert agreement(right | {"q197": -1}, tables, many) == 0.995


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("figure", [cacq_niagara.niagara, cacq_niagara.functions])
def test_all_systems_have_the_same_updates(
    figure: Any, quick: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs: list[tuple[int, int]] = []

    def auroral(_lab: Lab, _net: Any, updates: Any, warm: int) -> tuple[float, int]:
        runs.append((len(updates), warm))
        return 1.0, 0

    def plan(_lab: Lab, _plan: Any, _limits: Any, updates: Any, warm: int) -> tuple[float, int]:
        runs.append((len(updates), warm))
        return 1.0, 0

    monkeypatch.setattr(cacq_niagara, "run_auroral", auroral)
    monkeypatch.setattr(cacq_niagara, "run_plan", plan)
    monkeypatch.setattr(cacq_niagara, "by_functions", lambda *_: None)
    monkeypatch.setattr(cacq_niagara, "_STOCKS", 5)
    figure(Report("cacq"), Lab(None, quick, tmp_path))  # type: ignore[arg-type]
    assert runs[::3] == runs[1::3] == runs[2::3]
    assert all(updates - warm >= 3 for updates, warm in runs)


def test_a_spinning_function_selects() -> None:
    assert spin_above(3.0, 0, 1)(pa.array([2.0, 3.0, 4.0])).to_pylist() == [False, False, True]


def test_results_are_counted_by_query() -> None:
    lists = pa.chunked_array([[["q0", "q1"], []], [["q1"]]], type=pa.list_(pa.string()))
    assert count_results(pa.table({"queries": lists})) == 3


# ── routing ──


def test_workloads_are_the_papers() -> None:
    assert cacq_routing.FIVE[0] == "a > 90"
    assert cacq_routing.FIVE[4] == "a > 90 and b > 70 and c > 50 and d > 30 and e > 10"
    assert cacq_routing.WORKLOADS[1][4] == "e > 90"
    assert cacq_routing.WORKLOADS[2][1] == "a > 10 and b > 10"
    assert cacq_routing.WORKLOADS[3][2] == "a > 10 and b > 30 and c > 50"


def test_shares_settle() -> None:
    steady = [{"a": 0.9, "b": 0.1}] * 6
    moving = [{"a": 0.1, "b": 0.9}, {"a": 0.5, "b": 0.5}, *steady]
    assert cacq_routing.settled_after(steady) == 1
    assert cacq_routing.settled_after(moving) == 3
    assert cacq_routing.in_order(steady, (("a", "b"),)) == 1.0
    assert cacq_routing.in_order(steady, (("a", "b"), ("b", "a"))) == 0.5


def test_figures_that_are_not_told_are_no_good_figures() -> None:
    filters = {"a": {"share": 1.0, "routed": 0}}
    stats = {"eddies": {"S": {"arcs": {"S": {"filters": filters}}}}}
    assert cacq_routing.figures(stats, ("a",), "share") == {"a": 1.0}
    with pytest.raises(RunError, match="does not tell of b"):
        cacq_routing.figures(stats, ("a", "b"), "share")
    with pytest.raises(RunError, match="no routed of any filter"):
        cacq_routing.figures(stats, ("a",), "routed")
    assert cacq_routing.used(["a > 1", "a > 1 and c > 2"]) == ["a", "c"]


# ── memory ──


def test_a_family_of_processes() -> None:
    assert sorted(cacq_lab.family_of(2, {1: 0, 2: 1, 3: 2, 4: 3, 5: 1})) == [2, 3, 4]


def test_memory_of_this_process_is_told() -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        assert cacq_lab.memory_mb() == {}
        return
    assert sum(cacq_lab.memory_mb().values()) > 10


def test_the_most_memory_is_told_though_it_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([{"java": 5.0}, {"java": 7.0, "python": 2.0}])
    looked = threading.Semaphore(0)

    def memory_mb() -> dict[str, float]:
        looked.release()
        return next(seen, {"java": 1.0})

    monkeypatch.setattr(cacq_lab, "memory_mb", memory_mb)
    with cacq_lab.peak_memory(0.001) as peak:
        for _ in range(3):
            looked.acquire()
    assert peak == {"java": 7.0, "python": 2.0}


# ── peers ──


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [str(tmp_path / f"{number}.parquet") for number in range(4)]
    for number, path in enumerate(paths):
        pq.write_table(cacq_data.uniform(10, number, 10 * number), path)
    return paths


def test_a_peer_that_nobody_has_is_not_found() -> None:
    nobody = peers.Peer("Nobody", "no_such_stream_processor", {})
    assert peers.find_interpreter(nobody, [Path(sys.executable)]) is None
    assert peers.find_interpreter(peers.Peer("Json", "json", {}), []) == Path(sys.executable)


def test_an_interpreter_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="no interpreter /no/such/python"):
        cacq.cacq(peers=[Path("/no/such/python")])


def test_every_peer_has_a_script() -> None:
    for peer in peers.PEERS:
        assert f"import {peer.module}" in (text := peer.script.read_text()) or (
            f"from {peer.module}" in text
        )
        assert "auroral." not in text


_SCRIPT = """
import json, sys
job = json.load(open(sys.argv[1]))
(way, rows), = job["ways"].items()
if way == "broken":
    sys.exit("it broke")
counts = [len(query) + len(job["files"]) for query in job["queries"]]
result = {"way": way, "tuples": rows, "seconds": 2.0, "counts": counts}
print(json.dumps({"version": "1.0", "results": [result]}))
"""


def test_processes_of_a_peer_share_the_work(
    tmp_path: Path, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "peer.py"
    script.write_text(_SCRIPT)
    monkeypatch.setattr(peers.Peer, "script", script)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    ways: dict[str, tuple[Queries, int]] = {"one": ("each", 10), "two": ("by hand", 20)}
    peer = peers.Peer("Mock", "json", ways, processes=True)
    queries = [(Predicate("a", "<", 3),), ()]
    one, two = peers.run_peer(peer, Path(sys.executable), files, queries, tmp_path)
    assert (one.peer, one.way, one.tuples, one.rate) == ("Mock 1.0", "one", 10, 5.0)
    assert one.counts == [2 * (1 + 2), 2 * 2]
    assert (one.queries, two.queries) == ("each", "by hand")
    seen = [table["index"].to_pylist() for table in one.read(files)]
    assert seen == [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]]
    broken = peers.Peer("Mock", "json", {"broken": ("each", 10)})
    with pytest.raises(RunError, match="it broke"):
        peers.run_peer(broken, Path(sys.executable), files, queries, tmp_path)


# ── report and command ──


def test_every_chart_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = Report("cacq")
    columns: dict[str, list[str]] = {}
    for chart in cacq.CHARTS:
        names = columns.setdefault(chart.section, [])
        names += [n for n in (chart.x, chart.by, chart.y) if n and n not in names]
    for title, names in columns.items():
        report.section(title, *names).rows.extend(([1] * len(names), [2] * len(names)))
    written = plots.save_charts(report, cacq.CHARTS, tmp_path)
    assert [path.name for path in written] == [chart.file for chart in cacq.CHARTS]


def test_the_command_passes_its_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    seen: dict[str, Any] = {}

    def benchmark(**options: Any) -> Report:
        seen.update(options)
        return Report("cacq")

    monkeypatch.setitem(BENCHMARKS, "cacq", benchmark)
    app = typer.Typer()
    app.command()(bench)
    words = ["cacq", "--json", "--only", "hundred", "--peers", "a/python", "--peers", "b/python"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0
    assert json.loads(said.stdout)["benchmark"] == "cacq"
    assert seen["peers"] == [Path("a/python"), Path("b/python")]
    assert seen["only"] == ["hundred"]


def test_other_benchmarks_have_no_peers() -> None:
    with pytest.raises(UsageError, match="oop has no peers"):
        BENCHMARKS["oop"](peers=(Path("python"),))
