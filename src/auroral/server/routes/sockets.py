"""WebSockets of the interface, and the pictures and histories that they share."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from auroral.errors import UsageError
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import json_response, run, service_of
from auroral.server.live import FollowSession, LiveSession, serve_socket
from auroral.server.models import AnyObject, HistorySeries
from auroral.server.sampler import PictureSampler

router = APIRouter(route_class=RoleRoute)


@router.websocket("/live")
async def live(socket: WebSocket) -> None:
    """Pictures twice a second, samples, stories and log lines."""
    state = socket.app.state
    await serve_socket(
        socket, lambda: LiveSession(socket, state.service, state.sampler, state.logs)
    )


@router.websocket("/outputs/{output}/live")
async def follow(socket: WebSocket, output: str) -> None:
    """Follow an output without taking what it gives."""
    await serve_socket(socket, lambda: FollowSession(socket, socket.app.state.service, output))


@router.get("/picture", response_model=AnyObject)
@needs("viewer")
async def picture(request: Request) -> Response:
    """What the canvas shows now: rates, queues, costs, utilities and the rest."""
    sampler: PictureSampler = request.app.state.sampler
    return json_response((await sampler.current()).picture)


@router.get("/history/{name:path}")
@needs("viewer")
async def history(request: Request, name: str) -> HistorySeries:
    """The figures of a box, arc, output, point or query over the last fifteen minutes.

    The name `*` stands for the whole engine.
    """
    sampler: PictureSampler = request.app.state.sampler
    await sampler.current()
    found = sampler.history.of(name)
    if found is None:
        # An entity without figures is told from one that does not exist.
        engine = service_of(request).engine
        await run(request, lambda: engine.describe(name))
        raise UsageError("UNKNOWN_ENTITY", f"there are no figures of {name}")
    return HistorySeries(**found)
