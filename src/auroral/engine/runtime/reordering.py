"""When boxes change places: what was measured, and whether a better order is worth the change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from auroral.boxes import Map, Union
from auroral.engine.runtime.stepping import CommittedStep
from auroral.network.box import Box
from auroral.optimizer import (
    ASSUMED_S,
    ORDERING,
    Estimate,
    Measured,
    Move,
    Subnetworks,
    assumed,
)
from auroral.scheduling.costs import BoxCost

LEAST_CALLS = 3
"""How often a box must have run before it moves or is passed."""
LEAST_GAIN = 0.1
"""The share of a subnetwork's cost that another order must save."""
LEAST_OF_STEP = 0.02
"""The share of the time of a step that it must save: most of a short step is overhead."""
SETTLING_STEPS = 5
"""Steps between two changes of a subnetwork; twice as many after each change that follows soon."""
LASTING_STEPS = 3
"""For so many steps in a row another order must have been better."""
_MOST_SETTLING = 1_000
_CALM = 20
"""So many times the steps between changes must pass without one to be counted as calm."""
_KEPT = 0.8


@dataclass(frozen=True)
class OrderChange:
    """Another order of boxes, and why it is better."""

    moves: tuple[Move, ...]
    reasons: tuple[tuple[str, str], ...] = ()
    """Boxes that move, and the reason in words."""


@dataclass
class _History:
    """The changes of one subnetwork."""

    settling: int = SETTLING_STEPS
    changed_at: int | None = None
    """The step of the latest change."""
    better_since: int | None = None
    """The step since which another order is better."""

    def is_lasting(self, step: int) -> bool:
        """Whether another order, which is better in this step, has been so for long enough."""
        if self.better_since is None:
            self.better_since = step
        return step - self.better_since >= LASTING_STEPS - 1

    def is_settled(self, step: int) -> bool:
        return self.changed_at is None or step - self.changed_at >= self.settling

    def change(self, step: int) -> None:
        if self.changed_at is not None:
            calm = step - self.changed_at >= _CALM * self.settling
            self.settling = SETTLING_STEPS if calm else min(2 * self.settling, _MOST_SETTLING)
        self.changed_at, self.better_since = step, None


class OrderOptimizer:
    """Learns from steps what boxes cost, and decides when some should change places [1 §3.1].

    It observes steps in the thread that commits them, and decides in the same thread.
    """

    def __init__(self) -> None:
        self._measured: dict[str, Measured] = {}
        self._step_s: dict[str, float] = {}
        """By box, how long its steps take lately."""
        self._arrivals: dict[str, float] = {}
        """By arc that is read from a log, how many tuples a step takes lately."""
        self.steps: dict[str, int] = {}
        """By box, its steps so far."""
        self.expression_s: Mapping[str, float] = {}
        """By box, the seconds that its expressions take for a tuple, if they were timed."""
        self._alone: dict[str, BoxCost] = {}
        """What was measured of boxes that are steps of their own."""
        self._histories: dict[frozenset[str], _History] = {}
        self._stepped: set[str] = set()
        """The boxes that have run since the last decision."""
        self.changes = 0
        """How often boxes have changed places."""

    def committed(self, step: CommittedStep) -> None:
        """A step was committed."""
        if not step.work or step.outcome.flow is None:
            return
        self._stepped.update(step.work)
        for box, done in step.work.items():
            known = self._measured.get(box, Measured())
            self._measured[box] = known.after(done.tuples_in, done.tuples_out, done.function_s)
            self.steps[box] = self.steps.get(box, 0) + 1
            if len(step.train.superbox.boxes) > 1:
                self._alone.pop(box, None)
            elif self.steps[box] > LEAST_CALLS:  # Spark compiles in the first ones
                alone = self._alone.get(box, BoxCost())
                self._alone[box] = alone.after(done.tuples_in, done.tuples_out, done.seconds)
            self._step_s[box] = _faded(self._step_s.get(box), step.seconds)
        flow = step.outcome.flow
        for arc, count in {**flow.passed, **flow.read}.items():
            self._arrivals[arc] = _faded(self._arrivals.get(arc), count)

    def decide(
        self, subnetworks: Subnetworks | None, current: tuple[Move, ...]
    ) -> OrderChange | None:
        """The moves that there should be; None if those that there are may stay."""
        if subnetworks is None:
            return OrderChange(()) if current else None
        of_box = subnetworks.of_box
        stepped = dict.fromkeys(of_box[box] for box in self._stepped if box in of_box)
        self._stepped = set()
        found, reasons = current, list[tuple[str, str]]()
        for boxes in stepped:
            own = tuple(move for move in current if move.box in boxes)
            better = self._better(subnetworks, boxes, own)
            if better is not None:
                others = tuple(move for move in found if move.box not in boxes)
                found = (*others, *better.moves)
                reasons += better.reasons
        if not reasons:
            return None
        self.changes += 1
        return OrderChange(found, tuple(reasons))

    def estimates(
        self, subnetworks: Subnetworks, boxes: Collection[str], current: Collection[Move]
    ) -> dict[str, Estimate]:
        """What is known of some boxes.

        The time in Python functions is measured, and expressions that may take long are timed on
        some tuples now and then; others are taken for as fast as such expressions usually are.
        The time of a step cannot be divided among its fused boxes well enough: most of it is the
        step's own. Only a box that is a step of its own takes what its steps take.
        """
        found: dict[str, Estimate] = {}
        for name in boxes:
            box = subnetworks.checked.network.boxes[name]
            known = self._measured.get(name, Measured())
            passes_all = isinstance(box, Map | Union)
            estimate = known.estimate(LEAST_CALLS)
            if estimate is not None:
                cost_s = max(
                    estimate.cost_s + self._expression_s(name, box), self._step_cost_s(name)
                )
                selectivity = 1.0 if passes_all else estimate.selectivity
                found[name] = Estimate(cost_s, selectivity)
        for move in current:
            # Behind a sieve, fewer pairs are made, and the filter has less to drop.
            known = self._measured.get(move.sieve.name if move.sieve else "", Measured())
            estimate = known.estimate(LEAST_CALLS)
            if move.sieve is not None and estimate is not None and move.box in found:
                share, own = estimate.selectivity, found[move.box]
                found[move.sieve.name] = Estimate(own.cost_s, share)
                found[move.box] = replace(own, selectivity=own.selectivity * share)
                if share and move.past in found:
                    join = found[move.past]
                    found[move.past] = replace(join, selectivity=join.selectivity / share)
        return found

    def _expression_s(self, name: str, box: Box) -> float:
        """The seconds of a tuple in the expressions of a box, never less than for a comparison."""
        timed_s = self.expression_s.get(name)
        return assumed(box, False).cost_s if timed_s is None else max(timed_s, ASSUMED_S)

    def _step_cost_s(self, name: str) -> float:
        """The seconds of a tuple in the steps of a box; 0 if others share them.

        Trains of one size do not tell what a tuple takes from what a step takes.
        """
        known = self._alone.get(name, BoxCost())
        return known.cost_s or 0.0 if known.call_s else 0.0

    def _better(
        self, subnetworks: Subnetworks, boxes: frozenset[str], current: tuple[Move, ...]
    ) -> OrderChange | None:
        """A better order of a subnetwork; None if there is none that is worth the change."""
        history = self._histories.setdefault(boxes, _History())
        step = max((self.steps.get(box, 0) for box in boxes), default=0)
        if not history.is_settled(step):
            return None
        estimates = self.estimates(subnetworks, boxes, current)
        passed = tuple(move for move in current if move.tactic in ORDERING)
        if not estimates.keys() >= {box for move in passed for box in (move.box, move.past)}:
            return None  # an earlier run has found that order; it was not measured again yet
        best = subnetworks.best(boxes, estimates)
        now_s, then_s = (
            subnetworks.cost_s(boxes, moves, estimates, self._arrivals) for moves in (passed, best)
        )
        step_s = max((self._step_s.get(box, 0.0) for box in boxes), default=0.0)
        gain_s = now_s - then_s
        worth = gain_s >= max(LEAST_GAIN * now_s, LEAST_OF_STEP * step_s)
        if best and not worth:
            best = passed  # the declared order needs no gain to be taken again
        best = subnetworks.tidied(boxes, best) if estimates else current
        if subnetworks.is_same(boxes, best, current):
            history.better_since = None
            return None
        if not history.is_lasting(step):
            return None
        history.change(step)
        reasons = [(m.box, _forward(m, gain_s)) for m in best if m not in current]
        reasons += [(m.box, _back(m)) for m in current if m not in best]
        return OrderChange(best, tuple(reasons))

    def statistics(
        self, subnetworks: Subnetworks | None, current: tuple[Move, ...]
    ) -> dict[str, Any]:
        """What was moved, why, and what is known of the boxes that may move."""
        boxes: set[str] = set().union(*subnetworks.all) if subnetworks is not None else set()
        known = self.estimates(subnetworks, boxes, current) if subnetworks is not None else {}
        return {
            "changes": self.changes,
            "moves": [move.document() for move in current],
            "boxes": {name: _shown(known[name]) for name in sorted(known)},
            "subnetworks": _shown_parts(subnetworks, current),
        }


def _forward(move: Move, gain_s: float) -> str:
    if move.tactic == "sifted":
        saved = f"{move.why}; a step saves {gain_s:.3g} s"
        return f"in front of the {move.side} input of {move.past}: {saved}"
    if move.tactic == "passed":
        return f"in front of {move.past}: {move.why}; a step saves {gain_s:.3g} s"
    return f"{move.tactic}: {move.why}"


def _back(move: Move) -> str:
    if move.tactic in ORDERING:
        return f"back behind {move.past}: in front of it, it saves nothing any more"
    return f"no longer {move.tactic}: boxes around it have moved"


def _shown(estimate: Estimate) -> dict[str, float]:
    return {
        "cost_s": estimate.cost_s,
        "selectivity": estimate.selectivity,
        "ratio": estimate.ratio,
    }


def _shown_parts(
    subnetworks: Subnetworks | None, current: tuple[Move, ...]
) -> list[dict[str, list[str]]]:
    """The boxes of each subnetwork in flow order, as declared and as they run."""
    if subnetworks is None:
        return []
    return [
        {
            "declared": list(subnetworks.origins(boxes, ())),
            "runs": subnetworks.steps(boxes, current),
        }
        for boxes in subnetworks.all
    ]


def _faded(known: float | None, value: float) -> float:
    return float(value) if known is None else known * _KEPT + value * (1 - _KEPT)
