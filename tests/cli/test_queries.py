"""Queries and families of a network file, from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

NETWORK = """
network: market
streams:
  ticks: {schema: {ts: bigint, sym: string, price: double}, progress: {on: ts, ordered: true}}
  news: {schema: {sym: string, text: string}}
functions:
  cheap: {udf: "rules:cheap", returns: boolean}
queries:
  hot: "SELECT sym, price FROM ticks WHERE price > 5 AND ts < 100"
  low: "SELECT ts FROM ticks WHERE cheap(price)"
  busy: "SELECT sym, count(*) AS n FROM ticks [RANGE 2, WA ts] GROUP BY sym"
  told: "SELECT ts, text FROM ticks [ROWS 9], news [ROWS 9] WHERE ticks.sym = news.sym"
  tens: "SELECT count(*) AS n FROM ticks [ROWS 2]"
  alerts:
    sql: "SELECT ts FROM ticks WHERE sym = :sym AND price > :limit"
    values: rules.csv
    key: rule
  hits: {sql: SELECT * FROM ticks, results: count}
outputs:
  heat: {from: hot}
"""
FILES = {
    "net.yaml": NETWORK,
    "rules.csv": "rule,sym,limit\nr1,A,1\nr2,B,5\n",
    "rules.py": "import pyarrow.compute as pc\n\ndef cheap(price):\n    return pc.less(price, 3)\n",
    "ticks.csv": "ts,sym,price\n0,A,2\n1,B,6\n2,A,7\n3,B,1\n",
    "news.csv": "sym,text\nA,hello\n",
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(command: Run, tmp_path: Path) -> Run:
    """Runs a command in a directory with a network and its files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return command


def test_late_tuples_of_queries_go_to_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ticks.csv").write_text("ts,sym,price\n0,A,2\n5,B,6\n1,A,7\n6,B,1\n")
    outputs = ["--output", "busy=busy.csv", "--output", "busy.late=late.csv"]
    inputs = ["--input", "news=news.csv", "--input", "ticks=ticks.csv"]
    code, _, shown = run("run", "net.yaml", *inputs, *outputs)
    assert code == 0, shown
    assert (tmp_path / "late.csv").read_text().splitlines() == ["ts,sym,price", "1,A,7"]
    assert (tmp_path / "busy.csv").read_text().splitlines() == ["sym,n", "A,1", "B,1", "B,1"]


def test_results_of_queries_go_to_files(run: Run, tmp_path: Path) -> None:
    names = ("heat", "low", "busy", "told", "tens", "alerts", "alerts[r2]")
    outputs = [part for name in names for part in ("--output", f"{name}={name}.csv")]
    inputs = ["--input", "news=news.csv", "--input", "ticks=ticks.csv"]
    code, _, shown = run("run", "net.yaml", *inputs, *outputs)
    assert code == 0, shown
    found = {name: (tmp_path / f"{name}.csv").read_text().splitlines() for name in names}
    assert found == {
        "heat": ["sym,price", "B,6", "A,7"],
        "low": ["ts", "0", "3"],
        "busy": ["sym,n", "A,1", "B,1", "A,1", "B,1"],
        "told": ["ts,text", "0,hello", "2,hello"],
        "tens": ["n", "2", "2"],
        "alerts": ["rule,ts", "r1,0", "r2,1", "r1,2"],
        "alerts[r2]": ["ts", "1"],
    }


def test_counted_queries_have_no_file(run: Run) -> None:
    code, _, shown = run("run", "net.yaml", "--input", "ticks=ticks.csv", "--output", "hits=x.csv")
    assert code == 2
    assert "ONLY_COUNTED" in shown


def test_what_no_member_is_has_no_file(run: Run) -> None:
    code, _, shown = run(
        "run", "net.yaml", "--input", "ticks=ticks.csv", "--output", "alerts[r3]=x.csv"
    )
    assert code == 2
    assert "there is no output alerts[r3]" in shown


def test_check_tells_the_fields_of_results(run: Run) -> None:
    code, shown, _ = run("check", "net.yaml")
    assert code == 0
    assert "query alerts  rule string, ts bigint" in shown


def test_explain_counts_queries_not_predicates(run: Run, tmp_path: Path) -> None:
    net = """
network: market
streams:
  ticks: {schema: {ts: bigint, sym: string, price: double}, progress: {on: ts, ordered: true}}
  news: {schema: {ts: bigint, sym: string}, progress: {on: ts, ordered: true}}
queries:
  some: "SELECT ts FROM ticks WHERE price BETWEEN 1 AND 2 OR price > 9 AND ts < 3"
  rows: "SELECT price FROM ticks [ROWS 9], news [ROWS 9] WHERE ticks.sym = news.sym"
  more: "SELECT price FROM ticks [ROWS 5], news [ROWS 9] WHERE ticks.sym = news.sym AND price > 1"
  near: "SELECT price FROM ticks [RANGE 9], news [RANGE 9] WHERE ticks.sym = news.sym"
"""
    (tmp_path / "net.yaml").write_text(net)
    code, shown, _ = run("explain", "net.yaml")
    assert code == 0
    assert "filters of ticks: price (2 queries), ts (1 query)" in shown
    assert "  SteM ticks(sym): 3 queries\n  SteM news(sym): 3 queries\n" in shown
    assert "2 queries share one join" in shown


def test_explain_shows_boxes_that_lead_to_kept_history_alone(run: Run, tmp_path: Path) -> None:
    net = """
network: market
streams:
  ticks: {schema: {price: double}}
boxes:
  dear: {box: filter, input: ticks, where: price > 3}
  idle: {box: filter, input: ticks, where: price > 4}
connection_points:
  recent: {on: dear, keep: {rows: 100}}
"""
    (tmp_path / "net.yaml").write_text(net)
    code, shown, _ = run("explain", "net.yaml")
    assert code == 0
    assert "leading to no output, not run: idle\n" in shown
    assert "superbox dear\n  reads   ticks\n  boxes   dear\n  keeps   dear\n" in shown


def test_explain_shows_what_is_shared(run: Run) -> None:
    code, shown, _ = run("explain", "net.yaml")
    assert code == 0
    for line in (
        "eddy@news+ticks: 7 queries in one pass",
        "filters of ticks: price (3 queries), sym (2 queries), ts (1 query),"
        " cheap(price) (1 query, Python)",
        "SteM ticks(sym): 1 query",
        ": ticks(sym) ⋈ news(sym), the latest (9, 9) rows",
        "1 query shares one join",
        "panes on ts by sym",
        "1 query shares partial aggregates",
        "runs as tens#1 → tens#2 → tens#3",
    ):
        assert line in shown
