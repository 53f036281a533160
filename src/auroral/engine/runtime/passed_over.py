"""Why a superbox waited although it had tuples: others were chosen before it (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from auroral.network.declarations import SchedulerName
from auroral.scheduling.decisions import SchedulingPlan

_REMEMBERED = 64
"""Of so many choices it is known who was chosen."""
LEAST_WAIT_S = 0.1
"""Shorter waits are not told."""


@dataclass(frozen=True)
class _Choice:
    at_s: float
    boxes: frozenset[str]
    first: str
    """The superbox that is called first."""
    output: str | None
    costs: bool
    """Whether waiting costs the output something already."""
    scheduler: SchedulerName

    @property
    def reason(self) -> str:
        """Why others waited."""
        if self.scheduler == "fifo":
            return f"older tuples of {self.first} went first"
        if self.scheduler not in ("qos", "qos-bucketed", "feedback"):
            return f"it was the turn of {self.output or self.first}"
        whose = self.output or self.first
        if self.scheduler == "feedback":
            return f"{whose} was further from its good zone"
        return f"{whose} had the steeper graph" if self.costs else f"{whose} was due sooner"


class PassedOver:
    """Remembers whom the scheduler has chosen lately.

    >>> from auroral.scheduling.decisions import PlannedCall
    >>> plan = SchedulingPlan((PlannedCall("fast"),), "alerts", "alerts: waiting costs 1")
    >>> passed = PassedOver()
    >>> passed.chose([plan], 4.0, "qos")
    >>> passed.why("slow", 3.5, 4.7), passed.why("slow", 4.5, 4.7), passed.why("fast", 3.5, 4.7)
    ('waited 1.2 s: alerts had the steeper graph', None, None)
    """

    def __init__(self) -> None:
        self._choices: deque[_Choice] = deque(maxlen=_REMEMBERED)

    def chose(
        self, plans: Iterable[SchedulingPlan], now_s: float, scheduler: SchedulerName
    ) -> None:
        """A scheduler has chosen these plans."""
        for plan in plans:
            boxes = frozenset(call.box for call in plan.calls)
            costs = "waiting costs" in plan.why and "until waiting" not in plan.why
            first = plan.calls[0].box
            choice = _Choice(now_s, boxes, first, plan.application, costs, scheduler)
            self._choices.append(choice)

    def why(self, superbox: str, oldest_s: float, now_s: float) -> str | None:
        """Why a superbox whose oldest tuple came at a time has waited; None if it has not."""
        waited_s = now_s - oldest_s
        if waited_s < LEAST_WAIT_S:
            return None
        for choice in reversed(self._choices):
            if choice.at_s < oldest_s:
                return None
            if superbox not in choice.boxes:
                return f"waited {waited_s:.2g} s: {choice.reason}"
        return None
