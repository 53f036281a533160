"""What a canvas begins with: the palette, functions, starters, and streams that fit a CSV."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request

from auroral.server.access import RoleRoute, needs
from auroral.server.asking import run, service_of
from auroral.server.bodies import media_type, unsupported
from auroral.server.models import FunctionInfo, InferredStream, PaletteEntry, Starter
from auroral.server.palette import functions, palette
from auroral.server.starting import infer_stream, starters
from auroral.server.wire_rows import CSV

router = APIRouter(route_class=RoleRoute)


@router.get("/palette", response_model_exclude_none=True)
@needs("viewer")
async def get_palette(request: Request) -> list[PaletteEntry]:
    """Every kind of box and the other declarations, each with an example that was computed."""
    return list(await run(request, palette))


@router.get("/functions")
@needs("viewer")
async def get_functions(request: Request) -> list[FunctionInfo]:
    """The functions that expressions may call."""
    network = service_of(request).network
    return await run(request, lambda: functions(network))


@router.get("/starters")
@needs("viewer")
async def get_starters(request: Request) -> list[Starter]:
    """Networks to begin with."""
    return list(await run(request, starters))


@router.post(
    "/infer",
    openapi_extra={
        "requestBody": {"required": True, "content": {CSV: {"schema": {"type": "string"}}}}
    },
)
@needs("viewer")
async def infer(
    request: Request, name: Annotated[str, Query(min_length=1, max_length=200)] = "stream"
) -> InferredStream:
    """A stream that fits a CSV: its types, and a proposal how it makes progress."""
    media, body = media_type(request), await request.body()
    if media not in (CSV, "text/plain"):
        raise unsupported(media, (CSV,))
    return await run(request, lambda: infer_stream(body, name))
