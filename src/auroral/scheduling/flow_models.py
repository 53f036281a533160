"""The flow model of a network: its boxes or superboxes with measured costs, and its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from auroral.boxes import Aggregate, Filter
from auroral.network.box import LATE_PORTS
from auroral.network.check import CheckedNetwork, TypedArc
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.superboxes import Superbox

DEFAULT_COST_S = 2e-6
"""Seconds for a tuple of a box that was never measured."""
DEFAULT_CALL_S = 0.03
"""Seconds of a call of a box or superbox that was never measured: a small step of Spark's."""
DEFAULT_AGGREGATE_SELECTIVITY = 0.1
"""Windows that an aggregate gives for each tuple; every other box but a filter gives one tuple for
each, and a filter divides them evenly between its arcs."""


def declared_outputs(checked: CheckedNetwork) -> dict[str, FlowOutput]:
    """The outputs that a network declares, with their graphs; those of queries are left out."""
    return {
        name: FlowOutput(name, output.from_, output.qos)
        for name, output in checked.network.outputs.items()
        if output.from_ in checked.arcs
    }


def flow_model(
    checked: CheckedNetwork,
    costs: Mapping[str, BoxCost],
    outputs: Mapping[str, FlowOutput] | None = None,
    superboxes: Sequence[Superbox] | None = None,
    *,
    tuples: Mapping[str, int] | None = None,
) -> FlowModel:
    """The boxes of a network with what was measured of them, or its `superboxes` as one box each.

    `outputs` are those that the network declares, unless others are given. `tuples` is how many
    tuples there were on arcs so far, as far as they were counted: it tells how a box divides its
    tuples between its arcs, and how much a superbox gets from each of its sources. What was not
    measured is taken for the defaults of this module.

    The cost of a superbox is that of all calls of its boxes, and for each tuple the costs of its
    boxes times the share of tuples that reaches them.
    """
    outputs = declared_outputs(checked) if outputs is None else outputs
    counted = tuples or {}
    used = {output.arc for output in outputs.values()}
    used |= {arc.name for box in checked.order for arc in checked.inputs_of(box)}
    boxes = {name: _flow_box(checked, name, costs, used, counted) for name in checked.order}
    if superboxes is not None:
        boxes = {one.name: _merged(checked, one, boxes, costs, counted) for one in superboxes}
    return FlowModel(boxes, dict(outputs))


def longest_path_s(model: FlowModel, arc: str, tuples: int = 1) -> float:
    """Seconds that tuples take to an arc on the longest path, if nothing waits.

    `tuples` of them travel together; on the way they become more or fewer.

    >>> boxes = {"far": FlowBox("far", ("reports",), {"far": 0.5}, 0.001, 0.03)}
    >>> round(longest_path_s(FlowModel(boxes), "far", 10), 6)
    0.04
    """
    reached: dict[str, tuple[float, float]] = {}
    """By arc: seconds until its tuples are there, and how many there are."""
    for box in model.boxes.values():
        before = [reached.get(source, (0.0, float(tuples))) for source in dict.fromkeys(box.inputs)]
        count = sum(many for _, many in before)
        seconds = max((at for at, _ in before), default=0.0) + box.call_s + count * box.cost_s
        for written, selectivity in box.selectivities.items():
            reached[written] = (seconds, count * selectivity)
    return reached.get(arc, (0.0, 0.0))[0]


def _flow_box(
    checked: CheckedNetwork,
    name: str,
    costs: Mapping[str, BoxCost],
    used: Iterable[str],
    counted: Mapping[str, int],
) -> FlowBox:
    cost = costs.get(checked.origin(name), BoxCost())
    inputs = checked.inputs_of(name)
    return FlowBox(
        name,
        tuple(dict.fromkeys(arc.name for arc in inputs)),
        _selectivities(checked, name, cost, used, counted),
        _known(cost.cost_s, DEFAULT_COST_S),
        _known(cost.call_s, DEFAULT_CALL_S),
        sum(arc.schema.tuple_bytes for arc in inputs) / max(len(inputs), 1),
    )


def _selectivities(
    checked: CheckedNetwork,
    name: str,
    cost: BoxCost,
    used: Iterable[str],
    counted: Mapping[str, int],
) -> dict[str, float]:
    """How many tuples a box gives on each of its arcs for each that it gets.

    What was measured is divided between the arcs that somebody reads, in proportion to what was
    counted there.
    """
    arcs = checked.outputs_of(name)
    late = {arc.name for arc in arcs if arc.port in LATE_PORTS}
    usual = [arc for arc in arcs if arc.name not in late]
    found = {
        arc: counted.get(arc, 0) / cost.tuples_in if cost.tuples_in else 0.0 for arc in sorted(late)
    }
    if cost.selectivity is None:
        return {**{arc.name: _expected(checked, name, usual) for arc in usual}, **found}
    read = [arc.name for arc in usual if arc.name in used] or [arc.name for arc in usual]
    total = sum(counted.get(arc, 0) for arc in read)
    shares = {arc: counted.get(arc, 0) / total if total else 1 / len(read) for arc in read}
    return {**{arc.name: cost.selectivity * shares.get(arc.name, 0.0) for arc in usual}, **found}


def _expected(checked: CheckedNetwork, name: str, arcs: Sequence[TypedArc]) -> float:
    box = checked.network.boxes[name]
    if isinstance(box, Aggregate):
        return DEFAULT_AGGREGATE_SELECTIVITY
    return 1 / len(arcs) if isinstance(box, Filter) else 1.0


def _merged(
    checked: CheckedNetwork,
    superbox: Superbox,
    boxes: Mapping[str, FlowBox],
    costs: Mapping[str, BoxCost],
    counted: Mapping[str, int],
) -> FlowBox:
    """The boxes of a superbox as one."""
    total = sum(counted.get(source, 0) for source in superbox.sources)
    reach = {
        source: counted.get(source, 0) / total if total else 1 / len(superbox.sources)
        for source in superbox.sources
    }
    cost_s = 0.0
    for name in superbox.boxes:
        got = sum(reach.get(arc.name, 0.0) for arc in checked.inputs_of(name))
        cost_s += got * boxes[name].cost_s
        for arc, selectivity in boxes[name].selectivities.items():
            reach[arc] = got * selectivity
    origins = [checked.origin(name) for name in superbox.boxes]
    calls = [costs[name].call_s for name in origins if name in costs]
    call_s = sum(found for found in calls if found is not None)
    if superbox.boxes and not calls:
        call_s = DEFAULT_CALL_S
    return FlowBox(
        superbox.name,
        superbox.sources,
        {arc: reach.get(arc, 0.0) for arc in superbox.terminals},
        cost_s,
        call_s,
        sum(checked.arcs[source].schema.tuple_bytes for source in superbox.sources)
        / max(len(superbox.sources), 1),
    )


def _known(measured: float | None, otherwise: float) -> float:
    return otherwise if measured is None else measured
