"""What a scheduler decides, and what it is told (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable


@dataclass(frozen=True)
class PlannedCall:
    """A box, and how many tuples it takes; None: all that wait."""

    box: str
    tuples: int | None = None


@dataclass(frozen=True)
class SchedulingPlan:
    """Calls that one worker makes one after the other [2 §4]."""

    calls: tuple[PlannedCall, ...]
    application: str | None = None
    """The output for which it was chosen; None if no output was."""
    why: str = ""
    """The reason in words, for `engine.story`."""


class Scheduler(Protocol):
    """Decides what runs next. It has no clock, no threads and no files of its own."""

    def serve(self, model: FlowModel) -> None:
        """Decide for this network from now on: boxes, costs or graphs have changed."""
        ...

    def decide(self, table: QueueTable, now_s: float, free: int) -> list[SchedulingPlan]:
        """At most `free` plans, the most urgent one first; none if nothing waits.

        Boxes that run are not called again, and no two plans call the same box. A box is called
        if tuples wait for it, or if an earlier call of the same plan will give it some. The
        scheduler writes `priority` into the table and empties `changed`.
        """
        ...
