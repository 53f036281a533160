"""Rows in and out: enqueue, dequeue, SQL, samples, history, tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from auroral.errors import UsageError, closest, list_existing
from auroral.network.types import Schema
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import json_response, most_rows, page_response, run, service_of
from auroral.server.bodies import media_type, parse_json, read_rows, unsupported
from auroral.server.models import EnqueueReceipt, SqlText, TableRows
from auroral.server.paging import (
    HistoryCursor,
    Page,
    first_rows,
    rows_after,
    rows_before,
    wanted_rows,
)
from auroral.server.problems import bad_body, bad_query
from auroral.server.selects import Selects
from auroral.server.service import EngineService
from auroral.server.wire_rows import ARROW, CSV, JSON, NDJSON

router = APIRouter(route_class=RoleRoute)
Limit = Annotated[int, Query(ge=0, le=1_000_000)]
Reader = Annotated[str | None, Query(min_length=1, max_length=200)]
Turn = Annotated[int | None, Query(ge=0, lt=1 << 53)]
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
    200: {
        "content": {NDJSON: _TEXT, CSV: _TEXT, ARROW: _BINARY},
        "headers": {
            "X-Truncated": {
                "description": "`true` if rows were left out",
                "schema": {"type": "string"},
            },
            "Link": {
                "description": "where the next rows are (`rel=next`), if they can be asked for",
                "schema": {"type": "string"},
            },
        },
    }
}


@router.post("/streams/{stream}", response_model=EnqueueReceipt, openapi_extra=ROWS_BODY)
@needs("operator")
async def enqueue(
    request: Request, stream: str, position: str | None = None, strict: bool = False
) -> Response:
    """Enqueue rows; answers when they are durable. A `position` (JSON) is taken only once.

    With `strict` the body is one row, a JSON object: if it does not fit it is refused (`BAD_ROW`)
    and does not become a dead letter.
    """
    at = None if position is None else _json_value("position", position)
    service = service_of(request)
    await run(request, service.require_not_behind)
    body, media = await request.body(), media_type(request)

    def receive() -> dict[str, Any]:
        schema = _schema(service, stream)
        if strict:
            moment = service.engine.send(stream, _one_row(body, media, at))["moment"]
            return {"accepted": 1, "dead": 0, "moment": moment}
        limits = service.settings.limits
        rows = read_rows(body, media, schema, most_rows=limits.rows, most_bytes=limits.body_bytes)
        receipt = service.engine.receive(stream, rows, position=at)
        return {"accepted": receipt.accepted, "dead": receipt.dead, "moment": receipt.moment}

    return json_response(await run(request, receive))


def _one_row(body: bytes, media: str, position: Any) -> dict[str, Any]:
    """The row that is to be taken as it is, or refused."""
    if media != JSON:
        raise unsupported(media, (JSON,))
    if position is not None:
        raise bad_query("position", "none with strict", position)
    row = parse_json(body)
    if not isinstance(row, dict):
        raise bad_body(f"with strict, expected one row as an object, found {type(row).__name__}")
    return row


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
async def dequeue(
    request: Request,
    output: str,
    limit: Limit = 1000,
    reader: Reader = None,
    turn: Turn = None,
    shed: bool = False,
) -> Response:
    """Take what came on an output or a query since the last call; who takes it has it.

    Results of a step stay together, so there may be some more than `limit`. Who names itself as
    `reader` and numbers its requests by `turn` gets the rows of a turn again until it asks for a
    later one, so an answer that does not arrive is not lost. With `shed` the field `_shed` says
    which share of the input of a result was dropped by load shedding.
    """
    engine, most = service_of(request).engine, most_rows(request, limit)
    # A format that cannot have these fields must say so before anything is taken.
    await page_response(request, lambda: Page(engine.dequeue(output, 0, shed=shed)))
    return await taken_response(
        request, output, reader, turn, most, lambda: engine.dequeue(output, most, shed=shed)
    )


async def taken_response(
    request: Request,
    output: str,
    reader: str | None,
    turn: int | None,
    most: int,
    dequeue: Callable[[], pa.Table],
) -> Response:
    """The rows that a call takes; those of a turn are the same whenever it is asked for.

    An answer that has as many as it may is marked: there may be more.
    """

    def page(table: pa.Table) -> Page:
        return Page(table, truncated=0 < most <= table.num_rows)

    if (reader is None) != (turn is None):
        raise bad_query("turn", "reader and turn together", turn)
    if reader is None or turn is None:
        return await page_response(request, lambda: page(dequeue()))
    taken, who, number = service_of(request).taken, reader, turn
    return await page_response(request, lambda: page(taken.take(output, who, number, dequeue)))


@router.post("/sql", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def sql(request: Request, text: SqlText) -> Response:
    """The rows of a SELECT over tables and over what connection points and views keep.

    If they are more than an answer may have, it has the first, and is marked; LIMIT and OFFSET over
    an ORDER BY give the others.
    """
    selects: Selects = request.app.state.selects
    most = most_rows(request, text.limit)
    one = selects.prepare(text.query, most)
    return await page_response(request, lambda: first_rows(one.rows(), most), through=one.run)


@router.get("/arcs/{arc:path}/sample", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def sample(
    request: Request,
    arc: str,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    where: Annotated[str | None, Query(max_length=10_000)] = None,
) -> Response:
    """The latest tuples of an arc, newest last, with `_seq` and `_at`."""
    engine = service_of(request).engine
    return await page_response(request, lambda: Page(engine.sample(arc, limit, where or None)))


@router.get("/points/{point}/rows", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def point_rows(
    request: Request,
    point: str,
    key: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    before: str | None = None,
) -> Response:
    """The latest rows of a connection point or view, by key and by time, oldest first.

    Values are JSON or plain text. `before` is the place where an earlier page began, which its
    `Link` names.
    """
    engine, most = service_of(request).engine, most_rows(request, limit)
    cursor = None if before is None else HistoryCursor.parse(before)
    below = None if cursor is None else cursor.moment + 1
    one, low, high = (None if text is None else _value(text) for text in (key, since, until))

    def page() -> Page:
        wanted = wanted_rows(cursor, most)
        found = engine.point_rows(point, one, low, high, limit=wanted, before=below)
        return rows_before(found, cursor, most)

    return await page_response(request, page)


@router.get("/tables/{table}", response_model=TableRows, responses=TABLE_ANSWERS)
@needs("viewer")
async def table_rows(
    request: Request, table: str, limit: Limit = 100_000, after: str | None = None
) -> Response:
    """The rows of a table as they are now, in the order of its key.

    `after` is the key of the last row of an earlier page, a JSON list, which its `Link` names.
    """
    service, most = service_of(request), most_rows(request, limit)

    def page() -> Page:
        rows = service.engine.table(table)
        declared = service.network.tables[table]
        key = Schema(tuple(declared.schema_.field(name) for name in declared.key))
        return rows_after(rows, key, after, most)

    return await page_response(request, page)


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
