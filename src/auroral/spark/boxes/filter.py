"""Filter on Spark: one boolean column per predicate."""

from __future__ import annotations

from auroral.boxes.filter import REST, Filter
from auroral.network.network import Network
from auroral.network.types import Type
from auroral.spark.plans.frame import Frame, Lane, LaneCondition
from auroral.spark.plans.functions import FunctionFailures, evaluate, without

_BOOLEAN = Type("boolean")


def lower(
    box: Filter, lane: Lane, frame: Frame, network: Network
) -> tuple[dict[str, Lane], list[FunctionFailures]]:
    """The lanes of each port, and of tuples for which a Python function failed.

    The first predicate that holds wins, NULL counts as false.
    """
    texts = [(text, _BOOLEAN) for text in box.predicates.values()]
    columns, failures = evaluate(box, texts, lane, frame, network, instead=False)
    ports: dict[str, Lane] = {}
    rest = without(lane, failures)
    for port, column in zip(box.predicates, columns, strict=True):
        ports[port] = rest.where(LaneCondition(column))
        rest = rest.where(LaneCondition(column, holds=False))
    ports[REST] = rest
    return ports, failures
