"""Which queues are in memory: looks at them between steps, and counts what steps read."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from auroral.engine.runtime.deciding import StepScheduler
from auroral.engine.runtime.train import Train
from auroral.errors import Caution
from auroral.network.declarations import EngineOptions
from auroral.scheduling.queues import BoxQueue
from auroral.scheduling.residency import QueuedSegment, ResidencyPlanner, WaitingQueue
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Segment, Store
from auroral.storage.resident import ResidentSegments

_LOG = logging.getLogger("auroral")
LOOK_EVERY_S = 0.25
"""How often the queues of an engine with threads are looked at, unless that takes too long."""
_PAUSE = 100.0
"""So many times as long as a look took nobody looks again: very long queues cost no more."""


class QueueMemory:
    """Keeps the queues of the most urgent superboxes in memory, within `engine: {memory: …}`."""

    def __init__(
        self,
        store: Store,
        *,
        background: bool,
        planner: Callable[[int], ResidencyPlanner] = ResidencyPlanner,
        now_s: Callable[[], float] = time.monotonic,
    ):
        """`background`: segments are loaded by a thread, and rounds come quickly."""
        self._store = store
        self._now_s = now_s
        self._resident = ResidentSegments(planner(0), background=background, now_s=now_s)
        self._every_s = LOOK_EVERY_S if background else 0.0
        self._next_look_s = -math.inf
        self._superboxes: Sequence[Superbox] = ()
        self._larger: dict[str, int] = {}
        """By superbox, the most bytes of a train that the memory for queues has no room for."""
        store.resident = self._resident

    def serve(self, superboxes: Sequence[Superbox], options: EngineOptions, train: int) -> None:
        """Keep the queues of these superboxes from now on; `train` is the most tuples of a step."""
        self._superboxes = superboxes
        logs = {source for superbox in superboxes for source in superbox.sources}
        self._resident.serve(logs, options.memory_bytes, train)

    def begin(self, train: Train) -> None:
        """A step is about to read a train."""
        held = [segment for found in train.segments.values() for segment in found]
        self._resident.note_read(held)
        size, name = sum(segment.bytes for segment in held), train.superbox.name
        if size <= max(self._resident.budget, self._larger.get(name, 0)):
            return
        if name not in self._larger:
            message = (
                f"the segments of a train take {size:,} bytes, more than the"
                f" {self._resident.budget:,} bytes of memory for queues: they are read from the"
                " disk"
            )
            _LOG.warning(Caution("TRAIN_EXCEEDS_MEMORY", message, f"superbox {name}"))
        self._larger[name] = size

    def follow(self, scheduler: StepScheduler | None, read: Sequence[Train]) -> None:
        """Keep in memory what a scheduler thinks is urgent; the trains `read` are under way."""
        if scheduler is None:
            self.tend({}, (), read)
        else:
            self.tend(scheduler.table.queues, scheduler.planned, read)

    def tend(
        self, queues: Mapping[str, BoxQueue], next_: Collection[str], read: Sequence[Train]
    ) -> None:
        """Load and evict by the priorities of `queues`; superboxes that run `next_` come first.

        What the trains `read`, which are under way, stays.
        """
        now_s = self._now_s()
        if now_s < self._next_look_s:
            return
        self._look(queues, next_, read)
        if self._every_s:
            spent_s = self._now_s() - now_s
            self._next_look_s = now_s + max(self._every_s, _PAUSE * spent_s)

    def _look(
        self, queues: Mapping[str, BoxQueue], next_: Collection[str], read: Sequence[Train]
    ) -> None:
        known: dict[str, Segment] = {}
        waiting = []
        for superbox in self._superboxes:
            queue = queues.get(superbox.name)
            priority = queue.priority if queue is not None else None
            for log in superbox.sources:
                held = self._waiting(log, superbox.name)
                known.update((s.file, s) for s in held if s.file)
                segments = [
                    QueuedSegment(s.file, log, self._resident.size(s), s.first)
                    for s in held
                    if s.file
                ]
                urgency = math.inf if superbox.name in next_ else priority
                waiting.append(WaitingQueue(superbox.name, log, segments, urgency))
        pinned = {s.file for train in read for found in train.segments.values() for s in found}
        store = self._store
        self._resident.tend(
            waiting,
            {file for file in pinned if file},
            lambda file: (store.path_of(known[file]), known[file]),
        )

    def _waiting(self, log: str, reader: str) -> list[Segment]:
        return self._store.segments(log, self._store.head(log, reader))

    def share(self, segments: Sequence[Segment]) -> float:
        """The share of some segments that is in memory."""
        return self._resident.share(segments)

    def statistics(self) -> dict[str, Any]:
        """How much is in memory, what was moved, and what steps have read from where."""
        return {
            "budget": self._resident.budget,
            "used": self._resident.used,
            **vars(self._resident.counts),
            "larger_trains": dict(self._larger),
        }
