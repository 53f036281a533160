"""What the steps of a superbox have in common, whatever its boxes do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from auroral.engine.runtime.measuring import StepFlow
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.dropping import DropCount
from auroral.io.chunk import DeadLetter
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files
from auroral.storage import Change, Segment


def _nothing() -> None:
    return None


@dataclass
class StepOutcome:
    """What a step has made; it becomes true when its change is committed."""

    change: Change
    letters: list[DeadLetter] = field(default_factory=list)
    before_commit: Callable[[], None] = _nothing
    """Adds to the change what depends on what other steps have committed meanwhile."""
    after_commit: Callable[[], None] = _nothing
    flow: StepFlow | None = None
    """The tuples it read and counted; None if there was nothing to run."""
    shed: Mapping[str, DropCount] = field(default_factory=dict)
    """What drop boxes in front of it did, by source."""


class SuperboxStep(Protocol):
    """The steps of one superbox.

    `begin` decides, in the thread that decides everything; the function that it returns does the
    work and may run in any thread. One step of a superbox is under way at a time.
    """

    @property
    def superbox(self) -> Superbox: ...

    @property
    def pending(self) -> int | None:
        """The first moment of which not everything has been emitted."""
        ...

    @property
    def has_room(self) -> Callable[[Mapping[str, int]], bool] | None:
        """Tells whether Spark has planned for so many files; None if any number will do."""
        ...

    def drops_in_tasks(self, files: Files) -> bool:
        """Whether its tasks apply drop boxes to what they read of these files."""
        ...

    def boundary(self, moment: int) -> int | None:
        """The moment at which a train that begins at `moment` must end, whatever its size."""
        ...

    def writes(self, log: str) -> bool:
        """Whether it writes a log that is no arc of the network."""
        ...

    def begin(self, train: Train) -> Callable[[Files], StepOutcome]:
        """Decide on a step; what is returned runs it over the files of the train."""
        ...

    def segments(self) -> Iterable[Segment]:
        """The segments of its state."""
        ...

    def warm_up(self) -> None:
        """Get ready before the first train."""
        ...

    @property
    def is_compiling(self) -> bool:
        """Whether something is compiled for it in the background."""
        ...

    def wait(self) -> None:
        """Wait until nothing is compiled for it in the background."""
        ...
