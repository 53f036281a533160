"""What hangs on arcs without making new ones: outputs, connection points, groups."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from auroral.errors import AuroralError, NetworkError, closest, list_existing
from auroral.ids import ArcId
from auroral.network.declarations import Output
from auroral.network.environment import sink_of, sources_of
from auroral.network.superboxes import find_cycle
from auroral.network.train_room import require_room
from auroral.network.types import Schema
from auroral.qos.graphs import QoS

if TYPE_CHECKING:
    from auroral.network.network import Network


source_checker: Callable[[Sequence[Mapping[str, Any]], Schema], None] | None = None
"""Refuses the sources of a stream if one cannot be; set where formats are known."""
sink_checker: Callable[[Mapping[str, Any]], None] | None = None
"""Refuses the sink of an output if it cannot be; set where formats are known."""


def unknown_arc(arc: str, arcs: Iterable[str]) -> NetworkError:
    """The error for an arc that does not exist; lists those that do."""
    names = list(arcs)
    found = f"there is no arc {arc}" if arc else "an input is not connected"
    return NetworkError("UNKNOWN_ARC", f"{found}; {list_existing(names)}", hint=closest(arc, names))


def require_reachable(network: Network, query: str, place: str | None = None) -> None:
    """Refuse a query whose name is that of an output which reads something else."""
    output = network.outputs.get(query)
    if output is not None and output.from_ != query:
        raise NetworkError(
            "DUPLICATE_NAME",
            f"there is an output {query}, which reads {output.from_} and not the query {query}",
            where=place,
            hint="name one of them otherwise: under this name the query's results are out of reach",
        )


def late_readers(network: Network, query: str) -> list[str]:
    """The outputs that read tuples which come too late for a query: `q.late` and the like."""
    return [
        name
        for name, output in network.outputs.items()
        if (arc := ArcId.parse(output.from_)).producer == query and arc.port
    ]


def with_late_outputs(network: Network, names: Iterable[str]) -> Network:
    """The network with outputs for those names that are late arcs of its queries.

    Also for those that are outputs of its superboxes.
    """
    aliases = network.flattened().aliases
    wanted = [
        name
        for name in names
        if name not in network.outputs
        and (
            name in aliases or ((arc := ArcId.parse(name)).port and arc.producer in network.queries)
        )
    ]
    if not wanted:
        return network
    found = copy.copy(network)
    more = {name: Output.model_validate({"from": aliases.get(name, name)}) for name in wanted}
    found.outputs = {**network.outputs, **more}
    return found


def check_endpoints(
    network: Network, arcs: Mapping[str, Schema], queries: Mapping[str, Schema]
) -> None:
    """Refuse endpoints of what does not exist; `queries` has late arcs that are read, too."""
    for mistake in endpoint_mistakes(network, arcs, queries):
        raise mistake


def endpoint_mistakes(
    network: Network, arcs: Mapping[str, Schema], queries: Mapping[str, Schema]
) -> Iterator[NetworkError]:
    """The mistakes of sources, outputs, connection points, views and groups, one for each."""
    checks: list[Callable[[], None]] = [
        *(partial(_check_source, network, name) for name in network.streams),
        *(
            partial(require_reachable, network, name, network.place("queries", name))
            for name in network.queries
        ),
        *(partial(_check_output, network, name, arcs, queries) for name in network.outputs),
        *(partial(_check_point, network, name, arcs) for name in network.connection_points),
        *(partial(_check_view, network, name, arcs) for name in network.views),
        partial(_check_groups, network),
        partial(require_room, network, arcs),
    ]
    for one in checks:
        try:
            one()
        except NetworkError as mistake:
            yield mistake


def _check_source(network: Network, name: str) -> None:
    with _at(network, "streams", name, "source"):
        specs = sources_of(network, name)
        if specs and source_checker is not None:
            source_checker(specs, network.streams[name].schema_)


def _check_output(
    network: Network, name: str, arcs: Mapping[str, Schema], queries: Mapping[str, Schema]
) -> None:
    output = network.outputs[name]
    if output.from_ in network.queries or output.from_ in queries:
        schema = queries.get(output.from_)
    elif output.from_ in arcs:
        schema = arcs[output.from_]
    else:
        names = [*arcs, *network.aliases, *network.queries, *queries]
        error = unknown_arc(output.from_, dict.fromkeys(names))
        raise network.locate(error, "outputs", name, "from")
    if schema is not None:
        _check_value_graph(network, "outputs", name, output.qos, schema)
    _check_sink(network, name)


def _check_point(network: Network, name: str, arcs: Mapping[str, Schema]) -> None:
    point = network.connection_points[name]
    if point.on is None:
        if point.schema_ is not None and point.key is not None:
            _check_key(network, name, point.schema_, point.key)
        return
    if point.on not in arcs:
        raise network.locate(unknown_arc(point.on, arcs), "connection_points", name, "on")
    if point.key is not None:
        _check_key(network, name, arcs[point.on], point.key)


def _check_view(network: Network, name: str, arcs: Mapping[str, Schema]) -> None:
    view = network.views[name]
    if view.from_ not in arcs:
        raise network.locate(unknown_arc(view.from_, arcs), "views", name, "from")
    _check_value_graph(network, "views", name, view.qos, arcs[view.from_])


def _check_groups(network: Network) -> None:
    """Refuse members that do not exist, and groups that contain themselves."""
    boxes = {**network.boxes, **(network.compact or network).instances}
    for name, group in network.groups.items():
        for member in group.members:
            if member not in boxes and member not in network.groups:
                names = [*boxes, *(other for other in network.groups if other != name)]
                raise NetworkError(
                    "UNKNOWN_BOX",
                    f"there is no box or group {member}; {list_existing(names)}",
                    where=network.place("groups", name),
                    hint=closest(member, names),
                )
    members = {
        name: [member for member in group.members if member not in boxes]
        for name, group in network.groups.items()
    }
    loop = find_cycle(members)
    if loop is not None:
        raise NetworkError(
            "CYCLE",
            f"a group cannot contain itself: {' → '.join(loop)}",
            where=network.place("groups", loop[0]),
        )


def _check_key(network: Network, point: str, schema: Schema, key: str) -> None:
    """Refuse a key that is no field, or whose values have no order."""
    path = ("connection_points", point, "key")
    try:
        field = schema.field(key)
    except NetworkError as error:
        raise network.locate(error, *path) from None
    if field.type.name in ("array", "map", "struct", "binary"):
        raise NetworkError(
            "BAD_PARAMETER",
            f"a key is a number, text, a boolean, a date or a timestamp, but {field.name} is"
            f" {field.type}",
            where=network.place(*path),
        )


def _check_sink(network: Network, name: str) -> None:
    spec = sink_of(network, name)
    if spec and sink_checker is not None:
        with _at(network, "outputs", name, "sink"):
            sink_checker(spec)


@contextmanager
def _at(network: Network, *path: str) -> Iterator[None]:
    """Say where in the network file a source or a sink stands that is refused."""
    try:
        yield
    except NetworkError as error:
        if error.path:  # it says where
            raise
        place = network.place(*path)
        raise NetworkError(error.code, error.message, where=place, hint=error.hint) from None
    except AuroralError as error:
        place = network.place(*path)
        raise NetworkError(error.code, error.message, where=place, hint=error.hint) from None


def require_value_field(qos: QoS, schema: Schema) -> None:
    """Refuse a value graph on a field that is not there, or is no number."""
    if qos.value is None:
        return
    found = schema.field(qos.value.on)
    if not found.type.is_numeric:
        problem = f"a value graph needs a number, but {found.name} is {found.type}"
        raise NetworkError("BAD_QOS", problem)


def _check_value_graph(
    network: Network, section: str, name: str, qos: QoS | None, schema: Schema
) -> None:
    if qos is not None:
        try:
            require_value_field(qos, schema)
        except NetworkError as error:
            raise network.locate(error, section, name, "qos", "value", "on") from None
