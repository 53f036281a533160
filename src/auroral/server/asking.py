"""What handlers of requests have in common: calls in threads, answers, the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from auroral.errors import AuroralError
from auroral.server import converters
from auroral.server.access import who_asks
from auroral.server.offload import EngineCalls
from auroral.server.paging import Page
from auroral.server.problems import RequestError
from auroral.server.service import EngineService, MadeChange
from auroral.server.tokens import may
from auroral.server.wire_rows import JSON, TABLE_TYPES, encoded, json_bytes

T = TypeVar("T")
Answer = tuple[bytes, Page]
Runner = Callable[[Request, Callable[[], Answer]], Awaitable[Answer]]
"""How the bytes of an answer are made, and which rows it has."""
TRUNCATED = "X-Truncated"
"""The header of answers that leave something out."""


def service_of(request: Request) -> EngineService:
    """What all requests share."""
    service: EngineService = request.app.state.service
    return service


def sees_secrets(request: Request) -> bool:
    """Whether who asks may know how sources, sinks and stores are reached: who may change it."""
    return may(request.scope["state"]["role"], "editor")


async def run(request: Request, call: Callable[[], T]) -> T:
    """Run a call of the engine in a thread; who only looks does not hold up the others."""
    state = request.app.state
    looks = request.scope["state"].get("needed") == "viewer"
    calls: EngineCalls = state.looks if looks else state.calls
    return await calls.run(call)


async def audited(request: Request, what: str, call: Callable[[], T], **more: Any) -> T:
    """Run a call that changes something, and record who asked for it and what came of it."""
    return await _audited(request, what, call, more)


async def audited_change(
    request: Request, what: str, change: Callable[[], MadeChange], **more: Any
) -> MadeChange:
    """As `audited`, for a change of the network: also records its versions and the report."""
    service = service_of(request)

    def changed() -> MadeChange:
        more["before"] = service.version_or_last()
        try:
            made = change()
        except BaseException:
            more["after"] = service.version_or_last()
            raise
        more["before"], more["after"] = made.before, made.after
        more["report"] = {name: names for name, names in made.report.items() if names}
        return made

    return await _audited(request, what, changed, more)


async def _audited(
    request: Request, what: str, call: Callable[[], T], more: Mapping[str, Any]
) -> T:
    """The thread that runs the call records it, with what `more` has then.

    So a call that ends after its time is recorded with its result, besides the TIMEOUT.
    """
    who, audit = who_asks(request), service_of(request).audit

    def noted() -> T:
        try:
            found = call()
        except Exception as error:
            code = error.code if isinstance(error, AuroralError) else type(error).__name__
            audit.note(**who, what=what, result=code, **more)
            raise
        audit.note(**who, what=what, result="ok", **more)
        return found

    try:
        return await run(request, noted)
    except RequestError as error:
        if error.code == "TIMEOUT":
            await asyncio.to_thread(audit.note, **who, what=what, result=error.code)
        raise


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer whose values are JSON already."""
    return Response(json_bytes(value), status, headers=headers, media_type=JSON)


async def page_response(
    request: Request, call: Callable[[], Page], *, through: Runner = run
) -> Response:
    """The rows that a call gives, in the form that the client asks for.

    If rows were left out, the header `X-Truncated` says so in every form, and `Link` where the next
    ones are.
    """
    media = accepted(request, (*TABLE_TYPES, *converters.media_types()))
    converter = None if media in TABLE_TYPES else converters.for_media_type(media)

    def answer() -> Answer:
        page = call()
        if converter is not None:
            return converter.encode(page.table), page
        return encoded(page.table, media, truncated=page.truncated), page

    content, page = await through(request, answer)
    headers = more_headers(request, page.following) if page.truncated else {}
    return Response(content, media_type=media, headers=headers)


def more_headers(request: Request, following: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that leaves something out; `following` asks for the next page."""
    headers = {TRUNCATED: "true"}
    if following:
        query = request.url.include_query_params(**following).query
        headers["Link"] = f'<{quote(request.url.path, safe="/%:")}?{query}>; rel="next"'
    return headers


def most_rows(request: Request, limit: int) -> int:
    """How many rows an answer has: as many as are asked for, but not more than it may."""
    return min(limit, service_of(request).settings.limits.answer_rows)


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
