"""`auroral simulate`: figures and networks, tables, JSON, charts and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auroral.network.network import Network
from auroral.simulation import plots
from auroral.simulation.networks import measured_network
from auroral.simulation.report import SimulationReport
from tests.catalog.test_catalog import command, made

Words = pytest.MonkeyPatch
Shown = pytest.CaptureFixture[str]

NETWORK = """\
network: alarms
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}}
  clock: {schema: {time: bigint}, source: {format: rate, rows_per_second: 10, rows: 5,
    fields: {time: {step: [0, 1]}}}}
boxes:
  far: {box: filter, input: reports, where: pos > 30}
  ticks: {box: map, input: clock, compute: {time: time}}
outputs:
  alerts: {from: far, qos: {latency: [[0, 1], [1, 1], [2, 0]]}}
  ticks: {from: ticks}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "alarms.yaml"
    path.write_text(NETWORK)
    return path


def test_a_figure_is_printed_as_a_table_with_findings(monkeypatch: Words, capsys: Shown) -> None:
    code, out, _ = command(monkeypatch, capsys, "simulate", "fig7", "--quick")
    assert code == 0
    assert "memory / memory of MM by share of the time of MM" in out
    assert "yes  MM needs the least memory" in out


def test_json_has_series_and_findings(monkeypatch: Words, capsys: Shown) -> None:
    code, out, _ = command(monkeypatch, capsys, "simulate", "fig7", "--json", "--seed", "3")
    found = json.loads(out)
    assert code == 0
    assert set(found["series"]) == {"MM", "MC", "ML"}
    assert all(finding["holds"] for finding in found["findings"])


def test_seeds_make_a_difference(monkeypatch: Words, capsys: Shown) -> None:
    _, first, _ = command(monkeypatch, capsys, "simulate", "fig7", "--seed", "1")
    _, other, _ = command(monkeypatch, capsys, "simulate", "fig7", "--seed", "2")
    assert first != other


def test_charts_are_written(monkeypatch: Words, capsys: Shown, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("fig7", "paper1-fig7"):
        words = ("simulate", name, "--quick", "--plots", tmp_path / "charts")
        code, _, err = command(monkeypatch, capsys, *words)
        assert code == 0
        assert (tmp_path / "charts" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"{name}.png" in err


def test_a_report_without_curves_has_no_chart(tmp_path: Path) -> None:
    assert plots.save_chart(SimulationReport("x", "nothing"), tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_command_says_what_to_install(
    monkeypatch: Words, capsys: Shown, tmp_path: Path
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _name: None)
    code, out, err = command(monkeypatch, capsys, "simulate", "fig7", "--plots", tmp_path)
    assert (code, out) == (2, "")
    assert "NO_PLOTS" in err
    assert "auroral[plots]" in err


def test_a_network_file_is_simulated_with_stated_costs(
    monkeypatch: Words, capsys: Shown, file: Path
) -> None:
    words = ("simulate", "network", file, "--rates", "reports=500", "--for", "20", "--workers", "1")
    code, out, _ = command(monkeypatch, capsys, *words, "--json")
    found = json.loads(out)
    tables = {table["title"]: table["rows"] for table in found["tables"]}
    assert code == 0
    alerts, ticks = tables["outputs"]
    assert (alerts["tuples"], ticks["tuples"]) == (5_000, 200)
    assert 0.03 < alerts["mean latency [s]"] < 0.2
    assert alerts["utility"] == 1.0
    assert found["findings"][0]["holds"]
    assert any("never measured" in note and "far" in note for note in found["notes"])


def test_auto_is_what_the_engine_would_choose(
    monkeypatch: Words, capsys: Shown, file: Path
) -> None:
    words = ("simulate", file, "--rates", "reports=50", "--for", "2", "--workers", "1", "--json")
    _, out, _ = command(monkeypatch, capsys, *words)
    notes = json.loads(out)["notes"]
    assert [note for note in notes if note.startswith("superbox fuse: a call costs as much as ")]


def test_an_overloaded_network_does_not_keep_up(
    monkeypatch: Words, capsys: Shown, file: Path
) -> None:
    words = ("simulate", file, "--rates", "reports=2000000", "--for", "10", "--workers", "1")
    code, out, _ = command(monkeypatch, capsys, *words)
    assert code == 0
    assert "NO   the machine keeps up with its input" in out


def test_measured_costs_come_from_a_state_directory(
    monkeypatch: Words, capsys: Shown, tmp_path: Path
) -> None:
    state = made(tmp_path)
    network = next(path for path in tmp_path.iterdir() if path.suffix == ".yaml")
    found = measured_network(Network.load(network), state)
    stated = measured_network(Network.load(network), None)
    assert "north/crowd" in stated.assumed
    # No tuple has reached the eddy behind it yet.
    assert found.assumed == ("eddy@north/enough.rest",)
    assert found.model.boxes["north/crowd"].cost_s != stated.model.boxes["north/crowd"].cost_s
    words = ("simulate", network, "--rates", "reports=100", "--state", state, "--for", "5")
    code, out, _ = command(monkeypatch, capsys, *words)
    assert code == 0
    assert out.strip().endswith("for a tuple and box: eddy@north/enough.rest")


@pytest.mark.parametrize("how", ["even", "poisson", "bursts:50"])
def test_arrivals_can_be_chosen(monkeypatch: Words, capsys: Shown, file: Path, how: str) -> None:
    words = ("simulate", file, "--rates", "reports=100,clock=1", "--for", "5", "--arrivals", how)
    code, out, _ = command(monkeypatch, capsys, *words)
    assert code == 0
    assert "alerts" in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("simulate", "fig12"), "UNKNOWN_SIMULATION"),
        (("simulate", "network"), "MISSING_OPTION"),
        (("simulate", "fig3", "--rates", "reports=5"), "BAD_OPTION"),
        (("simulate", "fig7", "--seed", "-1"), "BAD_OPTION"),
        (("simulate", "FILE"), "MISSING_OPTION"),
        (("simulate", "FILE", "--rates", "report=5"), "UNKNOWN_STREAM"),
        (("simulate", "FILE", "--rates", "reports"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=many"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=-5"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=5", "--for", "0"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=5", "--for", "inf"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=5", "--workers", "0"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=5", "--arrivals", "bursts"), "BAD_OPTION"),
        (("simulate", "FILE", "--rates", "reports=5", "--state", "nowhere"), "NO_STATE"),
        (("simulate", "missing.yaml", "--rates", "reports=5"), "CANNOT_READ"),
    ],
    ids=lambda found: " ".join(found) if isinstance(found, tuple) else found,
)
def test_mistakes_are_one_sentence(
    monkeypatch: Words, capsys: Shown, file: Path, words: tuple[str, ...], code: str
) -> None:
    given = [file if word == "FILE" else word for word in words]
    exit_code, out, err = command(monkeypatch, capsys, *given)
    assert (exit_code, out) == (2, "")
    assert code in err
    assert err.startswith("auroral: ")
    assert "Traceback" not in err
