"""Who asks: tokens of requests and WebSockets, and routes that need a role."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from auroral.errors import AuroralError
from auroral.server.problems import (
    RequestError,
    bad_body,
    forbidden,
    internal,
    problem_response,
    unauthorized,
)
from auroral.server.service import EngineService
from auroral.server.tokens import AccessTokens, Role, may

F = TypeVar("F", bound=Callable[..., Any])
SUBPROTOCOL = "auroral"
_BEARER = "bearer."
_MOST_TOKEN = 200
log = logging.getLogger("auroral.server")


def needs(role: Role) -> Callable[[F], F]:
    """Let only who has a role call this."""

    def marked(endpoint: F) -> F:
        endpoint.role = role  # type: ignore[attr-defined]
        return endpoint

    return marked


class RoleRoute(APIRoute):
    """A route that looks at the token before it reads the body, and answers errors as problems."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        role: Role | None = getattr(self.endpoint, "role", None)

        async def guarded(request: Request) -> Response:
            try:
                if role is not None:
                    await _authorize_audited(request, role)
                request.scope["state"]["needed"] = role
                require_plain(request)
                return await handle(request)
            except HTTPException as error:
                if isinstance(error.__cause__, AuroralError):  # raised while the body was read
                    return problem_response(error.__cause__)
                if error.status_code != 400:
                    raise
                return problem_response(bad_body(str(error.detail)))
            except AuroralError as error:
                return problem_response(error)

        return guarded


async def _authorize_audited(request: Request, needed: Role) -> None:
    """Let who asks pass, or record that a role was not enough."""
    try:
        authorize(request, bearer_token(request), needed)
    except RequestError as error:
        if error.status == 403:
            service: EngineService = request.app.state.service
            await asyncio.to_thread(
                service.audit.refused,
                **who_asks(request),
                method=request.method,
                path=request.url.path,
                result=error.code,
            )
        raise


def who_asks(request: Request) -> dict[str, str | None]:
    """What the audit log has of who asks."""
    state = request.scope["state"]
    client = request.client.host if request.client else None
    return {"role": state["role"], "client": client, "request": state["request"]}


def authorize(connection: HTTPConnection, token: str | None, needed: Role) -> Role:
    """The role of who asks; refused if there is none, or it may not do this."""
    tokens: AccessTokens = connection.app.state.tokens
    role = tokens.role_of(token[:_MOST_TOKEN]) if token else None
    if role is None:
        raise unauthorized()
    connection.scope["state"]["role"] = role
    if not may(role, needed):
        raise forbidden(role, needed)
    return role


def require_plain(request: Request) -> None:
    """Refuse a compressed body: it would be taken for what it is not."""
    given = request.headers.get("content-encoding", "").strip().lower()
    if given not in ("", "identity"):
        raise RequestError(
            415,
            "UNSUPPORTED_MEDIA",
            f"expected a body as it is, found the Content-Encoding {given:.100}",
            headers={"Accept-Encoding": "identity"},
        )


def bearer_token(connection: HTTPConnection) -> str | None:
    """The token in the header Authorization."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


async def open_socket(socket: WebSocket, needed: Role) -> Role:
    """Accept a WebSocket of who has a role; pages send their token as a subprotocol."""
    offered = [one.strip() for one in socket.scope.get("subprotocols", [])]
    given = next((one.removeprefix(_BEARER) for one in offered if one.startswith(_BEARER)), None)
    role = authorize(socket, given or bearer_token(socket), needed)
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
    return role


def unexpected(request: HTTPConnection, error: Exception) -> RequestError:
    """Note a failure that is no error of ours, with its traceback, and say so."""
    number = request.scope.get("state", {}).get("request", "")
    log.error("request %s failed", number, exc_info=error)
    return internal(number)
