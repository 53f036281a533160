"""A viewer's condition does not stop the process, whatever it asks for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from auroral.server.metrics import resident_bytes
from tests.server.serving import READINGS, Site, site

MOST_STILL_S = 1.0
BACKTRACKS = "concat(machine, repeat('a', 40), '!') rlike '(a+)+$'"
CONSTANT = f"'{'a' * 40}!' rlike '(a+)+$'"
LARGE = "length(rpad(machine, at * 1000000000, 'y')) > 1"


@contextmanager
def ticking() -> Iterator[list[float]]:
    """The longest time for which no other thread ran, at the end of the block."""
    longest, ended = [0.0], threading.Event()

    def tick() -> None:
        last = time.monotonic()
        while not ended.wait(0.01):
            now = time.monotonic()
            longest[0], last = max(longest[0], now - last), now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield longest
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def fed() -> Iterator[Site]:
    with site() as found:
        found.get("arcs/hot/sample")
        found.ask("POST", "streams/readings", json=READINGS)
        found.engine.drain(30)
        yield found


@pytest.mark.parametrize("where", [BACKTRACKS, CONSTANT, LARGE])
def test_a_sample(fed: Site, where: str) -> None:
    before = resident_bytes()
    with ticking() as longest:
        found = fed.ask("GET", "arcs/hot/sample", role="viewer", params={"where": where})
    assert (found.status_code, found.json()["rows"]) == (200, [])
    after = resident_bytes()
    assert (after or 0) - (before or 0) < 100 << 20
    assert longest[0] < MOST_STILL_S


def test_what_is_refused_says_why(fed: Site) -> None:
    for where in ("machine rlike '(a)\\\\1'+", "length(space(1000000000)) > 1"):
        found = fed.ask("GET", "arcs/hot/sample", role="viewer", params={"where": where})
        assert found.status_code == 400, found.text
    assert found.json()["code"] == "BAD_CONDITION"
    assert "space would make more than" in found.json()["detail"]


@pytest.mark.parametrize("where", [BACKTRACKS, CONSTANT, LARGE])
def test_a_sample_over_a_websocket(fed: Site, where: str) -> None:
    with ticking() as longest, fed.socket("live") as socket:
        socket.send(json.dumps({"samples": [{"arc": "hot", "where": where}]}))
        while (frame := json.loads(socket.recv(20)))["type"] != "sample":
            pass
    assert frame["table"]["rows"] == []
    assert longest[0] < MOST_STILL_S


@pytest.mark.parametrize("condition", [BACKTRACKS, CONSTANT, LARGE])
def test_a_breakpoint(fed: Site, condition: str) -> None:
    asked = {"arc": "readings", "condition": condition}
    with ticking() as longest:
        assert fed.ask("POST", "control/breakpoints", json=asked).status_code == 201
        fed.ask("POST", "streams/readings", json=[{"machine": "x", "at": 20, "celsius": 1.0}])
        fed.engine.drain(30)
    assert fed.get("control")["hit"] is None
    assert longest[0] < MOST_STILL_S


def test_a_network_that_is_only_checked(fed: Site) -> None:
    """A pattern is not computed while a network is read, however constant it is."""
    boxes = {"b": {"box": "filter", "input": "s", "where": f"text LIKE CAST({CONSTANT} AS string)"}}
    asked = {"network": "n", "streams": {"s": {"schema": {"text": "string"}}}, "boxes": boxes}
    with ticking() as longest:
        assert fed.ask("POST", "check", role="viewer", json=asked).status_code == 200
    assert longest[0] < MOST_STILL_S
