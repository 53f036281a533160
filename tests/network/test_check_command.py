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
    assert called(monkeypatch, "check", str(written(tmp_path, SOLDIERS))) == 0
    shown = capsys.readouterr()
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "crowd.late sid int, time bigint, pos int" in lines
    assert "enough time bigint, cnt bigint" in lines
    assert "output alerts ← enough" in lines
    assert "query hot sid int, pos int" in lines
    assert "note: alerts (kafka) is valid; this version does not run it yet" in shown.err
    assert "Traceback" not in shown.err


def test_the_version_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"auroral {auroral.__version__}\n"


def test_python_runs_the_package(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "auroral", "check", str(written(tmp_path, SOLDIERS))]
    assert (
        "output alerts" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
    )


def test_every_arc_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "check", str(written(tmp_path, EVERY))) == 0
    shown = capsys.readouterr().out
    assert "lanes.fast" in shown
    assert "paid.right_late" in shown


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
