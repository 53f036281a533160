"""Calls of the engine block: they run in a bounded number of threads, never in the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import ParamSpec, TypeVar

from auroral.server.problems import RequestError

P = ParamSpec("P")
T = TypeVar("T")


class EngineCalls:
    """Runs calls in threads of its own and waits for them, for a while.

    A call that takes longer goes on in its thread; who asked is told TIMEOUT. The threads do not
    hold up the end of the process, so that a call that hangs does not, either.
    """

    def __init__(
        self, workers: int, timeout_s: float, *, name: str = "calls", refuse_when_busy: bool = False
    ):
        """With `refuse_when_busy` no call waits for a thread: it is told to come again."""
        self._workers = workers
        self._timeout_s = timeout_s
        self._name = name
        self._refuse = refuse_when_busy
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the server is ending."""
        return self._closed

    async def run(self, call: Callable[P, T], *args: P.args, **given: P.kwargs) -> T:
        """The result of a call."""
        running = asyncio.wrap_future(self._submit(partial(call, *args, **given)))
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._timeout_s)
        except TimeoutError:
            running.add_done_callback(_forget)
            raise RequestError(
                503,
                "TIMEOUT",
                f"no answer within {self._timeout_s:g} s; what was asked for goes on",
            ) from None
        except asyncio.CancelledError:
            running.add_done_callback(_forget)
            raise

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if self._closed or not future.set_running_or_notify_cancel():
                future.cancel()
                return
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            if self._closed:
                raise RequestError(503, "STOPPING", "the server is ending")
            if self._refuse and self._under_way >= self._workers:
                raise RequestError(
                    429,
                    "TOO_MANY_CALLS",
                    f"{self._under_way} such calls are under way, which is the most",
                    headers={"Retry-After": "1"},
                )
            self._under_way += 1
            if self._under_way > len(self._threads) and len(self._threads) < self._workers:
                self._begin_thread()
        self._waiting.put(work)
        return future

    def _begin_thread(self) -> None:
        number = len(self._threads) + 1
        thread = threading.Thread(
            target=self._serve, daemon=True, name=f"auroral-serve-{self._name}-{number}"
        )
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                work()
            finally:
                with self._lock:
                    self._under_way -= 1

    def close(self, wait_s: float) -> bool:
        """Wait a while for the calls under way; those that have not begun never do."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._waiting.put(None)
        deadline = time.monotonic() + wait_s
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)


def _forget(running: asyncio.Future[T]) -> None:
    """Take the error of a call that nobody waits for any more."""
    if not running.cancelled():
        running.exception()
