"""Map on Spark: expressions as columns, Python functions vectorised over Arrow."""

from __future__ import annotations

from dataclasses import replace

from auroral.boxes.map import Map
from auroral.network.function import Function
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.spark.frame import Condition, Frame, Lane
from auroral.spark.functions import Failures, call


def lower(
    box: Map, lane: Lane, frame: Frame, output: Schema, network: Network
) -> tuple[Lane, list[Failures]]:
    """The output lane, and the lanes of tuples for which a Python function failed."""
    columns = {name: lane.columns[name] for name in box.kept(frame.schema(lane))}
    expressions = {
        name: (text, output.field(name).type)
        for name, text in box.compute.items()
        if isinstance(text, str)
    }
    made = frame.evaluate(lane, list(expressions.values()))
    columns |= dict(zip(expressions, made, strict=True))
    failures: list[Failures] = []
    good: tuple[Condition, ...] = ()
    for name, how in box.compute.items():
        if isinstance(how, Function):
            value, failed = call(how, lane.where(*good), frame, output.field(name).type, network)
            columns[name] = value
            failures.append(failed)
            good = (*good, Condition(failed.condition.column, holds=False))
    ordered = {name: columns[name] for name in output.names}
    return replace(lane.where(*good), columns=ordered), failures
