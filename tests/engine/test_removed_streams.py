"""A stream that is removed while its source brings tuples."""

from __future__ import annotations

from typing import Any

from auroral.network.network import Network
from tests.conformance.sparkless import make_engine

RATE = {"format": "rate", "rows_per_second": 5000, "seed": 1, "fields": {"n": {"uniform": [0, 9]}}}


def network(*streams: str) -> Network:
    document: dict[str, Any] = {
        "network": "plant",
        "streams": {s: {"schema": {"n": "int"}, "source": RATE} for s in streams},
        "outputs": {f"all_{s}": {"from": s} for s in streams},
    }
    return Network.parse(document)


def test_the_others_go_on() -> None:
    with make_engine(network("left", "right"), background=True) as engine:
        for _ in range(5):
            engine.modify(network=network("left"))
            assert set(engine.stats()["streams"]) == {"left"}
            engine.modify(network=network("left", "right"))
        before = engine.stats()["streams"]["left"]["in"]
        while engine.stats()["streams"]["left"]["in"] == before:
            engine.wait(0.05)
