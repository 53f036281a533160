"""Imports go one way: each package may use itself and what stands above it in the table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

LAYERS = (
    ("errors",),
    ("ids",),
    ("disk", "validation"),
    ("progress", "qos"),
    ("network",),
    ("sql",),
    ("boxes",),
    ("tables",),
    ("continuous",),
    ("optimizer",),
    ("scheduling",),
    ("shedding",),
    ("storage", "io", "reference", "kernels"),
    ("history",),
    ("eddy",),
    ("catalog",),
    ("spark",),
    ("engine",),
    ("testing", "simulation"),
    ("client", "server"),
    ("cli",),
    ("demo", "__main__"),
)
"""Packages (and modules) of auroral, the ones used first; those of one line are strangers."""

ONLY_IN = {
    "pyspark": {"spark", "engine"},
    "py4j": {"spark"},
    "pydantic": {name for layer in LAYERS for name in layer} - {"errors"},
}
"""Libraries that only some packages may use; any other library may be used anywhere."""

TYPING_ONLY = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
TOP = "the top of auroral"
"""`import auroral` itself: it brings everything, so only what brings everything may use it."""
LEVEL_OF_TOP = LEVEL["engine"]


@dataclass(frozen=True)
class Import:
    """One import statement: the module it names, in full, and its line."""

    module: str
    line: int


def imports(text: str, module: str, is_package: bool) -> Iterator[Import]:
    """Every import of a module's text, in functions too; not those under TYPE_CHECKING."""
    pending: list[ast.AST] = [ast.parse(text)]
    package = module if is_package else module.rpartition(".")[0]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                above = package.split(".")[: package.count(".") + 2 - node.level]
                origin = ".".join([*above, origin] if origin else above)
            # `from auroral import io` names a package, `from auroral import Network` the top.
            for alias in node.names if origin == "auroral" else ():
                name = f"auroral.{alias.name}" if alias.name in LEVEL else origin
                yield Import(name, node.lineno)
            if origin != "auroral":
                yield Import(origin, node.lineno)
        elif isinstance(node, ast.If) and ast.unparse(node.test) in TYPING_ONLY:
            pending += node.orelse
        else:
            pending += ast.iter_child_nodes(node)


def objection(importer: str, module: str) -> str | None:
    """Why package `importer` may not import `module`, or None if it may."""
    library, *rest = module.split(".")
    if library != "auroral":
        allowed = ONLY_IN.get(library)
        if allowed is None or importer in allowed:
            return None
        return f"only {', '.join(sorted(allowed))} may import {library}"
    imported = rest[0] if rest else TOP
    if imported == importer:
        return None
    level = LEVEL_OF_TOP if imported == TOP else LEVEL.get(imported)
    if level is None:
        return f"{imported} has no place in LAYERS; give it one"
    if level < LEVEL[importer]:
        return None
    if level == LEVEL[importer] and imported != TOP:
        return f"{importer} and {imported} stand side by side and must not know each other"
    return f"{imported} may import {importer}, not the other way round"


def violations(path: Path) -> Iterator[str]:
    """What one file imports against the law: file, line, import, and which way it should go."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    importer = parts[1]
    if importer == "__init__":
        return
    if importer not in LEVEL:
        yield f"{path.relative_to(SOURCE.parent)}: {importer} has no place in LAYERS; give it one"
        return
    for found in imports(path.read_text(encoding="utf-8"), module, is_package):
        if why := objection(importer, found.module):
            where = f"{path.relative_to(SOURCE.parent)}:{found.line}"
            yield f"{where}: imports {found.module}: {why}"


def test_imports_go_one_way() -> None:
    files = sorted((SOURCE / "auroral").rglob("*.py"))
    assert files
    found = [line for path in files for line in violations(path)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("importer", "module", "why"),
    [
        ("spark", "auroral.spark.plans.frame", None),
        ("spark", "auroral.network", None),
        ("network", "auroral.spark", "spark may import network, not the other way round"),
        ("io", "auroral.storage.store", "io and storage stand side by side and must not know"),
        ("sql", "auroral.utils", "utils has no place in LAYERS"),
        ("boxes", "auroral", "the top of auroral may import boxes, not the other way round"),
        ("engine", "auroral", "the top of auroral may import engine, not the other way round"),
        ("cli", "auroral", None),
        ("reference", "pyspark.sql", "only engine, spark may import pyspark"),
        ("engine", "pyspark.sql", None),
        ("errors", "pydantic", "may import pydantic"),
        ("progress", "pydantic", None),
        ("errors", "json", None),
    ],
)
def test_the_law_says_who_may_import_what(importer: str, module: str, why: str | None) -> None:
    said = objection(importer, module)
    assert said is None if why is None else why in (said or "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a.b, c", ["a.b", "c"]),
        ("def f():\n    from a.b import c", ["a.b"]),
        ("try:\n    import a\nexcept ImportError:\n    import b", ["a", "b"]),
        ("from auroral import io, Network", ["auroral", "auroral.io"]),
        ("from . import lexer", ["auroral.sql"]),
        ("from .lexer import lex", ["auroral.sql.lexer"]),
        ("from ..io.text import show", ["auroral.io.text"]),
        ("from .. import io", ["auroral.io"]),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", ["b"]),
        ("if typing.TYPE_CHECKING:\n    import a", []),
        ("if not TYPE_CHECKING:\n    import a", ["a"]),
    ],
)
def test_every_import_is_seen(text: str, found: list[str]) -> None:
    assert sorted(i.module for i in imports(text, "auroral.sql.parser", False)) == found


def test_relative_imports_of_a_package_start_at_itself() -> None:
    assert [i.module for i in imports("from .a import b", "auroral.sql", True)] == ["auroral.sql.a"]
