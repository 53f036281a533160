"""The steps of all superboxes of a plan: what each one is given."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.boxes.eddy import Eddy
from auroral.boxes.stateful_map import StatefulMap
from auroral.engine.context import EngineContext
from auroral.engine.ingest.tables import snapshot
from auroral.engine.runtime.eddy_step import EddyStep
from auroral.engine.runtime.plain_step import PlainStep
from auroral.engine.runtime.stateful_step import StatefulStep
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.topology.assembly import static_tables
from auroral.engine.topology.plan import ExecutionPlan
from auroral.engine.topology.rescale import record_state_keys

Step = PlainStep | StatefulStep | EddyStep


def superbox_steps(
    context: EngineContext,
    plan: ExecutionPlan,
    watermarks: WatermarkTracker,
    kept: Mapping[str, Step],
) -> dict[str, Step]:
    """The steps of all superboxes, by name, in flow order; some are kept of the plan before."""
    keys = {name: runner.physical.state_keys() for name, runner in plan.stateful.items()}
    record_state_keys(context.store, keys)
    found: dict[str, Step] = {}
    for superbox in plan.superboxes:
        step = kept.get(superbox.name)
        if isinstance(step, PlainStep):
            step.runner = plan.runner
        elif step is not None:
            step.go_on(watermarks)
        elif superbox.stateful is None:
            most = context.settings.driver_bytes
            step = PlainStep(context.store, plan.runner, superbox, most)
        else:
            step = _stateful_step(context, plan, watermarks, superbox.stateful)
        found[superbox.name] = step
    return found


def _stateful_step(
    context: EngineContext, plan: ExecutionPlan, watermarks: WatermarkTracker, name: str
) -> StatefulStep | EddyStep:
    store, checked, runner = context.store, plan.checked, plan.stateful[name]
    box = checked.network.boxes[name]
    if isinstance(box, Eddy):
        policy = checked.network.engine.routing
        return EddyStep(store, watermarks, runner, box, context.queries, policy)
    tables = context.settings.tables
    paths = {
        port: snapshot(checked.network, table, store.directory, tables, sync=store.power)
        for port, table in static_tables(checked, name).items()
    }
    whole = isinstance(box, StatefulMap)  # its dead letters are tuples, not windows
    fields = (checked.schemas_of(name)[0] if whole else checked.arcs[name].schema).names
    return StatefulStep(store, watermarks, runner, box, fields, paths)
