"""What delay, loss and values are worth to an output: utility graphs [1 §4.1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictFloat, StrictInt, StrictStr

from auroral.errors import NetworkError

Number = StrictInt | StrictFloat
Graph = tuple[tuple[Number, Number], ...]


class ValueGraph(BaseModel):
    """Utility by the value of one output field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    on: StrictStr
    graph: Graph

    def model_post_init(self, _context: Any) -> None:
        _require_graph("value", self.graph, lowest=None, highest=None)


class QoS(BaseModel):
    """Piecewise linear graphs from [0, 1]: by delay in seconds, by share delivered, by value.

    >>> QoS(latency=[(0, 1), (2, 1), (10, 0)]).utility("latency", 6)
    0.5
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    latency: Graph | None = None
    loss: Graph | None = None
    value: ValueGraph | None = None

    def model_post_init(self, _context: Any) -> None:
        _require_graph("latency", self.latency, lowest=0, highest=None)
        _require_graph("loss", self.loss, lowest=0, highest=1)

    def utility(self, kind: str, x: float) -> float:
        """The utility at `x`; outside the graph its end points hold. No graph: all is well."""
        graph = self.value.graph if kind == "value" and self.value else getattr(self, kind, None)
        return 1.0 if graph is None else _interpolate(sorted(graph), x)


def _interpolate(points: Sequence[tuple[float, float]], x: float) -> float:
    if x <= points[0][0]:
        return float(points[0][1])
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return float(points[-1][1])


def _require_graph(
    kind: str, graph: Graph | None, lowest: float | None, highest: float | None
) -> None:
    if graph is None:
        return
    xs = [x for x, _ in graph]
    if len(graph) < 2:
        raise NetworkError("BAD_QOS", f"a {kind} graph needs two points or more: {graph}")
    if xs != sorted(set(xs)) and xs != sorted(set(xs), reverse=True):
        raise NetworkError("BAD_QOS", f"the points of a {kind} graph must be in order of x: {xs}")
    if any(not 0 <= utility <= 1 for _, utility in graph):
        raise NetworkError("BAD_QOS", f"utilities in a {kind} graph must lie within [0, 1]")
    if any(
        (lowest is not None and x < lowest) or (highest is not None and x > highest) for x in xs
    ):
        limits = f"[{lowest}, {'∞' if highest is None else highest}]"
        raise NetworkError("BAD_QOS", f"x in a {kind} graph must lie within {limits}, found {xs}")
