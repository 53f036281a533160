"""How many tuples each box of a step got and gave, and what of the step's time is its."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from auroral.boxes import Map, Union
from auroral.ids import is_eddy
from auroral.network.box import LATE_PORTS
from auroral.network.check import CheckedNetwork
from auroral.optimizer import calls_functions, weight
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
    spent_s: Mapping[str, float] = field(default_factory=dict)
    """By box, the seconds that tasks spent in Python functions, all tasks together."""
    sifted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By sieve of a join, the tuples that it got and let through."""


@dataclass(frozen=True)
class BoxWork:
    """What a box did in a step."""

    tuples_in: int
    tuples_out: int | None
    """None if nobody has counted what came out."""
    seconds: float
    function_s: float = 0.0
    """The seconds of it that tasks spent in Python functions, all tasks together."""

    def __add__(self, other: BoxWork) -> BoxWork:
        known = self.tuples_out is not None and other.tuples_out is not None
        out = (self.tuples_out or 0) + (other.tuples_out or 0) if known else None
        return BoxWork(
            self.tuples_in + other.tuples_in,
            out,
            self.seconds + other.seconds,
            self.function_s + other.function_s,
        )


@dataclass(frozen=True)
class SieveWork(BoxWork):
    """What a sieve of a join did; it is no box, so that only the optimiser wants to know."""


_FIRST_CALLS = (0.01, 0.1)
"""What the first calls of a superbox count of what others count: Spark compiles, loads classes."""


def after_work(
    known: Mapping[str, BoxCost], work: Mapping[str, BoxWork], weight: float = 1.0
) -> dict[str, BoxCost]:
    """What is known of boxes after a step whose time counts so much."""
    return {
        box: known.get(box, BoxCost()).after(done.tuples_in, done.tuples_out, done.seconds, weight)
        for box, done in work.items()
        if not isinstance(done, SieveWork)
    }


class CostMeter:
    """Turns steps into costs of boxes; what moved boxes do counts for the declared ones."""

    def __init__(self, checked: CheckedNetwork):
        self._checked = checked
        self._calls: dict[str, int] = {}
        functions = {name.lower() for name in checked.network.functions}
        self._weights = {
            name: weight(box, calls_functions(box, functions))
            for name, box in checked.network.boxes.items()
        }

    def work(
        self,
        superbox: Superbox,
        flow: StepFlow,
        counts: Mapping[tuple[str, str], int],
        seconds: float,
    ) -> dict[str, BoxWork]:
        """What the boxes of a superbox did in a step.

        `counts` are the tuples of arcs that the step has counted.
        """
        arcs = {arc: count for (arc, name), count in counts.items() if name == "tuples"}
        arcs = {**dict.fromkeys(superbox.terminals, 0), **flow.read, **flow.passed, **arcs}
        taken: dict[str, int] = {}
        given: dict[str, int | None] = {}
        for box in superbox.boxes:
            taken[box] = self._taken(superbox, box, flow, arcs)
            given[box] = self._given(superbox, box, taken[box], arcs)
        spent = attributed(seconds, taken, self._weights, flow.spent_s)
        found: dict[str, BoxWork] = {}
        for box in superbox.boxes:
            called_s = flow.spent_s.get(box, 0.0)
            done = BoxWork(taken[box], given[box], spent[box], called_s)
            origin = self._checked.origin(box)
            found[origin] = found[origin] + done if origin in found else done
        for sieve, (came, passed) in flow.sifted.items():
            found[sieve] = SieveWork(came, passed, 0.0)
        return found

    def inner_counts(
        self, superbox: Superbox, flow: StepFlow, counts: Mapping[tuple[str, str], int]
    ) -> dict[tuple[str, str], int]:
        """The counts, with those of arcs inside a superbox that its tasks have counted."""
        arcs = self._checked.arcs
        passed = {arc: count for arc, count in flow.passed.items() if arc in arcs}
        passed = {arc: n for arc, n in passed.items() if arc not in superbox.sources}
        return {**{(arc, "tuples"): count for arc, count in passed.items()}, **counts}

    def take_over(self, before: CostMeter, kept: Collection[str]) -> None:
        """Superboxes that stay the same have had the calls that they have had."""
        self._calls = {name: calls for name, calls in before._calls.items() if name in kept}

    def is_starting(self, superbox: str) -> bool:
        """Whether the next call of a superbox is one of its first."""
        return self._calls.get(superbox, 0) < len(_FIRST_CALLS)

    def weight_of_call(self, superbox: Superbox) -> float:
        """What the next call of a superbox counts: the first ones say little of what follows."""
        calls = self._calls[superbox.name] = self._calls.get(superbox.name, 0) + 1
        return 1.0 if calls > len(_FIRST_CALLS) else _FIRST_CALLS[calls - 1]

    def declared_counts(self, counts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
        """The counts without those of arcs that carry other tuples than declared."""
        displaced = {(arc, "tuples") for arc in self._checked.displaced}
        return {key: count for key, count in counts.items() if key not in displaced}

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
