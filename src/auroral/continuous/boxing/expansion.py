"""A network whose queries have become boxes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from auroral.boxes import Aggregate, BSort, Resample
from auroral.continuous.boxing.compiler import CompiledQuery
from auroral.continuous.boxing.progress import promised
from auroral.continuous.sharing.members import members
from auroral.continuous.sharing.sharing import QueryReader
from auroral.errors import Caution, NetworkError
from auroral.ids import QueryBoxId
from auroral.network.box import Resolver, Scope
from auroral.network.check import TypedArc, check, type_arcs, what_boxes_see
from auroral.network.declarations import Output
from auroral.network.network import Network
from auroral.network.point_names import with_points_resolved
from auroral.network.queries import Family, Query
from auroral.network.types import Schema

Other = Callable[[str, Query, QueryReader], CompiledQuery | None]
"""Answers queries in another way than by boxes; None for those that boxes can answer."""


def expanded(
    network: Network, resolver: Resolver | None = None, other: Other | None = None
) -> Network:
    """An equivalent network without queries; each query is an output of its name.

    Queries that `other` answers become what it gives instead of boxes.

    >>> net = Network("border")
    >>> _ = net.stream("reports", schema="sid int, pos int")
    >>> net.query("far", "SELECT sid FROM reports WHERE pos > 90")
    >>> plain = expanded(net)
    >>> list(plain.boxes), plain.outputs["far"].from_, plain.check().order
    (['far#1', 'far#2'], 'far#2', ('far#1', 'far#2'))
    """
    network = with_points_resolved(network.flattened())
    if not network.queries:
        return network
    check(network, resolver)
    arcs, order = type_arcs(network, network.boxes, resolver)
    compiled = _compiled(network, arcs, order, what_boxes_see(network, resolver), other)
    plain = copy.copy(network)
    plain.queries = {}
    plain.boxes = dict(network.boxes)
    plain.outputs = {}
    for query in compiled.values():
        plain.boxes |= query.boxes
    read = {name: query.output for name, query in compiled.items()}
    for name, query in compiled.items():
        read |= {f"{name}.{port}": arc for port, (arc, _) in query.late.items()}
    families = {name for name, query in network.queries.items() if isinstance(query, Family)}
    for name, output in network.outputs.items():
        if output.from_ in families:
            continue  # its members are outputs, one by one
        plain.outputs[name] = (
            _reading(read[output.from_], output) if output.from_ in read else output
        )
    for name, query in compiled.items():
        plain.outputs.setdefault(name, _reading(query.output))
    return plain


def query_schemas(
    network: Network, arcs: Mapping[str, TypedArc], order: Sequence[str], scope: Scope
) -> dict[str, Schema]:
    """The schemas of a network's queries; a mistake says which query, and where in its text.

    With them, those of late arcs of queries that outputs read.
    """
    reader = QueryReader(network, arcs, order, scope)
    found = {name: reader.schema(name, query) for name, query in network.queries.items()}
    for name, query in network.queries.items():
        found |= reader.late_schemas(name, query)
    return found


def _compiled(
    network: Network,
    arcs: Mapping[str, TypedArc],
    order: Sequence[str],
    scope: Scope,
    other: Other | None,
) -> dict[str, CompiledQuery]:
    reader = QueryReader(network, arcs, order, scope)
    queries: dict[str, Query] = {}
    for name, query in network.queries.items():
        if isinstance(query, Family):
            own = members(name, query, network.directory)
            queries |= {member: Query(sql) for member, sql in own}
        else:
            queries[name] = query
    return {
        name: (other(name, query, reader) if other else None) or reader.compiled(name, query)
        for name, query in queries.items()
    }


def _with_boxes(network: Network) -> Network:
    """A network with the boxes of those of its queries that boxes can answer and that may wait."""
    network = with_points_resolved(network.flattened())
    if not network.queries:
        return network
    arcs, order = type_arcs(network, network.boxes)
    # Without Spark to ask: a function that only a network declares is none of its own.
    scope = replace(what_boxes_see(network, None), resolver=None)
    reader = QueryReader(network, arcs, order, scope)
    plain = copy.copy(network)
    plain.queries = {}
    plain.boxes = dict(network.boxes)
    for name, query in network.queries.items():
        if not isinstance(query, Family) and not reader.only_selects(query):
            with suppress(NetworkError):
                plain.boxes |= reader.compiled(name, query).boxes
    return plain


def never_closing(network: Network) -> list[Caution]:
    """Boxes that emit by progress which their inputs never make.

    Joins and dedup are left out: they emit all the same, and only keep what they hold.
    """
    plain = _with_boxes(network)
    arcs, order = type_arcs(plain, plain.boxes)
    found = promised(plain, arcs, order)
    cautions = []
    for name in order:
        box = plain.boxes[name]
        if not isinstance(box, Aggregate | BSort | Resample) or box.times_out:
            continue
        # A resample waits for its right side only; the left side decides what it may forget.
        one, arc = (box.right if isinstance(box, Resample) else box.order), box.sources()[-1]
        fields = {field.lower() for field in found[arc]}
        if one.attribute is not None and one.attribute.lower() not in fields:
            message = (
                f"waits for progress on {one.on}, but {arc} promises none: what it holds"
                " comes out at the end of the input only (declare progress, or give slack)"
            )
            query = QueryBoxId.query_of(name)
            where = f"box {name}" if query is None else f"query {query}"
            cautions.append(Caution("NEVER_CLOSES", message, where))
    return cautions


def _reading(arc: str, output: Output | None = None) -> Output:
    """An output, with the quality and the sink of another, that reads an arc."""
    if output is None:
        return Output.model_validate({"from": arc})
    return output.model_copy(update={"from_": arc})
