"""Connections that hold a place for nothing are few, and end."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from auroral.server.metrics import resident_bytes
from auroral.server.settings import ServerLimits
from tests.server.serving import Site, site

WAIT_S = 20
ROWS = 64
WIDE: dict[str, Any] = {
    "network": "wide",
    "streams": {"s": {"schema": {"k": "bigint", "text": "string"}}},
    "connection_points": {"kept": {"on": "s", "keep": {"rows": ROWS}}},
    "outputs": {"o": {"from": "s"}},
}
TEXT = "".join(chr(33 + at * 7919 % 90) for at in range(250_000))
ANSWER_BYTES = ROWS * len(TEXT)


@pytest.fixture
def brief() -> Iterator[Site]:
    limits = ServerLimits(connections=20, header_s=0.4, slow_socket_s=0.6)
    with site(WIDE, limits=limits) as found:
        rows = [{"k": at, "text": TEXT} for at in range(ROWS)]
        assert found.ask("POST", "streams/s", json=rows).status_code == 200
        found.engine.drain(30)
        yield found


def opened(at: Site, receives: int | None = None) -> socket.socket:
    made = socket.socket()
    made.settimeout(WAIT_S)
    if receives is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    made.connect(("127.0.0.1", int(at.http.url.rpartition(":")[2])))
    return made


def asked(at: Site, path: str) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {at.tokens['viewer']}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def ends(one: socket.socket) -> bool:
    """Whether the other side has closed it, after what it had to say."""
    with contextlib.suppress(ConnectionError):
        while one.recv(1 << 20):
            pass
    return True


def until(happens: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_who_asks_nothing_is_cut_off(brief: Site) -> None:
    silent, half, later = (opened(brief) for _ in range(3))
    with silent, half, later:
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        later.sendall(asked(brief, "/healthz"))
        assert later.recv(12) == b"HTTP/1.1 200"
        later.sendall(b"G")  # a second request that never comes
        since = time.monotonic()
        assert all(ends(one) for one in (silent, half, later))
        assert time.monotonic() - since < 5


def test_connections_are_counted(brief: Site) -> None:
    brief.asking.close()
    connections = brief.http._server.server_state.connections
    until(lambda: not connections)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(opened(brief)) for _ in range(20)]
        until(lambda: len(connections) == len(held))
        refused = stack.enter_context(opened(brief))
        assert refused.recv(12) == b"HTTP/1.1 429"
        assert b"TOO_MANY_CONNECTIONS" in refused.recv(4096)
    until(lambda: not connections)  # also the one that was refused
    with opened(brief) as after:
        after.sendall(asked(brief, "/healthz"))
        assert after.recv(12) == b"HTTP/1.1 200"


def test_small_answers_are_sent_at_once(brief: Site) -> None:
    """Else each waits 40 ms for the client to confirm its first part."""
    with brief.socket("live"):
        brief.get("server")
        held = list(brief.http._server.server_state.connections)
        assert len(held) == 2
        for one in held:
            sent: Any = one.transport.get_extra_info("socket")
            assert sent.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_what_is_no_request_gets_its_answer(brief: Site, size: int) -> None:
    """It is not reset, however much it sends."""
    with opened(brief) as one:
        one.sendall(b"GET /" + b"x" * size + b" nonsense\r\n\r\n")
        found = b""
        while part := one.recv(4096):
            found += part
        one.shutdown(socket.SHUT_WR)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request")
    assert json.loads(body)["code"] == "BAD_REQUEST"
    connections = brief.http._server.server_state.connections
    until(lambda: len(connections) <= 1)


def test_a_body_that_is_too_large_gets_its_answer(brief: Site) -> None:
    head = [
        "POST /api/v1/streams/s HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {brief.tokens['operator']}",
        f"Content-Length: {100 << 20}",
    ]
    with opened(brief) as one:
        one.sendall("\r\n".join([*head, "", ""]).encode())
        for _ in range(10):
            one.sendall(b"x" * 1_000_000)
        assert one.recv(12) == b"HTTP/1.1 413"
        assert b"TOO_LARGE" in one.recv(4096)
        assert ends(one)  # nobody waits for the rest


def test_who_takes_nothing_of_an_answer_is_cut_off(brief: Site) -> None:
    guard: Any = brief.http._server.config.app
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(opened(brief, 4096)) for _ in range(8)]
        for one in stalled:
            one.sendall(asked(brief, "/api/v1/points/kept/rows?limit=100"))
        for one in stalled:
            assert one.recv(12) == b"HTTP/1.1 200"
        assert guard.unsent > 0
        assert guard.requests > 0  # as long as an answer is not taken, its request is under way
        until(lambda: guard.requests == 0 and guard.unsent == 0)
        until(lambda: len(brief.http._server.server_state.connections) <= 1)
        assert all(ends(one) for one in stalled)
    assert len(brief.get("points/kept/rows?limit=100")["rows"]) == ROWS


def test_who_takes_an_answer_slowly_gets_it(brief: Site) -> None:
    taken = 0
    with opened(brief, 65536) as slow:
        slow.sendall(asked(brief, "/api/v1/points/kept/rows?limit=100"))
        head = slow.recv(1 << 20)
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        taken = len(head.partition(b"\r\n\r\n")[2])
        since = time.monotonic()
        while taken < size:
            if time.monotonic() - since < 1.5:
                time.sleep(0.05)
            found = slow.recv(1 << 17)
            assert found, f"cut off after {taken} of {size}"
            taken += len(found)
    assert size > ANSWER_BYTES


def test_answers_that_wait_are_bounded_together() -> None:
    limits = ServerLimits(total_answer_bytes=ANSWER_BYTES, slow_socket_s=60)
    with site(WIDE, limits=limits) as found, contextlib.ExitStack() as stack:
        rows = [{"k": at, "text": TEXT} for at in range(ROWS)]
        found.ask("POST", "streams/s", json=rows)
        found.engine.drain(30)
        before = resident_bytes() or 0
        statuses = []
        for _ in range(12):
            one = stack.enter_context(opened(found, 4096))
            one.sendall(asked(found, "/api/v1/points/kept/rows?limit=100"))
            statuses.append(one.recv(12))
        assert statuses[0] == b"HTTP/1.1 200"
        assert statuses[-1] == b"HTTP/1.1 429"
        assert (resident_bytes() or 0) - before < 8 * ANSWER_BYTES


def test_an_idle_websocket_stays(brief: Site) -> None:
    with brief.socket("outputs/o/live") as follower:
        assert follower.recv(WAIT_S)
        time.sleep(1.0)  # longer than headers and answers may take
        row = {"k": 1, "text": "x"}
        assert brief.ask("POST", "streams/s", json=[row]).status_code == 200
        assert "x" in str(follower.recv(WAIT_S))
    with pytest.raises(ConnectionClosed):
        follower.recv(WAIT_S)
