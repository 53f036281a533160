"""A network whose queries have become boxes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from auroral.boxes import Number
from auroral.boxes.order import Order
from auroral.continuous.compiler import Compiled, compile_query
from auroral.errors import NetworkError
from auroral.network.box import LATE_PORTS, Resolver, Scope
from auroral.network.check import TypedArc, check, type_arcs, what_boxes_see
from auroral.network.declarations import Output
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import ArcProgress


def expanded(network: Network, resolver: Resolver | None = None) -> Network:
    """An equivalent network without queries; each query is an output of its name.

    >>> net = Network("border")
    >>> _ = net.stream("reports", schema="sid int, pos int")
    >>> net.query("far", "SELECT sid FROM reports WHERE pos > 90")
    >>> plain = expanded(net)
    >>> list(plain.boxes), plain.outputs["far"].from_, plain.check().order
    (['far#1', 'far#2'], 'far#2', ('far#1', 'far#2'))
    """
    if not network.queries:
        return network
    check(network, resolver)
    arcs, order = type_arcs(network, network.boxes, resolver)
    compiled = _compiled(network, arcs, order, what_boxes_see(network, resolver))
    plain = copy.copy(network)
    plain.queries = {}
    plain.boxes = dict(network.boxes)
    plain.outputs = {}
    for query in compiled.values():
        plain.boxes |= query.boxes
    for name, output in network.outputs.items():
        read = compiled.get(output.from_)
        plain.outputs[name] = output if read is None else _reading(read.output, output)
    for name, query in compiled.items():
        plain.outputs.setdefault(name, _reading(query.output))
    return plain


def query_schemas(
    network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str], scope: Scope
) -> dict[str, Schema]:
    """The schemas of a network's queries; a mistake says which query, and where in its text."""
    return {n: c.schema for n, c in _compiled(network, arcs, order, scope).items()}


def _compiled(
    network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str], scope: Scope
) -> dict[str, Compiled]:
    schemas = {name: arc.schema for name, arc in arcs.items()}
    progress = progressing(network, arcs, order)
    found: dict[str, Compiled] = {}
    for name, sql in network.queries.items():
        try:
            found[name] = compile_query(
                name, sql, schemas, progress, scope=scope, streams=network.streams
            )
        except NetworkError as error:
            raise network.locate(error, "queries", name) from None
    return found


def endless(network: Network) -> list[str]:
    """What waits for progress that nobody declares, in words."""
    plain = expanded(network)
    arcs, order = type_arcs(plain, plain.boxes)
    found = progressing(plain, arcs, order)
    notes = []
    for name in order:
        box = plain.boxes[name]
        orders = (getattr(box, key, None) for key in ("order", "left", "right"))
        waits = [one for one in orders if isinstance(one, Order) and one.attribute is not None]
        inputs = [arc for arc in box.sources() if arc in found]
        for arc, one in zip(inputs, waits, strict=False):
            if one.on.lower() not in {field.lower() for field in found[arc]}:
                notes.append(
                    f"{name} waits for progress on {one.on}, but {arc} promises none:"
                    " what it holds comes out at the end (declare progress, or give slack)"
                )
    return notes


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


def _reading(arc: str, output: Output | None = None) -> Output:
    """An output, with the quality and the sink of another, that reads an arc."""
    if output is None:
        return Output.model_validate({"from": arc})
    return output.model_copy(update={"from_": arc})
