"""Reading and writing network files, YAML or JSON, so that every key knows its line."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from auroral.errors import NetworkError, UsageError
from auroral.network.plain import MOST_LEVELS, MOST_PARTS
from auroral.network.positions import DocumentPath, DocumentPositions
from auroral.network.yaml_text import yaml_text

_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def read_document(path: Path) -> tuple[dict[str, Any], DocumentPositions]:
    """Read a network file into plain data and the lines its keys stand on."""
    return _parsed(_decoded(_read_bytes(path), path), path)


def parse_text(content: bytes) -> tuple[dict[str, Any], DocumentPositions]:
    """Read the YAML of a network that lies in no file; lines are those of the text."""
    path = Path("network.yaml")
    return _parsed(_decoded(content, path), path)


def _parsed(text: str, path: Path) -> tuple[dict[str, Any], DocumentPositions]:
    lines: dict[DocumentPath, int] = {}
    if path.suffix.lower() == ".json":
        document = _parse_json(text, path, lines)
    else:
        parsed = _parse_yaml(text, path)
        if _parts(parsed, {}) > MOST_PARTS:
            raise NetworkError("BAD_FILE", "too large for a network", where=f"{path}:1")
        document = _plain(parsed, (), lines, path)
    if not isinstance(document, dict):
        found = {"NoneType": "nothing", "list": "a list"}.get(type(document).__name__, "a value")
        raise NetworkError(
            "BAD_FILE",
            f"expected keys such as network, streams, boxes; found {found}",
            where=str(path),
        )
    return document, DocumentPositions(str(path), lines)


def document_text(document: dict[str, Any], path: Path) -> str:
    """Plain data as JSON or YAML, by the suffix of a file."""
    if path.suffix.lower() == ".json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return yaml_text(document)


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write plain data as JSON or YAML, by the file's suffix."""
    try:
        path.write_text(document_text(document, path), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            "CANNOT_WRITE", f"cannot write the network file: {error.strerror}", where=str(path)
        ) from None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            "CANNOT_READ", f"cannot read the network file: {reason}", where=str(path)
        ) from None


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NetworkError(
            "BAD_ENCODING", f"not UTF-8 text (byte {error.start})", where=f"{path}:{line}"
        ) from None


def _parse_json(text: str, path: Path, lines: dict[DocumentPath, int]) -> Any:
    twice: list[str] = []

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.append(next(key for key in keys if keys.count(key) > 1))
        return found

    try:
        document = json.loads(text, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        raise NetworkError(
            "BAD_FILE", f"not valid JSON: {error.msg}", where=f"{path}:{error.lineno}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise _unreadable(error, "JSON", path) from None
    # Nearly all JSON is YAML too, and YAML's reader knows lines.
    try:
        _plain(YAML(typ="rt").load(text.replace("\t", " ")), (), lines, path)
    except DuplicateKeyError as error:
        if twice:
            raise _marked(error, "JSON", path) from None
    except Exception:
        lines.clear()
    if twice:
        message = f'the key "{twice[0]}" occurs twice'
        raise NetworkError("DUPLICATE_KEY", message, where=str(path))
    return document


def _parse_yaml(text: str, path: Path) -> Any:
    # YAML 1.2, unlike 1.1, does not take the key `on` for a boolean.
    try:
        return YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        raise _marked(error, "YAML", path) from None
    except Exception as error:  # what a parser makes of nonsense, such as `!!int x`
        raise _unreadable(error, "YAML", path) from None


def _marked(error: MarkedYAMLError, language: str, path: Path) -> NetworkError:
    mark = error.problem_mark or error.context_mark
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    problem = (error.problem or error.context or "unreadable").splitlines()[0]
    if isinstance(error, DuplicateKeyError):
        key = problem.removeprefix("found duplicate key ").partition(" with value ")[0]
        return NetworkError("DUPLICATE_KEY", f"the key {key} occurs twice", where=where)
    hint = "indent with spaces, not tabs" if "\\t" in problem else None
    return NetworkError("BAD_FILE", f"not valid {language}: {problem}", where=where, hint=hint)


def _unreadable(error: Exception, language: str, path: Path) -> NetworkError:
    problem = (str(error).splitlines() or [type(error).__name__])[0]
    if isinstance(error, RecursionError):
        problem = "nested too deeply"
    return NetworkError("BAD_FILE", f"not valid {language}: {problem}", where=str(path))


def _plain(node: Any, at: DocumentPath, lines: dict[DocumentPath, int], path: Path) -> Any:
    """Plain dicts and lists, noting lines on the way."""
    if len(at) > MOST_LEVELS:
        problem = "nested too deeply for a network"
        raise NetworkError("BAD_FILE", problem, where=f"{path}:{lines[at]}")
    _require_untagged(node, f"{path}:{lines.get(at, 1)}")
    if isinstance(node, CommentedMap):
        plain: dict[str, Any] = {}
        own = node.lc.data or {}
        for key, value in node.items():
            _require_untagged(key, f"{path}:{lines.get(at, 1)}")
            here = (*at, str(key))
            # Keys merged in with `<<` have no line here; that of the mapping will do.
            lines[here] = own[key][0] + 1 if key in own else lines.get(at, 1)
            plain[str(key)] = _plain(value, here, lines, path)
        return plain
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            own = node.lc.data or {}  # a list with a tag knows no lines
            lines[(*at, index)] = own[index][0] + 1 if index in own else lines.get(at, 1)
        return [_plain(value, (*at, index), lines, path) for index, value in enumerate(node)]
    if isinstance(node, ScalarBoolean):
        return bool(node)
    if isinstance(node, date):
        return str(node)
    if isinstance(node, bool) or node is None:
        return node
    for plain_type in (int, float, str):
        if isinstance(node, plain_type):
            return plain_type(node)
    raise NetworkError(
        "BAD_FILE", f"expected plain YAML, found {str(node)!r}", where=f"{path}:{lines.get(at, 1)}"
    )


def _parts(node: Any, known: dict[int, int]) -> int:
    """How many parts a document has once aliases are spelt out; each anchor is counted once."""
    if not isinstance(node, CommentedMap | CommentedSeq):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST_PARTS + 1  # what contains itself has no end
        inside = node.values() if isinstance(node, CommentedMap) else node
        known[id(node)] = 1 + sum(_parts(part, known) for part in inside)
    return known[id(node)]


def _require_untagged(node: Any, where: str) -> None:
    """Refuse tags other than those that say what a value is anyway."""
    tag = getattr(getattr(node, "tag", None), "value", None)
    if tag is not None and (isinstance(node, TaggedScalar) or tag not in _PLAIN_TAGS):
        shown = tag.replace("tag:yaml.org,2002:", "!!")
        problem = f"expected plain YAML, found the tag {shown}"
        raise NetworkError("BAD_FILE", problem, where=where, hint="leave the tag out")
