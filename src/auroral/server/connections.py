"""Connections of HTTP: how many there are, and how long one may keep quiet."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from auroral.server.problems import PROBLEM_JSON, RequestError, problem_body
from auroral.server.settings import ServerLimits

ABORT = "abort"
"""The key, in the state of a request, of what cuts its connection."""


class BoundedConnection(H11Protocol):
    """One connection: refused if there are too many, and cut if it holds a place for nothing.

    Cut is who does not complete the headers of a request in time, and who takes nothing of an
    answer that is complete. What is left of an answer when the application has sent it is small,
    because `RequestGuard` hands answers out in parts.
    """

    limits = ServerLimits()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ):
        super().__init__(config, server_state, {**app_state, ABORT: self._abort}, _loop)
        self._headers_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_refusal(self.limits.connections))
            transport.close()
            return
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_waiting() and not self.transport.is_closing():
            self._await_headers()
        else:
            self._end_headers()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._end_timers()  # the connection is another's from now on
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._answer_timer is None:
            self._await_taken()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timers()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _is_waiting(self) -> bool:
        """Whether no request is under way."""
        upgraded = self.transport.get_protocol() is not self
        return not upgraded and (self.cycle is None or self.cycle.response_complete)

    def _await_headers(self) -> None:
        if self._headers_timer is None:
            self._headers_timer = self.loop.call_later(self.limits.header_s, self._abort)

    def _await_taken(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._answer_timer = None
        if unsent:
            wait_s = self.limits.slow_socket_s
            self._answer_timer = self.loop.call_later(wait_s, self._require_progress, unsent)

    def _require_progress(self, unsent: int) -> None:
        if self.transport.get_write_buffer_size() >= unsent:
            self._abort()
        else:
            self._await_taken()

    def _end_headers(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _end_timers(self) -> None:
        self._end_headers()
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _abort(self) -> None:
        self.transport.abort()


def bounded_by(limits: ServerLimits) -> type[BoundedConnection]:
    """The connections of a server with some limits."""
    return type("BoundedConnection", (BoundedConnection,), {"limits": limits})


def _refusal(most: int) -> bytes:
    error = RequestError(
        429, "TOO_MANY_CONNECTIONS", f"the server has {most} connections, which is the most"
    )
    body = problem_body(error)
    head = (
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
        f"Content-Type: {PROBLEM_JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
