"""What every request passes first: address, origin, size and number; and the headers of answers.

Plain ASGI, so that nothing of a body is read before a request is known to be welcome.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auroral.server.body_budget import BodyBudget
from auroral.server.connections import ABORT
from auroral.server.metrics import ServerFigures
from auroral.server.problems import PROBLEM_JSON, RequestError, problem_body, too_large
from auroral.server.settings import ServerLimits

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SAFE = ("GET", "HEAD", "OPTIONS")
_UNCOUNTED = ("/healthz", "/readyz")
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self'"
    " blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer."""
_PART_BYTES = 64 << 10
_PATH_CHARS = 200
_TRY_AGAIN_LATER, _POLICY_VIOLATION = 1013, 1008
access_log = logging.getLogger("auroral.server.access")
_log_of_server = logging.getLogger("auroral.server")


class RequestGuard:
    """Admits requests to an application, or answers them itself."""

    def __init__(self, app: ASGIApp, *, limits: ServerLimits, hosts: Collection[str] | None):
        self._app = app
        self._limits = limits
        self._hosts = None if hosts is None else {host.lower().strip("[]") for host in hosts}
        self._bodies = BodyBudget(limits)
        self.requests = 0
        """Under way now."""
        self.sockets = 0
        """Open now."""
        self.unsent = 0
        """Bytes of answers that their clients have not taken yet."""
        self._answered: Counter[int] = Counter()
        self._seconds = 0.0
        self._started_s = time.time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = secrets.token_hex(8)
        scope.setdefault("state", {})["request"] = request
        started, status = time.monotonic(), [0]

        async def answer(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status[0] = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            elif message["type"] == "websocket.accept":
                status[0] = 101
            elif message["type"] == "http.response.body":
                await self._hand_out(scope, message, send)
                return
            await send(message)

        try:
            await self._admit(scope, receive, answer)
        finally:
            seconds = time.monotonic() - started
            if scope["type"] == "http":
                self._answered[status[0]] += 1
                self._seconds += seconds
            _log(scope, request, status[0], seconds)

    async def _hand_out(self, scope: Scope, message: Message, send: Send) -> None:
        """Send a body in parts, each when the client has taken what came before.

        So a request is under way, and counted, until its answer is taken. Who takes nothing for a
        while is cut off.
        """
        body = message.get("body", b"")
        left = len(body)
        self.unsent += left
        try:
            for at in range(0, max(left, 1), _PART_BYTES):
                part = body[at : at + _PART_BYTES]
                more = message.get("more_body", False) or at + _PART_BYTES < len(body)
                async with asyncio.timeout(self._limits.slow_socket_s):
                    await send({**message, "body": part, "more_body": more})
                left -= len(part)
                self.unsent -= len(part)
        except TimeoutError:
            abort = scope["state"].get(ABORT)
            if abort is None:  # a server that is not ours
                raise
            _log_cut(scope)
            abort()
        finally:
            self.unsent -= left

    def figures(self) -> ServerFigures:
        """What metrics tell of requests."""
        return {
            "connections": self.requests,
            "sockets": self.sockets,
            "requests": dict(self._answered),
            "request_seconds": self._seconds,
            "started_s": self._started_s,
        }

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = scope["type"] == "websocket"
        counted = scope["path"] not in _UNCOUNTED
        try:
            self._require_welcome(scope, counted)
        except RequestError as error:
            await refuse(scope, receive, send, error)
            return
        self.sockets += socket
        self.requests += counted and not socket
        try:
            if socket:
                await self._app(scope, receive, send)
            else:
                with self._bodies.one() as body:
                    await self._app(scope, body.bounded(receive), send)
        finally:
            self.sockets -= socket
            self.requests -= counted and not socket

    def _require_welcome(self, scope: Scope, counted: bool) -> None:
        headers = Headers(scope=scope)
        socket = scope["type"] == "websocket"
        self._require_host(headers)
        if socket or scope["method"] not in _SAFE:
            _require_own_origin(headers)
        full = self.sockets >= self._limits.sockets if socket else False
        if full or (counted and not socket and self.requests >= self._limits.requests):
            raise RequestError(
                429,
                "TOO_MANY_CONNECTIONS",
                "the server has as many connections as it may",
                headers={"Retry-After": "1"},
            )
        if counted and self.unsent > self._limits.total_answer_bytes:
            raise RequestError(
                429,
                "TOO_MANY_CALLS",
                "clients have not taken enough of the answers that were made for them",
                headers={"Retry-After": "1"},
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limits.body_bytes:
            raise too_large(self._limits.body_bytes)

    def _require_host(self, headers: Headers) -> None:
        given = headers.get("host", "")
        if self._hosts is not None and _host_of(given) not in self._hosts:
            raise RequestError(
                421,
                "WRONG_HOST",
                f"this server is not {given:.100}",
                hint="address it as localhost, or allow the name: --allow-host NAME",
            )


def _host_of(given: str) -> str:
    """The name in a Host header, without its port.

    >>> _host_of("LOCALHOST:8640"), _host_of("[::1]:8640")
    ('localhost', '::1')
    """
    try:
        return (urlsplit(f"//{given}").hostname or "").lower()
    except ValueError:
        return ""


def _require_own_origin(headers: Headers) -> None:
    """Refuse what a page of another site asks for; programs send no Origin."""
    origin = headers.get("origin")
    if origin is None:
        return
    try:
        found = urlsplit(origin).netloc.lower()
    except ValueError:  # such as http://[
        found = None
    if found is None or found != headers.get("host", "").lower():
        raise RequestError(
            403, "FOREIGN_ORIGIN", f"a page of {origin:.100} may not use this server"
        )


async def refuse(scope: Scope, receive: Receive, send: Send, error: RequestError) -> None:
    """Answer a request, or the opening of a WebSocket, with a problem."""
    headers = [(k.lower().encode(), v.encode()) for k, v in error.headers.items()]
    headers.append((b"content-type", PROBLEM_JSON.encode()))
    body = problem_body(error)
    if scope["type"] == "http":
        headers.append((b"content-length", str(len(body)).encode()))
        start = {"type": "http.response.start", "status": error.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body})
        return
    await receive()  # websocket.connect
    if "websocket.http.response" in scope.get("extensions", {}):
        kind = "websocket.http.response"
        await send({"type": f"{kind}.start", "status": error.status, "headers": headers})
        await send({"type": f"{kind}.body", "body": body})
        return
    code = _TRY_AGAIN_LATER if error.status == 429 else _POLICY_VIOLATION
    await send({"type": "websocket.close", "code": code, "reason": error.code})


def _log_cut(scope: Scope) -> None:
    text, client = "a client took nothing of its answer and was cut off", scope.get("client")
    said = {"text": text, "client": client[0] if client else None, "path": _shown_path(scope)}
    _log_of_server.warning(text, extra={"fields": said})


def _log(scope: Scope, request: str, status: int, seconds: float) -> None:
    """Note a request; neither its query nor its headers, which may hold secrets."""
    client = scope.get("client")
    said: dict[str, Any] = {
        "request": request,
        "method": scope.get("method", "WS"),
        "path": _shown_path(scope),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "client": client[0] if client else None,
        "role": scope.get("state", {}).get("role"),
    }
    access_log.info(json.dumps(said, ensure_ascii=False), extra={"fields": said})


def _shown_path(scope: Scope) -> str:
    path: str = scope["path"]
    return path if len(path) <= _PATH_CHARS else f"{path[:_PATH_CHARS]}…"
