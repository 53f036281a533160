"""`feedback`: outputs that do badly get more, those in their good zone less [1 §4.3]."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.rankings import Candidate, is_ready
from auroral.scheduling.queues import QueueTable

_RAISE = 1.5
_LOWER = 0.9
_MOST_WEIGHT = 16.0


class FeedbackWeights:
    """Orders boxes by the age of their oldest tuple times the weight of the output they lead to.

    A weight rises whenever a result of the output was late, and falls otherwise, down to a
    sixteenth and up to sixteen. Because age counts, an output whose weight is low waits longer,
    but not for ever, even if nothing is heard of it.
    """

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self._model = FlowModel({})
        self._place: dict[str, int] = {}
        self._ready: dict[str, None] = {}
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Keep the weights of outputs that are still there."""
        self._model = model
        self._place = model.place
        self._ready = {}
        self.weights = {name: self.weights.get(name, 1.0) for name in model.outputs}

    def observe(self, output: str, in_good_zone: bool) -> None:
        """Hear whether the latest results of an output were in its good zone."""
        if output in self.weights:
            changed = self.weights[output] * (_LOWER if in_good_zone else _RAISE)
            self.weights[output] = min(max(changed, 1 / _MOST_WEIGHT), _MOST_WEIGHT)

    def rank(
        self, table: QueueTable, changed: Collection[str], now_s: float
    ) -> Iterator[Candidate]:
        """By weighted age; equal boxes in flow order."""
        for box in changed:
            queue = table[box]
            if is_ready(queue):
                self._ready[box] = None
            else:
                self._ready.pop(box, None)
                if not queue.queued:
                    queue.priority = None
        ranked = []
        for box in self._ready:
            self.evaluated += 1
            queue = table[box]
            outputs = self._model.outputs_of(box)
            output = max(outputs, key=self.weights.__getitem__) if outputs else None
            weight = 1.0 if output is None else self.weights[output]
            queue.priority = weight * max(now_s - queue.oldest_arrival_s, 0.0)
            ranked.append((-queue.priority, self._place[box], box, output, weight))
        heapq.heapify(ranked)
        return self._drained(ranked)

    def _drained(
        self, ranked: list[tuple[float, int, str, str | None, float]]
    ) -> Iterator[Candidate]:
        while ranked:
            _, _, box, output, weight = heapq.heappop(ranked)
            whose = "it leads to no output" if output is None else output
            yield Candidate(
                box, output, f"{whose}: the age of its tuples counts {weight:.2g} times"
            )

    def served(self, _candidate: Candidate) -> None:
        """Ages and weights alone decide."""
