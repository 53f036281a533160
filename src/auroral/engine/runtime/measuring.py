"""How many tuples each box of a step got and gave, and what of the step's time is its."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from auroral.boxes import Map, Union
from auroral.ids import is_eddy
from auroral.network.box import LATE_PORTS
from auroral.network.check import CheckedNetwork
from auroral.scheduling.costs import BoxCost, attributed
from auroral.scheduling.superboxes import Superbox


@dataclass(frozen=True)
class StepFlow:
    """The tuples that a step has read, and those that were counted on the way."""

    read: Mapping[str, int]
    """By source of the superbox."""
    passed: Mapping[str, int] = field(default_factory=dict)
    """By inner arc, as far as they were counted."""
    received: int | None = None
    """What a box with state got, if there is one."""


class CostMeter:
    """Turns steps into costs of boxes."""

    def __init__(self, checked: CheckedNetwork):
        self._checked = checked

    def costs(
        self,
        superbox: Superbox,
        flow: StepFlow,
        counts: Mapping[tuple[str, str], int],
        seconds: float,
        known: Mapping[str, BoxCost],
    ) -> dict[str, BoxCost]:
        """What is known of the boxes of a superbox after a step.

        `counts` are the tuples of arcs that the step has counted.
        """
        arcs = {arc: count for (arc, name), count in counts.items() if name == "tuples"}
        arcs = {**dict.fromkeys(superbox.terminals, 0), **flow.read, **flow.passed, **arcs}
        taken: dict[str, int] = {}
        given: dict[str, int | None] = {}
        for box in superbox.boxes:
            taken[box] = self._taken(superbox, box, flow, arcs)
            given[box] = self._given(superbox, box, taken[box], arcs)
        spent = attributed(seconds, taken)
        return {
            box: known.get(box, BoxCost()).after(taken[box], given[box], spent[box])
            for box in superbox.boxes
        }

    def _taken(self, superbox: Superbox, box: str, flow: StepFlow, arcs: Mapping[str, int]) -> int:
        if box == superbox.stateful and flow.received is not None:
            return flow.received
        return sum(arcs.get(arc.name, 0) for arc in self._checked.inputs_of(box))

    def _given(self, superbox: Superbox, box: str, taken: int, arcs: dict[str, int]) -> int | None:
        """What a box gave on arcs that somebody reads; None if nobody has counted it."""
        if is_eddy(box):
            own = {arc.name for arc in self._checked.arcs.values()}
            return sum(count for arc, count in arcs.items() if arc not in own)
        outputs = [arc.name for arc in self._checked.outputs_of(box) if arc.port not in LATE_PORTS]
        if box == superbox.stateful or any(arc in arcs for arc in outputs):
            return sum(arcs.get(arc, 0) for arc in outputs)
        if isinstance(self._checked.network.boxes[box], Map | Union):
            arcs[box] = taken
            return taken
        # Spark has filtered and told nobody: boxes behind count as if they got everything.
        arcs.update(dict.fromkeys(outputs, taken))
        return None
