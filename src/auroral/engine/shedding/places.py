"""Where drop boxes may be, what outputs lose by them, and what of an output was shed (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from auroral.boxes import Number
from auroral.boxes.table_write import TableWrite
from auroral.engine.shedding.shed_log import Moments, Shares
from auroral.network.check import CheckedNetwork
from auroral.scheduling.flow import FlowModel
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
    return f"{writes[0]} changes a table by them" if writes else None


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


def remembers(superboxes: Sequence[Superbox], arc: str) -> bool:
    """Whether tuples of an arc may come from tuples of other moments than their own."""
    writers = {written: one for one in superboxes for written in one.terminals}
    stack, seen = [arc], set[str]()
    while stack:
        superbox = writers.get(stack.pop())
        if superbox is not None and superbox.name not in seen:
            seen.add(superbox.name)
            if superbox.stateful:
                return True
            stack += superbox.sources
    return False


def shed_shares(
    superboxes: Sequence[Superbox], arc: str, dropped: ShareDropped, first: Moments, last: Moments
) -> Shares:
    """The share of input tuples that was dropped before an arc, in stretches of moments.

    Of several paths from streams to the arc, the one on which most was dropped.
    """
    kept: dict[str, Shares] = {}
    for superbox in superboxes:
        own: Shares = np.ones(len(first))
        for source in superbox.sources:
            passed = kept.get(source, 1.0) * (1 - dropped(superbox.name, source, first, last))
            own = np.minimum(own, passed)
        kept |= dict.fromkeys(superbox.terminals, own)
    found: Shares = 1 - kept[arc] if arc in kept else np.zeros(len(first))
    return found


def names_of(checked: CheckedNetwork, superbox: Superbox, arc: str) -> Mapping[str, None]:
    """The stream, or the box, that an arc comes from, and the boxes of a superbox."""
    return dict.fromkeys([checked.arcs[arc].producer, *superbox.boxes])
