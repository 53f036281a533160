"""The files of `deploy/` name options and files that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from auroral.cli.main import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "auroral.service"


def options() -> set[str]:
    """The options of `auroral serve`."""
    group = typer.main.get_command(app)
    serve = group.commands["serve"]  # type: ignore[attr-defined]
    return {name for parameter in serve.params for name in parameter.opts}


def named(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def unit() -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(UNIT)
    return found


def container(instruction: str) -> list[str]:
    """The words of the last ENTRYPOINT or CMD."""
    text = (DEPLOY / "Containerfile").read_text()
    lines = re.findall(rf"^{instruction} (\[.*\])$", text, re.MULTILINE)
    return list(json.loads(lines[-1]))


def test_the_unit_calls_serve_with_options_that_exist() -> None:
    words = shlex.split(unit()["Service"]["ExecStart"])
    assert words[:2] == ["/opt/auroral/bin/auroral", "serve"]
    assert named(words)
    assert named(words) <= options()
    kept = next(words[at + 1] for at, word in enumerate(words) if word == "--state")
    assert kept.startswith(f"/var/lib/{unit()['Service']['StateDirectory']}/")


def test_the_container_calls_serve_with_options_that_exist() -> None:
    words = [*container("ENTRYPOINT"), *container("CMD")]
    assert words[:2] == ["auroral", "serve"]
    assert named(words) >= {"--state", "--host"}
    assert named(words) <= options()


def test_what_the_readme_passes_exists() -> None:
    given = re.findall(r"AURORAL_OPTIONS=(.*)", (DEPLOY / "README.md").read_text())
    assert given
    for text in given:
        assert named(shlex.split(text)) <= options()


def test_what_the_container_copies_exists() -> None:
    copied = re.findall(r"^COPY (?!--)(.*)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert copied
    for line in copied:
        for name in shlex.split(line)[:-1]:
            assert (ROOT / name).exists(), name


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    # Programs that are only where it is installed are replaced: systemd looks for them.
    text = UNIT.read_text().replace("/opt/auroral/bin/auroral", "/bin/true")
    there = tmp_path / UNIT.name
    there.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(there)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in verified.stderr.splitlines() if UNIT.name in line]
    assert not said
