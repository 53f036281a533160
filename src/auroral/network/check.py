"""Type checking: every arc gets a schema, every mistake a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auroral.errors import NetworkError, closest, known
from auroral.network.box import Box, Resolver, Scope
from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network


fallback_resolver: Resolver | None = None
"""Asked about functions outside the catalogue when a check is given no resolver."""


query_checker: Callable[[str, Mapping[str, Schema]], Schema] | None = None
"""Types continuous queries; set where SQL is known."""


@dataclass(frozen=True)
class TypedArc:
    """An arc with its schema; `producer` is a stream or a box, `port` is empty for the main arc."""

    name: str
    schema: Schema
    producer: str
    port: str = ""


@dataclass(frozen=True)
class CheckedNetwork:
    """A network whose every arc has a schema; boxes in an order in which data can flow."""

    network: Network
    arcs: Mapping[str, TypedArc]
    order: tuple[str, ...]
    queries: Mapping[str, Schema] = field(default_factory=dict)

    def schema_of(self, arc: str) -> Schema:
        if arc not in self.arcs:
            raise unknown_arc(arc, self.arcs, self.network)
        return self.arcs[arc].schema

    def inputs_of(self, box: str) -> tuple[TypedArc, ...]:
        """The arcs a box reads; tables are left out."""
        sources = self.network.boxes[box].sources()
        return tuple(self.arcs[name] for name in sources if name in self.arcs)

    def outputs_of(self, producer: str) -> tuple[TypedArc, ...]:
        return tuple(arc for arc in self.arcs.values() if arc.producer == producer)

    def not_executable(self) -> dict[str, Box]:
        """The boxes that can be declared but not run yet."""
        return {n: box for n, box in self.network.boxes.items() if not box.executable}


def check(network: Network, resolver: Resolver | None = None) -> CheckedNetwork:
    """Type every arc of a network; raises NetworkError at the first mistake."""
    resolver = resolver or fallback_resolver
    tables = {name: table.schema_ for name, table in network.tables.items()}
    scope = Scope(resolver, tables, network.directory)
    arcs = {name: TypedArc(name, s.schema_, name) for name, s in network.streams.items()}
    order = _flow_order(network)
    for name in order:
        box = network.boxes[name]
        inputs = [_input_schema(network, name, arc, arcs) for arc in box.sources()]
        try:
            ports = box.ports(inputs, scope)
        except NetworkError as error:
            raise error.at(network.place("boxes", name)) from None
        for port, schema in ports.items():
            arc = f"{name}.{port}" if port else name
            arcs[arc] = TypedArc(arc, schema, name, port)
    _check_endpoints(network, arcs)
    return CheckedNetwork(network, arcs, order, _check_queries(network, arcs))


def unknown_arc(arc: str, arcs: Iterable[str], network: Network) -> NetworkError:
    names = list(arcs)
    return NetworkError(
        "UNKNOWN_ARC", f"there is no arc {arc}; {known(names)}", hint=closest(arc, names)
    )


def _input_schema(network: Network, box: str, arc: str, arcs: Mapping[str, TypedArc]) -> Schema:
    if arc in arcs:
        return arcs[arc].schema
    if arc in network.tables:
        return network.tables[arc].schema_
    # A box's arcs are typed before its readers, so only now do all of its ports exist.
    key = "input" if hasattr(network.boxes[box], "input") else "inputs"
    names = [*arcs, *network.tables]
    raise unknown_arc(arc, names, network).at(network.place("boxes", box, key))


def _producer(network: Network, arc: str) -> str:
    return arc.partition(".")[0]


def _flow_order(network: Network) -> tuple[str, ...]:
    """Boxes after what they read; a cycle is an error that names it."""
    done: list[str] = []
    state: dict[str, int] = {}
    for root in network.boxes:
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            name, at = stack.pop()
            if state.get(name) == 2:
                continue
            sources = [_producer(network, arc) for arc in network.boxes[name].sources()]
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


def _check_queries(network: Network, arcs: Mapping[str, TypedArc]) -> dict[str, Schema]:
    if query_checker is None:
        return {}
    schemas = {name: arc.schema for name, arc in arcs.items()}
    found: dict[str, Schema] = {}
    for name, sql in network.queries.items():
        try:
            found[name] = query_checker(sql, schemas)
        except NetworkError as error:
            raise error.at(network.place("queries", name)) from None
    return found


def _check_endpoints(network: Network, arcs: Mapping[str, TypedArc]) -> None:
    for name, output in network.outputs.items():
        place = network.place("outputs", name, "from")
        if output.from_ in network.queries:
            continue
        if output.from_ not in arcs:
            raise unknown_arc(output.from_, arcs, network).at(place)
        if output.qos and output.qos.value:
            try:
                found = arcs[output.from_].schema.field(output.qos.value.on)
            except NetworkError as error:
                raise error.at(network.place("outputs", name, "qos", "value")) from None
            if not found.type.is_orderable:
                raise NetworkError(
                    "BAD_QOS",
                    f"a value graph needs a number, but {found.name} is {found.type}",
                    where=network.place("outputs", name, "qos", "value"),
                )
    for name, point in network.connection_points.items():
        place = network.place("connection_points", name)
        if point.on not in arcs:
            raise unknown_arc(point.on, arcs, network).at(place)
        if point.key:
            try:
                arcs[point.on].schema.field(point.key)
            except NetworkError as error:
                raise error.at(place) from None
    for name, members in network.groups.items():
        for member in members:
            if member not in network.boxes:
                raise NetworkError(
                    "UNKNOWN_BOX",
                    f"there is no box {member}; {known(network.boxes)}",
                    where=network.place("groups", name),
                    hint=closest(member, network.boxes),
                )
