"""The network of boxes that runs, and the runners of boxes with state."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

from auroral.boxes.eddy import Eddy
from auroral.continuous.boxing.expansion import expanded
from auroral.continuous.boxing.gates import gated
from auroral.continuous.boxing.in_order import in_order
from auroral.continuous.boxing.tables import with_lookups, with_writes
from auroral.continuous.sharing.sharing import python_functions
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.ids import ArcId, EddyId
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.physical import Given
from auroral.spark.running.executor import KernelRunner, StepExecutor


def expanded_network(
    network: Network,
    resolver: Resolver | None = None,
    standalone: Mapping[str, Query] | None = None,
    eddies: Sequence[tuple[str, ...]] = (),
) -> Network:
    """The network of boxes alone that runs: eddies, queries compiled, gates, order if wanted."""
    own = copy.copy(with_writes(with_lookups(network)))
    own.queries = dict(network.queries if standalone is None else standalone)
    shared = set(network.queries) - set(own.queries)
    own.outputs = {
        n: out for n, out in own.outputs.items() if ArcId.parse(out.from_).producer not in shared
    }
    plain = expanded(own, resolver)
    plain = in_order(plain) if plain.engine.order == "enforce" else plain
    plain.boxes = plain.boxes | {str(EddyId(arcs)): Eddy(inputs=arcs) for arcs in eddies}
    return gated(plain)


def kernel_runner(
    executor: StepExecutor,
    checked: CheckedNetwork,
    watermarks: WatermarkTracker,
    superbox: Superbox,
    directory: Path,
    *,
    buckets: int,
    progressing: Mapping[str, Sequence[str]],
) -> KernelRunner:
    """The runner of one superbox with state."""
    name = superbox.stateful
    assert name is not None
    wanted = {arc.port for arc in checked.outputs_of(name) if arc.name in superbox.terminals}
    given = Given(
        checked.schemas_of(name),
        checked.arcs[name].schema,
        frozenset(wanted),
        watermarks.input_watermarks(name),
        list(static_tables(checked, name)),
        checked.network.directory,
        checked.network.imports,
        checked.network.engine.flush,
        executor.resolver,
        python_functions(checked.network),
        checked.unread.get(name, frozenset()),
    )
    return executor.kernel(
        checked, superbox, given, directory, buckets=buckets, progressing=progressing
    )


def static_tables(checked: CheckedNetwork, box: str) -> dict[int, str]:
    """The inputs of a box that are static tables."""
    sources = checked.network.boxes[box].sources()
    return {n: arc for n, arc in enumerate(sources) if arc in checked.network.tables}
