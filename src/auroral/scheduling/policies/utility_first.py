"""`qos`: the box whose delay costs most utility comes first [2 §6.1]."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.rankings import Candidate, is_ready
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.urgency import OutputPath, PTuple, output_paths, p_tuple

_Ranked = tuple[tuple[float, float, float, int], str, PTuple]
_SLACK_WEIGHT = 1e-6
"""What slack counts in a priority that is one number."""


def priority_number(utility: float, slack_s: float) -> float:
    """A p-tuple as one number: the utility that a second costs, and a little for little slack.

    >>> priority_number(0.5, 1.0) > priority_number(0.5, 2.0) > priority_number(0.4, 0.0)
    True
    """
    return utility + _SLACK_WEIGHT / (1.0 + max(slack_s, 0.0))


def reason(output: str | None, utility: float, slack_s: float) -> str:
    """Why a box was chosen, with rounded figures: a story joins equal entries."""
    whose = "the default graph" if output is None else output
    if utility > 0:
        return f"{whose}: waiting costs {_rounded(utility, 2)} utility per second"
    if slack_s < math.inf:
        return f"{whose}: {_rounded(slack_s, 1)} s until waiting costs utility"
    return f"{whose}: past its deadline, and nothing else is due"


def _rounded(number: float, digits: int) -> str:
    return f"{float(f'{number:.{digits}g}'):g}"


class UtilityFirst:
    """Evaluates every box that has something to do at each decision, and sorts them.

    Boxes of equal gradient are ordered by slack, then by age. A box behind the last critical point
    of its graphs has gradient zero and infinite slack: it comes last, but it comes.
    """

    def __init__(self, most: int | None = None):
        self._most = most
        """The most tuples of a train, which bound what is expected to pass downstream."""
        self._paths: dict[str, tuple[OutputPath, ...]] = {}
        self._place: dict[str, int] = {}
        self._ready: dict[str, None] = {}
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Compute what each box still needs to its outputs."""
        self._paths = output_paths(model)
        self._place = model.place
        self._ready = {}

    def rank(
        self, table: QueueTable, changed: Collection[str], now_s: float
    ) -> Iterator[Candidate]:
        """By p-tuple; equal boxes in flow order."""
        for box in changed:
            if is_ready(table[box]):
                self._ready[box] = None
            else:
                self._ready.pop(box, None)
                if not table[box].queued:
                    table[box].priority = None
        ranked: list[_Ranked] = []
        for box in self._ready:
            found = self.evaluate(table, box, now_s)
            key = (-found.utility, -found.negative_slack_s, -found.age_s, self._place[box])
            ranked.append((key, box, found))
            table[box].priority = priority_number(found.utility, -found.negative_slack_s)
        heapq.heapify(ranked)
        return self._drained(ranked)

    def _drained(self, ranked: list[_Ranked]) -> Iterator[Candidate]:
        while ranked:
            _, box, found = heapq.heappop(ranked)
            why = reason(found.output, found.utility, -found.negative_slack_s)
            yield Candidate(box, found.output, why)

    def evaluate(self, table: QueueTable, box: str, now_s: float) -> PTuple:
        """The p-tuple of a box."""
        self.evaluated += 1
        queue = table[box]
        tuples = queue.queued if self._most is None else min(queue.queued, self._most)
        paths = self._paths[box]
        return p_tuple(paths, tuples, queue.mean_arrival_s, queue.oldest_arrival_s, now_s)

    def served(self, _candidate: Candidate) -> None:
        """Queues alone decide."""
