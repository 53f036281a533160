"""Finding Java: on the PATH, where set-up noted it, or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from auroral.errors import UsageError
from auroral.spark.session.java import require_java


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def home(path: Path, version: str) -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "java").touch(mode=0o755)
    (path / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return path


@pytest.mark.usefixtures("bare")
def test_no_java_is_one_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        require_java()
    assert caught.value.code == "NO_JAVA"
    assert "install OpenJDK 17" in str(caught.value)


def test_java_that_set_up_noted_is_used(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    java = home(bare / "jdk", "21.0.1")
    (bare / "java_home").write_text(f"{java}\n")
    assert require_java() == java / "bin" / "java"
    assert os.environ["JAVA_HOME"] == str(java)


def test_java_on_the_path_must_be_new_enough(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = home(bare / "old", "1.8.0_392")
    monkeypatch.setenv("PATH", str(java / "bin"))
    with pytest.raises(UsageError) as caught:
        require_java()
    assert caught.value.code == "WRONG_JAVA"
    assert "found 8" in str(caught.value)
