"""Bodies of requests: networks as JSON or YAML, rows as JSON, NDJSON, CSV or Arrow."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from auroral.errors import NetworkError
from auroral.io.encoded import CsvText, JsonLinesText
from auroral.network.files import parse_text
from auroral.network.positions import DocumentPositions
from auroral.network.types import Schema
from auroral.server.arrow_bodies import read_arrow_stream
from auroral.server.converters import for_media_type, media_types
from auroral.server.problems import RequestError, bad_body, too_large
from auroral.server.wire_rows import ARROW, CSV, JSON, NDJSON

YAML = "application/yaml"
_YAML_TYPES = (YAML, "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
_NDJSON_TYPES = (NDJSON, "application/jsonl", "application/jsonlines", "application/ndjson")
_BODY = "body"
"""The place that dead letters name."""
_ARROW_TYPES = (ARROW, "application/x-apache-arrow-stream")


def media_type(request: Request) -> str:
    """What a body says that it is; JSON if it says nothing."""
    given = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower() or JSON


async def small_body(request: Request, most_bytes: int) -> bytes:
    """A body that is smaller than others may be."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            raise too_large(most_bytes)
    return bytes(body)


def unsupported(found: str, expected: tuple[str, ...]) -> RequestError:
    """A body of a kind that a call does not take."""
    return RequestError(
        415, "UNSUPPORTED_MEDIA", f"expected {', '.join(expected)}, found {found!r:.100}"
    )


def _not_a_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON; send it as text")


def parse_json(body: bytes) -> Any:
    """Strict JSON: UTF-8, and no NaN."""
    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=_not_a_number)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise bad_body(f"the body is not JSON: {why}") from None


def read_network(body: bytes, media: str) -> tuple[dict[str, Any], DocumentPositions]:
    """A network as plain data, and the lines of its keys if it came as YAML."""
    if media == JSON:
        document = parse_json(body)
        if not isinstance(document, dict):
            raise bad_body(f"expected a network as an object, found {type(document).__name__}")
        return document, DocumentPositions()
    if media not in _YAML_TYPES:
        raise unsupported(media, (JSON, YAML))
    try:
        return parse_text(body)
    except NetworkError as error:
        raise RequestError(422, error.code, f"{error.where or ''}: {error.message}") from None


def read_rows(body: bytes, media: str, schema: Schema, *, most_rows: int, most_bytes: int) -> Any:
    """Rows as `engine.receive` takes them; lines that cannot be read become dead letters."""
    if media == JSON:
        rows = parse_json(body)
        rows = [rows] if isinstance(rows, dict) else rows
        if not isinstance(rows, list):
            raise bad_body(f"expected rows as a list, found {type(rows).__name__}")
    elif media in (*_NDJSON_TYPES, CSV):
        _require_few(body.count(b"\n"), most_rows + 1)
        return CsvText(body, _BODY) if media == CSV else JsonLinesText(body, _BODY)
    elif media in _ARROW_TYPES:
        return read_arrow_stream(body, most_rows, most_bytes)
    elif (converter := for_media_type(media)) is not None:
        decoded = converter.decode(body, schema)
        _require_few(len(decoded.rows), most_rows)
        return decoded
    else:
        raise unsupported(media, (JSON, NDJSON, CSV, ARROW, *media_types()))
    _require_few(len(rows), most_rows)
    return rows


def _require_few(rows: int, most_rows: int) -> None:
    if rows > most_rows:
        problem = f"a request has at most {most_rows} rows, found {rows}"
        raise RequestError(413, "TOO_LARGE", problem, hint="send them in parts")
