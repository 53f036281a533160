"""Which fields of which arcs make progress, as far as declarations tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auroral.boxes import Number
from auroral.network.box import LATE_PORTS
from auroral.network.check import TypedArc
from auroral.network.network import Network
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import ArcProgress


def progressing(
    network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The fields on which each arc makes progress."""
    found: dict[str, ArcProgress] = {}
    for name, stream in network.streams.items():
        declared = stream.progress
        found[name] = {stream.schema_.field(declared.on).name: LowWater()} if declared else {}
    tables = {name: table.schema_ for name, table in network.tables.items()}
    for name in order:
        box = network.boxes[name]
        schemas = [arcs[arc].schema if arc in arcs else tables[arc] for arc in box.sources()]
        try:
            made = box.progress([found.get(arc, {}) for arc in box.sources()], schemas)
        except NotImplementedError:
            made = {}
        if isinstance(box, Number):
            made = {**made, box.as_: LowWater()}
        for arc in arcs.values():
            if arc.producer == name:
                found[arc.name] = {} if arc.port in LATE_PORTS else made
    return {arc: tuple(marks) for arc, marks in found.items()}
