"""Calls of the engine block: they run in a bounded number of threads, never in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from auroral.server.problems import RequestError

P = ParamSpec("P")
T = TypeVar("T")


class EngineCalls:
    """Runs calls in threads of its own and waits for them, for a while.

    A call that takes longer goes on in its thread; who asked is told TIMEOUT.
    """

    def __init__(self, workers: int, timeout_s: float):
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="auroral-serve")
        self._timeout_s = timeout_s

    async def run(self, call: Callable[P, T], *args: P.args, **given: P.kwargs) -> T:
        """The result of a call."""
        running = asyncio.get_running_loop().run_in_executor(
            self._pool, partial(call, *args, **given)
        )
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._timeout_s)
        except TimeoutError:
            running.add_done_callback(_forget)
            raise RequestError(
                503,
                "TIMEOUT",
                f"no answer within {self._timeout_s:g} s; what was asked for goes on",
            ) from None

    def close(self) -> None:
        """Wait for the calls under way; those that have not begun never do."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _forget(running: asyncio.Future[T]) -> None:
    """Take the error of a call that nobody waits for any more."""
    if not running.cancelled():
        running.exception()
