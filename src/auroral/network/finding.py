"""Finding parts of a network by a text: in names, tags, descriptions, fields and expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from auroral.network.positions import KINDS

_FIELDS = ("schema", "compute", "report", "returns")
"""Keys under which names of fields stand."""
_NAMED = ("routes", "parameters", "inputs", "outputs", "boxes")
"""Keys under which other names stand that a person chose."""


@dataclass(frozen=True)
class Finding:
    """A part of a network in which a text occurs, and where in it."""

    kind: str
    name: str
    where: str
    """`name`, `tag`, `description`, `field`, or the key of a value."""
    text: str
    """What stands there."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.where}: {self.text}"


def find_in(document: Mapping[str, Any], text: str) -> list[Finding]:
    """Where a text occurs in the plain data of a network file, whatever the case of letters.

    >>> net = {"boxes": {"far": {"box": "filter", "where": "POS > 3", "tags": ["border"]}}}
    >>> [str(found) for found in find_in(net, "pos")]
    ['box far: where: POS > 3']
    >>> [found.where for found in find_in(net, "bo")]
    ['tag']
    """
    wanted = text.lower()
    found: dict[Finding, None] = {}
    for section, kind in KINDS.items():
        for name, entry in (document.get(section) or {}).items():
            for where, value in (("name", name), *_texts(entry)):
                if wanted in value.lower():
                    found[Finding(kind, name, where, value)] = None
    return list(found)


def _texts(entry: Any) -> Iterator[tuple[str, str]]:
    """What a declaration says, and where."""
    if isinstance(entry, str):  # a query
        yield "sql", entry
    elif isinstance(entry, list):  # a group
        yield from (("member", member) for member in entry)
    elif isinstance(entry, Mapping):
        for key, part in entry.items():
            if key == "tags":
                yield from (("tag", tag) for tag in part)
            else:
                yield from _values(part, (str(key),))


def _holds_fields(path: tuple[str, ...]) -> bool:
    """Whether keys there are names of fields; an input of a superbox may have a schema, too."""
    return path[-1] in _FIELDS or (len(path) == 2 and path[0] == "inputs")


def _values(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for key, part in node.items():
            if _holds_fields(path):
                yield "field", str(key)
            elif path[-1] in _NAMED:
                yield ".".join(path), str(key)
            yield from _values(part, (*path, str(key)))
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _values(part, path)
    elif isinstance(node, str) and not _is_type(path):
        yield ".".join(path), node


def _is_type(path: tuple[str, ...]) -> bool:
    """Whether the type of a field stands there: all fields have one, nobody looks for them."""
    return path[-2:-1] in (("schema",), ("returns",)) or (len(path) == 3 and path[0] == "inputs")
