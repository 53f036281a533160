"""The table that scheduler and storage share: what waits in front of each box [1 §4.2] (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass
class BoxQueue:
    """The tuples that wait for a box. Times are seconds of whatever clock the owner uses."""

    box: str
    queued: int = 0
    """Tuples that wait."""
    mean_arrival_s: float = 0.0
    """When they arrived in the system, on average; the latency of a box [2 §6.1] is the time
    since then."""
    oldest_arrival_s: float = 0.0
    running: bool = False
    """Whether a call of the box is under way."""
    priority: float | None = None
    """What the scheduler thinks of it: the larger, the sooner; None before it has thought."""
    resident: float = 1.0
    """The share of the queue that is in memory."""
    bytes: int = 0
    """The size of the queue."""


class QueueTable:
    """The queues of all boxes.

    `changed` are the boxes whose queue or call has changed since it was emptied last, so that a
    scheduler need not look at the others.

    >>> table = QueueTable(["far", "near"])
    >>> table.fill("far", 10, mean_arrival_s=4.0, oldest_arrival_s=2.0)
    >>> table["far"].queued, sorted(table.changed)
    (10, ['far'])
    """

    def __init__(self, boxes: Iterable[str] = ()):
        self.queues: dict[str, BoxQueue] = {box: BoxQueue(box) for box in boxes}
        self.changed: set[str] = set()

    def __getitem__(self, box: str) -> BoxQueue:
        return self.queues[box]

    def add(self, box: str) -> None:
        """Let there be a queue for a box."""
        self.queues[box] = BoxQueue(box)

    def fill(
        self,
        box: str,
        queued: int,
        *,
        mean_arrival_s: float,
        oldest_arrival_s: float,
        bytes: int = 0,
        resident: float = 1.0,
    ) -> None:
        """Say what waits for a box now."""
        queue = self.queues[box]
        queue.resident = resident
        found = (queued, mean_arrival_s, oldest_arrival_s, bytes)
        if found != (queue.queued, queue.mean_arrival_s, queue.oldest_arrival_s, queue.bytes):
            queue.queued, queue.mean_arrival_s, queue.oldest_arrival_s, queue.bytes = found
            self.changed.add(box)

    def set_running(self, box: str, running: bool) -> None:
        """Say whether a call of a box is under way."""
        queue = self.queues[box]
        if queue.running != running:
            queue.running = running
            self.changed.add(box)
