"""What is attached to a connection point: SQL or boxes, as a small network of its own (pure)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auroral.boxes import Map
from auroral.continuous.boxing.compiler import compile_query
from auroral.engine.points.point import PointHistory
from auroral.errors import AuroralError, NetworkError, UsageError
from auroral.ids import AttachmentId
from auroral.network.arc import Arc
from auroral.network.box import BOXES, Box, Resolver, class_of
from auroral.network.check import not_revisable, type_arcs, what_boxes_see
from auroral.network.declarations import Stream
from auroral.network.function import unimportable
from auroral.network.network import Network
from auroral.network.point_names import renamed_inputs
from auroral.progress.lowwater import GroupedLowWater

Build = Callable[[Arc], Arc]
"""Boxes as a function from the arc of a point to the arc of the results."""


@dataclass(frozen=True)
class AdHocQuery:
    """SQL over the name of a point, or boxes behind it and the arc of their results."""

    sql: str | None = None
    boxes: Mapping[str, Any] = field(default_factory=dict)
    """As in a network file."""
    output: str = ""

    def document(self) -> dict[str, Any]:
        """What a restart needs."""
        if self.sql is not None:
            return {"sql": self.sql}
        return {"boxes": dict(self.boxes), "output": self.output}

    @property
    def shown(self) -> str:
        """What people read of it."""
        return (
            self.sql if self.sql is not None else ", ".join(b["box"] for b in self.boxes.values())
        )


@dataclass(frozen=True)
class Branch:
    """An attached query as a network: its one stream is the arc of a point."""

    query: AdHocQuery
    network: Network
    output: str
    """The arc of its results."""


def branch_of(
    network: Network,
    point: PointHistory,
    name: str,
    query: str | Build | AdHocQuery,
    meant: Sequence[str],
    resolver: Resolver | None = None,
    *,
    lasting: bool = False,
) -> Branch:
    """The network of a query that is attached to a point of another network.

    `meant` are the fields by which windows without WA go; `lasting`: a restart must find it again.
    """
    try:
        if isinstance(query, str):
            query = AdHocQuery(query)
        if isinstance(query, AdHocQuery) and query.sql is not None:
            branch = _compiled(network, point, name, query, meant, resolver)
        elif isinstance(query, AdHocQuery):
            branch = _rebuilt(network, point, query)
        elif callable(query):
            branch = _built(network, point, name, query)
        else:
            problem = f"a query is SQL or a function from arc to arc, found {query!r}"
            raise UsageError("BAD_CALL", problem)
        if lasting:
            _require_lasting(branch)
        _require_final(branch, point)
        branch.network.check(resolver)
    except AuroralError as error:
        raise error.at(f"attached query {name}") from None
    return branch


def _empty(network: Network, point: PointHistory, stream: str) -> Network:
    """A network with the arc of a point as its only stream; tables and functions are the same."""
    found = copy.copy(network)
    found.streams = {stream: _stream(point)}
    found.tables, found.functions = dict(network.tables), dict(network.functions)
    found.boxes, found.queries, found.outputs = {}, {}, {}
    found.groups, found.views, found.connection_points = {}, {}, {}
    found.engine = network.engine.model_copy(update={"order": None})
    return found


def _stream(point: PointHistory) -> Stream:
    """The arc of a point as a stream, which progresses as the point has recorded."""
    progress = []
    for number, (attribute, mark) in enumerate(point.shape.items()):
        by = list(mark.by) if isinstance(mark, GroupedLowWater) else []
        how = "ordered" if number else "punctuated"
        progress.append({"on": attribute, how: True, **({"by": by} if by else {})})
    declared: dict[str, Any] = {"schema": point.schema}
    return Stream.model_validate({**declared, **({"progress": progress} if progress else {})})


def _compiled(
    network: Network,
    point: PointHistory,
    name: str,
    query: AdHocQuery,
    meant: Sequence[str],
    resolver: Resolver | None,
) -> Branch:
    own = _empty(network, point, point.arc)
    assert query.sql is not None
    stream = network.streams.get(point.arc)
    compiled = compile_query(
        str(AttachmentId(name)),
        query.sql,
        {point.name: point.schema},
        {point.name: meant},
        scope=what_boxes_see(own, resolver),
        streams=[point.name] if stream is not None and not stream.routed else [],
    )
    names = {point.name: point.arc}
    own.boxes = {box: renamed_inputs(found, names) for box, found in compiled.boxes.items()}
    return Branch(query, own, compiled.output)


def _built(network: Network, point: PointHistory, name: str, build: Build) -> Branch:
    own = _empty(network, point, point.name)
    sections = ("streams", "tables", "queries", "functions", "connection_points", "views")
    before = {section: set(getattr(own, section)) for section in (*sections, "groups", "outputs")}
    result = build(Arc(own, point.name))
    if not isinstance(result, Arc) or result.network is not own:
        problem = f"the function must return an arc that it made from its argument, not {result!r}"
        raise UsageError("BAD_CALL", problem)
    for section, names in before.items():
        if set(getattr(own, section)) != names:
            raise UsageError("BAD_CALL", f"an attached query adds boxes only, not {section}")
    arcs, order = type_arcs(own, own.boxes)
    boxes = dict(own.boxes)
    if result.name == point.name:
        boxes[""] = Map(input=point.name, keep="*", compute={})
        order = (*order, "")
    number = {box: str(AttachmentId(name).box(at + 1)) for at, box in enumerate(order)}
    renamed = {
        arc: f"{number[typed.producer]}.{typed.port}" if typed.port else number[typed.producer]
        for arc, typed in arcs.items()
        if typed.producer in number
    }
    output = number[""] if result.name == point.name else renamed[result.name]
    renamed[point.name] = point.arc
    own.streams = {point.arc: own.streams[point.name]}
    own.boxes = {number[box]: renamed_inputs(boxes[box], renamed) for box in order}
    document = {box: _document(found) for box, found in own.boxes.items()}
    return Branch(AdHocQuery(None, document, output), own, output)


def _document(box: Box) -> dict[str, Any]:
    try:
        return {"box": box.box, **box.document()}
    except Exception:
        # A function that no file can name: it is refused where the query has to last.
        return {"box": box.box}


def _rebuilt(network: Network, point: PointHistory, query: AdHocQuery) -> Branch:
    own = _empty(network, point, point.arc)
    for name, declared in query.boxes.items():
        cls = class_of(declared, declared["box"]) if declared["box"] in BOXES else None
        if cls is None:
            raise NetworkError("UNKNOWN_BOX", f"there is no box {declared['box']}")
        own.boxes[name] = cls.model_validate(declared)
    return Branch(query, own, query.output)


def _require_lasting(branch: Branch) -> None:
    """Refuse boxes that a restart could not find again."""
    for box in branch.network.boxes.values():
        problem = unimportable(box.document())
        if problem is not None:
            raise problem


def _require_final(branch: Branch, point: PointHistory) -> None:
    """Refuse boxes that would count a corrected result beside the one it corrects."""
    if point.revised_by is None:
        return
    for name, box in branch.network.boxes.items():
        if not box.passes_revisions:
            raise not_revisable(f"{box.kind} {name}", point.arc, point.revised_by)
