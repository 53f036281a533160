"""What delay, loss and values are worth to an output: utility graphs [1 §4.1]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from auroral.errors import NetworkError
from auroral.qos.curves import Curve

Number = StrictInt | StrictFloat
Graph = tuple[tuple[Number, Number], ...]
Kind = Literal["latency", "loss", "value", "throughput"]
KINDS: tuple[Kind, ...] = get_args(Kind)

DEFAULT_LATENCY: Graph = ((0, 1), (1, 1), (60, 0))
"""The latency graph of outputs that have none: a second is fine, a minute is worth nothing."""
_LARGEST = 1e300
"""The largest x: sums and products of such ones are numbers still."""


class ValueGraph(BaseModel):
    """Utility by the value of one output field."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    on: StrictStr
    graph: Graph

    def model_post_init(self, _context: Any) -> None:
        _require_graph("value", self.graph, lowest=None, highest=None)


class UtilityWeights(BaseModel):
    """How much each kind of graph counts in the utility of an output."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    latency: Number = 1
    loss: Number = 1
    value: Number = 1
    throughput: Number = 1

    def model_post_init(self, _context: Any) -> None:
        for kind in KINDS:
            weight = getattr(self, kind)
            if weight < 0:
                message = f"a weight is 0 or more; found {weight}"
                raise NetworkError("BAD_QOS", message, where=f"key weights.{kind}")


class QoS(BaseModel):
    """Piecewise linear graphs from [0, 1]: by delay in seconds, by share delivered, by value.

    The utility of an output is the mean of its graphs, by their `weights`. Graphs by delay, share
    and throughput get steeper towards the worse side, unless `convex` is false.

    >>> QoS(latency=[(0, 1), (2, 1), (10, 0)]).utility("latency", 6)
    0.5
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    latency: Graph | None = None
    loss: Graph | None = None
    value: ValueGraph | None = None
    throughput: Graph | None = None
    """By tuples per second."""
    weights: UtilityWeights = UtilityWeights()
    convex: StrictBool = True

    def model_post_init(self, _context: Any) -> None:
        _require_graph("latency", self.latency, lowest=0, highest=None)
        _require_graph("loss", self.loss, lowest=0, highest=1)
        _require_graph("throughput", self.throughput, lowest=0, highest=None)
        for kind in ("latency", "loss", "throughput"):
            _require_shape(kind, getattr(self, kind), convex=self.convex)
        for kind in sorted(self.weights.model_fields_set):
            if getattr(self, kind) is None:
                message = f"a weight belongs to a graph, but there is no {kind} graph"
                raise NetworkError("BAD_QOS", message, where=f"key weights.{kind}")
        if self.kinds and not sum(self._weight(kind) for kind in self.kinds):
            message = "at least one graph has a weight above 0; found none"
            raise NetworkError("BAD_QOS", message, where="key weights")

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

    @cached_property
    def curves(self) -> Mapping[Kind, Curve]:
        """The graphs that there are."""
        graphs: dict[Kind, Graph | None] = {
            "latency": self.latency,
            "loss": self.loss,
            "value": self.value.graph if self.value else None,
            "throughput": self.throughput,
        }
        return {kind: Curve.through(graph) for kind, graph in graphs.items() if graph is not None}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of graphs that there are."""
        return tuple(self.curves)

    def utility(self, kind: Kind, x: float) -> float:
        """The utility at `x`; outside the graph its end points hold. No graph: all is well."""
        curve = self.curves.get(kind)
        return 1.0 if curve is None else curve.value(x)

    def combined(self, utilities: Mapping[Kind, float]) -> float:
        """The weighted mean of utilities of the kinds that have a graph; 1 if there are none.

        >>> graph = [(0, 0), (1, 1)]
        >>> qos = QoS(loss=graph, throughput=graph, weights={"loss": 3})
        >>> qos.combined({"loss": 1.0, "throughput": 0.5, "latency": 0.1})
        0.875
        """
        weights = {kind: self._weight(kind) for kind in self.kinds if kind in utilities}
        total = sum(weights.values())
        if not total:
            return 1.0
        return sum(utilities[kind] * weight for kind, weight in weights.items()) / total

    def share(self, kind: Kind) -> float:
        """What part of the utility depends on one kind of graph."""
        if kind not in self.curves:
            return 0.0
        return self._weight(kind) / sum(self._weight(one) for one in self.kinds)

    def _weight(self, kind: Kind) -> float:
        return float(getattr(self.weights, kind))

    @property
    def sheddable(self) -> bool:
        """Whether it says what losing tuples costs; outputs that do not say it lose none."""
        return self.loss is not None or self.value is not None

    def document(self) -> dict[str, Any]:
        """The form that the network file uses."""
        return self.model_dump(mode="json", exclude_defaults=True)


def default_qos() -> QoS:
    """The QoS of outputs that have no graph: some delay matters little, and no tuple is lost."""
    return _DEFAULT


def qos_or_default(qos: QoS | None) -> QoS:
    """What counts for an output: its own graphs, or the default if it has none."""
    return qos if qos is not None and qos.kinds else _DEFAULT


def latency_curve(qos: QoS | None) -> Curve:
    """The graph by which an output is scheduled: its own, or the default if it has none."""
    found = qos.curves.get("latency") if qos is not None else None
    return found or _DEFAULT.curves["latency"]


def loss_curve(qos: QoS | None) -> Curve | None:
    """What the share delivered is worth; None if nothing may be lost.

    An output with a value graph alone loses utility in proportion to what it loses.
    """
    if qos is None or not qos.sheddable:
        return None
    return qos.curves.get("loss", _PROPORTIONAL)


def _require_graph(
    kind: str, graph: Graph | None, lowest: float | None, highest: float | None
) -> None:
    if graph is None:
        return
    xs = [float(x) for x, _ in graph if abs(x) <= _LARGEST]
    problem = hint = None
    if len(xs) < len(graph):
        problem = "has finite x"
    elif len(graph) < 2:
        problem, hint = "needs two points or more", f"as in {_EXAMPLES[kind]}"
    elif len(set(xs)) < len(xs):
        problem = "has its points in order of x, no x twice"
        hint = "for a jump, give two x that are close to each other"
    elif xs != sorted(xs) and xs != sorted(xs, reverse=True):
        problem = "has its points in order of x, no x twice"
        hint = f"did you mean {_shown(sorted(graph))}?"
    elif any(not 0 <= utility <= 1 for _, utility in graph):
        problem, hint = "has utilities within [0, 1]", "1 is the best, 0 is worth nothing"
    elif (lowest is not None and min(xs) < lowest) or (highest is not None and max(xs) > highest):
        problem = f"has x within [{lowest}, {'∞' if highest is None else highest}]"
        hint = f"x is {_X[kind]}"
    if problem:
        raise _refused(kind, problem, graph, hint)


_X = {
    "latency": "the delay in seconds",
    "loss": "the share delivered: 1 is all",
    "throughput": "tuples per second",
}
_EXAMPLES = {
    "latency": "[[0, 1], [2, 1], [10, 0]]",
    "loss": "[[1, 1], [0, 0]]",
    "throughput": "[[0, 0], [100, 1]]",
    "value": "[[0, 0], [100, 1]]",
}
_BETTER = {
    "latency": "falls: a longer delay is never worth more",
    "loss": "rises: a larger share delivered is never worth less",
    "throughput": "rises: more tuples per second are never worth less",
}


def _require_shape(kind: str, graph: Graph | None, *, convex: bool) -> None:
    if graph is None:
        return
    curve = Curve.through(graph)
    if not (curve.falls if kind == "latency" else curve.rises):
        hint = f"a point is {_X[kind]}, then its utility"
        if curve.rises or curve.falls:
            turned = zip((x for x, _ in graph), (y for _, y in reversed(graph)), strict=True)
            hint = f"{hint}: did you mean {_shown(turned)}?"
        raise _refused(kind, _BETTER[kind], graph, hint)
    if convex and not curve.is_convex:
        raise _refused(
            kind,
            "gets steeper towards the worse side, never flatter, but for a flat part at its bottom",
            graph,
            hint="convex: false takes it as it is; decisions along its gradient may then be worse",
        )


def _refused(kind: str, expected: str, graph: Graph, hint: str | None = None) -> NetworkError:
    key = "value.graph" if kind == "value" else kind
    message = f"a {kind} graph {expected}; found {_shown(graph)}"
    return NetworkError("BAD_QOS", message, where=f"key {key}", hint=hint)


def _shown(points: Iterable[tuple[Number, Number]]) -> str:
    return str([list(point) for point in points])


_DEFAULT = QoS(latency=DEFAULT_LATENCY)
_PROPORTIONAL = Curve.through([(0, 0), (1, 1)])
