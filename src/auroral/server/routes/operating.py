"""For operators of the process: health, readiness and metrics, at the root."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from auroral import __version__
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import run, service_of
from auroral.server.metrics import metrics_text
from auroral.server.models import AnyObject, Health
from auroral.server.offload import EngineCalls

router = APIRouter(route_class=RoleRoute)


@router.get("/healthz")
@router.head("/healthz", include_in_schema=False)
async def healthz() -> Health:
    """Whether the process answers."""
    return Health(status="ok")


@router.get("/openapi.json", response_model=AnyObject)
@needs("viewer")
async def openapi(request: Request) -> Response:
    """This description."""
    return JSONResponse(request.app.openapi())


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", response_model=Health, responses={503: {"model": Health}})
@needs("viewer")
async def readyz(request: Request) -> Response:
    """Whether the engine takes tuples."""
    calls: EngineCalls = request.app.state.calls  # ready is who takes tuples
    failure = await calls.run(service_of(request).failure)
    if failure is None:
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "failed", "detail": failure.code}, 503)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
@needs("viewer")
async def metrics(request: Request) -> Response:
    """The statistics as Prometheus reads them."""
    service, guard = service_of(request), request.app.state.guard

    def text() -> bytes:
        failed = service.failure() is not None
        extra = guard.figures()
        extra["ready"], extra["version"] = not failed, __version__
        extra["feeds"] = {feed.address: feed.statistics() for feed in service.feeds}
        return metrics_text({} if failed else service.engine.stats(), extra)

    return Response(await run(request, text), media_type="text/plain; version=0.0.4")
