"""`qos` where calls are dear: the box first whose call saves most utility per second."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.rankings import Candidate, is_ready
from auroral.scheduling.policies.utility_first import priority_number, reason
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.train_worth import TrainWorth, WorthOfTrains

_Ranked = tuple[tuple[float, float, float, int], str, TrainWorth]


class WeighedTrains:
    """Evaluates every box that has something to do at each decision, and sorts them.

    Boxes of equal worth are ordered by slack, then by age. See `auroral.scheduling.train_worth`.
    """

    def __init__(self, worth: WorthOfTrains):
        self._worth = worth
        self._place: dict[str, int] = {}
        self._ready: dict[str, None] = {}
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Decide for this network from now on."""
        self._worth.serve(model)
        self._place = model.place
        self._ready = {}

    def rank(
        self, table: QueueTable, changed: Collection[str], now_s: float
    ) -> Iterator[Candidate]:
        """By worth; equal boxes in flow order."""
        for box in changed:
            if is_ready(table[box]):
                self._ready[box] = None
            else:
                self._ready.pop(box, None)
                if not table[box].queued:
                    table[box].priority = None
        ranked: list[_Ranked] = []
        for box in self._ready:
            found = self._worth.of(table[box], now_s)
            key = (-found.per_s, -found.negative_slack_s, -found.age_s, self._place[box])
            ranked.append((key, box, found))
            table[box].priority = priority_number(found.per_s, -found.negative_slack_s)
        self.evaluated += len(ranked)
        heapq.heapify(ranked)
        return self._drained(ranked)

    def _drained(self, ranked: list[_Ranked]) -> Iterator[Candidate]:
        while ranked:
            _, box, found = heapq.heappop(ranked)
            why = reason(found.output, found.loss, -found.negative_slack_s)
            yield Candidate(box, found.output, why)

    def served(self, _candidate: Candidate) -> None:
        """Queues alone decide."""
