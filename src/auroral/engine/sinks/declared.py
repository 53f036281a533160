"""Sinks that a network declares."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path

from auroral.engine.topology.superboxes import output_arcs
from auroral.io.open import open_sink
from auroral.io.sinks.sink import Sink
from auroral.network.check import CheckedNetwork
from auroral.network.environment import sink_of
from auroral.network.network import Network
from auroral.network.types import Schema


def declared_sinks(
    network: Network,
    checked: CheckedNetwork,
    schema_of: Callable[[str, str], Schema | None],
    bound: Container[str],
) -> dict[str, Sink]:
    """The sinks that the network file names, unless the output has one already.

    `schema_of` tells what outputs give of queries.
    """
    root = network.directory or Path()
    arcs = output_arcs(checked)
    found = {}
    for name, output in network.outputs.items():
        if output.sink and name not in bound:
            schema = schema_of(name, output.from_)
            if schema is None and name in arcs:
                schema = checked.schema_of(arcs[name])
            if schema is None:  # the query was removed in an earlier run
                continue
            found[name] = open_sink(name, sink_of(network, name) or {}, schema, root=root)
    return found
