"""What a stepper is given: limits, and those who move marks on, record, observe and intervene."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from auroral.eddy.registered import NEVER
from auroral.engine.runtime.measuring import BoxWork
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.train import Train
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files
from auroral.storage import Change, Store

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True)
class Limits:
    """Up to which moments superboxes may work, as other boxes start at them."""

    due: int = NEVER
    staying: Collection[Superbox] = ()
    """Superboxes that stay the same, and may go on up to `later`."""
    later: int = NEVER
    """When the epoch after the next one starts."""

    def of(self, superbox: Superbox, complete: int) -> int:
        return min(complete, self.later if superbox in self.staying else self.due)


@dataclass(frozen=True)
class WaitingStep:
    """A step that waits for a database."""

    reason: str
    tries: int
    until: float
    """When it is tried again, by the monotonic clock."""

    @classmethod
    def after(cls, before: WaitingStep | None, reason: str, now_s: float) -> WaitingStep:
        """It has failed once more: each pause is twice as long, up to some seconds."""
        tries = before.tries + 1 if before is not None else 1
        pause_s = min(_FIRST_PAUSE_S * 2 ** min(tries - 1, 10), _LONGEST_PAUSE_S)
        return cls(reason, tries, now_s + pause_s)


class Arrivals(Protocol):
    """Moves marks on by what has arrived."""

    def fold(self, complete: int) -> None:
        """Move the marks up to where logs are complete."""
        ...


class MarksRecorder(Protocol):
    """Keeps the moves of marks before they are forgotten."""

    def record(self, change: Change, watermarks: WatermarkTracker, done: int) -> None:
        """Add to a change the moves before a moment."""
        ...

    def record_until(self, watermarks: WatermarkTracker, moment: int) -> None:
        """Commit the moves before a moment."""
        ...


@dataclass(frozen=True)
class CommittedStep:
    """A step that has become true."""

    train: Train
    outcome: StepOutcome
    seconds: float
    work: Mapping[str, BoxWork] = field(default_factory=dict)
    """What each declared box did in it; empty if nothing had to be run."""
    is_first: bool = False
    """Whether it was one of the first calls of its superbox, in which Spark compiles."""


class StepObserver(Protocol):
    """Learns from steps, in the thread that commits them."""

    def committed(self, step: CommittedStep) -> None:
        """A step was committed."""
        ...


class TrainFiles(Protocol):
    """Makes the files of a train; see `train_files`."""

    def __call__(
        self,
        store: Store,
        train: Train,
        directory: Path,
        *,
        has_room: Callable[[Mapping[str, int]], bool] | None,
    ) -> Files: ...


@dataclass(frozen=True)
class DueSpan:
    """The moments that a superbox has not processed and could."""

    superbox: Superbox
    first: int
    last: int
    pending: bool
    """Whether it holds back something of earlier moments."""


class StepWatch(Protocol):
    """Intervenes while somebody debugs, in the thread that decides and commits.

    Nothing of it is called unless it is `active`.
    """

    @property
    def active(self) -> bool:
        """Whether somebody debugs or looks at tuples."""
        ...

    def may_start(self, superbox: str) -> bool:
        """Whether a superbox may start a step now."""
        ...

    def limit(self, superbox: str) -> int:
        """The moment before which a superbox may work now."""
        ...

    def admit(self, train: Train, *, recorded: bool) -> Train | None:
        """The train that is started, or the first part of it; None: none for now.

        One that was `recorded` before cannot be cut.
        """
        ...

    def committing(self, train: Train, change: Change) -> None:
        """A step is about to be committed; what it wrote is there, and what it read, too."""
        ...

    def committed(self, step: CommittedStep) -> None:
        """A step was committed."""
        ...


class EngineWatch(StepWatch, Protocol):
    """What the loop has to know of somebody who debugs."""

    @property
    def is_paused(self) -> bool:
        """Whether something is paused."""
        ...

    @property
    def recovers_until(self) -> int:
        """What arrived before this moment has waited because of a pause."""
        ...

    def sampler(self) -> Callable[[str, int], pa.Table]:
        """What gives the latest tuples of an arc, at most so many, in any thread."""
        ...
