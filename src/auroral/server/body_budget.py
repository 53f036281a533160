"""Bodies of requests under way: how large each is, all are together, and how long they take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive

from auroral.server.problems import RequestError, too_large
from auroral.server.settings import ServerLimits


class BodyBudget:
    """What all requests under way hold together; used by one event loop."""

    def __init__(self, limits: ServerLimits):
        self.limits = limits
        self.held = 0

    @contextmanager
    def one(self) -> Iterator[BoundedBody]:
        """The body of one request, which is held until the request is answered."""
        body = BoundedBody(self)
        try:
            yield body
        finally:
            self.held -= body.taken


class BoundedBody:
    """The body of one request."""

    def __init__(self, budget: BodyBudget):
        self._budget = budget
        self._ended = False
        self.taken = 0

    def bounded(self, receive: Receive) -> Receive:
        """Receive it within the limits."""
        limits = self._budget.limits
        deadline = time.monotonic() + limits.body_s

        async def more() -> Message:
            if self._ended:  # what comes now says that the client is gone
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(deadline - time.monotonic(), 0))
            except TimeoutError:
                raise RequestError(
                    408,
                    "SLOW_BODY",
                    f"the body did not come within {limits.body_s:g} s",
                    headers={"Connection": "close"},
                ) from None
            self._ended = message["type"] != "http.request" or not message.get("more_body")
            self._take(len(message.get("body", b"")))
            return message

        return more

    def _take(self, size: int) -> None:
        limits = self._budget.limits
        self.taken += size
        self._budget.held += size
        if self.taken > limits.body_bytes:
            raise too_large(limits.body_bytes)
        if self._budget.held > max(limits.total_body_bytes, limits.body_bytes):
            raise RequestError(
                429,
                "TOO_MANY_CALLS",
                f"the bodies of all requests have at most {limits.total_body_bytes} bytes together",
                headers={"Retry-After": "1", "Connection": "close"},
            )
