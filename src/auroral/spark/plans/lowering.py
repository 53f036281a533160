"""From boxes to lanes: each box's physical form, chosen by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from auroral.boxes import Filter, Map, Union
from auroral.ids import CLOCK_LOG
from auroral.network.box import Box
from auroral.network.box import not_executable as not_executable  # re-exported
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.boxes import filter as filter_box
from auroral.spark.boxes import map as map_box
from auroral.spark.boxes import union as union_box
from auroral.spark.plans.frame import Frame, Lane
from auroral.spark.plans.functions import FunctionFailures


@dataclass
class Lanes:
    """The lanes of every arc of a superbox, and the failures of its Python functions by box."""

    arcs: dict[str, list[Lane]] = field(default_factory=dict)
    failures: list[tuple[str, FunctionFailures]] = field(default_factory=list)


def lower(checked: CheckedNetwork, superbox: Superbox, frames: Mapping[str, Frame]) -> Lanes:
    """Lower the boxes of a superbox onto the frames of its sources.

    A source without tuples in this train has no frame and so no lanes: it costs nothing.
    """
    lanes = Lanes({source: [frame.lane] for source, frame in frames.items()})
    for name in superbox.boxes:
        if name == superbox.stateful:
            continue  # a kernel of its own, after them
        _lower_box(checked, name, checked.network.boxes[name], frames, lanes)
    return lanes


def roots(checked: CheckedNetwork, source: str) -> frozenset[str]:
    """Whose moments the tuples of a log can have: of which streams, or of clock and end."""
    if source in checked.network.streams:
        return frozenset((source,))
    found = {CLOCK_LOG}
    stack = [checked.arcs[source].producer]
    while stack:
        for arc in checked.inputs_of(stack.pop()):
            if arc.producer in checked.network.streams:
                found.add(arc.producer)
            else:
                stack.append(arc.producer)
    return frozenset(found)


def _lower_box(
    checked: CheckedNetwork, name: str, box: Box, frames: Mapping[str, Frame], lanes: Lanes
) -> None:
    network = checked.network
    inputs = [lanes.arcs.get(arc.name, []) for arc in checked.inputs_of(name)]
    if isinstance(box, Filter):
        for lane in inputs[0]:
            ports, failed = filter_box.lower(box, lane, frames[lane.source], network)
            lanes.failures += [(name, failure) for failure in failed]
            for port, routed in ports.items():
                lanes.arcs.setdefault(f"{name}.{port}" if port else name, []).append(routed)
    elif isinstance(box, Map):
        output = checked.arcs[name].schema
        for lane in inputs[0]:
            frame = frames[lane.source]
            mapped, failed = map_box.lower(box, lane, frame, output, network)
            lanes.arcs.setdefault(name, []).append(mapped)
            lanes.failures += [(name, failure) for failure in failed]
    elif isinstance(box, Union):
        lanes.arcs[name] = union_box.lower(
            inputs, checked.arcs[name].schema, lambda source: roots(checked, source)
        )
    else:
        raise not_executable(f"box {name}", box)
