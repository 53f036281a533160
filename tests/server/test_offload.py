"""Calls of the engine in threads: what is told of them is true."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from auroral.engine import Engine
from auroral.server.offload import EngineCalls
from auroral.server.problems import RequestError
from auroral.server.settings import ServerLimits
from tests.server.serving import READINGS, site

WAIT_S = 20
BRIEF_S = 0.2


class Body:
    """Something large that a call holds."""


def hang(begun: threading.Event, go_on: threading.Event) -> None:
    begun.set()
    go_on.wait(WAIT_S)


async def refused(calls: EngineCalls, call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(RequestError) as told:
        await calls.run(call)
    return told.value.code, told.value.message


def test_a_call_that_was_told_not_to_be_done_is_not_done() -> None:
    calls, go_on, begun = EngineCalls(1, BRIEF_S), threading.Event(), threading.Event()
    done: list[int] = []
    bodies: list[weakref.ref[Body]] = []

    def first() -> None:
        hang(begun, go_on)
        done.append(-1)

    def one(number: int) -> Callable[[], None]:
        body = Body()
        bodies.append(weakref.ref(body))
        return lambda: done.append((number, body)[0])

    async def ask() -> list[tuple[str, str]]:
        hung = asyncio.ensure_future(refused(calls, first))
        await asyncio.to_thread(begun.wait, WAIT_S)
        late = await asyncio.gather(*(refused(calls, one(n)) for n in range(100)))
        return [await hung, *late]

    told = asyncio.run(ask())
    try:
        assert told[0] == ("TIMEOUT", f"no answer within {BRIEF_S:g} s; what was asked for goes on")
        assert {code for code, _ in told[1:]} == {"TOO_MANY_CALLS"}
        assert all("nothing was done" in text for _, text in told[1:])
        assert calls.waiting == 0
        gc.collect()
        assert not any(body() for body in bodies)
    finally:
        go_on.set()
    assert asyncio.run(calls.run(lambda: "again")) == "again"
    assert calls.close(WAIT_S)
    assert done == [-1]


def test_a_call_that_is_given_up_is_not_done() -> None:
    calls, go_on, begun = EngineCalls(1, WAIT_S), threading.Event(), threading.Event()
    done: list[int] = []

    async def ask() -> None:
        hung = asyncio.ensure_future(calls.run(hang, begun, go_on))
        await asyncio.to_thread(begun.wait, WAIT_S)
        given_up = asyncio.ensure_future(calls.run(lambda: done.append(1)))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert calls.waiting == 0
        go_on.set()
        await hung

    asyncio.run(ask())
    assert calls.close(WAIT_S)
    assert done == []


def test_who_waits_is_told_that_the_server_ends() -> None:
    calls, go_on, begun = EngineCalls(1, WAIT_S), threading.Event(), threading.Event()

    async def ask() -> tuple[str, str]:
        hung = asyncio.ensure_future(calls.run(hang, begun, go_on))
        await asyncio.to_thread(begun.wait, WAIT_S)
        waits = asyncio.ensure_future(refused(calls, Body))
        await asyncio.sleep(0)
        await asyncio.to_thread(calls.close, 0)
        found = await waits
        go_on.set()
        await hung
        return found

    assert asyncio.run(ask())[0] == "STOPPING"


def test_an_enqueue_that_did_not_begin_is_not_there_later(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def block(_engine: Engine, *_given: Any, **_more: Any) -> None:
        begun.release()
        go_on.wait(WAIT_S)

    with site(limits=ServerLimits(workers=1, request_s=BRIEF_S)) as found:
        with monkeypatch.context() as patched:
            patched.setattr(Engine, "set_qos", block)
            hung = found.ask("PUT", "outputs/alerts/qos", json=None)
            assert hung.json()["code"] == "TIMEOUT"
            assert begun.acquire(timeout=WAIT_S)
            late = found.ask("POST", "streams/readings", json=READINGS)
            assert (late.status_code, late.json()["code"]) == (429, "TOO_MANY_CALLS")
            assert "nothing was done" in late.json()["detail"]
            go_on.set()
        while found.ask("GET", "/readyz").status_code == 429:
            pass
        found.engine.drain(WAIT_S)
        assert found.engine.stats()["streams"]["readings"]["in"] == 0
        assert found.ask("POST", "streams/readings", json=READINGS).json()["accepted"] == 3
