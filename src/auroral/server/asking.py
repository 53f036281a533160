"""What handlers of requests have in common: calls in threads, answers, the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from auroral.errors import AuroralError
from auroral.server import converters
from auroral.server.offload import EngineCalls
from auroral.server.problems import RequestError
from auroral.server.service import EngineService
from auroral.server.wire_rows import JSON, TABLE_TYPES, encoded, json_bytes

T = TypeVar("T")
Runner = Callable[[Request, Callable[[], bytes]], Awaitable[bytes]]
"""How the bytes of an answer are made."""


def service_of(request: Request) -> EngineService:
    """What all requests share."""
    service: EngineService = request.app.state.service
    return service


async def run(request: Request, call: Callable[[], T]) -> T:
    """Run a call of the engine in a thread; who only looks does not hold up the others."""
    state = request.app.state
    looks = request.scope["state"].get("needed") == "viewer"
    calls: EngineCalls = state.looks if looks else state.calls
    return await calls.run(call)


async def audited(request: Request, what: str, call: Callable[[], T], **more: Any) -> T:
    """Run a call that changes something, and record who asked for it and what came of it."""
    state = request.scope["state"]
    who = {
        "role": state["role"],
        "client": request.client.host if request.client else None,
        "request": state["request"],
        "what": what,
    }
    audit = service_of(request).audit
    try:
        found = await run(request, call)
    except AuroralError as error:
        audit.note(**who, result=error.code, **more)
        raise
    except Exception as error:
        audit.note(**who, result=type(error).__name__, **more)
        raise
    audit.note(**who, result="ok", **more)
    return found


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer whose values are JSON already."""
    return Response(json_bytes(value), status, headers=headers, media_type=JSON)


async def table_response(
    request: Request,
    call: Callable[[], pa.Table],
    *,
    whole: bool = False,
    through: Runner | None = None,
) -> Response:
    """The rows that a call gives, in the form that the client asks for.

    At most as many as an answer may have, unless it must be `whole`: what was taken is gone.
    """
    media = accepted(request, (*TABLE_TYPES, *converters.media_types()))
    most = service_of(request).settings.limits.answer_rows
    converter = None if media in TABLE_TYPES else converters.for_media_type(media)

    def answer() -> bytes:
        table = call()
        if converter is not None:
            return converter.encode(table)
        return encoded(table, media, max(most, table.num_rows) if whole else most)

    content = await (run(request, answer) if through is None else through(request, answer))
    return Response(content, media_type=media)


def accepted(request: Request, offered: tuple[str, ...]) -> str:
    """The media type to answer with: the one that the client likes best, the first if it is all
    the same to it."""
    wanted = request.headers.get("accept", "*/*")
    ranked: list[tuple[float, int, str]] = []
    for at, part in enumerate(wanted.split(",")):
        name, *parameters = (one.strip().lower() for one in part.split(";"))
        quality = next((_number(p[2:]) for p in parameters if p.startswith("q=")), 1.0)
        if quality > 0:
            ranked.append((-quality, at, name))
    for _, _, name in sorted(ranked):
        for media in offered:
            group = media.partition("/")[0]
            if name in (media, "*/*", f"{group}/*"):
                return media
    raise RequestError(406, "NOT_ACCEPTABLE", f"there is {', '.join(offered)}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
