"""`auroral analyze`: rates, loads, the verdict, what to shed, and mistakes in one sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from auroral.cli import main as cli
from auroral.network.network import Network
from tests.conformance.sparkless import make_engine

NETWORK = """
network: soldiers
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}, progress: {on: time, ordered: true}}
  units: {schema: {sid: int}}
boxes:
  across: {box: filter, input: reports, where: "pos >= 30"}
  crowd:
    {box: aggregate, input: across, order: {on: time}, window: {size: 1}, compute: {n: count(*)}}
  enough: {box: filter, input: crowd, where: "n >= 3"}
outputs:
  alerts: {from: enough, qos: {loss: [[1, 1], [0, 0]]}}
engine: {headroom: 0.5}
"""
Analyze = Callable[..., tuple[int, str, str]]


@pytest.fixture
def analyze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Analyze:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.yaml").write_text(NETWORK)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["auroral", "analyze", *words])
        with pytest.raises(SystemExit) as done:
            cli.main()
        shown = capsys.readouterr()
        return int(done.value.code or 0), shown.out, shown.err

    return run


def test_a_machine_that_is_large_enough(analyze: Analyze) -> None:
    code, out, _ = analyze("net.yaml", "--rates", "reports=5000", "--cores", "2")
    assert code == 0
    assert "The machine is large enough" in out
    assert "(2 × headroom 0.5)" in out
    assert "Box crowd saturates first" in out
    assert "no rate was given for units" in out
    assert "costs are defaults: 2 µs per tuple and 30 ms per call" in out
    assert "Shedding" not in out
    rates = dict(line.split()[:2] for line in out.splitlines() if line.startswith(("rep", "acr")))
    assert rates == {"reports": "5,000", "across": "2,500"}


def test_an_overload_says_what_would_have_to_be_shed(analyze: Analyze) -> None:
    code, out, _ = analyze("net.yaml", "--rates", "reports=1000000,units=1", "--cores", "1")
    assert code == 0
    assert "The machine is too small" in out
    assert "Shedding (auto): load" in out
    assert "of reports before crowd; alerts keeps" in out


def test_json_has_the_same_figures(analyze: Analyze) -> None:
    _, out, _ = analyze("net.yaml", "--rates", "reports=1000000", "--cores", "1", "--json")
    found = json.loads(out)
    assert found["arcs"]["crowd"] == 50_000
    assert found["superboxes"]["crowd"]["boxes"] == ["across", "crowd"]
    assert found["capacity"] == 0.5
    loads = [own["utilisation"] for own in found["superboxes"].values()]
    assert found["min_cap"] == pytest.approx(sum(loads))
    assert found["shedding"]["fits"]
    assert found["shedding"]["load"] == pytest.approx(0.5, abs=1e-3)
    assert found["shedding"]["drops"][0]["superbox"] == "crowd"


def test_costs_come_from_a_state_directory(analyze: Analyze, tmp_path: Path) -> None:
    network = Network.load(tmp_path / "net.yaml")
    with make_engine(network, state=tmp_path / "state") as engine:
        for second in range(4):
            rows = [(n, second, 60 if n % 4 == 0 else 1) for n in range(100 * (second + 1))]
            engine.enqueue("reports", rows)
            engine.drain()
    _, out, _ = analyze("net.yaml", "--rates", "reports=1000", "--state", "state", "--json")
    found = json.loads(out)
    assert found["arcs"]["across"] == pytest.approx(250, rel=0.01)
    assert not any("costs are defaults" in note for note in found["notes"])


def test_queries_and_kept_history_are_a_part_of_the_load(analyze: Analyze, tmp_path: Path) -> None:
    (tmp_path / "market.yaml").write_text("""
network: market
streams:
  ticks: {schema: {sym: string, price: double}}
boxes:
  dear: {box: filter, input: ticks, where: price > 3}
queries:
  hot: "SELECT sym FROM ticks WHERE price > 90"
connection_points:
  recent: {on: dear, keep: {rows: 100}}
""")
    _, out, _ = analyze("market.yaml", "--rates", "ticks=1000000", "--cores", "1", "--json")
    found = json.loads(out)
    loads = {name: own["utilisation"] for name, own in found["superboxes"].items()}
    assert loads == pytest.approx({"dear": 2.03, "eddy@ticks": 2.03})
    assert found["min_cap"] == pytest.approx(4.06)
    assert found["arcs"] == {"ticks": 1_000_000}


def test_nothing_is_said_to_be_dropped_before_a_table_changes(
    analyze: Analyze, tmp_path: Path
) -> None:
    (tmp_path / "bank.yaml").write_text("""
network: bank
streams:
  pays: {schema: {vid: int, toll: double}}
tables:
  accounts: {schema: {vid: int, balance: double}, key: [vid]}
boxes:
  charge:
    box: update
    input: pays
    sql: "UPDATE accounts SET balance = balance - :toll WHERE vid = :vid"
    report: {vid: vid}
outputs:
  charged: {from: charge, qos: {loss: [[0, 0], [1, 1]]}}
""")
    words = ("bank.yaml", "--rates", "pays=1000000", "--cores", "1")
    _, out, _ = analyze(*words, "--json")
    assert [drop["superbox"] for drop in json.loads(out)["shedding"]["drops"]] == []
    _, out, _ = analyze(*words)
    assert "is left: boxes that change tables or number tuples get all of them." in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--rates", "reports=many"], "BAD_OPTION: --rates takes STREAM=TUPLES_PER_SECOND"),
        (["--rates", "reports=-1"], "BAD_OPTION: --rates takes STREAM=TUPLES_PER_SECOND"),
        (["--rates", "reports=inf"], "BAD_OPTION: --rates takes STREAM=TUPLES_PER_SECOND"),
        (["--rates", "reports"], "BAD_OPTION: --rates takes STREAM=TUPLES_PER_SECOND"),
        (["--rates", "repots=5"], "UNKNOWN_STREAM: --rates: there is no stream repots"),
        (["--rates", "reports=1,reports=2"], "BAD_OPTION: --rates reports is given twice"),
        ([], "MISSING_OPTION: give the tuples per second of streams"),
        (["--rates", "reports=0"], "MISSING_OPTION: give the tuples per second of streams"),
        (["--rates", "reports=5", "--cores", "0"], "BAD_OPTION: --cores takes a number above 0"),
        (["--rates", "reports=5", "--period", "-1"], "BAD_OPTION: --period takes a number above 0"),
        (["--rates", "reports=5", "--state", "nowhere"], "NO_STATE: nowhere"),
    ],
)
def test_mistakes_are_one_sentence(analyze: Analyze, words: list[str], problem: str) -> None:
    code, out, err = analyze("net.yaml", *words)
    assert (code == 2, out) == (True, "") or problem.startswith("NO_STATE")
    assert err.startswith(f"auroral: {problem}")
    assert len(err.splitlines()) == 1


def test_a_missing_file_is_one_sentence(analyze: Analyze) -> None:
    code, _, err = analyze("nothing.yaml", "--rates", "reports=5")
    assert code == 2
    assert err.startswith("auroral: CANNOT_READ: nothing.yaml")
