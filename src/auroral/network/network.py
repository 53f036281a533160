"""The network: streams, boxes and outputs, built in Python or read from a file."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from auroral.errors import DocumentPlace, NetworkError, closest
from auroral.ids import ArcId, InnerBoxId
from auroral.network import validation
from auroral.network.arc import Arc
from auroral.network.box import BOXES, Box, Resolver
from auroral.network.check import CheckedNetwork, check, type_arcs, type_box
from auroral.network.declarations import (
    IN_NETWORK,
    ConnectionPoint,
    Described,
    EngineOptions,
    Group,
    Output,
    Stream,
    Table,
    ViewDeclaration,
)
from auroral.network.endpoints import require_reachable, unknown_arc
from auroral.network.files import read_document, write_document
from auroral.network.finding import Finding, find_in
from auroral.network.function import Function, unimportable
from auroral.network.plain import require_plain
from auroral.network.point_names import live_arc
from auroral.network.positions import DocumentPositions
from auroral.network.queries import Family, Query, Results
from auroral.network.superboxes import RequiredFields, box_class, flattened, upstream_of
from auroral.network.templates import SuperboxInstance, SuperboxTemplate
from auroral.network.types import Schema
from auroral.progress.declaration import Progress
from auroral.qos.graphs import QoS

M = TypeVar("M", bound=BaseModel)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")  # files are called by names, too
_SHARED = ("streams", "tables", "boxes", "instances", "queries", "connection_points", "views")
"""What shares one name space; instances of superboxes stand under `boxes`."""
NAMED = (
    *("functions", "streams", "tables", "superboxes", "boxes", "queries", "connection_points"),
    *("views", "groups", "outputs"),
)
"""The sections that hold declarations by name."""
SECTIONS = ("network", *NAMED, "engine")
_CLASSES: Mapping[str, type[BaseModel]] = {
    "functions": Function,
    "streams": Stream,
    "tables": Table,
    "superboxes": SuperboxTemplate,
    "connection_points": ConnectionPoint,
    "views": ViewDeclaration,
    "groups": Group,
    "outputs": Output,
}


class Network:
    """A network under construction; `check()` types every arc and finds every mistake.

    >>> net = Network("border")
    >>> reports = net.stream("reports", schema="sid int, pos int")
    >>> _ = net.output("across", reports.filter("pos >= 30"))
    >>> print(net.check().arcs["filter_1"].schema)
    sid int, pos int
    """

    def __init__(
        self,
        name: str,
        *,
        positions: DocumentPositions | None = None,
        directory: Path | None = None,
        imports: bool = False,
    ):
        self.positions = positions or DocumentPositions()
        self.directory = directory
        """Where the file lies; modules of Python functions are looked up there too."""
        self.imports = imports
        """Whether checking may import modules of Python functions, which runs their code."""
        self._require_name(name, "a network", ("network",))
        self.name = name
        self.streams: dict[str, Stream] = {}
        self.tables: dict[str, Table] = {}
        self.superboxes: dict[str, SuperboxTemplate] = {}
        self.boxes: dict[str, Box] = {}
        self.instances: dict[str, SuperboxInstance] = {}
        """Superboxes that stand in place of boxes."""
        self.queries: dict[str, Query] = {}
        self.functions: dict[str, Function] = {}
        self.connection_points: dict[str, ConnectionPoint] = {}
        self.views: dict[str, ViewDeclaration] = {}
        self.groups: dict[str, Group] = {}
        self.outputs: dict[str, Output] = {}
        self.engine = EngineOptions()
        self.compact: Network | None = None
        """The network as it was declared, if this one has boxes in place of superboxes."""
        self.aliases: Mapping[str, str] = {}
        """The arcs that outputs of its superboxes stood for."""
        self.required_fields: Mapping[str, tuple[RequiredFields, ...]] = {}
        """What inputs of superboxes ask of arcs, by instance."""

    # ── building ──

    def stream(
        self,
        name: str,
        schema: str | Mapping[str, str] | Schema,
        *,
        progress: Progress | Sequence[Progress] | None = None,
        source: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Arc:
        """Declare a stream and return its arc; several sources may feed it."""
        self._declare("streams", name, {"schema": schema, "progress": progress, "source": source})
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
        self._declare("tables", name, {"schema": schema, "key": tuple(key), "store": store})
        return Arc(self, name)

    def box(self, kind: str, name: str | None = None, **parameters: Any) -> Arc:
        """Add a box, or an instance of a superbox; without a name it gets one after its kind.

        Wiring is checked at once.
        """
        name = name or self._fresh(kind)
        if "input" in parameters:
            parameters["input"] = self._arc_name(parameters["input"])
        inputs = parameters.get("inputs")
        if isinstance(inputs, list | tuple):
            parameters["inputs"] = tuple(map(self._arc_name, inputs))
        elif isinstance(inputs, Mapping):
            parameters["inputs"] = {key: self._arc_name(arc) for key, arc in inputs.items()}
        self._declare("boxes", name, {"box": kind, **parameters})
        try:
            type_box(self, name)
        except NetworkError:
            self.boxes.pop(name, None)
            self.instances.pop(name, None)
            raise
        return Arc(self, name)

    def superbox(
        self,
        name: str,
        *,
        inputs: Sequence[str] | Mapping[str, Any],
        boxes: Mapping[str, Mapping[str, Any]],
        outputs: str | Mapping[str, str],
        parameters: Mapping[str, Any] | None = None,
        description: str | None = None,
        tags: Sequence[str] = (),
    ) -> None:
        """Declare boxes that `box(name, …)` uses as one, any number of times.

        >>> net = Network("border")
        >>> reports = net.stream("reports", schema="sid int, pos int")
        >>> far = {"box": "filter", "input": "in", "where": "pos >= ${limit}"}
        >>> net.superbox("far", inputs=["in"], boxes={"beyond": far}, outputs="beyond",
        ...              parameters={"limit": 30})
        >>> net.box("far", "north", input=reports, limit=40)
        Arc('north')
        >>> list(net.check().arcs)
        ['reports', 'north/beyond', 'north/beyond.rest']
        """
        declared = {
            "parameters": dict(parameters or {}),
            "inputs": inputs,
            "boxes": {box: dict(keys) for box, keys in boxes.items()},
            "outputs": outputs,
        }
        more = {"description": description, "tags": tuple(tags)}
        self._declare("superboxes", name, {**declared, **more})

    def union(self, *arcs: Arc | str, name: str | None = None) -> Arc:
        """Merge arcs of one schema in order of arrival."""
        return self.box("union", name, inputs=arcs)

    def query(self, name: str, sql: str, *, results: Results = "keep") -> None:
        """Register a continuous query; with `results="count"` its matches are only counted."""
        self._declare("queries", name, {"sql": sql, "results": results})

    def family(
        self, name: str, sql: str, values: Any, key: str, *, results: Results = "keep"
    ) -> None:
        """Register one query for each row of `values`, a table, a file or rows.

        Its columns are the parameters `:name` of the text; `key` names the column of names.
        """
        declared = {"sql": sql, "values": values, "key": key, "results": results}
        self._declare("queries", name, declared)

    def function(
        self, name: str, udf: str | Callable[..., Any], *, returns: str | None = None
    ) -> None:
        """Let queries, filters, maps and joins call a Python function by a name."""
        self._declare("functions", name, {"udf": udf, "returns": returns})

    def connection_point(
        self,
        name: str,
        on: Arc | str | None = None,
        keep: str | Mapping[str, Any] | None = None,
        key: str | None = None,
        *,
        store: str | None = None,
        schema: str | Mapping[str, str] | Schema | None = None,
    ) -> Arc:
        """Let an arc remember its history, or give a stored data set a name.

        The name is an arc too: boxes that read it read the arc as it flows.
        """
        given = {"on": self._arc_name(on), "keep": keep, "key": key, "store": store}
        declared = {**given, "schema": schema}
        self._declare("connection_points", name, {k: v for k, v in declared.items() if v})
        return Arc(self, name)

    def view(
        self,
        name: str,
        arc: Arc | str,
        *,
        keep: str | Mapping[str, Any] | None = None,
        materialize: str | None = None,
        qos: QoS | None = None,
    ) -> Arc:
        """Name a path without an application; those who attach to it later get what is kept."""
        declared = {"from": self._arc_name(arc), "keep": keep, "materialize": materialize}
        self._declare("views", name, {**declared, "qos": qos})
        return arc if isinstance(arc, Arc) else Arc(self, arc)

    def group(
        self,
        name: str,
        members: Sequence[Arc | str],
        *,
        description: str | None = None,
        tags: Sequence[str] = (),
    ) -> None:
        """Name boxes, instances of superboxes and other groups that a person sees as one."""
        own = [self._arc_name(member) for member in members]
        declared = {"members": own, "description": description, "tags": tuple(tags)}
        self._declare("groups", name, declared)

    def note(
        self,
        name: Arc | str,
        *,
        description: str | None = None,
        tags: Sequence[str] = (),
        section: str | None = None,
    ) -> None:
        """Say what a part of the network is, and tag it; `section` if two have the name."""
        kinds = (*_SHARED, "superboxes", "groups", "outputs")
        wanted, held = str(name), [k for k in kinds if str(name) in getattr(self, k)]
        kind = next((kind for kind in held if section in (None, kind)), None)
        if kind is None:
            raise NetworkError("UNKNOWN_ENTITY", f"there is no {wanted} to describe")
        said = {"description": description, "tags": tuple(tags)}
        checked = self._validated(Described, said, (kind, wanted))
        declared = getattr(self, kind)
        declared[wanted] = declared[wanted].model_copy(update=dict(checked))

    def output(
        self,
        name: str,
        arc: Arc | str,
        *,
        qos: QoS | None = None,
        sink: Mapping[str, Any] | None = None,
    ) -> Arc:
        """Deliver an arc, or a query by its name, to an application."""
        self._declare("outputs", name, {"from": self._arc_name(arc), "qos": qos, "sink": sink})
        return arc if isinstance(arc, Arc) else Arc(self, arc)

    # ── checking ──

    def check(self, resolver: Resolver | None = None) -> CheckedNetwork:
        """Type every arc; raises NetworkError at the first mistake."""
        return check(self, resolver)

    def flattened(self) -> Network:
        """The same network with ordinary boxes in place of superboxes; itself if it has none."""
        return flattened(self)

    def importing(self) -> Network:
        """The same network, allowed to import the modules of its functions: to run is to import."""
        allowed = copy.copy(self)
        allowed.imports = True
        return allowed

    def unverified(self) -> list[str]:
        """What a check takes on trust, because it imports no modules; in words."""
        every = [
            *self.functions.values(),
            *(f for box in self.flattened().boxes.values() for f in box.functions()),
        ]
        if self.imports:
            return []
        names = dict.fromkeys(how.udf for how in every if isinstance(how.udf, str))
        return [
            f"{name} was not imported: whether it exists and fits its declaration is not verified"
            " (--import does)"
            for name in names
        ]

    def schema_of(self, arc: str) -> Schema:
        """The schema of one arc; checks only what feeds it."""
        arc = live_arc(self, arc)
        if arc in self.tables:
            return self.tables[arc].schema_
        plain = upstream_of(self, InnerBoxId.outermost(ArcId.parse(arc).producer)).flattened()
        found = plain.aliases.get(arc, arc)
        producer = ArcId.parse(found).producer
        arcs, _ = type_arcs(plain, [producer] if producer in plain.boxes else [])
        if found not in arcs:
            checked = self.check()
            raise unknown_arc(arc, [*checked.arcs, *checked.network.aliases])
        return arcs[found].schema

    def place(self, *path: str | int) -> DocumentPlace:
        """Where a part of the network stands, in words."""
        return self.positions.describe(*path)

    def locate(self, error: NetworkError, *path: str | int) -> NetworkError:
        """The error at the place of a part of the network."""
        return self.positions.locate(error, *path)

    def find(self, text: str) -> list[Finding]:
        """The parts of the network in whose names, tags, descriptions, fields or SQL a text occurs.

        >>> net = Network("border")
        >>> reports = net.stream("reports", schema="sid int, pos int")
        >>> _ = net.output("across", reports.filter("pos >= 30", name="far"))
        >>> net.note("far", tags=["positions"])
        >>> [str(found) for found in net.find("pos")]
        ['stream reports: field: pos', 'box far: where: pos >= 30', 'box far: tag: positions']
        """
        return find_in((self.compact or self).document(), text)

    # ── reading and writing ──

    @staticmethod
    def load(path: str | Path, *, imports: bool = False) -> Network:
        """Read a network file (YAML, or JSON by its suffix).

        Modules that it names are imported when it runs; with `imports` also when it is checked.
        """
        path = Path(path)
        document, positions = read_document(path)
        network = Network.parse(document, positions, path.absolute().parent)
        network.imports = imports
        return network

    @staticmethod
    def parse(
        document: Mapping[str, Any],
        positions: DocumentPositions | None = None,
        directory: Path | None = None,
    ) -> Network:
        """Build a network from the plain data of a network file. Does not check the wiring."""
        positions = positions or DocumentPositions()
        require_plain(document, positions)
        if not isinstance(document, Mapping):
            raise NetworkError("BAD_FILE", f"expected the keys of a network, found {document!r}")
        for key in document:
            if key not in SECTIONS:
                raise NetworkError(
                    "UNKNOWN_KEY",
                    f"unknown key {key}; the keys here are {', '.join(SECTIONS)}",
                    where=positions.describe(key),
                    hint=closest(key, SECTIONS),
                )
        name = document.get("network")
        if not isinstance(name, str):
            raise NetworkError(
                "MISSING_KEY",
                f"expected `network: name` with the network's name, found {name!r}",
                where=positions.describe("network"),
            )
        network = Network(name, positions=positions, directory=directory)
        for section in NAMED:
            network._read(section, document.get(section))
        if document.get("engine") is not None:
            network.engine = network._validated(EngineOptions, document["engine"], ("engine",))
        return network

    def save(self, path: str | Path) -> None:
        """Write the network file; `load` gives the same network back."""
        document = self.document()
        for section in NAMED:
            for name, entry in document.get(section, {}).items():
                if problem := unimportable(entry):
                    raise self.locate(problem, section, name)
        write_document(document, Path(path))

    def document(self) -> dict[str, Any]:
        """The plain data of the network file."""
        sections: dict[str, Any] = {
            section: {name: self._entry(section, name) for name in getattr(self, section)}
            for section in NAMED
        }
        sections["boxes"] |= {name: self._entry("instances", name) for name in self.instances}
        sections["engine"] = self.engine.document()
        return {"network": self.name, **{key: part for key, part in sections.items() if part}}

    def __eq__(self, other: object) -> bool:
        # The order of fields and routes means something, the order of boxes does not.
        return isinstance(other, Network) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    # ── inside ──

    def _content(self) -> dict[str, Any]:
        return {
            key: {name: json.dumps(entry) for name, entry in part.items()} if key in NAMED else part
            for key, part in self.document().items()
        }

    def _entry(self, section: str, name: str) -> Any:
        declared = getattr(self, section)[name]
        try:
            document = declared.document()
        except PydanticSerializationError as error:
            cause = error.__cause__
            problem = (
                cause
                if isinstance(cause, NetworkError)
                else NetworkError("CANNOT_SAVE", f"this cannot stand in a file: {error}")
            )
            raise self.locate(problem, section, name) from None
        return {"box": declared.box, **document} if section == "boxes" else document

    def _read(self, section: str, entries: Any) -> None:
        if entries is not None and not isinstance(entries, Mapping):
            raise NetworkError(
                "BAD_FILE",
                f"expected names under {section}, found {entries!r}",
                where=self.place(section),
            )
        for name, declared in (entries or {}).items():
            self._declare(section, name, declared)

    def _declare(self, section: str, name: str, declared: Any) -> None:
        """Check a part of the network by itself and add it; its wiring is checked later."""
        path = (section, name)
        self._require_free(section, name)
        part: Any
        if section == "boxes" and self._is_instance(declared):
            section, part = "instances", self.declared_instance(declared, path)
        elif section == "boxes":
            part = self.declared_box(declared, path, self.superboxes)
        elif section == "queries":
            part = self._query(declared, path)
        else:
            part = self._validated(_CLASSES[section], declared, path)
        getattr(self, section)[name] = part

    def declare(self, section: str, name: str, declared: Any) -> None:
        """Add a part as a file would declare it under a section, or as an object."""
        self._declare(section, name, declared)

    def forget_members(self, boxes: Collection[str]) -> None:
        """Let groups do without boxes that are no more; groups that had no others go, too."""
        for name, group in list(self.groups.items()):
            members = tuple(box for box in group.members if box not in boxes)
            self.groups[name] = group.model_copy(update={"members": members})
            if not members:
                del self.groups[name]

    def _is_instance(self, declared: Any) -> bool:
        kind = declared.get("box") if isinstance(declared, Mapping) else None
        return isinstance(kind, str) and kind in self.superboxes

    def declared_box(
        self, declared: Any, path: tuple[str, ...], superboxes: Mapping[str, SuperboxTemplate]
    ) -> Box:
        """A box as a file declares it; `superboxes` are what else could stand there."""
        try:
            cls = box_class(declared, superboxes)
        except NetworkError as error:
            raise self.locate(error, *path) from None
        return self._validated(cls, declared, path)

    def declared_instance(self, declared: Any, path: tuple[str, ...]) -> SuperboxInstance:
        """An instance of a superbox as a file declares it."""
        keys = SuperboxInstance.keys(declared)
        return self._validated(SuperboxInstance, keys, path)

    def declared_query(self, name: str, declared: Any) -> Query:
        """A query as a file or an application may give it."""
        return self._query(declared, ("queries", name))

    def require_query_name(self, name: str) -> None:
        """Refuse a name that no query can have beside what else there is."""
        self._require_name(name, "a query", ("queries", name))
        require_reachable(self, name)
        for other in _SHARED:
            if other != "queries" and name in getattr(self, other):
                raise NetworkError(
                    "DUPLICATE_NAME", f"the name {name} is taken by {self._taker(other, name)}"
                )

    def _query(self, declared: Any, path: tuple[str, str]) -> Query:
        if isinstance(declared, Query):
            return declared
        if isinstance(declared, str):
            declared = {"sql": declared}
        fits = isinstance(declared, Mapping)
        self._require(declared, fits, "SQL text, or sql with values and key", path)
        family = "values" in declared or "key" in declared
        return self._validated(Family if family else Query, declared, path)

    def _require(self, declared: Any, fits: bool, expected: str, path: tuple[str, str]) -> Any:
        if not fits:
            raise NetworkError(
                "BAD_PARAMETER", f"expected {expected}, found {declared!r}", where=self.place(*path)
            )
        return declared

    def _validated(self, cls: type[M], declared: Any, path: tuple[str, ...]) -> M:
        try:
            return cls.model_validate(declared, context=IN_NETWORK)
        except ValidationError as error:
            raise validation.explained(error, cls, declared, self.positions, path) from None
        except NetworkError as error:
            raise self.locate(error, *path) from None

    def _require_name(self, name: Any, what: str, path: tuple[str, ...]) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise NetworkError(
                "BAD_NAME",
                f"{name!r:.60} cannot name {what}: expected a letter, then letters, digits or _, up"
                " to 100",
                where=self.place(*path),
            )

    def _require_free(self, section: str, name: Any) -> None:
        shared = section in _SHARED
        what = (
            "a stream, table, box, query, connection point or view"
            if shared
            else f"one of {section}"
        )
        self._require_name(name, what, (section, name))
        for other in _SHARED if shared else (section,):
            if name in getattr(self, other):
                raise NetworkError(
                    "DUPLICATE_NAME",
                    f"the name {name} is taken by {self._taker(other, name)}",
                    where=self.place(section, name),
                )
        if section == "superboxes" and name in BOXES:
            problem = f"{name} is a kind of box already"
            raise NetworkError("DUPLICATE_NAME", problem, where=self.place(section, name))

    def _taker(self, kind: str, name: str) -> str:
        return self.place("boxes" if kind == "instances" else kind, name)

    def _arc_name(self, arc: Any) -> Any:
        if isinstance(arc, Arc) and arc.network is not self:
            raise NetworkError(
                "FOREIGN_ARC",
                f"the arc {arc} belongs to the network {arc.network.name}, not to {self.name}",
                hint="build both sides with one Network",
            )
        return str(arc) if isinstance(arc, Arc) else arc

    def _fresh(self, kind: str) -> str:
        kinds = [*(b.kind for b in self.boxes.values()), *(i.box for i in self.instances.values())]
        number = 1 + kinds.count(kind)
        while any(f"{kind}_{number}" in getattr(self, section) for section in _SHARED):
            number += 1
        return f"{kind}_{number}"
