"""The network: streams, boxes and outputs, built in Python or read from a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from auroral.errors import NetworkError, closest, known
from auroral.network import validation
from auroral.network.arc import Arc
from auroral.network.box import BOXES, Box, Resolver
from auroral.network.check import CheckedNetwork, check
from auroral.network.declarations import (
    ConnectionPoint,
    Declaration,
    EngineOptions,
    Output,
    Stream,
    Table,
)
from auroral.network.positions import Positions, read_document, write_document
from auroral.network.types import Schema
from auroral.progress.declaration import Progress
from auroral.qos.graphs import QoS

D = TypeVar("D", bound=Declaration)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
SECTIONS = (
    "network",
    "streams",
    "tables",
    "boxes",
    "queries",
    "connection_points",
    "groups",
    "outputs",
    "engine",
)


class Network:
    """A network under construction; `check()` types every arc and finds every mistake.

    >>> net = Network("border")
    >>> reports = net.stream("reports", schema="sid int, pos int")
    >>> _ = net.output("across", reports.filter("pos >= 30"))
    >>> print(net.check().arcs["filter_1"].schema)
    sid int, pos int
    """

    def __init__(
        self, name: str, *, positions: Positions | None = None, directory: Path | None = None
    ):
        self._positions = positions or Positions()
        self.directory = directory
        """Where the file lies; modules of Python functions are looked up there too."""
        self._require_name(name, "network", ("network",))
        self.name = name
        self.streams: dict[str, Stream] = {}
        self.tables: dict[str, Table] = {}
        self.boxes: dict[str, Box] = {}
        self.queries: dict[str, str] = {}
        self.connection_points: dict[str, ConnectionPoint] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        self.outputs: dict[str, Output] = {}
        self.engine = EngineOptions()

    # ── building ──

    def stream(
        self,
        name: str,
        schema: str | Mapping[str, str] | Schema,
        *,
        progress: Progress | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> Arc:
        """Declare a stream and return its arc."""
        self._require_free(name, ("streams", name))
        declared = {"schema": Schema.parse(schema), "progress": progress, "source": source}
        self.streams[name] = self._validated(Stream, declared, ("streams", name))
        return Arc(self, name)

    def table(
        self,
        name: str,
        schema: str | Mapping[str, str] | Schema,
        *,
        key: Sequence[str] = (),
        store: str | None = None,
    ) -> Arc:
        """Declare a table."""
        self._require_free(name, ("tables", name))
        declared = {"schema": Schema.parse(schema), "key": tuple(key), "store": store}
        self.tables[name] = self._validated(Table, declared, ("tables", name))
        return Arc(self, name)

    def box(self, kind: str, name: str | None = None, **parameters: Any) -> Arc:
        """Add a box; without a name it gets one after its kind. Wiring is checked at once."""
        name = name or self._fresh(kind)
        self._add_box(name, {"box": kind, **parameters})
        try:
            self.check()
        except NetworkError:
            del self.boxes[name]
            raise
        return Arc(self, name)

    def union(self, *arcs: Arc | str, name: str | None = None) -> Arc:
        """Merge arcs of one schema in order of arrival."""
        return self.box("union", name, inputs=tuple(str(arc) for arc in arcs))

    def query(self, name: str, sql: str) -> None:
        """Register a continuous query."""
        self._require_free(name, ("queries", name))
        if not isinstance(sql, str):
            raise NetworkError(
                "BAD_QUERY", f"expected SQL text, found {sql!r}", where=self.place("queries", name)
            )
        self.queries[name] = sql

    def connection_point(
        self, name: str, on: Arc | str, keep: str | Mapping[str, int], key: str | None = None
    ) -> None:
        """Let an arc remember its history."""
        self._require_free(name, ("connection_points", name))
        self.connection_points[name] = self._validated(
            ConnectionPoint,
            {"on": str(on), "keep": keep, "key": key},
            ("connection_points", name),
        )

    def output(
        self,
        name: str,
        arc: Arc | str,
        *,
        qos: QoS | None = None,
        sink: Mapping[str, Any] | None = None,
    ) -> Arc:
        """Deliver an arc to an application."""
        self._require_name(name, "output", ("outputs", name))
        if name in self.outputs:
            raise NetworkError("DUPLICATE_NAME", f"there is an output {name} already")
        self.outputs[name] = self._validated(
            Output, {"from": str(arc), "qos": qos, "sink": sink}, ("outputs", name)
        )
        return arc if isinstance(arc, Arc) else Arc(self, arc)

    # ── checking ──

    def check(self, resolver: Resolver | None = None) -> CheckedNetwork:
        """Type every arc; raises NetworkError at the first mistake."""
        return check(self, resolver)

    def place(self, *path: str | int) -> str:
        """Where a part of the network stands, in words."""
        return self._positions.describe(*path)

    # ── reading and writing ──

    @staticmethod
    def load(path: str | Path) -> Network:
        """Read a network file (YAML, or JSON by its suffix) and check it."""
        path = Path(path)
        document, positions = read_document(path)
        return Network.parse(document, positions, path.absolute().parent)

    @staticmethod
    def parse(
        document: Mapping[str, Any],
        positions: Positions | None = None,
        directory: Path | None = None,
    ) -> Network:
        """Build a network from the plain data of a network file. Does not check the wiring."""
        positions = positions or Positions()
        for key in document:
            if key not in SECTIONS:
                raise NetworkError(
                    "UNKNOWN_KEY",
                    f"unknown key {key}; a network file has {', '.join(SECTIONS)}",
                    where=positions.describe(key),
                    hint=closest(key, SECTIONS),
                )
        name = document.get("network")
        if not isinstance(name, str):
            raise NetworkError(
                "MISSING_KEY",
                f"expected `network: name` with the network's name, found {name!r}",
                where=positions.describe("network") or positions.file,
            )
        network = Network(name, positions=positions, directory=directory)
        network._read_sections(document)
        return network

    def save(self, path: str | Path) -> None:
        """Write the network file; `load` gives the same network back."""
        write_document(self.document(), Path(path))

    def document(self) -> dict[str, Any]:
        """The plain data of the network file."""
        sections: dict[str, Any] = {
            "streams": {name: s.document() for name, s in self.streams.items()},
            "tables": {name: t.document() for name, t in self.tables.items()},
            "boxes": {name: {"box": b.kind, **b.document()} for name, b in self.boxes.items()},
            "queries": dict(self.queries),
            "connection_points": {n: c.document() for n, c in self.connection_points.items()},
            "groups": {name: list(members) for name, members in self.groups.items()},
            "outputs": {name: o.document() for name, o in self.outputs.items()},
            "engine": self.engine.document(),
        }
        return {"network": self.name, **{key: part for key, part in sections.items() if part}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.document() == other.document()

    __hash__ = None  # type: ignore[assignment]

    # ── inside ──

    def _read_sections(self, document: Mapping[str, Any]) -> None:
        for name, declared in self._entries(document, "streams"):
            self._require_free(name, ("streams", name))
            self.streams[name] = self._validated(Stream, declared, ("streams", name))
        for name, declared in self._entries(document, "tables"):
            self._require_free(name, ("tables", name))
            self.tables[name] = self._validated(Table, declared, ("tables", name))
        for name, declared in self._entries(document, "boxes"):
            self._add_box(name, declared)
        for name, sql in self._entries(document, "queries"):
            self.query(name, sql)
        for name, declared in self._entries(document, "connection_points"):
            self._require_free(name, ("connection_points", name))
            self.connection_points[name] = self._validated(
                ConnectionPoint, declared, ("connection_points", name)
            )
        for name, members in self._entries(document, "groups"):
            self.groups[name] = self._group(name, members)
        for name, declared in self._entries(document, "outputs"):
            self._require_name(name, "output", ("outputs", name))
            self.outputs[name] = self._validated(Output, declared, ("outputs", name))
        self.engine = self._validated(EngineOptions, document.get("engine") or {}, ("engine",))

    def _entries(self, document: Mapping[str, Any], section: str) -> list[tuple[str, Any]]:
        entries = document.get(section)
        if entries is None:
            return []
        if not isinstance(entries, Mapping):
            raise NetworkError(
                "BAD_FILE",
                f"expected names under {section}, found {entries!r}",
                where=self.place(section),
            )
        return list(entries.items())

    def _add_box(self, name: str, declared: Any) -> None:
        path = ("boxes", name)
        self._require_free(name, path)
        if not isinstance(declared, Mapping) or "box" not in declared:
            raise NetworkError(
                "MISSING_KEY",
                f"expected `box: kind` and its keys, found {declared!r}; {known(BOXES)}",
                where=self.place(*path),
            )
        kind = declared["box"]
        if kind not in BOXES:
            raise NetworkError(
                "UNKNOWN_BOX",
                f"there is no box {kind}; {known(BOXES)}",
                where=self.place(*path, "box"),
                hint=closest(str(kind), BOXES),
            )
        self.boxes[name] = self._validated(BOXES[kind], declared, path)

    def _group(self, name: str, members: Any) -> tuple[str, ...]:
        if not isinstance(members, list | tuple):
            raise NetworkError(
                "BAD_GROUP",
                f"expected a list of boxes, found {members!r}",
                where=self.place("groups", name),
            )
        return tuple(map(str, members))

    def _validated(self, cls: type[D], declared: Any, path: tuple[str, ...]) -> D:
        try:
            return cls.model_validate(declared)
        except ValidationError as error:
            raise validation.explained(error, cls, self._positions, path) from None
        except NetworkError as error:
            raise error.at(self.place(*path)) from None

    def _require_name(self, name: Any, what: str, path: tuple[str, ...]) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise NetworkError(
                "BAD_NAME",
                f"{name!r} cannot name a {what}: expected a letter, then letters, digits or _",
                where=self.place(*path),
            )

    def _require_free(self, name: Any, path: tuple[str, ...]) -> None:
        self._require_name(name, "stream, table, box, query or connection point", path)
        for section in ("streams", "tables", "boxes", "queries", "connection_points"):
            if name in getattr(self, section):
                raise NetworkError(
                    "DUPLICATE_NAME",
                    f"the name {name} is taken: {self.place(section, name)}",
                    where=self.place(*path),
                )

    def _fresh(self, kind: str) -> str:
        number = 1 + sum(1 for box in self.boxes.values() if box.kind == kind)
        while f"{kind}_{number}" in self.boxes:
            number += 1
        return f"{kind}_{number}"
