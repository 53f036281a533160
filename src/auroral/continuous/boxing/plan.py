"""The boxes of a query while they are put together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auroral.boxes import Filter
from auroral.boxes.predicate import predicate
from auroral.errors import NetworkError
from auroral.network.box import Box, Scope
from auroral.network.types import Schema, quoted
from auroral.sql.expressions.syntax import Call
from auroral.sql.queries.names import FromSide, Resolved, resolve
from auroral.sql.queries.text import Piece


@dataclass(frozen=True)
class Flow:
    """An arc on the way to the result, and what the query calls its fields.

    `names` maps, for each side, the fields of a stream of FROM to the arc's; `progress` are
    those of the arc's fields that make progress.
    """

    arc: str
    sides: tuple[FromSide, ...]
    names: tuple[Mapping[str, str], ...]
    progress: tuple[str, ...]

    def resolve(self, piece: Piece, extra: Mapping[str, str] | None = None) -> Resolved:
        """An expression over the fields of the streams as one over the fields of the arc."""
        return resolve(piece, self.sides, self.target, extra)

    def target(self, side: int, field: str) -> str:
        return quoted(self.names[side][field])

    def column(self, piece: Piece) -> str | None:
        """The arc's field that an expression is, if it is nothing else."""
        found = self.resolve(piece)
        if len(found.references) != 1:
            return None
        reference = found.references[0]
        name = self.names[reference.side][reference.field]
        return name if found.text == quoted(name) else None

    def attribute(self, wa: Piece) -> str:
        """The arc's field that a window lies on."""
        try:
            on = self.column(wa)
        except NetworkError as error:
            if error.hint is None or error.hint.startswith("did you mean"):
                raise
            raise NetworkError(error.code, error.message, where=error.where) from None
        if on is None:
            raise wa.error(f"expected a field after WA, found {wa.text}", code="BAD_WINDOW")
        return on

    def at(self, arc: str) -> Flow:
        """The same tuples, or some of them, on another arc."""
        return replace(self, arc=arc)


class BoxPlan:
    """Boxes named `query#1`, `query#2` …; each is checked as it is added."""

    def __init__(
        self,
        name: str,
        arcs: Mapping[str, Schema],
        progress: Mapping[str, Collection[str]],
        scope: Scope,
        streams: Collection[str],
    ):
        self.name = name
        self.schemas = {**scope.tables, **arcs}
        self.arcs = arcs
        self.progress = progress
        self.scope = scope
        self.streams = streams
        self.boxes: dict[str, Box] = {}

    def add(
        self,
        kind: type[Box],
        place: Piece,
        places: Mapping[str, Piece] | None = None,
        **parameters: Any,
    ) -> str:
        """Add a box and return its arc; a mistake stands at `place`, or at that of its key."""
        name = f"{self.name}#{len(self.boxes) + 1}"
        with place.located(places):
            box = kind(**parameters)
            ports = box.ports([self.schemas[arc] for arc in box.sources()], self.scope)
        self.boxes[name] = box
        for port, schema in ports.items():
            self.schemas[f"{name}.{port}" if port else name] = schema
        return name

    def filter(self, flow: Flow, conditions: Sequence[Resolved]) -> Flow:
        """Keep the tuples that satisfy all conditions."""
        if not conditions:
            return flow
        self.require(conditions, self.schemas[flow.arc])
        where = conjunction(condition for condition in conditions)
        return flow.at(self.add(Filter, conditions[0].piece, input=flow.arc, where=where))

    def require(self, conditions: Iterable[Resolved], schema: Schema) -> None:
        """Refuse a condition that is not boolean, at its place."""
        for condition in conditions:
            with condition.piece.located():
                predicate(condition.text, schema, self.scope, "where")


def conjunction(conditions: Iterable[Resolved]) -> str:
    """The conditions joined by AND."""
    listed = list(conditions)
    if len(listed) == 1:
        return listed[0].text
    return " AND ".join(
        f"({c.text})" if isinstance(c.tree, Call) and c.tree.name == "or" else c.text
        for c in listed
    )


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name like `wanted` that no field has."""
    lower = {name.lower() for name in taken}
    while wanted.lower() in lower:
        wanted += "_"
    return wanted
