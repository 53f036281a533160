"""Names of connection points as arcs: whoever reads one reads the arc that the point is on."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from auroral.errors import NetworkError
from auroral.network.box import Box, rewired

if TYPE_CHECKING:
    from auroral.network.network import Network


def point_arcs(network: Network) -> dict[str, str]:
    """By connection point, the arc that it is on; points for stored data sets are left out.

    >>> from auroral.network.network import Network
    >>> net = Network("border")
    >>> reports = net.stream("reports", schema="sid int")
    >>> _ = net.connection_point("recent", reports, keep="1 h")
    >>> _ = net.connection_point("older", "recent", keep="1 day")
    >>> point_arcs(net)
    {'recent': 'reports', 'older': 'reports'}
    """
    declared = {name: p.on for name, p in network.connection_points.items() if p.on is not None}
    found: dict[str, str] = {}
    for name, on in declared.items():
        seen = [name]
        while on in declared:
            if on in seen:
                raise NetworkError(
                    "CYCLE",
                    f"connection points name each other: {' ← '.join([*seen, on])}",
                    where=network.place("connection_points", name, "on"),
                )
            seen.append(on)
            on = declared[on]
        found[name] = on
    return found


def attachable_arcs(network: Network) -> dict[str, str]:
    """By connection point and view, the arc that it is on."""
    arcs = point_arcs(network)
    return {**arcs, **{name: arcs.get(v.from_, v.from_) for name, v in network.views.items()}}


def live_arc(network: Network, arc: str) -> str:
    """The arc that a name means: that of a connection point, or the arc of that name."""
    return point_arcs(network).get(arc, arc) if arc in network.connection_points else arc


def with_points_resolved(network: Network) -> Network:
    """The same network, in which nothing reads a connection point by its name.

    >>> from auroral.network.network import Network
    >>> net = Network("border")
    >>> recent = net.connection_point("recent", net.stream("reports", "sid int"), keep="1 h")
    >>> far = recent.filter("sid > 3", name="far")
    >>> with_points_resolved(net).boxes["far"].sources()
    ('reports',)
    """
    if not network.connection_points:
        return network
    names = point_arcs(network)
    if not names or not _is_read(network, names):
        return network
    resolved = copy.copy(network)
    resolved.boxes = {name: renamed_inputs(box, names) for name, box in network.boxes.items()}
    resolved.outputs = {
        name: output.model_copy(update={"from_": names.get(output.from_, output.from_)})
        for name, output in network.outputs.items()
    }
    resolved.views = {
        name: view.model_copy(update={"from_": names.get(view.from_, view.from_)})
        for name, view in network.views.items()
    }
    resolved.connection_points = {
        name: point.model_copy(update={"on": names.get(name)})
        for name, point in network.connection_points.items()
    }
    return resolved


def _is_read(network: Network, names: dict[str, str]) -> bool:
    read = [arc for box in network.boxes.values() for arc in box.sources()]
    read += [output.from_ for output in network.outputs.values()]
    read += [view.from_ for view in network.views.values()]
    read += [point.on for point in network.connection_points.values() if point.on is not None]
    return any(arc in names for arc in read)


def renamed_inputs(box: Box, names: Mapping[str, str]) -> Box:
    """A box that reads other arcs in the place of some."""
    sources = [names.get(arc, arc) for arc in box.sources()]
    return rewired(box, sources) if sources != list(box.sources()) else box
