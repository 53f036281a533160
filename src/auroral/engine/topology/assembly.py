"""Putting stateful boxes together: what each one is given, and what runs it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from auroral.boxes.eddy import Eddy
from auroral.boxes.stateful_map import StatefulMap
from auroral.continuous.boxing.expansion import expanded
from auroral.continuous.boxing.gates import gated
from auroral.continuous.boxing.in_order import in_order
from auroral.continuous.sharing.sharing import python_functions
from auroral.engine.ingest.tables import snapshot
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.eddy_step import EddyBox
from auroral.engine.runtime.stateful_step import StatefulBox
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.ids import ArcId, EddyId
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.physical import Given
from auroral.spark.running.stateful_runner import StatefulRunner
from auroral.spark.session.analysis import spark_resolver
from auroral.storage import Store


def expanded_network(
    network: Network,
    resolver: Resolver | None = None,
    standalone: Mapping[str, Query] | None = None,
    eddies: Sequence[tuple[str, ...]] = (),
) -> Network:
    """The network of boxes alone that runs: eddies, queries compiled, gates, order if wanted."""
    own = copy.copy(network)
    own.queries = dict(network.queries if standalone is None else standalone)
    shared = set(network.queries) - set(own.queries)
    own.outputs = {
        n: out
        for n, out in network.outputs.items()
        if ArcId.parse(out.from_).producer not in shared
    }
    plain = expanded(own, resolver)
    plain = in_order(plain) if plain.engine.order == "enforce" else plain
    plain.boxes = plain.boxes | {str(EddyId(arcs)): Eddy(inputs=arcs) for arcs in eddies}
    return gated(plain)


def stateful_runner(
    session: SparkSession,
    checked: CheckedNetwork,
    watermarks: WatermarkTracker,
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
        watermarks.input_watermarks(name),
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
    watermarks: WatermarkTracker,
    superboxes: Sequence[Superbox],
    runners: Mapping[str, StatefulRunner],
    kept: Mapping[str, StatefulBox],
    *,
    tables: Mapping[str, Any],
    queries: QueryRegistry,
) -> dict[str, StatefulBox]:
    """The stateful boxes of a network, by name; some are kept of the one before."""
    found: dict[str, StatefulBox] = {}
    for superbox in superboxes:
        name = superbox.stateful
        if name is None:
            continue
        if name in kept:
            found[name] = kept[name]
            found[name].go_on(watermarks)
            continue
        runner = runners[name]
        box = checked.network.boxes[name]
        if isinstance(box, Eddy):
            policy = checked.network.engine.routing
            found[name] = EddyBox(store, watermarks, runner, box, queries, policy)
            continue
        paths = {
            port: snapshot(checked.network, table, store.directory, tables, sync=store.power)
            for port, table in _tables(checked, name).items()
        }
        whole = isinstance(box, StatefulMap)  # its dead letters are tuples, not windows
        fields = (checked.schemas_of(name)[0] if whole else checked.arcs[name].schema).names
        found[name] = StatefulBox(store, watermarks, runner, box, fields, paths)
    return found


def _tables(checked: CheckedNetwork, box: str) -> dict[int, str]:
    """The inputs of a box that are static tables."""
    sources = checked.network.boxes[box].sources()
    return {n: arc for n, arc in enumerate(sources) if arc in checked.network.tables}
