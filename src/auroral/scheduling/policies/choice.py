"""What `auto` chooses: scheduler, superboxes and traversal, from measured costs."""

from __future__ import annotations

from dataclasses import replace

from auroral.network.declarations import SchedulerName, SuperboxMode
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.settings import SchedulerSettings
from auroral.scheduling.traversals import SuperboxTree, Traversal, run_traversal, traverse

BUCKETED_FROM = 300
"""From so many boxes on, evaluating all of them at each decision takes too long."""
_DEAR_CALL = 10.0
"""A call whose fixed cost is that of so many tuples is dear: boxes are fused."""


def choose(settings: SchedulerSettings, model: FlowModel) -> SchedulerSettings:
    """The settings with every `auto` but that of trains decided, and the reasons in words.

    >>> from auroral.scheduling.flow import FlowBox, FlowOutput
    >>> box = FlowBox("far", ("reports",), {"far": 0.5}, cost_s=0.00001, call_s=0.03)
    >>> model = FlowModel({"far": box}, {"far": FlowOutput("far", "far")})
    >>> chosen = choose(SchedulerSettings(), model)
    >>> chosen.scheduler, chosen.superbox
    ('rr', 'fuse')
    >>> print(*chosen.reasons, sep="\\n")
    scheduler rr: no output has a latency graph
    superbox fuse: no output has a latency graph, so as few calls as possible
    traversal mc: fused boxes run in flow order
    """
    reasons: list[str] = []
    scheduler, superbox, traversal = settings.scheduler, settings.superbox, settings.traversal
    if scheduler == "auto":
        scheduler, why = _scheduler(model)
        reasons.append(f"scheduler {scheduler}: {why}")
    if scheduler == "thread-per-box":
        superbox = "box"
    if superbox == "auto":
        superbox, why = ("fuse", _price(model)) if settings.is_fused else _superbox(model)
        reasons.append(f"superbox {superbox}: {why}")
    saves_memory = settings.saves_memory
    if traversal == "auto":
        saves_memory = settings.memory_bytes is not None
        traversal, why = _traversal(model, superbox, settings.results_at_end)
        reasons.append(f"traversal {traversal}: {why}")
    return replace(
        settings,
        scheduler=scheduler,
        superbox=superbox,
        traversal=traversal,
        saves_memory=saves_memory,
        reasons=tuple(reasons),
    )


def _latency_graphs(model: FlowModel) -> int:
    declared = [output.qos for output in model.outputs.values()]
    return sum(qos is not None and qos.latency is not None for qos in declared)


def _scheduler(model: FlowModel) -> tuple[SchedulerName, str]:
    graphs = _latency_graphs(model)
    if not graphs:
        return "rr", "no output has a latency graph"
    count = f"{graphs} of {len(model.outputs)} outputs have a latency graph"
    if len(model.boxes) < BUCKETED_FROM:
        return "qos", count
    return "qos-bucketed", f"{count}, and there are {len(model.boxes):,} boxes"


def _superbox(model: FlowModel) -> tuple[SuperboxMode, str]:
    if not _latency_graphs(model):
        return "fuse", "no output has a latency graph, so as few calls as possible"
    calls_s, tuples_s = _costs(model)
    if calls_s / tuples_s >= _DEAR_CALL if tuples_s else True:
        return "fuse", _price(model)
    # Not `box`: in many plans, urgent tuples would wait for others between their boxes.
    return "application", _price(model)


def _costs(model: FlowModel) -> tuple[float, float]:
    """What a call of each box costs, and what a tuple in each."""
    boxes = model.boxes.values()
    return sum(box.call_s for box in boxes), sum(box.cost_s for box in boxes)


def _price(model: FlowModel) -> str:
    """How much calls cost, in tuples."""
    calls_s, tuples_s = _costs(model)
    if not calls_s and not tuples_s:
        return "no costs are known yet"
    if not tuples_s:
        return "a call costs as much as any number of tuples"
    ratio = calls_s / tuples_s
    shown = f"{ratio:,.0f}" if ratio >= _DEAR_CALL else f"{ratio:.1f}"
    return f"a call costs as much as {shown} tuples"


def _traversal(
    model: FlowModel, superbox: SuperboxMode, results_at_end: bool
) -> tuple[Traversal, str]:
    if superbox == "box":
        return "mc", "each plan has one box"
    if superbox == "fuse":
        return "mc", "fused boxes run in flow order"
    roots = dict.fromkeys(
        model.writers[output.arc]
        for output in model.outputs.values()
        if output.arc in model.writers
    )
    trees = [SuperboxTree(model, root) for root in roots]
    if all(len(tree.boxes) == 1 for tree in trees):
        return "mc", "each application has one box"
    cost = sum(mean_latency_s(tree, "mc", results_at_end) for tree in trees) / len(trees)
    latency = sum(mean_latency_s(tree, "ml", results_at_end) for tree in trees) / len(trees)
    figures = f"results take {latency:.2g} s with ml and {cost:.2g} s with mc, on average"
    return ("ml" if latency < cost else "mc"), figures


def mean_latency_s(tree: SuperboxTree, how: Traversal, results_at_end: bool = False) -> float:
    """When results of a superbox are there, on average, if one tuple waits for each box [2 §5.3].

    Which of two traversals has less depends on how much calls and how much tuples cost.
    """
    queued = dict.fromkeys(tree.boxes, 1.0)
    order = traverse(tree, queued, how)
    return run_traversal(tree, order, queued, results_at_end=results_at_end).mean_latency_s
