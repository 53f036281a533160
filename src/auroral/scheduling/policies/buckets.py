"""`qos-bucketed`: p-tuples in buckets, so that few boxes are looked at in a decision [2 §6.2]."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Sequence

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.calendar import CalendarQueue
from auroral.scheduling.policies.rankings import Candidate, is_ready
from auroral.scheduling.policies.utility_first import priority_number, reason
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.urgency import OutputPath, output_paths

_EASING = 1
"""The place among the buckets of one gradient of those where waiting is about to cost less."""
_FINEST_SLACK = 1e-4
"""The lowest border between slacks, as a share of the longest slack."""


class BoxGraph:
    """Gradient and slack of a box by the latency of its tuples: the graphs of its outputs together.

    Each graph is moved to the left by what the tuples still need to that output.
    """

    __slots__ = ("buckets", "critical", "deadlines", "gradients", "outputs")

    def __init__(
        self, paths: Sequence[OutputPath], tuples: float, gradient_borders: Sequence[float]
    ):
        moved = [(path, path.remaining_s(tuples)) for path in paths]
        points = {at - needed_s for path, needed_s in moved for at in path.graph.critical}
        self.critical = sorted(points)
        """Latencies at which the gradient of an output changes, ascending."""
        self.gradients: list[float] = []
        """The sum of gradients before the first of them, and behind each."""
        self.outputs: list[str | None] = []
        """The output that has the largest gradient there."""
        self.deadlines: list[float] = []
        """The next latency at which waiting costs more; infinite where it costs less before."""
        for latency_s in (-math.inf, *self.critical):
            found = []
            deadline = math.inf
            for path, needed_s in moved:
                graph = path.graph
                at = sum(point - needed_s <= latency_s for point in graph.critical)
                found.append(graph.gradients[at])
                if at < len(graph.critical) and not graph.eases[at]:
                    deadline = min(deadline, graph.critical[at] - needed_s)
            self.gradients.append(sum(found))
            self.outputs.append(paths[found.index(max(found))].output)
            self.deadlines.append(deadline)
        self.buckets = [bisect_left(gradient_borders, one) for one in self.gradients]
        """The part of the range of gradients, the largest being the most urgent."""


class Bucket:
    """Boxes that count as equal and take turns, or (`by_end`) in order of a time, latest first."""

    __slots__ = ("_ends", "_turns", "by_end")

    def __init__(self, by_end: bool):
        self.by_end = by_end
        self._turns: dict[str, None] = {}
        self._ends: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._ends) if self.by_end else len(self._turns)

    def add(self, box: str, end_s: float) -> None:
        """Put a box in, behind those that take turns."""
        if self.by_end:
            insort(self._ends, (end_s, box))
        else:
            self._turns[box] = None

    def remove(self, box: str, end_s: float) -> None:
        """Take a box out that was put in with this time."""
        if self.by_end:
            del self._ends[bisect_left(self._ends, (end_s, box))]
        else:
            del self._turns[box]

    def __iter__(self) -> Iterator[str]:
        return (box for _, box in reversed(self._ends)) if self.by_end else iter(self._turns)


class BucketedUtility:
    """The order of `qos`, coarser: gradients and slacks fall into `partitions` parts each.

    A box is looked at only if its queue has changed, or if time has moved it to another bucket;
    a calendar says when. Boxes of one bucket count as equal and take turns; where waiting is about
    to cost less, they are ordered by when that will be, which does not change while they
    wait. Parts of the gradients hold equally many of the gradients that graphs have, zero
    by itself; parts of slacks get finer towards zero. How many tuples need the way to the
    output is rounded to powers of two, so that the graphs of a box are computed once for each.
    """

    def __init__(self, partitions: int, most: int | None = None):
        self._partitions = partitions
        self._most = most
        self._paths: dict[str, tuple[OutputPath, ...]] = {}
        self._graphs: dict[tuple[str, int], BoxGraph] = {}
        self._gradient_borders: list[float] = []
        self._slack_borders: list[float] = []
        self._calendar = CalendarQueue()
        self._buckets: dict[int, Bucket] = {}
        self._entries: dict[str, tuple[int, float]] = {}
        """For each box that can be called its bucket, and when waiting will cost less."""
        self._full = 0
        """The buckets that have boxes, as bits."""
        self._reasons: dict[str, tuple[str | None, float, float]] = {}
        self._served: list[str] = []
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Divide the gradients and slacks that the graphs of this network have."""
        self._paths = output_paths(model)
        self._graphs, self._buckets, self._entries, self._full = {}, {}, {}, 0
        self._reasons, self._served = {}, []
        graphs = {id(path.graph): path.graph for paths in self._paths.values() for path in paths}
        longest = max((at for one in graphs.values() for at in one.critical), default=1.0) or 1.0
        self._slack_borders = slack_borders(longest, self._partitions)
        shared = [paths for paths in self._paths.values() if len(paths) > 1]
        gradients = {one for graph in graphs.values() for one in graph.gradients}
        gradients.update(one for paths in shared for one in BoxGraph(paths, 1, []).gradients)
        self._gradient_borders = gradient_borders(gradients, self._partitions)
        self._calendar = CalendarQueue(day_s=longest / 1000)

    def rank(
        self, table: QueueTable, changed: Collection[str], now_s: float
    ) -> Iterator[Candidate]:
        """Bucket by bucket."""
        for box in self._served:
            entry = self._entries[box]
            self._move(box, None)
            self._move(box, entry)
        self._served.clear()
        for box in changed:
            self._place(table, box, now_s)
        for box in self._calendar.due(now_s):
            self._place(table, box, now_s)
        return self._by_bucket()

    def _place(self, table: QueueTable, box: str, now_s: float) -> None:
        """Put a box into the bucket where it belongs now, and note when it will leave it."""
        self.evaluated += 1
        queue = table[box]
        if not is_ready(queue):
            if box in self._entries:
                self._move(box, None)
                self._calendar.remove(box)
            if not queue.queued:
                queue.priority = None
            return
        graph = self._graph(box, queue.queued)
        latency_s = now_s - queue.mean_arrival_s
        at = bisect_right(graph.critical, latency_s)
        slack_s = graph.deadlines[at] - latency_s
        part = bisect_left(self._slack_borders, slack_s)
        self._reasons[box] = (graph.outputs[at], graph.gradients[at], slack_s)
        queue.priority = priority_number(graph.gradients[at], slack_s)
        is_over = at == len(graph.critical)
        bucket = self._number(graph.buckets[at], part, is_over)
        end_s = 0.0 if is_over else graph.critical[at] + queue.mean_arrival_s
        self._move(box, (bucket, end_s if bucket % self._urgencies == _EASING else 0.0))
        if is_over:
            self._calendar.remove(box)
            return
        stays_s = graph.critical[at] - latency_s
        if not math.isinf(slack_s):
            stays_s = min(stays_s, slack_s - (self._slack_borders[part - 1] if part else 0.0))
        self._calendar.put(box, math.nextafter(now_s + stays_s, math.inf))

    @property
    def _urgencies(self) -> int:
        """How many buckets there are for a part of the gradients."""
        return self._partitions + 1

    def _number(self, gradient_part: int, slack_part: int, is_over: bool) -> int:
        """The number of a bucket; larger ones are more urgent.

        For each part of the gradients: past the last critical point, before one behind which
        waiting costs less (`_EASING`), and then the parts of slacks, little slack being urgent.
        """
        if self._partitions == 1:
            return 0
        urgency = 0 if is_over else _EASING + len(self._slack_borders) - slack_part
        return gradient_part * self._urgencies + urgency

    def _graph(self, box: str, queued: int) -> BoxGraph:
        tuples = queued if self._most is None else min(queued, self._most)
        rounded = 1 << (tuples * 2 // 3).bit_length()
        graph = self._graphs.get((box, rounded))
        if graph is None:
            graph = BoxGraph(self._paths[box], rounded, self._gradient_borders)
            self._graphs[box, rounded] = graph
        return graph

    def _move(self, box: str, entry: tuple[int, float] | None) -> None:
        before = self._entries.get(box)
        if entry == before:
            return
        if before is not None:
            bucket = self._buckets[before[0]]
            bucket.remove(box, before[1])
            del self._entries[box]
            if not bucket:
                self._full &= ~(1 << before[0])
        if entry is not None:
            number, end_s = entry
            if number not in self._buckets:
                self._buckets[number] = Bucket(by_end=number % self._urgencies == _EASING)
            self._buckets[number].add(box, end_s)
            self._entries[box] = entry
            self._full |= 1 << number

    def _by_bucket(self) -> Iterator[Candidate]:
        full = self._full
        while full:
            number = full.bit_length() - 1
            full &= ~(1 << number)
            self.buckets_visited += 1
            for box in self._buckets[number]:
                output, gradient, slack_s = self._reasons[box]
                yield Candidate(box, output, reason(output, gradient, slack_s))

    def served(self, candidate: Candidate) -> None:
        """Within its bucket a box that was served goes behind the others, at the next decision."""
        self._served.append(candidate.box)


def gradient_borders(gradients: Iterable[float], partitions: int) -> list[float]:
    """The largest gradient of each part but the last: zero, then equally many in each part.

    >>> gradient_borders([0, 1, 2, 3, 4, 5, 6], 4), gradient_borders([0, 0.5, 2], 20)
    ([0.0, 2, 4], [0.0, 0.5])
    >>> gradient_borders([0, 1, 2], 1)
    []
    """
    if partitions == 1:
        return []
    positive = sorted({one for one in gradients if one > 0})
    parts = min(partitions - 1, len(positive))
    inner = [positive[len(positive) * at // parts - 1] for at in range(1, parts)]
    return [0.0, *inner]


def slack_borders(longest_s: float, partitions: int) -> list[float]:
    """The largest slack of each part but the last, which has infinite slack; finer towards zero.

    >>> [round(border, 4) for border in slack_borders(100.0, 4)], slack_borders(100.0, 1)
    ([0.2154, 4.6416, 100.0], [])
    """
    if partitions == 1:
        return []
    shares = range(partitions - 2, -1, -1)
    return [longest_s * _FINEST_SLACK ** (share / (partitions - 1)) for share in shares]
