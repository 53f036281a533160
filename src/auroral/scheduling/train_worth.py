"""What the next call of a box is worth, where calls are so dear that trains are long (pure).

The p-tuple of [2 §6.1] asks what the next second costs a tuple. Where the fixed cost of a call is
that of hundreds of tuples, that is too short a view: boxes with steep graphs would be called again
and again for a few tuples each, and would leave no time for others; and a box whose tuples are past
their deadline would never be called again, although those that arrive now still could be in time.

Tuples arrive while others wait, so a queue holds tuples of every age up to that of the oldest. If
the queue goes on waiting, tuples that are as fresh as the youngest become as late as the oldest:
each second costs the difference of their utilities (`loss`). What the tuples that wait have to
lose, until all are as late as the oldest one, is their `stake`. Calling the box saves it, and takes
the time of the call: boxes are called by stake per second of their calls. In a system that has
time for all tuples, and only has to decide how often to pay for calls, this is the index policy
for costs that grow while something waits. Where there is not time for all, the longest queues
would never be called. So what waiting has cost since the oldest tuple came counts a little, too:
queues that are past their deadline come forward slowly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import BoxQueue
from auroral.scheduling.trains import waiting_room_s
from auroral.scheduling.urgency import OutputPath, UrgencyGraph, output_paths

_LEAST_CALL_S = 1e-6
"""Calls are taken to last as long as this at least."""
_REGRET = 0.05
"""What the present loss, for as long as the oldest tuple has waited, counts of a stake."""


class Waited(NamedTuple):
    """What becomes of tuples of all ages up to one, if they wait."""

    loss: float
    """Utility per second of waiting."""
    stake: float
    """Utility that those who wait have left to lose, in seconds of the stream."""
    gradient: float
    """By how much `loss` grows with each second of age."""
    slack_s: float
    """For how long the gradient stays as it is."""


def waited(graph: UrgencyGraph, way_s: float, age_s: float) -> Waited:
    """Of tuples up to `age_s` old that need `way_s` more to their output.

    >>> from auroral.qos.curves import Curve
    >>> graph = UrgencyGraph(Curve.through([(0, 1), (2, 1), (4, 0)]))
    >>> waited(graph, 0.0, 1.0)
    Waited(loss=0.0, stake=0.0, gradient=0.0, slack_s=1.0)
    >>> waited(graph, 1.0, 2.0)
    Waited(loss=0.5, stake=0.75, gradient=0.5, slack_s=1.0)
    >>> waited(graph, 1.0, 60.0)
    Waited(loss=1.0, stake=2.0, gradient=0.0, slack_s=inf)
    """
    critical, at = graph.critical, bisect_right(graph.critical, way_s)
    loss = stake = young_s = 0.0
    while at < len(critical) and critical[at] - way_s <= age_s:
        old_s = critical[at] - way_s
        loss += graph.gradients[at] * (old_s - young_s)
        stake += graph.gradients[at] * (old_s * old_s - young_s * young_s) / 2
        young_s, at = old_s, at + 1
    gradient = graph.gradients[at]
    loss += gradient * (age_s - young_s)
    stake += gradient * (age_s * age_s - young_s * young_s) / 2
    slack_s = critical[at] - way_s - age_s if at < len(critical) else math.inf
    return Waited(loss, stake, gradient, slack_s)


class TrainWorth(NamedTuple):
    """What a call is worth: larger is sooner; slack counts where nothing is at stake, then age."""

    per_s: float
    """The stake, and some of what waiting has cost, for each second that the call takes on the way
    to the nearest output."""
    negative_slack_s: float
    """Until waiting costs more, for the most urgent output."""
    age_s: float
    output: str | None
    """The output that gives most of it."""
    loss: float
    """Utility that a second of waiting costs, of all outputs together."""
    slope: float
    """`per_s` grows by `slope × t + square × t²` in t seconds, …"""
    square: float
    steady_s: float
    """… for so long."""

    def grows_to_in_s(self, per_s: float) -> float:
        """After which time the worth is this, if it goes on to grow like that.

        >>> worth = TrainWorth(3.0, 0.0, 1.0, "alerts", 0.5, slope=4.0, square=1.0, steady_s=9.0)
        >>> worth.grows_to_in_s(8.0), worth.grows_to_in_s(3.0)
        (1.0, 0.0)
        """
        missing, slope = max(per_s - self.per_s, 0.0), self.slope
        if self.square <= 0:
            return missing / slope if slope > 0 else math.inf
        root = math.sqrt(slope * slope + 4 * self.square * missing)
        return (root - slope) / (2 * self.square)


class WorthOfTrains:
    """Tells what calls of the boxes of a network are worth."""

    def __init__(self, most: int | None = None, *, limits_trains: bool = True):
        self._most = most
        """The most tuples of a train, which bound what is expected to pass downstream."""
        self._limits_trains = limits_trains
        """Whether trains are no longer than latency graphs allow; see `waiting_room_s`."""
        self._room_s = math.inf
        self._paths: dict[str, tuple[OutputPath, ...]] = {}

    def serve(self, model: FlowModel) -> None:
        """Compute what each box still needs to its outputs."""
        self._paths = output_paths(model)
        room_s = waiting_room_s(model) if self._limits_trains else None
        self._room_s = math.inf if room_s is None else room_s

    @property
    def longest_s(self) -> float:
        """The last critical point of all graphs."""
        graphs = {id(path.graph): path.graph for paths in self._paths.values() for path in paths}
        return max((at for one in graphs.values() for at in one.critical), default=0.0)

    def of(self, queue: BoxQueue, now_s: float) -> TrainWorth:
        """What a call of a box is worth now."""
        tuples = queue.queued if self._most is None else min(queue.queued, self._most)
        age_s = max(now_s - queue.oldest_arrival_s, 0.0)
        worth = loss = slope = square = 0.0
        slack_s = call_s = math.inf
        best, output = (-1.0, -math.inf), None
        for path in self._paths[queue.box]:
            work_s = tuples * path.tuple_s
            spent_s = age_s + work_s  # the last tuple of the train is there so late
            found = waited(path.graph, path.calls_s, spent_s)
            worth += found.stake + _REGRET * found.loss * spent_s
            loss += found.loss
            slope += found.gradient * spent_s * (1 + _REGRET) + _REGRET * found.loss
            square += found.gradient * (0.5 + _REGRET)
            slack_s = min(slack_s, found.slack_s)
            # What is left of a queue that is too long for a train is processed some other time.
            call_s = min(call_s, path.calls_s + min(work_s, self._room_s))
            if (found.stake, -found.slack_s) > best:
                best, output = (found.stake, -found.slack_s), path.output
        call_s = max(call_s, _LEAST_CALL_S)
        return TrainWorth(
            worth / call_s, -slack_s, age_s, output, loss, slope / call_s, square / call_s, slack_s
        )
