"""Which fields of which arcs make progress, and how, as far as declarations tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auroral.boxes import Map, Number
from auroral.network.box import LATE_PORTS, late_arc
from auroral.network.check import TypedArc
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.progress.lowwater import GroupedLowWater, LowWater, Mark
from auroral.progress.monotone import FieldTerm
from auroral.progress.propagation import ArcProgress


def progressing(
    network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The fields on which each arc makes progress, as queries and sorts mean it by default.

    Where a map copies a field that makes progress, what it computes from such fields is left out:
    beside `ts`, `ts div 60` makes progress too, but only `ts` is meant by a window without WA.
    """
    found: dict[str, ArcProgress] = {}
    for name, stream in network.streams.items():
        schema = stream.schema_
        found[name] = {schema.field(one.on).name: LowWater() for one in stream.progressing}
        found |= {late_arc(name): {}} if stream.routed else {}
    carried = _carried(network, arcs, order, found, computed=False)
    return {arc: tuple(marks) for arc, marks in carried.items()}


def promised(
    network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str]
) -> dict[str, ArcProgress]:
    """The marks of each arc before anything has arrived: for all, by groups, or of pairs."""
    found: dict[str, ArcProgress] = {}
    for name, stream in network.streams.items():
        schema = stream.schema_
        own: dict[str, Mark] = {}
        for declared in stream.progressing:
            by = tuple(schema.field(field).name for field in declared.by)
            own[schema.field(declared.on).name] = GroupedLowWater(by, {}) if by else LowWater()
        found[name] = own
        found |= {late_arc(name): {}} if stream.routed else {}
    return _carried(network, arcs, order, found)


def _carried(
    network: Network,
    arcs: Mapping[str, TypedArc],
    order: Sequence[str],
    found: dict[str, ArcProgress],
    computed: bool = True,
) -> dict[str, ArcProgress]:
    """The marks of streams, and what boxes make of them."""
    tables = {name: table.schema_ for name, table in network.tables.items()}
    made_by: dict[str, list[TypedArc]] = {}
    for arc in arcs.values():
        made_by.setdefault(arc.producer, []).append(arc)
    for name in order:
        box = network.boxes[name]
        schemas = [arcs[n].schema if n in arcs else tables[n] for n in box.sources()]
        try:
            made = box.progress([found.get(n, {}) for n in box.sources()], schemas)
        except NotImplementedError:
            made = {}
        if isinstance(box, Map) and not computed:
            made = _copies(box, schemas[0], made) or made
        if isinstance(box, Number):
            made = {**made, box.as_: LowWater()}
        for arc in made_by.get(name, ()):
            found[arc.name] = {} if arc.port in LATE_PORTS else made
    return found


def _copies(box: Map, schema: Schema, made: ArcProgress) -> ArcProgress:
    """The fields that a map does not compute but copies."""
    how = box.order_kept(schema)
    return {name: mark for name, mark in made.items() if isinstance(how[name], FieldTerm)}
