"""Commands called in this process, on the session of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from auroral.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Run = Callable[..., tuple[int, str, str]]
"""From the words of a command to its exit code, and what it printed on each channel."""


@pytest.fixture
def command(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["auroral", *words])
        with pytest.raises(SystemExit) as done:
            main()
        code = done.value.code
        captured = capfd.readouterr()
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return run
