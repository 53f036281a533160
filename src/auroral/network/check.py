"""Type checking: every arc gets a schema, every mistake a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from auroral.errors import Caution, NetworkError, list_existing
from auroral.ids import ArcId
from auroral.network.box import LATE, Box, Resolver, Scope, late_arc
from auroral.network.data_sets import with_data_sets
from auroral.network.endpoints import check_endpoints, unknown_arc
from auroral.network.point_names import with_points_resolved
from auroral.network.superboxes import boxes_of, check_templates, require_fields, upstream_of
from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network


fallback_resolver: Resolver | None = None
"""Asked about functions outside the catalogue when a check is given no resolver."""


QueryChecker = Callable[
    ["Network", Mapping[str, "TypedArc"], tuple[str, ...], Scope], dict[str, Schema]
]
query_checker: QueryChecker | None = None
"""Types a network's continuous queries; set where SQL is known."""


caution_finder: Callable[[Network], list[Caution]] | None = None
"""Finds what is allowed in a network but hardly meant; set where queries are known."""


@dataclass(frozen=True)
class TypedArc:
    """An arc with its schema; `producer` is a stream or a box, `port` is empty for the main arc."""

    name: str
    schema: Schema
    producer: str
    port: str = ""
    revised_by: str | None = None
    """The box whose corrections of earlier results the arc carries, if it carries any."""


@dataclass(frozen=True)
class CheckedNetwork:
    """A network whose every arc has a schema; boxes in an order in which data can flow."""

    network: Network
    arcs: Mapping[str, TypedArc]
    order: tuple[str, ...]
    queries: Mapping[str, Schema] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    """The declared box whose work a box does, where the optimiser has moved boxes."""
    displaced: frozenset[str] = frozenset()
    """Arcs that carry other tuples than the declared arcs of their names, after such moves."""
    unread: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By arc, the fields that nobody reads: they may be NULL in its log."""

    def origin(self, box: str) -> str:
        """The declared box that a box of the running network is."""
        return self.origins.get(box, box)

    @cached_property
    def warnings(self) -> tuple[Caution, ...]:
        """What is allowed but hardly meant, such as windows that close only at the end."""
        return tuple(caution_finder(self.network)) if caution_finder is not None else ()

    def schema_of(self, arc: str) -> Schema:
        if arc not in self.arcs:
            raise unknown_arc(arc, self.arcs)
        return self.arcs[arc].schema

    def inputs_of(self, box: str) -> tuple[TypedArc, ...]:
        """The arcs a box reads; tables are left out."""
        sources = self.network.boxes[box].sources()
        return tuple(self.arcs[name] for name in sources if name in self.arcs)

    def schemas_of(self, box: str) -> tuple[Schema, ...]:
        """The schemas of all a box reads, tables too."""
        tables = self.network.tables
        return tuple(
            self.arcs[name].schema if name in self.arcs else tables[name].schema_
            for name in self.network.boxes[box].sources()
        )

    def outputs_of(self, producer: str) -> tuple[TypedArc, ...]:
        return tuple(arc for arc in self.arcs.values() if arc.producer == producer)

    def not_executable(self) -> dict[str, Box]:
        """The boxes that can be declared but not run yet."""
        return {n: box for n, box in self.network.boxes.items() if not box.executable}


def check(
    network: Network, resolver: Resolver | None = None, checker: QueryChecker | None = None
) -> CheckedNetwork:
    """Type every arc of a network; raises NetworkError at the first mistake.

    Queries are typed by `checker`, if it is given.
    """
    check_templates(network)
    network = with_data_sets(with_points_resolved(network.flattened()))
    arcs, order = type_arcs(network, network.boxes, resolver)
    queries: dict[str, Schema] = {}
    checker = checker or query_checker
    if network.queries and checker is not None:
        queries = checker(network, arcs, order, what_boxes_see(network, resolver))
    check_endpoints(network, {name: arc.schema for name, arc in arcs.items()}, queries)
    return CheckedNetwork(network, arcs, order, queries)


def type_arcs(
    network: Network, boxes: Iterable[str], resolver: Resolver | None = None
) -> tuple[dict[str, TypedArc], tuple[str, ...]]:
    """Type the arcs of some boxes and of all they rest on; also the order data flows in.

    Boxes inside of superboxes are among them under their full names.
    """
    plain = network.flattened()
    if plain is not network:
        network, boxes = plain, boxes_of(plain, list(boxes))
    network = with_data_sets(with_points_resolved(network))
    scope = what_boxes_see(network, resolver)
    arcs = arcs_of_streams(network)
    order = flow_order(network, boxes)
    for name in order:
        arcs |= arcs_of_box(network, name, arcs, scope)
    return arcs, order


def arcs_of_streams(network: Network) -> dict[str, TypedArc]:
    """The arcs that no box makes."""
    arcs = {name: TypedArc(name, s.schema_, name) for name, s in network.streams.items()}
    for name, point in network.connection_points.items():
        if point.schema_ is not None:
            arcs[name] = TypedArc(name, point.schema_, name)
    for name, stream in network.streams.items():
        if stream.routed:
            late = late_arc(name)
            arcs[late] = TypedArc(late, stream.schema_, name, LATE)
    return arcs


def type_box(network: Network, name: str) -> None:
    """Check the wiring of one box; what it does not rest on is not looked at if all is well."""
    try:
        type_arcs(upstream_of(network, name), [name])
    except NetworkError:
        type_arcs(network, [name])  # which says what else there is
        raise


def what_boxes_see(network: Network, resolver: Resolver | None) -> Scope:
    """What the boxes of a network may look up."""
    tables = {name: table.schema_ for name, table in network.tables.items()}
    functions = {name.lower(): declared for name, declared in network.functions.items()}
    resolver = resolver or fallback_resolver
    keys = {name: table.key for name, table in network.tables.items()}
    aliases = network.aliases
    return Scope(resolver, tables, network.directory, network.imports, functions, keys, aliases)


def arcs_of_box(
    network: Network, name: str, arcs: Mapping[str, TypedArc], scope: Scope
) -> dict[str, TypedArc]:
    """The arcs that one box makes of those that it reads."""
    box = network.boxes[name]
    require_fields(network, name, lambda arc: arcs[arc].schema if arc in arcs else None)
    inputs = [_input_schema(network, name, at, arcs, scope) for at in range(len(box.sources()))]
    try:
        if box.counts_arrivals:
            _require_all_enter(network, box)
        ports = box.ports(inputs, scope)
    except NetworkError as error:
        raise network.locate(error, "boxes", name) from None
    revised_by = _revised_by(network, name, arcs)
    named = {port: f"{name}.{port}" if port else name for port in ports}
    return {
        arc: TypedArc(
            arc, ports[port], name, port, name if box.revises and not port else revised_by
        )
        for port, arc in named.items()
    }


def _require_all_enter(network: Network, box: Box) -> None:
    """Refuse streams of which late tuples leave before they would be counted."""
    for arc in box.sources():
        if arc in network.streams and network.streams[arc].routed:
            raise NetworkError(
                "BAD_PARAMETER",
                f"{box.kind} counts the tuples of {arc} as they arrive, but with below: route late"
                " ones leave it before",
                where="key input",
                hint=f"drop below: route from {arc}",
            )


def _revised_by(network: Network, name: str, arcs: Mapping[str, TypedArc]) -> str | None:
    """The box whose corrections a box gets and passes on; an error if it would count them twice."""
    box = network.boxes[name]
    for arc in box.sources():
        revised_by = arcs[arc].revised_by if arc in arcs else None
        if revised_by is not None:
            # Beside a table a join remembers nothing.
            if not box.passes_revisions and not any(s in network.tables for s in box.sources()):
                raise not_revisable(f"{box.kind} {name}", arc, revised_by).at(
                    network.place("boxes", name)
                )
            return revised_by
    return None


def not_revisable(reader: str, arc: str, revised_by: str) -> NetworkError:
    """What is said of a reader that would count a corrected result beside the one it corrects."""
    return NetworkError(
        "REVISIONS_NOT_SUPPORTED",
        f"{reader} reads {arc}, which carries corrections that {revised_by} makes (late: revise);"
        " it would count a corrected window beside the one it replaces",
        hint=f"read {arc} by outputs, filters, maps, unions or sorts, or drop late: revise"
        f" from {revised_by}",
    )


def _input_schema(
    network: Network, name: str, at: int, arcs: Mapping[str, TypedArc], scope: Scope
) -> Schema:
    box = network.boxes[name]
    arc = box.sources()[at]
    if arc in arcs:
        return arcs[arc].schema
    if arc in network.tables and box.takes_tables:
        return network.tables[arc].schema_
    existing = _existing(network, name, arcs, scope)
    error = unknown_arc(arc, [*existing, *(network.tables if box.takes_tables else ())])
    if arc in network.tables:
        error = NetworkError(
            "TABLE_AS_ARC",
            f"{arc} is a table, but {box.kind} reads an arc; {list_existing(existing)}",
        )
    query = ArcId.parse(arc).producer
    if query in network.queries:
        problem = (
            f"{arc} is of the query {query}, but {box.kind} reads an arc; {list_existing(existing)}"
        )
        hint = f"results and late tuples of queries go to outputs: {{from: {arc}}}"
        error = NetworkError("UNKNOWN_ARC", problem, hint=hint)
    keys = ("input",) if hasattr(box, "input") else ("inputs", at)
    raise network.locate(error, "boxes", name, *keys)


def _existing(network: Network, but: str, arcs: Mapping[str, TypedArc], scope: Scope) -> list[str]:
    """The arcs there are, as far as they can be typed while one box cannot."""
    found = dict(arcs)
    done = {arc.producer for arc in arcs.values()} | {but}
    with suppress(NetworkError):
        for name in flow_order(network, network.boxes):
            box = network.boxes[name]
            there = {*found, *(network.tables if box.takes_tables else ())}
            if name not in done and there.issuperset(box.sources()):
                with suppress(NetworkError):
                    found |= arcs_of_box(network, name, found, scope)
    return [*found, *network.aliases]


def flow_order(network: Network, boxes: Iterable[str]) -> tuple[str, ...]:
    """Boxes after what they read; a cycle is an error that names it."""
    done: list[str] = []
    state: dict[str, int] = {}
    for root in boxes:
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            name, at = stack.pop()
            if state.get(name) == 2:
                continue
            sources = [ArcId.parse(arc).producer for arc in network.boxes[name].sources()]
            upstream = [source for source in sources if source in network.boxes]
            state[name] = 1
            if at < len(upstream):
                stack.append((name, at + 1))
                if state.get(upstream[at]) == 1:
                    raise _cycle(network, [n for n, _ in stack], upstream[at])
                stack.append((upstream[at], 0))
            else:
                state[name] = 2
                done.append(name)
    return tuple(done)


def _cycle(network: Network, path: list[str], back_to: str) -> NetworkError:
    loop = [*path[path.index(back_to) :], back_to]
    return NetworkError(
        "CYCLE",
        f"boxes feed each other in a circle: {' ← '.join(loop)}",
        where=network.place("boxes", back_to),
    )
