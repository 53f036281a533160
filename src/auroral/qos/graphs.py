"""What delay, loss and values are worth to an output: utility graphs [1 §4.1]."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from auroral.errors import NetworkError

Number = StrictInt | StrictFloat
Graph = tuple[tuple[Number, Number], ...]


class ValueGraph(BaseModel):
    """Utility by the value of one output field."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    on: StrictStr
    graph: Graph

    def model_post_init(self, _context: Any) -> None:
        _require_graph("value", self.graph, lowest=None, highest=None)


class QoS(BaseModel):
    """Piecewise linear graphs from [0, 1]: by delay in seconds, by share delivered, by value.

    >>> QoS(latency=[(0, 1), (2, 1), (10, 0)]).utility("latency", 6)
    0.5
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    latency: Graph | None = None
    loss: Graph | None = None
    value: ValueGraph | None = None

    def model_post_init(self, _context: Any) -> None:
        _require_graph("latency", self.latency, lowest=0, highest=None)
        _require_graph("loss", self.loss, lowest=0, highest=1)

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(
        cls, declared: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        """Say mistakes of a QoS built in Python as errors of ours; in a file, places come first."""
        try:
            return handler(declared)
        except ValidationError as error:
            if info.context is not None:
                raise
            finding = error.errors(include_url=False)[-1]
            key = ".".join(str(part) for part in finding["loc"] if part not in ("int", "float"))
            message = f"{finding['msg']}, found {finding['input']!r}"
            raise NetworkError("BAD_QOS", message, where=f"key {key}") from None

    def utility(self, kind: Literal["latency", "loss", "value"], x: float) -> float:
        """The utility at `x`; outside the graph its end points hold. No graph: all is well."""
        graph: Graph | None
        if kind == "value":
            graph = self.value.graph if self.value else None
        else:
            graph = self.latency if kind == "latency" else self.loss
        return 1.0 if graph is None else _interpolate(sorted(graph), x)


def _interpolate(points: Sequence[tuple[float, float]], x: float) -> float:
    if x <= points[0][0]:
        return float(points[0][1])
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return float(points[-1][1])


def _require_graph(
    kind: str, graph: Graph | None, lowest: float | None, highest: float | None
) -> None:
    if graph is None:
        return
    xs = [x for x, _ in graph]
    problem = None
    if len(graph) < 2:
        problem = "needs two points or more"
    elif xs != sorted(set(xs)) and xs != sorted(set(xs), reverse=True):
        problem = "has its points in order of x, no x twice"
    elif any(not 0 <= utility <= 1 for _, utility in graph):
        problem = "has utilities within [0, 1]"
    elif (lowest is not None and min(xs) < lowest) or (highest is not None and max(xs) > highest):
        problem = f"has x within [{lowest}, {'∞' if highest is None else highest}]"
    if problem:
        key = "value.graph" if kind == "value" else kind
        found = [list(point) for point in graph]
        message = f"a {kind} graph {problem}; found {found}"
        raise NetworkError("BAD_QOS", message, where=f"key {key}")
