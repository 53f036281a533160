"""A server under load: what waits, what is refused, and how it ends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pytest

from auroral.client import Client
from auroral.engine import Engine
from auroral.errors import RunError
from auroral.server.settings import ServerLimits
from tests.server.serving import PLANT, READINGS, Site, site

LIMITS = ServerLimits(workers=2, waits=2, stop_s=0.2)
WAIT_S = 20


class BlockedSelects:
    """`Engine.sql` that does not return before it is cancelled, or the test lets it go on."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.cancelled: list[str] = []
        self.limits: list[int | None] = []
        self.go_on = threading.Event()
        self._noted = threading.Condition()

    def sql(self, _query: str, limit: int | None = None, *, job: str) -> pa.Table:
        self.limits.append(limit)
        self.begun.release()
        with self._noted:
            self._noted.wait_for(lambda: job in self.cancelled or self.go_on.is_set(), WAIT_S)
        if job in self.cancelled:
            raise RunError("BAD_SELECT", "it was cancelled")
        return pa.table({"n": list(range(limit or 0))})

    def cancel_sql(self, job: str) -> None:
        with self._noted:
            self.cancelled.append(job)
            self._noted.notify_all()

    def wait_for_cancelled(self, count: int) -> None:
        with self._noted:
            assert self._noted.wait_for(lambda: len(set(self.cancelled)) >= count, WAIT_S)

    def release(self) -> None:
        with self._noted:
            self.go_on.set()
            self._noted.notify_all()


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockedSelects]:
    found = BlockedSelects()
    monkeypatch.setattr(Engine, "sql", lambda _engine, *given, **more: found.sql(*given, **more))
    monkeypatch.setattr(Engine, "cancel_sql", lambda _engine, job: found.cancel_sql(job))
    yield found
    found.release()


def select(at: Site, **given: Any) -> httpx.Response:
    return at.ask("POST", "sql", role="viewer", json={"query": "SELECT 1"}, **given)


def test_selects_are_few_and_hold_nobody_up(blocked: BlockedSelects) -> None:
    limits = replace(LIMITS, answer_rows=5)
    with site(limits=limits) as found, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(select, found) for _ in range(2)]
        for _ in asked:
            assert blocked.begun.acquire(timeout=WAIT_S)
        refused = select(found)
        assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_CALLS")
        assert refused.headers["Retry-After"] == "1"
        assert found.ask("POST", "streams/readings", json=READINGS).json()["accepted"] == 3
        assert found.ask("GET", "/readyz").status_code == 200
        blocked.release()
        for one in asked:
            answer = one.result(WAIT_S).json()
            assert (len(answer["rows"]), answer["truncated"]) == (5, True)
        assert blocked.limits == [6, 6]
        assert not blocked.cancelled


def test_a_select_ends_when_nobody_waits_for_it(blocked: BlockedSelects) -> None:
    with site(limits=LIMITS) as found:
        with pytest.raises(httpx.ReadTimeout):
            select(found, timeout=0.3)
        blocked.wait_for_cancelled(1)
    with site(limits=replace(LIMITS, request_s=0.2)) as found:
        late = select(found)
        assert (late.status_code, late.json()["code"]) == (503, "TIMEOUT")
        blocked.wait_for_cancelled(2)


def test_the_end_does_not_wait_for_what_hangs(
    blocked: BlockedSelects, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, go_on = threading.Semaphore(0), threading.Event()

    def hang(_engine: Engine, _name: str) -> Any:
        hung.release()
        go_on.wait(WAIT_S)

    monkeypatch.setattr(Engine, "describe", hang)
    monkeypatch.setattr("auroral.server.running._FINISH_S", 1)
    try:
        with ThreadPoolExecutor(3) as pool, site(limits=LIMITS) as found:
            asked = [
                pool.submit(select, found),
                pool.submit(found.ask, "GET", "entities/hot"),
                pool.submit(found.ask, "POST", "control/drain", json={"timeout_s": 40}),
            ]
            assert blocked.begun.acquire(timeout=WAIT_S)
            assert hung.acquire(timeout=WAIT_S)
            since = time.monotonic()
            found.http.stop()
            assert time.monotonic() - since < 5
            blocked.wait_for_cancelled(1)
            for one in asked:
                one.exception(WAIT_S)
    finally:
        go_on.set()


def test_pictures_of_an_engine_that_hangs_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits shares one call; the end does not wait for it."""
    asked, go_on = threading.Semaphore(0), threading.Event()

    def hang(_engine: Engine) -> Any:
        asked.release()
        go_on.wait(WAIT_S)

    monkeypatch.setattr(Engine, "stats", hang)
    try:
        with site(limits=replace(LIMITS, request_s=0.4)) as found, ThreadPoolExecutor(6) as pool:
            paths = ["picture", "history/hot", "history/*"] * 2
            told = list(pool.map(lambda path: found.ask("GET", path, role="viewer"), paths))
            assert {(one.status_code, one.json()["code"]) for one in told} == {(503, "TIMEOUT")}
            assert asked.acquire(timeout=WAIT_S)
            assert not asked.acquire(blocking=False)
            assert found.get("server")["network"] == "plant"
            since = time.monotonic()
            found.http.stop()
            assert time.monotonic() - since < 5
    finally:
        go_on.set()


def test_waiting_takes_no_thread_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, done = threading.Semaphore(0), threading.Event()

    def drain(_engine: Engine, _timeout_s: float) -> None:
        waiting.release()
        done.wait(WAIT_S)

    monkeypatch.setattr(Engine, "drain", drain)
    with site(limits=LIMITS) as found, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(found.ask, "POST", "control/drain", json={}) for _ in range(2)]
        for _ in asked:
            assert waiting.acquire(timeout=WAIT_S)
        assert found.ask("POST", "control/drain", json={}).status_code == 429
        assert found.ask("POST", "streams/readings", json=READINGS).json()["accepted"] == 3
        assert found.ask("GET", "/readyz").status_code == 200
        done.set()
        assert [one.result(WAIT_S).json() for one in asked] == [{"drained": True}] * 2


def test_who_looks_takes_no_thread_from_who_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, done = threading.Semaphore(0), threading.Event()

    def describe(_engine: Engine, _name: str) -> dict[str, Any]:
        looking.release()
        done.wait(WAIT_S)
        return {}

    monkeypatch.setattr(Engine, "describe", describe)
    with site(limits=LIMITS) as found, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(found.ask, "GET", "entities/hot", role="viewer") for _ in range(2)]
        for _ in asked:
            assert looking.acquire(timeout=WAIT_S)
        assert found.ask("POST", "streams/readings", json=READINGS).json()["accepted"] == 3
        assert found.ask("GET", "/readyz").status_code == 200
        done.set()
        assert [one.result(WAIT_S).status_code for one in asked] == [200, 200]


def test_networks_to_check_are_smaller_than_other_bodies() -> None:
    with site(limits=replace(LIMITS, check_bytes=10_000)) as found:
        assert found.ask("POST", "check", json=PLANT).json()["ok"]
        large = {**PLANT, "description": "x" * 10_000}
        refused = found.ask("POST", "check", json=large)
        assert (refused.status_code, refused.json()["code"]) == (413, "TOO_LARGE")


def test_bodies_are_bounded_together_and_in_time() -> None:
    limits = replace(LIMITS, body_bytes=4000, total_body_bytes=5000, body_s=0.3)
    with site(limits=limits) as found:
        host, port = found.http.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), WAIT_S) as slow:
            slow.sendall(_half_a_body(found, 3000))
            guard: Any = found.http._server.config.app
            while guard._bodies.held < 2000:
                assert guard.requests or guard._bodies.held == 0
            refused = found.ask("POST", "infer", content=b"a\n" * 1900, headers=CSV)
            assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_CALLS")
            said = slow.recv(4096)
            assert said.startswith(b"HTTP/1.1 408"), said
            assert b"SLOW_BODY" in said + slow.recv(4096)
        assert found.ask("POST", "infer", content=b"a\n" * 1900, headers=CSV).status_code == 200
        assert guard._bodies.held == 0


CSV = {"Content-Type": "text/csv"}


def _half_a_body(at: Site, size: int) -> bytes:
    token = at.tokens["viewer"]
    head = (
        f"POST /api/v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {size}\r\n\r\n"
    )
    return head.encode() + b"x" * (size - 1000)


def test_who_enqueues_waits_while_the_engine_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with site(limits=replace(LIMITS, backlog=2)) as found:
        found.engine.pause()
        assert found.ask("POST", "streams/readings", json=READINGS).json()["accepted"] == 3
        refused = found.ask("POST", "streams/readings", json=READINGS)
        assert (refused.status_code, refused.json()["code"]) == (429, "BEHIND")
        assert refused.headers["Retry-After"] == "1"
        waited: list[float] = []

        def wait(seconds: float) -> None:
            waited.append(seconds)
            found.engine.resume()
            found.engine.drain(WAIT_S)

        monkeypatch.setattr("auroral.client.transport.sleep", wait)
        with Client(found.http.url, found.tokens["operator"]) as client:
            assert client.enqueue_encoded("readings", b"machine,at,celsius\nx,20,1\n", "text/csv")
        assert waited == [1.0]
        found.engine.drain(WAIT_S)
        assert found.engine.stats()["streams"]["readings"]["in"] == 4
