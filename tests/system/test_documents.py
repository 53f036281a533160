"""The README and the documents say what is so: their examples run, their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import auroral as au

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS = [*OUTSIDE, *sorted(DOCS.rglob("*.md"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def having(language: str, part: str = "") -> list[Path]:
    """The documents that have such a block."""
    return [p for p in DOCUMENTS if any(part in text for text in blocks(p, language))]


def prose(path: Path) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The anchors that headings of a document get, as MkDocs makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def links(path: Path) -> list[tuple[str, str]]:
    """File and anchor of each link that does not leave the repository."""
    found = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", prose(path))
    return [(file, anchor) for file, anchor in found if file or anchor]


@pytest.mark.parametrize("path", having("yaml", "network:"), ids=name_of)
def test_networks_in_documents_are_valid(path: Path) -> None:
    for text in blocks(path, "yaml"):
        if "network:" in text:
            from ruamel.yaml import YAML

            au.Network.parse(YAML(typ="safe").load(text)).check()


@pytest.mark.spark
@pytest.mark.parametrize("path", having("python"), ids=name_of)
def test_python_in_documents_runs(
    path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    scope: dict[str, object] = {}
    for text in blocks(path, "python"):
        exec(compile(text, str(path), "exec"), scope)
        promised = re.findall(r"^ *print\(.*\)(?: +|\n *)# (.+)$", text, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert printed == promised


def test_examples_are_found_in_every_kind_of_document() -> None:
    kinds = {path.relative_to(ROOT).parts[:-1] for path in having("python")}
    assert {(), ("docs", "tutorial"), ("docs", "how-to"), ("docs", "reference")} <= kinds


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for file, anchor in links(path):
        target = path.parent / file if file else path
        assert target.exists(), f"{name_of(path)}: {file}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(path)}: {file}#{anchor}"


def test_documents_of_the_site_do_not_link_outside_of_it() -> None:
    for path in DOCS.rglob("*.md"):
        for file, _ in links(path):
            target = (path.parent / file).resolve()
            assert target.is_relative_to(DOCS), f"{name_of(path)}: {file}"


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r": ([\w/-]+\.md)$", text[text.index("\nnav:") :], re.MULTILINE)
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted(page for page in pages if not page.startswith("adr/0"))


def test_every_decision_is_listed() -> None:
    listed = {file for file, _ in links(DOCS / "adr" / "index.md")}
    assert listed == {path.name for path in (DOCS / "adr").glob("0*.md")}


def test_source_names_documents_that_exist() -> None:
    for path in [*(ROOT / "src").rglob("*.py"), ROOT / "Makefile", ROOT / "mkdocs.yml"]:
        for named in re.findall(r"\bdocs/[\w/.-]+\w", path.read_text()):
            found = list(ROOT.glob(f"{named}*"))
            assert found, f"{name_of(path)}: {named}"


def test_architecture_names_places_that_exist() -> None:
    text = (DOCS / "explanation" / "architecture.md").read_text()
    named = {name for name in re.findall(r"`([a-z_]+/[\w/.]*)`", text) if "X.py" not in name}
    assert len(named) > 50
    gone = {
        n for n in named if not ((ROOT / "src" / "auroral" / n).exists() or (ROOT / n).exists())
    }
    assert not gone - {"queries/", "tables/"}  # folders of a state directory


def test_every_code_in_the_reference_is_one_of_the_source() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    text = (DOCS / "reference" / "errors.md").read_text()
    listed = re.findall(r"^\| (`[A-Z].*?) \|", text, re.MULTILINE)
    codes = {name for cell in listed for name in re.findall(r"`([A-Z][A-Z_]+)`", cell)}
    assert len(codes) > 100
    assert not {name for name in codes if not re.search(rf"\b{name}\b", code)}
