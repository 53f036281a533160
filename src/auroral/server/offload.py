"""Calls of the engine block: they run in a bounded number of threads, never in the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from auroral.server.problems import RequestError

P = ParamSpec("P")
T = TypeVar("T")


class _Call(Generic[T]):
    """A call that waits for a thread, or has one."""

    def __init__(self, call: Callable[[], T]):
        self.call = call
        self.future: Future[T] = Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.call())
        except BaseException as error:
            self.future.set_exception(error)


class EngineCalls:
    """Runs calls in threads of its own and waits for them, for a while.

    A call that takes longer goes on in its thread; who asked is told TIMEOUT. A call that has not
    begun by then never does, and is forgotten. The threads do not hold up the end of the process,
    so that a call that hangs does not, either.
    """

    def __init__(
        self,
        workers: int,
        timeout_s: float | None,
        *,
        name: str = "calls",
        refuse_when_busy: bool = False,
    ):
        """With `refuse_when_busy` no call waits for a thread: it is told to come again.

        Without `timeout_s` who asks decides how long to wait.
        """
        self._workers = workers
        self._timeout_s = timeout_s
        self._name = name
        self._refuse = refuse_when_busy
        self._news = threading.Condition()
        """Its lock guards all that follows."""
        self._waiting: deque[_Call[Any]] = deque()
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the server is ending."""
        return self._closed

    @property
    def waiting(self) -> int:
        """Calls that have no thread yet."""
        return len(self._waiting)

    async def run(self, call: Callable[P, T], *args: P.args, **given: P.kwargs) -> T:
        """The result of a call."""
        asked = self._submit(partial(call, *args, **given))
        running = asyncio.wrap_future(asked.future)
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._timeout_s)
        except TimeoutError:
            if running.done():  # just now, or the call itself said so
                return running.result()
            running.add_done_callback(_forget)
            if self._withdraw(asked):
                raise RequestError(
                    429,
                    "TOO_MANY_CALLS",
                    f"no thread was free within {self._timeout_s:g} s; nothing was done",
                    headers={"Retry-After": "1"},
                ) from None
            raise RequestError(
                503,
                "TIMEOUT",
                f"no answer within {self._timeout_s:g} s; what was asked for goes on",
            ) from None
        except asyncio.CancelledError:
            running.add_done_callback(_forget)
            self._withdraw(asked)
            raise

    def _submit(self, call: Callable[[], T]) -> _Call[T]:
        asked = _Call(call)
        with self._news:
            if self._closed:
                raise _stopping()
            if self._refuse and self._under_way >= self._workers:
                raise RequestError(
                    429,
                    "TOO_MANY_CALLS",
                    f"{self._under_way} such calls are under way, which is the most",
                    headers={"Retry-After": "1"},
                )
            self._under_way += 1
            self._waiting.append(asked)
            if self._under_way > len(self._threads) and len(self._threads) < self._workers:
                self._begin_thread()
            self._news.notify()
        return asked

    def _withdraw(self, asked: _Call[T]) -> bool:
        """Forget a call that has not begun; False if it has."""
        with self._news:
            if asked not in self._waiting:
                return False
            self._waiting.remove(asked)
            self._under_way -= 1
        asked.future.cancel()
        return True

    def _begin_thread(self) -> None:
        number = len(self._threads) + 1
        thread = threading.Thread(
            target=self._serve, daemon=True, name=f"auroral-serve-{self._name}-{number}"
        )
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (asked := self._next()) is not None:
            try:
                asked.run()
            finally:
                del asked  # what it has been given is not held while nothing is done
                with self._news:
                    self._under_way -= 1

    def _next(self) -> _Call[Any] | None:
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._closed)
            return self._waiting.popleft() if self._waiting else None

    def close(self, wait_s: float) -> bool:
        """Wait a while for the calls under way; those that have not begun never do."""
        with self._news:
            self._closed = True
            threads, left = list(self._threads), list(self._waiting)
            self._waiting.clear()
            self._news.notify_all()
        for asked in left:
            asked.future.set_exception(_stopping())
        deadline = time.monotonic() + wait_s
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)


def _stopping() -> RequestError:
    return RequestError(503, "STOPPING", "the server is ending")


def _forget(running: asyncio.Future[T]) -> None:
    """Take the error of a call that nobody waits for any more."""
    if not running.cancelled():
        running.exception()
