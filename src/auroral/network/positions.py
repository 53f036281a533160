"""Where the parts of a network stand: file, line, section, name and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from auroral.errors import DocumentPlace, NetworkError
from auroral.ids import QueryBoxId

DocumentPath = tuple[str | int, ...]

KINDS: Mapping[str, str] = {
    "functions": "function",
    "streams": "stream",
    "tables": "table",
    "superboxes": "superbox",
    "boxes": "box",
    "queries": "query",
    "connection_points": "connection point",
    "views": "view",
    "groups": "group",
    "outputs": "output",
}


@dataclass(frozen=True)
class InnerBoxOrigin:
    """Where a box of an instance of a superbox comes from."""

    template: str
    box: str
    instance: str


@dataclass(frozen=True)
class DocumentPositions:
    """Where in which file each key of a document stands; a network built in Python has none."""

    file: str | None = None
    lines: dict[DocumentPath, int] = field(default_factory=dict)
    inner: Mapping[str, InnerBoxOrigin] = field(default_factory=dict)
    """By name, the boxes that stand in superboxes: their places are two."""

    def describe(self, *path: str | int) -> DocumentPlace:
        """A place in words.

        >>> positions = DocumentPositions("net.yaml", {("boxes", "crowd"): 12})
        >>> positions.describe("boxes", "crowd", "window")
        'net.yaml:12, box crowd, key window'
        """
        if len(path) > 1 and path[0] == "boxes":
            query = QueryBoxId.query_of(str(path[1]))
            path = path if query is None else ("queries", query)
            origin = self.inner.get(str(path[1]))
            if origin is not None:
                inside = ("superboxes", origin.template, "boxes", origin.box)
                instance = self.describe("boxes", origin.instance)
                place = self.describe(*inside, *path[2:])
                return DocumentPlace(f"{instance}: {place}", place.path)
        line = next((self.lines[p] for p in _prefixes(path) if p in self.lines), None)
        parts = [f"{self.file}:{line}" if line else self.file] if self.file else []
        named = len(path) > 1 and path[0] in KINDS
        if named:
            parts.append(f"{KINDS[str(path[0])]} {path[1]}")
        elif path:
            parts.append(str(path[0]))
        nested = path[:1] == ("superboxes",) and len(path) > 3 and path[2] == "boxes"
        if nested:
            parts.append(f"box {path[3]}")
        if keys := path[(4 if nested else 2) if named else 1 :]:
            parts.append(f"key {'.'.join(map(str, keys))}")
        return DocumentPlace(", ".join(parts), path)

    def locate(self, error: NetworkError, *path: str | int) -> NetworkError:
        """The error at its place; one that says `key a.b` gets the line of that key."""
        key, _, rest = (error.where or "").partition(", ")
        if not key.startswith("key "):
            place = self.describe(*path)
            where = ", ".join(part for part in (place, error.where) if part)
        else:
            keys = key.removeprefix("key ").split(".")
            place = self.describe(*path, *(int(k) if k.isdecimal() else k for k in keys))
            where = f"{place}, {rest}" if rest else place
        known = DocumentPlace(where, place.path)
        return NetworkError(error.code, error.message, where=known, hint=error.hint)


def _prefixes(path: DocumentPath) -> Iterator[DocumentPath]:
    return (path[:n] for n in range(len(path), 0, -1))
