"""A client that stops reading costs the server a bounded amount of memory."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyarrow import flight

from auroral.server.addresses import FeedAddress
from auroral.server.flight import FlightFeed
from auroral.server.metrics import resident_bytes
from auroral.server.settings import ServerLimits
from tests.server.serving import Site, site

WIDE: dict[str, Any] = {
    "network": "wide",
    "streams": {"s": {"schema": {"text": "string"}}},
    "boxes": {"all": {"box": "filter", "input": "s", "where": "true"}},
    "outputs": {"o": {"from": "all"}},
    "tables": {"t": {"schema": {"k": "bigint", "text": "string"}, "key": ["k"]}},
}
TEXT = "x" * 1_000_000
ROUNDS = 300
"""So many megabytes pass a client that reads nothing."""
MOST_GROWTH = 160 << 20
"""A follower may hold 64 MB, a message and the buffers of a connection come on top."""


@pytest.fixture
def wide() -> Iterator[Site]:
    with site(WIDE, limits=ServerLimits(slow_socket_s=600.0)) as found:
        yield found


def memory() -> int:
    found = resident_bytes()
    assert found is not None
    return found


def pass_by(found: Site) -> int:
    """Let rows pass, taken by another client; how much the memory grew meanwhile."""
    engine, most = found.engine, 0
    feed(found, 20)
    before = memory()
    for _ in range(ROUNDS // 20):
        feed(found, 20)
        most = max(most, memory() - before)
    assert engine.stats()["outputs"]["o"]["out"] >= ROUNDS
    return most


def feed(found: Site, rows: int) -> None:
    for _ in range(rows):
        assert found.engine.enqueue("s", [{"text": TEXT}]) == 1
        found.engine.drain(30)
        assert found.engine.dequeue("o").num_rows == 1


@contextmanager
def silent(found: Site, path: str, *headers: str) -> Iterator[socket.socket]:
    """A request whose answer nobody reads, but the first bytes."""
    port = int(found.http.url.rpartition(":")[2])
    lines = [
        f"GET /api/v1/{path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {found.tokens['operator']}",
        *headers,
    ]
    with socket.create_connection(("127.0.0.1", port), 30) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.sendall("\r\n".join([*lines, "", ""]).encode())
        yield opened


def test_a_follower_over_a_websocket(wide: Site) -> None:
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    with silent(wide, "outputs/o/live", *upgrade, key) as opened:
        assert b"101" in opened.recv(12)
        deadline = time.monotonic() + 30
        while not wide.engine._debugger._watch.followers:
            assert time.monotonic() < deadline, "nobody follows"
        assert pass_by(wide) < MOST_GROWTH
        (follower,) = wide.engine._debugger._watch.followers._all
        assert sum(batch.bytes for batch in follower._waiting) <= follower._most_bytes + len(TEXT)
        assert wide.get("stats")["streams"]["s"]["in"] > ROUNDS  # others are served


def test_a_follower_over_flight(wide: Site) -> None:
    feed_ = FlightFeed(wide.engine, FeedAddress.parse("0", "--flight"), lambda _: "operator")
    feed_.start()
    try:
        with flight.FlightClient(feed_.address) as client:
            options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer x")])
            ticket = flight.Ticket(json.dumps({"output": "o", "take": False}).encode())
            reader = client.do_get(ticket, options)
            assert reader.schema.names == ["text"]
            assert pass_by(wide) < MOST_GROWTH
            reader.cancel()
    finally:
        feed_.stop()


def test_answers_over_http(wide: Site) -> None:
    """As many answers wait as there are connections; none is made twice or buffered without end."""
    feed(wide, 20)
    for _ in range(20):
        wide.engine.enqueue("s", [{"text": TEXT}])
    wide.engine.drain(30)
    before = memory()
    paths = [f"outputs/o?reader=r&turn={turn}" for turn in range(8)]
    with silent(wide, paths[0]) as opened:
        assert b"200" in opened.recv(12)
        for path in paths[1:]:
            with silent(wide, path) as other:
                assert b"200" in other.recv(12)
        assert wide.get("server")["network"] == "wide"
        assert memory() - before < MOST_GROWTH
