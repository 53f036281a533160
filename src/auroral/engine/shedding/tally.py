"""What steps have done lately: the tuples that superboxes have processed, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass

from auroral.engine.runtime.stepping import CommittedStep

_NEW = 0.3
"""What the latest step counts in the mean of a superbox."""
_UNUSUAL = 3.0
"""A step that takes longer than so many usual ones counts as so many."""


@dataclass(frozen=True)
class DoneWork:
    """What steps did between two looks."""

    processed: dict[str, float]
    """By superbox; tuples that were dropped in front of it do not count."""
    steps: dict[str, int]
    """By superbox, steps that have ended."""
    step_s: float
    """How long steps usually take, of the superbox whose steps take longest."""


class StepTally:
    """Counts what committed steps have processed; the thread that commits them takes it."""

    def __init__(self) -> None:
        self._processed: dict[str, float] = {}
        self._steps: dict[str, int] = {}
        self._usual_s: dict[str, float] = {}

    def committed(self, step: CommittedStep) -> None:
        """A step was committed."""
        name = step.train.superbox.name
        self._steps[name] = self._steps.get(name, 0) + 1
        if step.outcome.flow is None:
            return
        tuples = sum(step.outcome.flow.read.values())
        self._processed[name] = self._processed.get(name, 0.0) + tuples
        if step.is_first:
            return
        usual_s = self._usual_s.get(name, step.seconds)
        taken_s = min(step.seconds, _UNUSUAL * usual_s)
        self._usual_s[name] = usual_s + _NEW * (taken_s - usual_s)

    def take(self) -> DoneWork:
        """What was done since the last call."""
        step_s = max(self._usual_s.values(), default=0.0)
        found = DoneWork(self._processed, self._steps, step_s)
        self._processed, self._steps = {}, {}
        return found
