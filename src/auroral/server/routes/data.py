"""Rows in and out: enqueue, dequeue, SQL, samples, history, tables."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from auroral.errors import UsageError, closest, list_existing
from auroral.network.types import Schema
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import json_response, run, service_of, table_response
from auroral.server.bodies import media_type, read_rows
from auroral.server.models import EnqueueReceipt, SqlText, TableRows
from auroral.server.problems import bad_query
from auroral.server.selects import Selects
from auroral.server.service import EngineService
from auroral.server.wire_rows import ARROW, CSV, JSON, NDJSON

router = APIRouter(route_class=RoleRoute)
Limit = Annotated[int, Query(ge=0, le=1_000_000)]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TEXT = {"schema": {"type": "string"}}
ROWS_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "rows: objects or lists of values, one after another",
        "content": {
            JSON: {
                "schema": {
                    "type": "array",
                    "items": {"type": ["object", "array"]},
                }
            },
            NDJSON: _TEXT,
            CSV: _TEXT,
            ARROW: _BINARY,
        },
    }
}
TABLE_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {NDJSON: _TEXT, CSV: _TEXT, ARROW: _BINARY}}
}


@router.post("/streams/{stream}", response_model=EnqueueReceipt, openapi_extra=ROWS_BODY)
@needs("operator")
async def enqueue(request: Request, stream: str, position: str | None = None) -> Response:
    """Enqueue rows; answers when they are durable. A `position` (JSON) is taken only once."""
    at = None if position is None else _json_value("position", position)
    body, media, service = await request.body(), media_type(request), service_of(request)

    def receive() -> dict[str, Any]:
        schema = _schema(service, stream)
        limits = service.settings.limits
        rows = read_rows(body, media, schema, most_rows=limits.rows, most_bytes=limits.body_bytes)
        receipt = service.engine.receive(stream, rows, position=at)
        return {"accepted": receipt.accepted, "dead": receipt.dead, "moment": receipt.moment}

    return json_response(await run(request, receive))


def _schema(service: EngineService, name: str) -> Schema:
    streams = service.network.streams
    if name not in streams:
        raise UsageError(
            "UNKNOWN_STREAM",
            f"there is no stream {name}; {list_existing(streams)}",
            hint=closest(name, streams),
        )
    return streams[name].schema_


@router.get("/outputs/{output}", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("operator")
async def dequeue(request: Request, output: str, limit: Limit = 1000) -> Response:
    """Take what came on an output or a query since the last call; who takes it has it.

    Results of a step stay together, so there may be some more than `limit`.
    """
    service = service_of(request)
    most = min(limit, service.settings.limits.answer_rows)
    # A format that cannot have these fields must say so before anything is taken.
    await table_response(request, lambda: service.engine.dequeue(output, 0))
    return await table_response(request, lambda: service.engine.dequeue(output, most), whole=True)


@router.post("/sql", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def sql(request: Request, text: SqlText) -> Response:
    """The rows of a SELECT over tables and over what connection points and views keep."""
    selects: Selects = request.app.state.selects
    one = selects.prepare(text.query)
    return await table_response(request, one.rows, through=one.run)


@router.get("/arcs/{arc:path}/sample", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def sample(
    request: Request,
    arc: str,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    where: Annotated[str | None, Query(max_length=100_000)] = None,
) -> Response:
    """The latest tuples of an arc, newest last, with `_seq` and `_at`."""
    engine = service_of(request).engine
    return await table_response(request, lambda: engine.sample(arc, limit, where or None))


@router.get("/points/{point}/rows", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def point_rows(
    request: Request,
    point: str,
    key: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
) -> Response:
    """What a connection point or view keeps, by key and by time; values are JSON or plain text."""
    engine = service_of(request).engine
    one, low, high = (None if text is None else _value(text) for text in (key, since, until))
    return await table_response(
        request, lambda: engine.point_rows(point, one, low, high, limit=limit)
    )


@router.get("/tables/{table}", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def table_rows(request: Request, table: str) -> Response:
    """The rows of a table as they are now, in the order of its key."""
    engine = service_of(request).engine
    return await table_response(request, lambda: engine.table(table))


def _json_value(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise bad_query(name, "JSON", text) from None


def _value(text: str) -> Any:
    """A value in a query: JSON if it is a number or quoted, else the text itself."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, (int, float, str)) else text
