"""`auroral check` and `auroral schema`, as the shell sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import auroral
from auroral.cli import main as cli
from auroral.network.json_schema import network_schema

from .documents import EVERY, SOLDIERS, written

RUNNABLE = SOLDIERS.replace("sink: {format: kafka, topic: alerts}", "sink: {format: console}")


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of a command, in this process."""
    monkeypatch.setattr(sys, "argv", ["auroral", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    code = raised.value.code
    return code if isinstance(code, int) else int(bool(code))


def test_a_valid_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "check", str(written(tmp_path, RUNNABLE))) == 0
    shown = capsys.readouterr()
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "crowd.late sid int, time bigint, pos int" in lines
    assert "enough time bigint, cnt bigint" in lines
    assert "output alerts ← enough" in lines
    assert "query hot sid int, pos int" in lines
    assert shown.err == ""


@pytest.mark.parametrize("words", [("check",), ("run", "--state", "state")])
def test_no_workers_are_refused_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = RUNNABLE.replace("engine: {", "engine:\n  {workers: 0, ")
    path = written(tmp_path, text)
    line = text[: text.index("workers: 0")].count("\n") + 1
    assert called(monkeypatch, *words, str(path)) == 2
    told = capsys.readouterr().err
    assert f"{path.name}:{line}, engine, key workers: expected more than 0" in told
    assert "found 0" in told
    assert not (tmp_path / "state").exists()


def test_the_version_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"auroral {auroral.__version__}\n"


def test_python_runs_the_package(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "auroral", "check", str(written(tmp_path, RUNNABLE))]
    assert (
        "output alerts" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
    )


def test_every_arc_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "check", str(written(tmp_path, EVERY))) == 0
    shown = capsys.readouterr()
    assert "lanes.fast" in shown.out
    assert "paid.right_late" in shown.out


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SOLDIERS.replace("pos >= 30", "poz >= 30"), "UNKNOWN_FIELD"),
        (SOLDIERS.replace("boxes:", "boxs:"), "UNKNOWN_KEY"),
        (SOLDIERS.replace("input: reports", "input: enough"), "CYCLE"),
        ("", "BAD_FILE"),
        ("a: [", "BAD_FILE"),
    ],
)
def test_an_invalid_network(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    code: str,
) -> None:
    path = written(tmp_path, text)
    assert called(monkeypatch, "check", str(path)) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"auroral: {code}: {path}")
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""


@pytest.mark.parametrize("arguments", [["check", "nowhere.yaml"], ["check"], ["chek", "x"]])
def test_bad_usage(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    assert called(monkeypatch, *arguments) == 2


def test_the_schema_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "schema") == 0
    assert json.loads(capsys.readouterr().out) == network_schema()


def test_as_a_process(tmp_path: Path) -> None:
    path = written(tmp_path, SOLDIERS.replace("cnt >= 3", "cnt >= '"))
    command = [sys.executable, "-m", "auroral.cli.main", "check", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"auroral: SYNTAX_ERROR: {path}:12, box enough, key where")
    assert "Traceback" not in done.stderr


STREAM = "network: n\nstreams:\n  s:\n    schema: {a: int}\n    source: SOURCE\n"
OUTPUT = "outputs:\n  o: {from: s, sink: SINK}\n"
RATE = "{format: rate, rows_per_second: 1}"


def network_of(source: str = RATE, sink: str = "{format: console}", more: str = "") -> str:
    return (STREAM + OUTPUT + more).replace("SOURCE", source).replace("SINK", sink)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            network_of(
                more="boxes:\n  r: {box: read, input: s, sql: 'SELECT t.a FROM t, u'}\n"
                'tables:\n  t: {schema: {a: int}, store: "postgresql://u:pw@h/d"}\n'
                "  u: {schema: {b: int}}\n"
            ),
            "STORES_DIFFER",
        ),
        (network_of(sink="{format: kafka, topic: t}"), "UNKNOWN_FORMAT"),
        (network_of(sink="{format: mqtt, topic: t}"), "UNKNOWN_FORMAT"),
        (network_of(sink="{format: csv, path: 's3a://bucket/x.csv'}"), "NOT_LOCAL"),
        (network_of(sink="{path: 'hdfs://bucket/x.csv'}"), "NOT_LOCAL"),
        (network_of(sink="{path: 'file:///tmp/x.csv'}"), "NOT_LOCAL"),
        (network_of(source="{path: 'http://host/x.csv'}"), "NOT_LOCAL"),
        (network_of(source="{format: csv}"), "MISSING_OPTION"),
        (network_of(source="{format: csv, path: x, exta: keep}"), "UNKNOWN_OPTION"),
        (network_of(source="{format: csv, path: x, extra: keep}"), "BAD_OPTION"),
        (network_of(source="{format: rate, rows_per_second: -1}"), "BAD_OPTION"),
        (network_of(source="{path: x.txt}"), "UNKNOWN_FORMAT"),
        (network_of(source="{path: '${NOWHERE}/x.csv'}"), "UNKNOWN_VARIABLE"),
        (network_of(more="engine: {jars: [nowhere.jar]}\n"), "NO_JAR"),
        (network_of(source="{format: mqtt}", more="engine: {jars: [nowhere.jar]}\n"), "NO_JAR"),
        (
            network_of(
                more="boxes:\n  r: {box: read, input: s, sql: 'SELECT now() AS n FROM t'}\n"
                "tables:\n  t: {schema: {a: int}}\n"
            ),
            "UNKNOWN_FUNCTION",
        ),
    ],
)
def test_what_run_refuses_check_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    code: str,
) -> None:
    path = str(written(tmp_path, text))
    assert called(monkeypatch, "check", path) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"auroral: {code}: ")
    assert len(told.splitlines()) == 1
    assert "pw" not in told
    assert called(monkeypatch, "run", path) == 2
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    "options",
    [
        ["--state", "s3a://bucket/state"],
        ["--output", "o=s3://bucket/x.csv"],
        ["--output", "o=hdfs://host/x.parquet"],
        ["--input", "s=https://host/x.csv"],
        ["--dead-letters", "s3a://bucket/dead.jsonl"],
    ],
)
def test_urls_are_refused_not_written_as_directories(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "run", str(written(tmp_path, network_of())), *options) == 2
    assert "NOT_LOCAL" in capsys.readouterr().err
    assert [path.suffix for path in tmp_path.iterdir()] == [".yaml"]


def test_a_connector_that_nobody_names_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run --jars` may give it, so the network is not refused."""
    path = written(tmp_path, network_of(source="{format: mqtt, topic: t}"))
    assert called(monkeypatch, "check", str(path)) == 0
    assert capsys.readouterr().err.startswith("note: stream s: the format mqtt needs the jar of a")
    (tmp_path / "mqtt.jar").write_bytes(b"")
    jars = "engine: {jars: [mqtt.jar]}\n"
    path = written(tmp_path, network_of(source="{format: mqtt, topic: t}", more=jars))
    assert called(monkeypatch, "check", str(path)) == 0
    assert capsys.readouterr().err == ""
    path = written(tmp_path, network_of(source="{format: Socket, host: h, port: 1}"))
    assert called(monkeypatch, "check", str(path)) == 0
    assert capsys.readouterr().err == ""
