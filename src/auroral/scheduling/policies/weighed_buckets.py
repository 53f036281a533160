"""`qos-bucketed` where calls are dear: the order of weighed trains, without looking at all boxes.

What a second of work for a box is worth is the gradient of its graphs, divided by the time of its
call, times the age of its oldest tuple (`UtilityFirst`, `weighs_trains`). The first two change
only if the queue changes or if the age passes a critical point of a graph; the age grows for all
boxes alike. So boxes whose worth grows at about the same speed keep their order while they wait,
the oldest one first, and a decision compares the first box of each speed.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator
from typing import NamedTuple

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.calendar import CalendarQueue
from auroral.scheduling.policies.rankings import Candidate, is_ready
from auroral.scheduling.policies.utility_first import LEAST_AGE_S, LEAST_CALL_S, priority_number
from auroral.scheduling.policies.utility_first import reason as reason_of
from auroral.scheduling.queues import BoxQueue, QueueTable
from auroral.scheduling.urgency import OutputPath, output_paths

_RATIO = 1.1
"""Speeds that differ by less than this factor share a bucket."""
_DUE = -1_000_000
"""The bucket of boxes whose waiting costs nothing yet, in order of when it will."""
_OVER = _DUE - 1
"""The bucket of boxes that have nothing left to lose, in order of age."""


class _PlacedBox(NamedTuple):
    """Where a box is, and why."""

    bucket: int
    order: float
    """By which boxes of the bucket are ordered: an arrival, or when waiting begins to cost."""
    speed: float
    oldest_s: float
    output: str | None


class WeighedBuckets:
    """The order of `UtilityFirst` with weighed trains, but for boxes of almost the same worth."""

    def __init__(self, most: int | None = None):
        self._most = most
        self._paths: dict[str, tuple[OutputPath, ...]] = {}
        self._place: dict[str, int] = {}
        self._names: list[str] = []
        self._buckets: dict[int, list[tuple[float, int]]] = {}
        self._entries: dict[str, _PlacedBox] = {}
        self._calendar = CalendarQueue()
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Compute what each box still needs to its outputs."""
        self._paths, self._place = output_paths(model), model.place
        self._names = list(model.boxes)
        self._buckets, self._entries = {}, {}
        graphs = {id(path.graph): path.graph for paths in self._paths.values() for path in paths}
        longest = max((at for one in graphs.values() for at in one.critical), default=1.0) or 1.0
        self._calendar = CalendarQueue(day_s=longest / 1000)

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
        heads = [
            self._head(bucket, 0, now_s) for bucket in self._buckets if bucket not in (_DUE, _OVER)
        ]
        self.buckets_visited += len(heads)
        heapq.heapify(heads)
        while heads:
            worth, bucket, at = heads[0]
            box = self._names[self._buckets[bucket][at][1]]
            if at + 1 < len(self._buckets[bucket]):
                heapq.heapreplace(heads, self._head(bucket, at + 1, now_s))
            else:
                heapq.heappop(heads)
            output = self._entries[box].output
            yield Candidate(box, output, reason_of(output, -worth, 0.0))
        for bucket in (_DUE, _OVER):
            for order, place in self._buckets.get(bucket, ()):
                box = self._names[place]
                output = self._entries[box].output
                slack_s = order - now_s if bucket == _DUE else math.inf
                yield Candidate(box, output, reason_of(output, 0.0, slack_s))

    def _head(self, bucket: int, at: int, now_s: float) -> tuple[float, int, int]:
        """What a box of a bucket is worth now, negative, and where it is."""
        _, place = self._buckets[bucket][at]
        placed = self._entries[self._names[place]]
        return (-placed.speed * max(now_s - placed.oldest_s, LEAST_AGE_S), bucket, at)

    def _put(self, queue: BoxQueue, now_s: float) -> None:
        """Put a box where it belongs, and note when it will belong elsewhere."""
        self.evaluated += 1
        box = queue.box
        if not is_ready(queue):
            self._move(box, None)
            self._calendar.remove(box)
            if not queue.queued:
                queue.priority = None
            return
        placed, stays_s = self._evaluate(queue, now_s)
        self._move(box, placed)
        age_s = max(now_s - placed.oldest_s, LEAST_AGE_S)
        slack_s = placed.order - now_s if placed.bucket == _DUE else math.inf
        queue.priority = priority_number(placed.speed * age_s, slack_s)
        if stays_s < math.inf:
            self._calendar.put(box, math.nextafter(now_s + stays_s, math.inf))
        else:
            self._calendar.remove(box)

    def _evaluate(self, queue: BoxQueue, now_s: float) -> tuple[_PlacedBox, float]:
        """Where a box belongs, and for how long unless its queue changes."""
        tuples = queue.queued if self._most is None else min(queue.queued, self._most)
        mean = oldest = 0.0
        slack_s = stays_s = least_s = math.inf
        best, output = -1.0, None
        for path in self._paths[queue.box]:
            needed_s, critical = path.remaining_s(tuples), path.graph.critical
            least_s = min(least_s, needed_s)
            found = []
            for arrival_s in (queue.mean_arrival_s, queue.oldest_arrival_s):
                latency_s = now_s - arrival_s + needed_s
                at = bisect_right(critical, latency_s)
                found.append(path.graph.gradients[at])
                if at < len(critical):
                    stays_s = min(stays_s, critical[at] - latency_s)
                    if arrival_s == queue.mean_arrival_s:
                        slack_s = min(slack_s, critical[at] - latency_s)
            mean, oldest = mean + found[0], oldest + found[1]
            if max(found) > best:
                best, output = max(found), path.output
        oldest_s = queue.oldest_arrival_s
        speed = max(mean, oldest) / max(least_s, LEAST_CALL_S)
        if speed > 0:
            bucket = math.floor(math.log(speed) / math.log(_RATIO))
            return _PlacedBox(bucket, oldest_s, speed, oldest_s, output), stays_s
        if slack_s < math.inf:
            return _PlacedBox(_DUE, now_s + slack_s, 0.0, oldest_s, output), stays_s
        return _PlacedBox(_OVER, oldest_s, 0.0, oldest_s, output), stays_s

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
