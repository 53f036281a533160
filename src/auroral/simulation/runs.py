"""Queues of simulated tuples: runs of tuples that arrived together, not an object per tuple."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

TupleRun = tuple[float, int, float]
"""When some tuples arrived in the system, in seconds; how many they are; the value that they have,
for graphs and drops by value."""


class RunQueue:
    """The tuples that wait for a box, first in, first out.

    >>> queue = RunQueue()
    >>> queue.put([(1.0, 3, 0.0), (2.0, 5, 0.0)])
    8
    >>> queue.take(4), queue.queued, queue.mean_arrival_s
    ([(1.0, 3, 0.0), (2.0, 1, 0.0)], 4, 2.0)
    """

    __slots__ = ("_in_order", "_runs", "_sum_s", "queued")

    def __init__(self) -> None:
        self._runs: deque[TupleRun] = deque()
        self.queued = 0
        self._sum_s = 0.0
        self._in_order = True

    def put(self, runs: Iterable[TupleRun]) -> int:
        """Add tuples behind all others; returns how many."""
        before = self.queued
        last_s = self._runs[-1][0] if self._runs else float("-inf")
        for run in runs:
            arrival_s, count, _ = run
            self._runs.append(run)
            self.queued += count
            self._sum_s += arrival_s * count
            self._in_order = self._in_order and arrival_s >= last_s
            last_s = arrival_s
        return self.queued - before

    def take(self, most: int | None = None) -> list[TupleRun]:
        """Remove the first tuples, at most `most`; None: all."""
        if most is None or most >= self.queued:
            taken = list(self._runs)
            self._runs.clear()
            self.queued, self._sum_s, self._in_order = 0, 0.0, True
            return taken
        taken = []
        left = most
        while left:
            arrival_s, count, value = self._runs[0]
            some = min(count, left)
            if some == count:
                self._runs.popleft()
            else:
                self._runs[0] = (arrival_s, count - some, value)
            taken.append((arrival_s, some, value))
            left -= some
            self.queued -= some
            self._sum_s -= arrival_s * some
        return taken

    @property
    def mean_arrival_s(self) -> float:
        """When the tuples arrived, on average; 0 if none wait."""
        return self._sum_s / self.queued if self.queued else 0.0

    @property
    def oldest_arrival_s(self) -> float:
        """When the oldest of the tuples arrived; 0 if none wait."""
        if not self._runs:
            return 0.0
        # Inputs of several boxes may come out of order.
        return self._runs[0][0] if self._in_order else min(run[0] for run in self._runs)


class Share:
    """Takes a share of tuples, fractions carried over: the same tuples in every simulation.

    >>> share = Share(0.4)
    >>> [share.of([(float(t), 1, 0.0)]) for t in range(4)]
    [[], [], [(2.0, 1, 0.0)], []]
    """

    __slots__ = ("_carried", "_share")

    def __init__(self, share: float):
        self._share = share
        self._carried = 0.0

    def of(self, runs: list[TupleRun]) -> list[TupleRun]:
        """The share of some runs; runs of which nothing is left are left out."""
        if self._share == 1:
            return runs
        given: list[TupleRun] = []
        carried, share = self._carried, self._share
        for arrival_s, count, value in runs:
            carried += count * share
            some = int(carried + 1e-9)
            if some:
                carried -= some
                given.append((arrival_s, some, value))
        self._carried = carried
        return given
