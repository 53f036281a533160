"""The application: routes, guards and errors put together around one engine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from auroral import __version__
from auroral.server.access import unexpected
from auroral.server.describing import describe_interface
from auroral.server.guards import RequestGuard
from auroral.server.log_ring import LogRing
from auroral.server.offload import EngineCalls
from auroral.server.problems import RequestError, bad_body, problem_response
from auroral.server.routes import (
    beginning,
    control,
    data,
    looking,
    network,
    operating,
    sockets,
    working,
)
from auroral.server.sampler import PictureSampler
from auroral.server.selects import Selects
from auroral.server.service import EngineService
from auroral.server.static_files import StudioFiles
from auroral.server.tokens import AccessTokens
from auroral.server.wire_rows import ARROW

API = "/api/v1"
_log = logging.getLogger("auroral.server")


def create_app(service: EngineService, tokens: AccessTokens) -> ASGIApp:
    """The ASGI application of a service; it does not end the engine."""
    limits = service.settings.limits

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state, sampled = app.state, logging.getLogger("auroral")
        sampled.addHandler(state.logs)
        sampling = asyncio.create_task(state.sampler.run())
        try:
            yield
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
            sampled.removeHandler(state.logs)
            state.selects.cancel_all()
            deadline = time.monotonic() + limits.stop_s
            pools = (
                *(state.sampler, state.calls, state.looks),
                *(state.waits, state.selects, state.followers),
            )
            still = [not pool.close(max(deadline - time.monotonic(), 0)) for pool in pools]
            if any(still):
                _log.warning("calls that take too long are left behind")

    app = FastAPI(
        title="Auroral",
        version=__version__,
        summary="A data stream manager on Spark",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=[
            Middleware(
                GZipMiddleware,
                minimum_size=1024,
                compresslevel=1,
                exclude_content_types=(ARROW, *DEFAULT_EXCLUDED_CONTENT_TYPES),
            )
        ],
        exception_handlers={
            HTTPException: _http_error,
            RequestValidationError: _invalid,
            ResponseValidationError: _failed,
            RequestError: _refused,
            Exception: _failed,
        },
    )
    app.state.service, app.state.tokens = service, tokens
    app.state.calls = EngineCalls(limits.workers, limits.request_s)
    app.state.looks = EngineCalls(limits.workers, limits.request_s, name="looks")
    app.state.waits = EngineCalls(
        limits.waits, limits.request_s, name="waits", refuse_when_busy=True
    )
    app.state.selects = Selects(service.engine, limits)
    app.state.followers = EngineCalls(limits.sockets, limits.request_s, name="followers")
    app.state.sampler, app.state.logs = PictureSampler(service), LogRing()
    parts = [
        (API, one.router) for one in (network, beginning, data, sockets, looking, control, working)
    ]
    parts.append(("", operating.router))
    for prefix, router in parts:
        app.include_router(router, prefix=prefix)
    app.state.parts = parts
    describe_interface(app, parts)
    app.mount("/", StudioFiles(service.settings.static))
    guard = RequestGuard(app, limits=limits, hosts=service.settings.hosts)
    app.state.guard = guard
    return guard


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    methods = _methods(request)
    if methods and request.method not in methods:  # no file of the studio, as Starlette takes it
        allow = {"Allow": ", ".join(sorted(methods))}
        what = f"{request.url.path} has no {request.method}"
        return problem_response(RequestError(405, "METHOD_NOT_ALLOWED", what, headers=allow))
    codes = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}
    code = codes.get(error.status_code, "BAD_REQUEST")
    headers = dict(error.headers or {})
    return problem_response(
        RequestError(error.status_code, code, str(error.detail), headers=headers)
    )


def _methods(request: Request) -> set[str]:
    """The methods of the interface that there are for the path of a request."""
    found: set[str] = set()
    for prefix, router in request.app.state.parts:
        for route in router.routes if request.url.path.startswith(prefix) else ():
            if isinstance(route, Route):
                below = request.url.path.removeprefix(prefix)
                found |= (route.methods or set()) if route.path_regex.match(below) else set()
    return found


async def _invalid(_request: Request, error: Exception) -> Response:
    """A body or a parameter that does not fit its model."""
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = dict(error.errors()[0]) if error.errors() else {}
    where = ".".join(str(part) for part in first.get("loc", ()))
    return problem_response(bad_body(f"{where}: {first.get('msg', 'it does not fit')}"))


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return problem_response(error)


async def _failed(request: Request, error: Exception) -> Response:
    return problem_response(unexpected(request, error))
