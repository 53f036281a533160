"""Spark compiles while tuples arrive: slow steps are no overload, so that nothing is dropped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from auroral.engine import Engine
from auroral.network.network import Network

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 600.0
RATE = {
    "format": "rate",
    "rows_per_second": 50,
    "seed": 1,
    "fields": {"k": {"uniform": [0, 9]}, "t": {"step": [0, 1]}, "v": {"uniform": [0, 99]}},
}
QUALITY = {
    "latency": [[0, 1], [1, 1], [5, 0]],
    "loss": [[1, 1], [0, 0]],
}


def network(*names: str) -> Network:
    """Windows and joins, which take Spark long to compile, in superboxes of their own."""
    boxes: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for number, name in enumerate(names):
        compute = f"CASE WHEN v % {number + 2} = 0 THEN sha2(CAST(v AS string), 512) END"
        boxes[f"{name}_hashed"] = {
            "box": "map",
            "input": "s",
            "keep": "*",
            "compute": {"h": compute},
        }
        boxes[f"{name}_counts"] = {
            "box": "aggregate",
            "input": f"{name}_hashed",
            "order": {"on": "t", "by": ["k"]},
            "window": {"size": 10 + number},
            "compute": {"n": "count(*)", "v": "max(v)", "h": "min(h)"},
        }
        value = {"on": "v", "graph": [[0, 0], [99, 1]]}
        outputs[f"{name}_rows"] = {"from": f"{name}_hashed", "qos": {**QUALITY, "value": value}}
        outputs[f"{name}_windows"] = {"from": f"{name}_counts", "qos": QUALITY}
    document: dict[str, Any] = {
        "network": "cold",
        "streams": {
            "s": {
                "schema": {"k": "int", "t": "bigint", "v": "int"},
                "progress": {"on": "t", "ordered": True},
                "source": RATE,
            }
        },
        "boxes": boxes,
        "outputs": outputs,
    }
    return Network.parse(document)


def until(engine: Engine, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        engine.wait(0.05)


@pytest.mark.spark
def test_nothing_is_dropped_while_spark_compiles(spark: SparkSession) -> None:
    first, more = network("one"), network("one", "two")
    with Engine(first, spark=spark) as engine:
        stats = engine.stats

        def has_delivered(output: str, count: int) -> bool:
            return bool(stats()["qos"].get(output, {}).get("delivered", 0) >= count)

        until(engine, lambda: has_delivered("one_rows", 100))
        engine.modify(network=more)
        until(engine, lambda: has_delivered("two_rows", 100))
        found = stats()["shedding"]
        assert (found["dropped"], found["drops"], found["mode"]) == (0, [], "auto")
        assert found["load"] is not None
