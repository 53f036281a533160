"""The tree is as the documents say: a box is three files, files are small, text is portable."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import auroral.boxes  # noqa: F401  (makes the boxes known)
from auroral.network.box import BOXES as DECLARED
from auroral.network.box import VARIANTS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "auroral"
MOST_LINES = 700
BOXES = DECLARED | {box.kind: box for box in VARIANTS.values()}

NOT_OURS = {"__pycache__", "dist", "build", "spark-warehouse", "metastore_db", "node_modules"}
HIDDEN_BUT_OURS = {".ci", ".github", ".gitignore"}

# The forbidden words are spelt with a class ([k], [.]) so that this file does not name them.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(wor[k]|roo[t]|tmp/la[b])\b")
REGISTRIES = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|repo1?[.]maven|jfrog[.]io"
    r"|index-ur[l]|find-link[s]"
)


def our_files(directory: Path = ROOT) -> Iterator[Path]:
    """The project's files, without caches and what was built."""
    for path in sorted(directory.iterdir()):
        if path.name in NOT_OURS or path.name.endswith(".egg-info"):
            continue
        if path.name.startswith(".") and path.name not in HIDDEN_BUT_OURS:
            continue
        if path.is_dir():
            yield from our_files(path)
        else:
            yield path


def our_text() -> Iterator[tuple[Path, str]]:
    """Those of the project's files that are text."""
    for path in our_files():
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


@pytest.mark.parametrize("kind", sorted(BOXES))
def test_a_box_is_three_files_of_one_name(kind: str) -> None:
    wanted = [f"boxes/{kind}.py"]
    if BOXES[kind].executable:
        wanted.append(f"reference/{kind}.py")
    if BOXES[kind].executable and not BOXES[kind].uses_tables:  # databases run those
        wanted.append(f"spark/boxes/{kind}.py")
    missing = [name for name in wanted if not (PACKAGE / name).is_file()]
    assert not missing, f"the box {kind} lacks {', '.join(missing)}"


@pytest.mark.parametrize("place", ["reference", "spark/boxes"])
def test_a_box_that_can_run_says_so(place: str) -> None:
    boxes = {path.stem for path in (PACKAGE / place).glob("*.py")} & set(BOXES)
    silent = sorted(kind for kind in boxes if not BOXES[kind].executable)
    assert not silent, f"{place} has {', '.join(silent)}, yet `executable` is not set"


def test_class_names_are_unique() -> None:
    trees = [ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")]
    names = [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    assert names
    twice = [name for name, count in Counter(names).items() if count > 1]
    assert not twice, f"several classes are called {', '.join(sorted(twice))}"


def test_only_ids_takes_names_apart() -> None:
    apart = re.compile(r"""partition\(["'][@#\[+]["']\)|split\(["'][@#\[+]["']\)""")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "ids.py"
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if apart.search(line) and "netloc" not in line
    ]
    assert not found, f"use the classes of ids.py: {', '.join(found)}"


def test_files_are_small() -> None:
    lengths = {path: text.count("\n") for path, text in our_text() if path.suffix == ".py"}
    assert lengths
    long = [f"{path}: {lines} lines" for path, lines in lengths.items() if lines > MOST_LINES]
    assert not long, f"longer than {MOST_LINES} lines:\n" + "\n".join(long)


@pytest.mark.parametrize(
    ("what", "pattern"), [("a path of one machine", MACHINE_PATHS), ("a registry", REGISTRIES)]
)
def test_the_text_names_nothing_of_one_machine(what: str, pattern: re.Pattern[str]) -> None:
    found = [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in our_text()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, f"these lines name {what}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("pattern", "text", "names"),
    [
        (MACHINE_PATHS, "cd /" + "work/main", True),
        (MACHINE_PATHS, "src/" + "work/main", False),
        (MACHINE_PATHS, "/" + "workers", False),
        (REGISTRIES, "https://" + "pypi" + ".org/simple", True),
        (REGISTRIES, "pypi", False),
    ],
)
def test_the_patterns_tell(pattern: re.Pattern[str], text: str, names: bool) -> None:
    assert bool(pattern.search(text)) is names
