"""Map on Spark: expressions as columns, Python functions vectorised over Arrow."""

from __future__ import annotations

from dataclasses import replace

from auroral.boxes.map import Map
from auroral.network.function import Function
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.spark.plans.frame import Frame, Lane
from auroral.spark.plans.functions import FunctionFailures, call, evaluate, without


def lower(
    box: Map, lane: Lane, frame: Frame, output: Schema, network: Network
) -> tuple[Lane, list[FunctionFailures]]:
    """The output lane, and the lanes of tuples for which a Python function failed."""
    columns = {name: lane.columns[name] for name in box.kept(frame.schema(lane))}
    texts = [(text, output.field(name).type) for name, text in box.texts.items()]
    made, failures = evaluate(box, texts, lane, frame, network)
    columns |= dict(zip(box.texts, made, strict=True))
    good = without(lane, failures)
    for name, how in box.compute.items():
        if isinstance(how, Function):
            columns[name], failed = call(how, good, frame, output.field(name).type, network)
            failures.append(failed)
            good = without(good, [failed])
    return replace(good, columns={name: columns[name] for name in output.names}), failures
