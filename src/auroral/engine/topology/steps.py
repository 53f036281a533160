"""The steps of all superboxes of a plan: what each one is given."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.boxes import Read
from auroral.boxes.eddy import Eddy
from auroral.boxes.stateful_map import StatefulMap
from auroral.boxes.table_write import TableWrite
from auroral.engine.context import EngineContext
from auroral.engine.ingest.tables import snapshot
from auroral.engine.runtime.eddy_step import EddyStep
from auroral.engine.runtime.plain_step import PlainStep
from auroral.engine.runtime.stateful_step import StatefulStep
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.tables.step import TableBox, TableStep
from auroral.engine.topology.assembly import static_tables
from auroral.engine.topology.plan import ExecutionPlan
from auroral.engine.topology.rescale import record_state_keys
from auroral.network.check import what_boxes_see
from auroral.scheduling.superboxes import Superbox
from auroral.scheduling.table_stages import stage_peers
from auroral.tables.statements import box_statement

Step = PlainStep | StatefulStep | EddyStep | TableStep


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
        elif isinstance(step, TableStep):
            pass  # it needs neither
        elif step is not None:
            step.go_on(watermarks)
        elif superbox.tables:
            step = _table_step(context, plan, superbox)
        elif superbox.stateful is None:
            most = context.settings.driver_bytes
            step = PlainStep(context.store, plan.runner, superbox, most)
        else:
            step = _stateful_step(context, plan, watermarks, superbox.stateful)
        found[superbox.name] = step
    _introduce(plan, found)
    return found


def _table_step(context: EngineContext, plan: ExecutionPlan, superbox: Superbox) -> TableStep:
    checked = plan.checked
    scope = what_boxes_see(checked.network, context.settings.executor.resolver)
    boxes = []
    for name in superbox.boxes:
        box = checked.network.boxes[name]
        (arc,) = checked.inputs_of(name)
        assert isinstance(box, Read | TableWrite)
        columns = box.columns([arc.schema], scope) if isinstance(box, Read) else None
        keep = box.kept(arc.schema) if isinstance(box, Read) else ()
        statement = box_statement(name, box.sql, scope.tables, arc.schema, columns)
        output = checked.arcs[name].schema
        passes = isinstance(box, TableWrite) and box.passes_failed
        boxes.append(TableBox(name, arc.name, arc.schema, output, keep, statement, passes))
    tables = context.tables
    database = tables.open(checked.network, [box.statement for box in boxes])
    return TableStep(context.store, database, superbox, boxes, tables.state)


def _introduce(plan: ExecutionPlan, steps: Mapping[str, Step]) -> None:
    """Let superboxes that use the same tables, and wait for each other, take turns."""
    stages = {superbox.name: superbox for superbox in plan.superboxes if superbox.tables}
    peers = stage_peers(plan.checked, [(name, s.boxes) for name, s in stages.items()])
    for name, those in peers.items():
        step = steps[name]
        assert isinstance(step, TableStep)
        step.meet([stages[n] for n in those.before], [stages[n] for n in those.after])


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
