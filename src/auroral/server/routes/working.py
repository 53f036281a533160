"""What programs need besides: positions, waiting, the results and matches of many queries."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from auroral.errors import RunError
from auroral.network.types import Schema
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import most_rows, page_response, run, service_of
from auroral.server.models import DrainOrder, DrainReport, StreamPosition, TableRows
from auroral.server.offload import EngineCalls
from auroral.server.paging import rows_after
from auroral.server.routes.data import TABLE_ANSWERS, Limit, Reader, Turn, taken_response

router = APIRouter(route_class=RoleRoute)
_BY_QUERY = Schema.parse({"query": "string"})
_TURN_S = 1.0
"""Who waits looks so often whether the server is ending."""
_SHARE = 0.8
"""Of the time that a request may take, how much of it may be spent waiting."""


@router.get("/streams/{stream}/position")
@needs("viewer")
async def position(request: Request, stream: str) -> StreamPosition:
    """The position of the last batch that was taken with one."""
    engine = service_of(request).engine
    return StreamPosition(position=await run(request, lambda: engine.position(stream)))


@router.post("/control/drain")
@needs("operator")
async def drain(request: Request, order: DrainOrder) -> DrainReport:
    """Wait until everything that was enqueued is processed and delivered, or for a while."""
    service = service_of(request)
    waits: EngineCalls = request.app.state.waits
    wait_s = min(order.timeout_s, _SHARE * service.settings.limits.request_s)

    def wait() -> bool:
        deadline = time.monotonic() + wait_s
        while True:
            left_s = deadline - time.monotonic()
            try:
                service.engine.drain(min(max(left_s, 0), _TURN_S))
                return True
            except RunError as error:
                if error.code != "TIMEOUT":
                    raise
            if left_s <= 0 or waits.closed:
                return False

    return DrainReport(drained=await waits.run(wait))


@router.get("/results", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("operator")
async def results(
    request: Request,
    name: str | None = None,
    limit: Limit = 1000,
    reader: Reader = None,
    turn: Turn = None,
) -> Response:
    """Take the results of many queries, each tuple once, with the list of its `queries`.

    `reader` and `turn` are those of an output.
    """
    engine, most = service_of(request).engine, most_rows(request, limit)
    return await taken_response(
        request, f"results {name or ''}", reader, turn, most, lambda: engine.dequeue_all(name, most)
    )


@router.get("/matches", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def matches(
    request: Request,
    query: Annotated[str | None, Query(max_length=400)] = None,
    limit: Limit = 100_000,
    after: str | None = None,
) -> Response:
    """How often each query matched, and on how many tuples it failed, in the order of their names.

    `after` is the last name of an earlier page, in a JSON list, which its `Link` names.
    """
    engine, most = service_of(request).engine, most_rows(request, limit)
    return await page_response(
        request, lambda: rows_after(engine.matches(query), _BY_QUERY, after, most)
    )
