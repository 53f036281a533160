"""The scheduler of a plan: which one, and what it knows of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from auroral.engine.context import EngineContext
from auroral.engine.inspect.step_stories import Concerned, StepStories
from auroral.engine.runtime.deciding import StepScheduler
from auroral.engine.topology.plan import ExecutionPlan
from auroral.network.declarations import EngineOptions
from auroral.qos.graphs import QoS
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow import FlowModel, FlowOutput
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.policies import SchedulerSettings, make_scheduler


def step_scheduler(
    context: EngineContext, plan: ExecutionPlan, concerned: Concerned
) -> StepScheduler | None:
    """The scheduler of a plan; None if each box has a thread."""
    options = plan.checked.network.engine
    quality = context.quality
    if options.scheduler == "thread-per-box":
        return None
    settings = replace(SchedulerSettings.of(options), is_fused=True)
    return StepScheduler(
        make_scheduler(settings),
        lambda: superbox_model(context, plan),
        concerned,
        context.times,
        context.decisions,
        in_turn=lambda: _is_in_turn(options, quality.outputs.values()),
        doing=quality.doing,
        version=lambda: quality.version,
    )


def step_stories(
    context: EngineContext, concerned: Concerned, scheduler: StepScheduler | None
) -> StepStories:
    """Tells of the steps that no scheduler decides on."""
    log, times = context.decisions, context.times
    if scheduler is None:
        return StepStories(concerned, log, times, lambda: True, "in a thread of its own")
    return StepStories(concerned, log, times, scheduler.in_turn)


def _is_in_turn(options: EngineOptions, graphs: Iterable[QoS | None]) -> bool:
    """Whether superboxes take turns: nobody says that some results are more urgent."""
    if options.superbox in ("application", "spanner") or options.train_bounds is not None:
        return False
    if options.scheduler == "auto":
        return not any(qos is not None and qos.latency is not None for qos in graphs)
    return options.scheduler == "rr"


def superbox_model(context: EngineContext, plan: ExecutionPlan) -> FlowModel:
    """The superboxes of a plan with what was measured of them."""
    store = context.store
    with store.lock:
        costs = dict(store.costs)
        counters = {log: n for (log, name), n in store.counters.items() if name in _COUNTED}
    outputs = context.quality.flow_outputs()
    model = flow_model(plan.checked, costs, outputs, plan.superboxes, tuples=counters)
    boxes = dict(model.boxes)
    for one in plan.superboxes:
        known = (costs.get(plan.checked.origin(name), BoxCost()) for name in one.boxes)
        if not all(cost.is_known for cost in known):
            boxes[one.name] = replace(boxes[one.name], is_measured=False)
    return _with_ends(FlowModel(boxes, model.outputs))


_COUNTED = ("tuples", "in")


def _with_ends(model: FlowModel) -> FlowModel:
    """The model with an output for each superbox that leads to none.

    Eddies, and boxes that only change tables, write no arc that an output reads; what they do
    is as urgent as the results of an output without graphs.
    """
    ends = [name for name in model.boxes if not model.outputs_of(name)]
    ends = [name for name in ends if not any(n in ends for n in model.next_boxes(name))]
    if not ends:
        return model
    boxes = dict(model.boxes)
    outputs: dict[str, FlowOutput] = dict(model.outputs)
    for name in ends:
        end = f"({name})"
        boxes[name] = replace(boxes[name], selectivities=_and(boxes[name].selectivities, end))
        outputs[end] = FlowOutput(end, end)
    return FlowModel(boxes, outputs)


def _and(selectivities: Mapping[str, float], end: str) -> dict[str, float]:
    return {**selectivities, end: 1.0}
