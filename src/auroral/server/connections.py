"""Connections of HTTP: how many there are, and how long one may keep quiet."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
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
        self._ended = False
        """Whether the last answer is given."""
        self._headers_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()
        if len(self.connections) > self.limits.connections:
            self._say_last(
                RequestError(
                    429,
                    "TOO_MANY_CONNECTIONS",
                    f"the server has {self.limits.connections} connections, which is the most",
                    headers={"Retry-After": "1"},
                )
            )

    def send_400_response(self, msg: str) -> None:
        self._await_headers()
        self._say_last(RequestError(400, "BAD_REQUEST", msg))

    def _say_last(self, error: RequestError) -> None:
        """Answer, and read no more requests.

        What still comes is discarded for a while: an answer is lost to who is reset while sending.
        """
        self._ended = True
        self.transport.write(_plain_answer(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        super().data_received(data)
        if self._ended:
            return
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


def _plain_answer(error: RequestError) -> bytes:
    body = problem_body(error)
    headers = {
        **error.headers,
        "Connection": "close",
        "Content-Type": PROBLEM_JSON,
        "Content-Length": str(len(body)),
    }
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
