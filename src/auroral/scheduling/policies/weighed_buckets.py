"""`qos-bucketed` where calls are dear: the order of weighed trains, without looking at all boxes.

Boxes whose calls are worth about the same share a bucket. What a call is worth grows in a known way
while tuples wait (`TrainWorth.grows_to_in_s`), so it is known when a box will move to the next
bucket: a calendar queue holds these times [2 §6.2]. A decision looks only at boxes whose queue has
changed or whose time has come.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Collection, Iterator
from typing import NamedTuple

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.calendar import CalendarQueue
from auroral.scheduling.policies.rankings import Candidate, is_ready
from auroral.scheduling.policies.utility_first import priority_number, reason
from auroral.scheduling.queues import BoxQueue, QueueTable
from auroral.scheduling.train_worth import TrainWorth, WorthOfTrains

RATIO = 1.25
"""Boxes whose calls are worth the same but for this factor share a bucket."""
LEAST = 1e-3
"""What is worth less shares the lowest bucket."""
_LOWEST = -1
_DUE = -2
"""The bucket of boxes whose waiting costs nothing yet, in order of when it will."""
_OVER = -3
"""The bucket of boxes that have nothing left to lose, in order of age."""


class _PlacedBox(NamedTuple):
    """Where a box is, and why."""

    bucket: int
    order: float
    """By which boxes of the bucket are ordered: an arrival, or when waiting begins to cost."""
    output: str | None
    loss: float


class WeighedBuckets:
    """The order of `WeighedTrains`, but for boxes of almost the same worth."""

    def __init__(self, worth: WorthOfTrains):
        self._worth = worth
        self._place: dict[str, int] = {}
        self._names: list[str] = []
        self._buckets: dict[int, list[tuple[float, int]]] = {}
        self._entries: dict[str, _PlacedBox] = {}
        self._calendar = CalendarQueue()
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Decide for this network from now on."""
        self._worth.serve(model)
        self._place, self._names = model.place, list(model.boxes)
        self._buckets, self._entries = {}, {}
        self._calendar = CalendarQueue(day_s=(self._worth.longest_s or 1.0) / 1000)

    def rank(
        self, table: QueueTable, changed: Collection[str], now_s: float
    ) -> Iterator[Candidate]:
        """What is worth most first."""
        for box in changed:
            self._put(table[box], now_s)
        for box in self._calendar.due(now_s):
            self._put(table[box], now_s)
        return self._ranked(now_s)

    def served(self, _candidate: Candidate) -> None:
        """Queues alone decide."""

    def _ranked(self, now_s: float) -> Iterator[Candidate]:
        for bucket in sorted(self._buckets, reverse=True):
            self.buckets_visited += 1
            for order, place in self._buckets[bucket]:
                box = self._names[place]
                placed = self._entries[box]
                slack_s = order - now_s if bucket == _DUE else math.inf
                yield Candidate(box, placed.output, reason(placed.output, placed.loss, slack_s))

    def _put(self, queue: BoxQueue, now_s: float) -> None:
        """Put a box where it belongs, and note when it will belong elsewhere."""
        box = queue.box
        if not is_ready(queue):
            self._move(box, None)
            self._calendar.remove(box)
            if not queue.queued:
                queue.priority = None
            return
        self.evaluated += 1
        found = self._worth.of(queue, now_s)
        slack_s = -found.negative_slack_s
        bucket = _bucket(found)
        order = now_s + slack_s if bucket == _DUE else queue.oldest_arrival_s
        self._move(box, _PlacedBox(bucket, order, found.output, found.loss))
        queue.priority = priority_number(found.per_s, slack_s)
        stays_s = min(_climbs_in_s(found, bucket), found.steady_s)
        if stays_s < math.inf:
            self._calendar.put(box, math.nextafter(now_s + stays_s, math.inf))
        else:
            self._calendar.remove(box)

    def _move(self, box: str, placed: _PlacedBox | None) -> None:
        before = self._entries.get(box)
        if before == placed:
            return
        place = self._place[box]
        if before is not None:
            held = self._buckets[before.bucket]
            del held[bisect_left(held, (before.order, place))]
            del self._entries[box]
            if not held:
                del self._buckets[before.bucket]
        if placed is not None:
            insort(self._buckets.setdefault(placed.bucket, []), (placed.order, place))
            self._entries[box] = placed


def _bucket(worth: TrainWorth) -> int:
    """Where boxes of such worth are.

    >>> idle = TrainWorth(0.0, -2.0, 1.0, "alerts", 0.0, slope=0.0, square=0.0, steady_s=2.0)
    >>> _bucket(idle), _bucket(idle._replace(square=4.0)), _bucket(idle._replace(per_s=LEAST * 2))
    (-2, -1, 3)
    """
    if worth.per_s > LEAST:
        return math.floor(math.log(worth.per_s / LEAST) / math.log(RATIO))
    if worth.per_s > 0 or worth.square > 0:
        return _LOWEST
    return _DUE if worth.steady_s < math.inf else _OVER


def _climbs_in_s(worth: TrainWorth, bucket: int) -> float:
    """After which time a box is worth more than those of its bucket."""
    if bucket < _LOWEST:
        return math.inf
    return worth.grows_to_in_s(LEAST * RATIO ** (bucket + 1))
