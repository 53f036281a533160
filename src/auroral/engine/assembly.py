"""Putting stateful boxes together: what each one is given, and what runs it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from auroral.boxes.eddy import Eddy
from auroral.boxes.stateful_map import StatefulMap
from auroral.continuous.expansion import expanded
from auroral.continuous.gates import gated
from auroral.continuous.in_order import in_order
from auroral.continuous.sharing import python_functions
from auroral.engine.eddy import EddyBox
from auroral.engine.plane import ProgressPlane
from auroral.engine.queries import Queries
from auroral.engine.stateful import StatefulBox
from auroral.engine.tables import snapshot
from auroral.engine.versions import eddy_name
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.scheduling.superboxes import Superbox
from auroral.spark.analysis import spark_resolver
from auroral.spark.physical import Given
from auroral.spark.stateful_runner import StatefulRunner
from auroral.storage import Store


def running(
    network: Network,
    resolver: Resolver | None = None,
    boxed: Mapping[str, Query] | None = None,
    eddies: Sequence[tuple[str, ...]] = (),
) -> Network:
    """The network of boxes alone that runs: eddies, queries compiled, gates, order if wanted."""
    own = copy.copy(network)
    own.queries = dict(network.queries if boxed is None else boxed)
    shared = set(network.queries) - set(own.queries)
    own.outputs = {
        n: out for n, out in network.outputs.items() if out.from_.partition(".")[0] not in shared
    }
    plain = expanded(own, resolver)
    plain = in_order(plain) if plain.engine.order == "enforce" else plain
    plain.boxes = plain.boxes | {eddy_name(arcs): Eddy(inputs=arcs) for arcs in eddies}
    return gated(plain)


def stateful_runner(
    session: SparkSession,
    checked: CheckedNetwork,
    plane: ProgressPlane,
    superbox: Superbox,
    directory: Path,
    *,
    buckets: int,
    progressing: Mapping[str, Sequence[str]],
    reuse_plans: bool | None = None,
) -> StatefulRunner:
    """The runner of one stateful superbox."""
    name = superbox.stateful
    assert name is not None
    wanted = {arc.port for arc in checked.outputs_of(name) if arc.name in superbox.terminals}
    given = Given(
        checked.schemas_of(name),
        checked.arcs[name].schema,
        frozenset(wanted),
        plane.relied_on(name),
        list(_tables(checked, name)),
        checked.network.directory,
        checked.network.imports,
        checked.network.engine.flush,
        spark_resolver(session),
        python_functions(checked.network),
    )
    return StatefulRunner(
        session,
        checked,
        superbox,
        given,
        directory,
        buckets=buckets,
        progressing=progressing,
        reuse_plans=reuse_plans,
    )


def stateful_boxes(
    checked: CheckedNetwork,
    store: Store,
    plane: ProgressPlane,
    superboxes: Sequence[Superbox],
    runners: Mapping[str, StatefulRunner],
    kept: Mapping[str, StatefulBox],
    *,
    tables: Mapping[str, Any],
    queries: Queries,
) -> dict[str, StatefulBox]:
    """The stateful boxes of a network, by name; some are kept of the one before."""
    found: dict[str, StatefulBox] = {}
    for superbox in superboxes:
        name = superbox.stateful
        if name is None:
            continue
        if name in kept:
            found[name] = kept[name]
            found[name].go_on(plane)
            continue
        runner = runners[name]
        box = checked.network.boxes[name]
        if isinstance(box, Eddy):
            policy = checked.network.engine.routing
            found[name] = EddyBox(store, plane, runner, box, queries, policy)
            continue
        paths = {
            port: snapshot(checked.network, table, store.directory, tables, sync=store.power)
            for port, table in _tables(checked, name).items()
        }
        whole = isinstance(box, StatefulMap)  # its dead letters are tuples, not windows
        fields = (checked.schemas_of(name)[0] if whole else checked.arcs[name].schema).names
        found[name] = StatefulBox(store, plane, runner, box, fields, paths)
    return found


def _tables(checked: CheckedNetwork, box: str) -> dict[int, str]:
    """The inputs of a box that are static tables."""
    sources = checked.network.boxes[box].sources()
    return {n: arc for n, arc in enumerate(sources) if arc in checked.network.tables}
