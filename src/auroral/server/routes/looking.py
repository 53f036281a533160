"""Looking at what runs: the server, entities, statistics, the picture, stories and history."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from auroral import __version__
from auroral.catalog import public_entity
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import (
    json_response,
    more_headers,
    run,
    sees_secrets,
    service_of,
)
from auroral.server.models import AnyObject, ServerInfo, Story, WireLimits
from auroral.server.wire_rows import json_value

router = APIRouter(route_class=RoleRoute)


@router.get("/server")
@needs("viewer")
async def server(request: Request) -> ServerInfo:
    """What a client should know first: versions, its role, limits."""
    service = service_of(request)
    limits = service.settings.limits
    return ServerInfo(
        version=__version__,
        network=service.network.name,
        role=request.scope["state"]["role"],
        started_at=service.started_at,
        master=service.settings.master,
        durable=service.durable,
        limits=WireLimits(body_bytes=limits.body_bytes, rows=limits.rows),
    )


@router.get("/entities", response_model=dict[str, list[str]])
@needs("viewer")
async def entities(
    request: Request,
    kind: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    after: str | None = None,
) -> Response:
    """The names of streams, boxes, outputs and the rest, by kind; `after` goes on behind a name.

    `X-Truncated` says that a kind has more; of one `kind`, `Link` says where they are.
    """
    found = await run(request, service_of(request).engine.list_entities)
    chosen = {k: names for k, names in found.items() if kind is None or k == kind}
    page: dict[str, list[str]] = {}
    more: list[str] = []
    for section, names in chosen.items():
        behind = sorted(names) if after is None else [n for n in sorted(names) if n > after]
        page[section] = behind[:limit]
        more += [section] if len(behind) > limit else []
    following = {"after": page[more[0]][-1]} if more and kind is not None else {}
    return json_response(page, headers=more_headers(request, following) if more else {})


@router.get("/entities/{name:path}", response_model=AnyObject)
@needs("viewer")
async def entity(request: Request, name: str) -> Response:
    """What is known of one entity: its declaration, schema, counts and progress.

    Only an editor gets what a source, sink or store says of how it is reached.
    """
    engine, whole = service_of(request).engine, sees_secrets(request)

    def answer() -> Any:
        found = engine.describe(name)
        return json_value(found if whole else public_entity(found))

    return json_response(await run(request, answer))


@router.get("/stats", response_model=AnyObject)
@needs("viewer")
async def stats(request: Request) -> Response:
    """What `Engine.stats` gives."""
    engine = service_of(request).engine
    return json_response(await run(request, lambda: json_value(engine.stats())))


@router.get("/story/{name:path}", response_model=Story)
@needs("viewer")
async def story(
    request: Request, name: str, limit: Annotated[int, Query(ge=1, le=100_000)] = 100_000
) -> Response:
    """Why a box, output, stream or query ran, waited, was moved or shed; the latest, newest last.

    `X-Truncated` says that there are earlier entries.
    """
    engine = service_of(request).engine

    def answer() -> tuple[Any, bool]:
        found = engine.story(name)
        return json_value(found[-limit:]), len(found) > limit

    entries, more = await run(request, answer)
    return json_response({"entries": entries}, headers=more_headers(request, {}) if more else {})
