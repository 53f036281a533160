"""Stored data sets (dangling connection points) as streams and as the table sides of joins."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from auroral.ids import StoredTableId
from auroral.network.declarations import ConnectionPoint, Stream, Table
from auroral.network.point_names import renamed_inputs

if TYPE_CHECKING:
    from auroral.network.box import Box
    from auroral.network.network import Network


def data_sets(network: Network) -> dict[str, ConnectionPoint]:
    """The connection points that stand for stored data sets."""
    return {name: point for name, point in network.connection_points.items() if point.dangling}


def with_data_sets(network: Network) -> Network:
    """The same network, in which stored data sets are streams, or tables where a join wants one.

    A join without a window takes a data set as a table, the right one of two. Whoever else reads a
    data set reads a stream in order of the key, which makes progress if its type can.

    >>> from auroral.network.network import Network
    >>> net = Network("shop")
    >>> ticks = net.stream("ticks", "sym string")
    >>> prices = net.connection_point(
    ...     "prices", store="csv:prices.csv", schema="sym string, price double", key="sym"
    ... )
    >>> found = with_data_sets(net)
    >>> list(found.streams), list(found.tables)
    (['ticks', 'prices'], ['prices@stored'])
    """
    stored = data_sets(network)
    if not stored or all(name in network.streams for name in stored):
        return network
    found = copy.copy(network)
    found.compact = network.compact or network
    found.streams = {**network.streams, **{n: _stream(point) for n, point in stored.items()}}
    tables = {str(StoredTableId(n)): _table(point) for n, point in stored.items()}
    found.tables = {**network.tables, **tables}
    found.boxes = {
        name: _with_table(box, network, stored) if box.has_table else box
        for name, box in network.boxes.items()
    }
    return found


def _stream(point: ConnectionPoint) -> Stream:
    assert point.schema_ is not None
    assert point.key is not None
    field = point.schema_.field(point.key)
    declared: dict[str, Any] = {"schema": point.schema_}
    if field.type.is_orderable:
        declared["progress"] = {"on": field.name, "ordered": True}
    return Stream.model_validate(declared)


def _table(point: ConnectionPoint) -> Table:
    return Table.model_validate({"schema": point.schema_, "key": (point.key,)})


def _with_table(box: Box, network: Network, stored: dict[str, ConnectionPoint]) -> Box:
    """The join with the last data set among its inputs as a table, unless it has one already."""
    sources = box.sources()
    if any(source in network.tables for source in sources):
        return box
    last = next((source for source in reversed(sources) if source in stored), None)
    return box if last is None else renamed_inputs(box, {last: str(StoredTableId(last))})
