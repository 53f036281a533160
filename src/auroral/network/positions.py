"""Reading YAML and JSON so that every key knows its line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from auroral.errors import NetworkError, UsageError

DocumentPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Positions:
    """Where in which file each key of a document stands."""

    file: str | None = None
    lines: dict[DocumentPath, int] = field(default_factory=dict)

    def describe(self, *path: str | int) -> str:
        """A place in words: `net.yaml:12, box crowd`."""
        line = next((self.lines[p] for p in _prefixes(path) if p in self.lines), None)
        parts = [f"{self.file}:{line}" if line else self.file] if self.file else []
        if len(path) >= 2:
            parts.append(f"{_SINGULAR.get(str(path[0]), str(path[0]))} {path[1]}")
        elif path:
            parts.append(str(path[0]))
        parts += [f"key {'.'.join(map(str, path[2:]))}"] if len(path) > 2 else []
        return ", ".join(parts)


_SINGULAR = {
    "streams": "stream",
    "tables": "table",
    "boxes": "box",
    "queries": "query",
    "connection_points": "connection point",
    "groups": "group",
    "outputs": "output",
}


def _prefixes(path: DocumentPath) -> Iterator[DocumentPath]:
    return (path[:n] for n in range(len(path), 0, -1))


def read_document(path: Path) -> tuple[dict[str, Any], Positions]:
    """Read a network file into plain data and the lines its keys stand on."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(
            "CANNOT_READ", f"cannot read the network file: {error.strerror}", where=str(path)
        ) from None
    except UnicodeDecodeError as error:
        raise NetworkError(
            "BAD_ENCODING", f"not UTF-8 text (byte {error.start})", where=str(path)
        ) from None
    if path.suffix == ".json":
        _require_json(text, path)
    document = _parse(text, path)
    if not isinstance(document, CommentedMap):
        found = "nothing" if document is None else type(document).__name__
        raise NetworkError(
            "BAD_FILE",
            f"expected keys such as network, streams, boxes; found {found}",
            where=str(path),
        )
    lines: dict[DocumentPath, int] = {}
    plain = _strip(document, (), lines)
    return plain, Positions(str(path), lines)


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write plain data as JSON or YAML, by the file's suffix."""
    try:
        with path.open("w", encoding="utf-8") as file:
            if path.suffix == ".json":
                json.dump(document, file, indent=2, ensure_ascii=False)
                file.write("\n")
            else:
                yaml = YAML()
                yaml.default_flow_style = None
                yaml.width = 100
                yaml.dump(document, file)
    except OSError as error:
        raise UsageError(
            "CANNOT_WRITE", f"cannot write the network file: {error.strerror}", where=str(path)
        ) from None


def _require_json(text: str, path: Path) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise NetworkError(
            "BAD_FILE", f"not valid JSON: {error.msg}", where=f"{path}:{error.lineno}"
        ) from None


def _parse(text: str, path: Path) -> Any:
    # YAML 1.2 reads JSON, and unlike 1.1 it does not take the key `on` for a boolean.
    try:
        return YAML(typ="rt").load(text.replace("\t", "  ") if path.suffix == ".json" else text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problem = (error.problem or error.context or "unreadable").splitlines()[0]
        raise NetworkError(
            "BAD_FILE", f"not valid YAML: {problem}", where=f"{path}:{line}"
        ) from None
    except YAMLError as error:
        raise NetworkError("BAD_FILE", f"not valid YAML: {error}", where=str(path)) from None


def _strip(node: Any, at: DocumentPath, lines: dict[DocumentPath, int]) -> Any:
    """Plain dicts and lists, noting lines on the way."""
    if isinstance(node, CommentedMap):
        plain: dict[str, Any] = {}
        for key, value in node.items():
            here = (*at, str(key))
            lines[here] = node.lc.key(key)[0] + 1
            plain[str(key)] = _strip(value, here, lines)
        return plain
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            lines[(*at, index)] = node.lc.item(index)[0] + 1
        return [_strip(value, (*at, index), lines) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    for plain_type in (int, float, str):
        if isinstance(node, plain_type):
            return plain_type(node)
    return node
