"""How urgent the tuples of a box are: the p-tuple of [2 §6.1] (pure).

The expected output latency of a box is the age of its tuples plus the time that they still need to
the output. There the latency graph of the output says how much utility the next second costs
(gradient), and how soon that changes (slack to the next critical point).

Little slack is urgent only where waiting is about to cost more. Where it is about to cost less,
because most utility is lost by then, boxes with more slack come first: they have more left to
lose. [2] makes no difference there, and serves what is nearly worthless before the rest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from auroral.qos.curves import Curve
from auroral.qos.graphs import QoS, latency_curve
from auroral.scheduling.flow import FlowModel

EASING_S = 1e6
"""Slack where waiting is about to cost less is this, less the seconds until then."""


class UrgencyGraph:
    """The gradient of a latency graph, positive where utility falls, and its critical points.

    >>> graph = UrgencyGraph(Curve.through([(0, 1), (2, 1), (10, 0)]))
    >>> graph.critical, graph.gradients, graph.good_until
    ([2.0, 10.0], [0.0, 0.125, 0.0], 2.0)
    """

    __slots__ = ("critical", "eases", "good_until", "gradients")

    def __init__(self, curve: Curve, weight: float = 1.0):
        self.good_until = curve.good_until
        """The end of the good zone: the largest latency of full utility."""
        self.critical: list[float] = list(curve.critical_points)
        """Latencies at which the gradient changes, ascending."""
        self.gradients = [0.0, *(max(0.0, -weight * curve.gradient(at)) for at in self.critical)]
        """Utility lost per second before the first critical point, and behind each."""
        self.eases = [after < before for before, after in pairwise(self.gradients)]
        """For each critical point whether waiting costs less behind it."""


def urgency_graph(qos: QoS | None) -> UrgencyGraph:
    """The graph of an output, or the default one; its weight is what latency counts in utility."""
    has_graph = qos is not None and qos.latency is not None
    return UrgencyGraph(latency_curve(qos), qos.share("latency") if qos and has_graph else 1.0)


@dataclass(frozen=True)
class OutputPath:
    """What the tuples of a box still need to reach an output: `calls_s + n × tuple_s`."""

    output: str | None
    """None: a box that leads to no output, such as one that writes a table."""
    graph: UrgencyGraph = field(compare=False)
    calls_s: float
    tuple_s: float

    def remaining_s(self, tuples: float) -> float:
        """cost(D(b)): seconds until so many tuples are at the output."""
        return self.calls_s + tuples * self.tuple_s


class PTuple(NamedTuple):
    """The priority of a box: larger is sooner; slack counts if utilities are equal, then age."""

    utility: float
    negative_slack_s: float
    age_s: float
    output: str | None
    """The output that gives most of it."""


def output_paths(model: FlowModel) -> dict[str, tuple[OutputPath, ...]]:
    """For each box the ways to its outputs; boxes that lead to none have one with default graph."""
    graphs = {name: urgency_graph(output.qos) for name, output in model.outputs.items()}
    default = urgency_graph(None)
    found: dict[str, list[OutputPath]] = {box: [] for box in model.boxes}
    for name, output in model.outputs.items():
        if output.arc in model.writers:
            for box, (calls_s, tuple_s) in _costs_to(model, [model.writers[output.arc]]).items():
                found[box].append(OutputPath(name, graphs[name], calls_s, tuple_s))
    silent = {box for box, paths in found.items() if not paths}
    for box, (calls_s, tuple_s) in _costs_to(model, silent).items():
        if box in silent:
            found[box].append(OutputPath(None, default, calls_s, tuple_s))
    return {box: tuple(paths) for box, paths in found.items()}


def _costs_to(model: FlowModel, roots: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Seconds of calls, and for each tuple, from each box that leads to some to the last of them.

    Each call counts once, a tuple as often as selectivities multiply it.
    """
    boxes = model.upstream(roots)
    inside = set(boxes)
    calls: dict[str, float] = {}
    tuples: dict[str, float] = {}
    for name in reversed(boxes):
        box = model.boxes[name]
        following = [after for after in model.next_boxes(name) if after in inside]
        if len(following) > 1:
            behind = inside.intersection(model.downstream(name))
            calls[name] = sum(model.boxes[one].call_s for one in behind)
        else:
            calls[name] = box.call_s + sum(calls[after] for after in following)
        tuples[name] = box.cost_s + sum(
            share * tuples[reader]
            for arc, share in box.selectivities.items()
            for reader in model.readers.get(arc, ())
            if reader in inside
        )
    return {name: (calls[name], tuples[name]) for name in boxes}


def p_tuple(
    paths: Iterable[OutputPath], queued: float, mean_arrival_s: float, oldest_s: float, now_s: float
) -> PTuple:
    """The priority of a box [2 §6.1]: utilities of its outputs summed, the least of their slacks.

    >>> graph = UrgencyGraph(Curve.through([(0, 1), (2, 1), (4, 0)]))
    >>> tight = OutputPath("alerts", graph, calls_s=0.5, tuple_s=0.01)
    >>> p_tuple([tight], 50, mean_arrival_s=7.0, oldest_s=6.5, now_s=8.5)
    PTuple(utility=0.5, negative_slack_s=-999998.5, age_s=2.0, output='alerts')
    >>> p_tuple([tight], 50, mean_arrival_s=7.0, oldest_s=6.5, now_s=7.5)
    PTuple(utility=0.0, negative_slack_s=-0.5, age_s=1.0, output='alerts')
    """
    latency_s = now_s - mean_arrival_s
    utility = 0.0
    least = math.inf
    chosen: str | None = None
    best = (-math.inf, -math.inf)
    for path in paths:
        expected_s = latency_s + path.calls_s + queued * path.tuple_s
        graph = path.graph
        at = bisect_right(graph.critical, expected_s)
        gradient = graph.gradients[at]
        slack = math.inf
        if at < len(graph.critical):
            slack = graph.critical[at] - expected_s
            slack = EASING_S - slack if graph.eases[at] else slack
        utility += gradient
        least = min(least, slack)
        if chosen is None or (gradient, -slack) > best:
            best, chosen = (gradient, -slack), path.output
    return PTuple(utility, -least, now_s - oldest_s, chosen)
