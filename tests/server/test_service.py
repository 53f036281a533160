"""What the server keeps of an engine beside it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from auroral.engine import Engine
from tests.server.serving import site

WAIT_S = 20
A_WHILE_S = 0.3


def test_graphs_that_are_told_are_those_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two who set graphs at the same time do so one after the other."""
    held: list[Any] = []
    second_ended = threading.Event()
    graphs = [{"latency": [[0, 1], [at, 0]]} for at in (5, 7)]

    with site() as found:

        def second() -> None:
            found.service.set_qos("alerts", graphs[1])
            second_ended.set()

        other = threading.Thread(target=second)

        def set_qos(_engine: Engine, _output: str, given: Any) -> None:
            held.append(given)
            if len(held) == 1:
                other.start()
                second_ended.wait(A_WHILE_S)

        monkeypatch.setattr(Engine, "set_qos", set_qos)
        found.service.set_qos("alerts", graphs[0])
        other.join(WAIT_S)
        told = found.service.set_graphs["alerts"]
    assert told is not None
    assert told.latency is not None
    assert held[-1] == graphs[1]
    assert told == type(told).model_validate(held[-1])
    assert found.service.qos_version == 2
