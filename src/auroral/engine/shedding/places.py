"""Where drop boxes may be, what outputs lose by them, and what of an output was shed (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from auroral.boxes import Aggregate, Dedup, Number
from auroral.boxes.table_write import TableWrite
from auroral.engine.shedding.shed_log import Moments, Place, Shares
from auroral.ids import PartBoxId
from auroral.network.check import CheckedNetwork
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow import FlowBox, FlowModel
from auroral.scheduling.superboxes import Superbox

ShareDropped = Callable[[str, str, Moments, Moments], Shares]
"""The share of tuples that a superbox did not get of an arc, by stretch of moments."""


def objection(checked: CheckedNetwork, superbox: Superbox, arc: str) -> str | None:
    """Why tuples of an arc must not be dropped in front of a superbox; None if they may."""
    if arc not in superbox.sources or not superbox.boxes:
        return f"{superbox.name} does not read {arc}"
    boxes = checked.network.boxes
    reached: set[str] = set()
    arcs = [arc]
    for name in checked.order:
        inputs = {found.name for found in checked.inputs_of(name)}
        direct = arc in inputs and name in superbox.boxes
        if not direct and not any(a in inputs for a in arcs[1:]):
            continue
        if direct and isinstance(boxes[name], Number) and arc in checked.network.streams:
            return f"{name} numbers the tuples of {arc}, and their numbers promise progress"
        reached.add(name)
        arcs += [found.name for found in checked.outputs_of(name)]
    writes = [name for name in checked.order if name in reached and _writes(checked, name)]
    return f"{PartBoxId.owner(writes[0])} changes a table by them" if writes else None


def _writes(checked: CheckedNetwork, name: str) -> bool:
    return isinstance(checked.network.boxes[name], TableWrite)


def losses(model: FlowModel, superbox: Superbox, arc: str) -> dict[str, float]:
    """How many tuples outputs lose for each tuple of an arc that a superbox does not get.

    `model` has a box for each box of the network.
    """
    reach: dict[str, float] = {}
    for name, box in model.boxes.items():
        own = 1.0 if name in superbox.boxes and arc in box.inputs else 0.0
        got = own + sum(reach.get(source, 0.0) for source in box.inputs)
        if got:
            for written, selectivity in box.selectivities.items():
                reach[written] = got * selectivity
    return {
        name: reach[output.arc] for name, output in model.outputs.items() if output.arc in reach
    }


def by_offered(
    checked: CheckedNetwork,
    model: FlowModel,
    superboxes: Mapping[str, Superbox],
    costs: Mapping[str, BoxCost],
    dropped: Mapping[Place, int],
) -> FlowModel:
    """The model in which windows count for all tuples that would have come, the dropped included.

    While tuples are dropped an aggregate gives nearly as many windows for fewer tuples, and a dedup
    as many kinds. By what was measured lately, every dropped tuple would seem to be the loss of a
    result of its own. `dropped` is how many there were so far in front of superboxes.
    """
    missing: dict[str, float] = {}
    boxes: dict[str, FlowBox] = {}
    for name, box in model.boxes.items():
        own = (
            count
            for (superbox, arc), count in dropped.items()
            if arc in box.inputs and superbox in superboxes and name in superboxes[superbox].boxes
        )
        missed = sum(own) + sum(missing.get(arc, 0.0) for arc in box.inputs)
        cost = costs.get(checked.origin(name))
        if missed and cost is not None and isinstance(checked.network.boxes[name], _GROUPING):
            known = cost.selectivity
            offered = cost.tuples_out / (cost.tuples_in + missed)
            if known is not None and offered < known:
                fewer = {arc: s * offered / known for arc, s in box.selectivities.items()}
                box = replace(box, selectivities=fewer)
        boxes[name] = box
        missing |= {arc: missed * s for arc, s in box.selectivities.items()}
    return FlowModel(boxes, model.outputs)


_GROUPING = (Aggregate, Dedup)


def upstream(superboxes: Sequence[Superbox], superbox: Superbox) -> list[Superbox]:
    """A superbox and those that lead to it, in flow order."""
    writers = {written: one for one in superboxes for written in one.terminals}
    found, stack = {superbox.name}, [superbox]
    while stack:
        before = (writers.get(source) for source in stack.pop().sources)
        fresh = [one for one in before if one is not None and one.name not in found]
        found |= {one.name for one in fresh}
        stack += fresh
    return [one for one in superboxes if one.name in found]


def shed_shares(
    leading: Sequence[Superbox], dropped: ShareDropped, moments: Moments, since: int
) -> Shares:
    """The share of input tuples that was dropped on the way to each of some results.

    `moments` are those of the results, in order; `leading` the superbox that made them and those
    before it, in flow order. If none of these remembers tuples, a result comes from a tuple of its
    own moment. Otherwise it is taken to come from all moments after those of the results before
    it, of which the latest one had the moment `since`. Of several paths from streams, the one
    counts on which most was dropped.
    """
    first = moments
    if any(superbox.stateful for superbox in leading):
        starts = np.searchsorted(moments, moments)
        before = np.where(
            starts > 0, moments[np.maximum(starts - 1, 0)], min(since, moments[0] - 1)
        )
        first = before + 1
    kept: dict[str, Shares] = {}
    own: Shares = np.ones(len(moments))
    for superbox in leading:
        own = np.ones(len(moments))
        for source in superbox.sources:
            passed = kept.get(source, 1.0) * (
                1 - dropped(superbox.name, source, first, moments + 1)
            )
            own = np.minimum(own, passed)
        kept |= dict.fromkeys(superbox.terminals, own)
    found: Shares = 1 - own
    return found


def names_of(checked: CheckedNetwork, superbox: Superbox, arc: str) -> Mapping[str, None]:
    """The stream, or the box, that an arc comes from, and the boxes of a superbox."""
    return dict.fromkeys([checked.arcs[arc].producer, *superbox.boxes])
