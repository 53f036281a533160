"""The README and the guide say what is so: their examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import auroral as au

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_networks_in_documents_are_valid(path: Path) -> None:
    for text in blocks(path, "yaml"):
        if "network:" in text:
            from ruamel.yaml import YAML

            au.Network.parse(YAML(typ="safe").load(text)).check()


@pytest.mark.spark
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_in_documents_runs(
    path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    scope: dict[str, object] = {}
    for text in blocks(path, "python"):
        exec(compile(text, str(path), "exec"), scope)
        promised = re.findall(r"^\s*print\(.*#\s*(.+)$", text, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert printed == promised


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
