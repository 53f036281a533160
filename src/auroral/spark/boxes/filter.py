"""Filter on Spark: one boolean column per predicate."""

from __future__ import annotations

from auroral.boxes.filter import REST, Filter
from auroral.network.types import Type
from auroral.spark.frame import Condition, Frame, Lane

_BOOLEAN = Type("boolean")


def lower(box: Filter, lane: Lane, frame: Frame) -> dict[str, Lane]:
    """The lanes of each port: the first predicate that holds wins, NULL counts as false."""
    predicates = box.predicates
    texts = [(text, _BOOLEAN) for text in predicates.values()]
    columns = frame.evaluate(lane, texts, instead=False)
    ports: dict[str, Lane] = {}
    failed: tuple[Condition, ...] = ()
    for port, column in zip(predicates, columns, strict=True):
        ports[port] = lane.where(*failed, Condition(column))
        failed = (*failed, Condition(column, holds=False))
    ports[REST] = lane.where(*failed)
    return ports
