"""What a network's wiring says of its arcs: their names, and how long outputs behind them wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from auroral.errors import NetworkError
from auroral.ids import ArcId
from auroral.network.network import Network
from auroral.network.point_names import attachable_arcs
from auroral.qos.graphs import QoS, latency_curve


@dataclass(frozen=True)
class Wiring:
    """What a picture needs to know of the arcs of a network."""

    aliases: Mapping[str, str]
    """Names that stand for arcs: outputs of superboxes, connection points, views."""
    patience_s: Mapping[str, float]
    """The shortest delay that an output behind an arc can bear."""
    readers: Mapping[str, Mapping[str, float]]
    """By arc its readers, each with the shortest delay that an output behind it can bear."""


def wiring_of(network: Network, set_qos: Mapping[str, QoS | None]) -> Wiring:
    """The wiring of a declared network; `set_qos` are graphs that hold instead of declared ones."""
    plain = network.flattened()
    points = _points(plain)
    aliases = {**plain.aliases, **points}

    def arc(name: str) -> str:
        return points.get(name, name)

    sources = {name: tuple(map(arc, box.sources())) for name, box in plain.boxes.items()}
    patience: dict[str, float] = {}
    todo: list[tuple[str, float]] = []
    for name, output in plain.outputs.items():
        curve = latency_curve(set_qos.get(name, output.qos))
        todo.append((arc(output.from_), curve.good_until))
    for name, view in plain.views.items():
        if view.qos is not None:
            curve = latency_curve(set_qos.get(name, view.qos))
            todo.append((arc(view.from_), curve.good_until))
    while todo:
        name, seconds = todo.pop()
        if patience.get(name, float("inf")) <= seconds:
            continue
        patience[name] = seconds
        todo += [(one, seconds) for one in sources.get(ArcId.parse(name).producer, ())]
    return Wiring(aliases, patience, _readers(sources, patience))


def _readers(
    sources: Mapping[str, tuple[str, ...]], patience: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    behind: dict[str, float] = {}
    for name, seconds in patience.items():
        box = ArcId.parse(name).producer
        behind[box] = min(seconds, behind.get(box, float("inf")))
    found: dict[str, dict[str, float]] = {}
    for box, read in sources.items():
        for name in read if box in behind else ():
            found.setdefault(name, {})[box] = behind[box]
    return found


def _points(network: Network) -> dict[str, str]:
    try:
        return attachable_arcs(network)
    except NetworkError:
        return {}
