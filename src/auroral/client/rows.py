"""Rows on the wire: what `enqueue` takes as Arrow streams or JSON, and answers as Arrow tables."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
from pyarrow import ipc

from auroral.client.transport import ARROW
from auroral.errors import RunError, UsageError
from auroral.io.fit import HIDDEN
from auroral.io.rows import RowReader
from auroral.io.values import ColumnReader, exact_number
from auroral.network.types import Schema, Type

PART_BYTES = 8 << 20
"""Larger batches are sent in parts of about this size."""
PART_ROWS = 100_000


def arrow_rows(rows: Any, schema: Schema, stream: str) -> pa.Table | None:
    """Rows of any kind as Arrow, if every one of them fits; None if some do not."""
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return rows
    if type(rows).__module__.startswith("pandas.") and hasattr(rows, "columns"):
        try:
            return pa.Table.from_pandas(rows, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            why = "; ".join(map(str, error.args))
            raise UsageError("BAD_BATCH", f"pandas to Arrow: {why}") from None
    if _has_hidden(rows):
        return None
    chunk = RowReader(stream, schema).read(rows)
    return None if chunk.dead else chunk.tuples


def _has_hidden(rows: Sequence[Any]) -> bool:
    """Whether rows say when they came, or are punctuations."""
    return any(
        isinstance(row, Mapping) and any(str(key).lower() in HIDDEN for key in row) for row in rows
    )


def parts_of(table: pa.Table, part_bytes: int = PART_BYTES) -> list[pa.Table]:
    """A table in parts of about a size; at least one."""
    rows = max(table.num_rows, 1)
    most = max(min(int(part_bytes * rows / max(table.nbytes, 1)), PART_ROWS), 1)
    return [table.slice(start, most) for start in range(0, rows, most)]


def lists_of(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Rows in parts, at least one."""
    for start in range(0, max(len(rows), 1), PART_ROWS // 10):
        yield rows[start : start + PART_ROWS // 10]


def encoded(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def as_json(value: Any) -> Any:
    """A value as JSON that loses nothing: times as ISO text, decimals as text, bytes as base64.

    >>> as_json({"a": Decimal("1.50"), "b": float("nan"), "c": (1, b"x")})
    {'a': '1.50', 'b': 'NaN', 'c': [1, 'eA==']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
            return f"{value.isoformat()}Z"
        return value.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, np.ndarray)):
        return [as_json(item) for item in value]
    raise UsageError("BAD_CALL", f"a {type(value).__name__} cannot be sent: {value!r:.100}")


def table_of(answer: httpx.Response) -> pa.Table:
    """The table of an answer, an Arrow stream or JSON."""
    if answer.headers.get("content-type", "").startswith(ARROW):
        try:
            with ipc.open_stream(answer.content) as reader:
                return reader.read_all()
        except pa.ArrowInvalid as error:
            raise RunError("BAD_ANSWER", f"the answer is no Arrow stream: {error}") from None
    found = answer.json()
    declared = [(field["name"], field["type"]) for field in found["fields"]]
    return typed(found["rows"], declared)


def typed(rows: Sequence[Sequence[Any]], declared: Sequence[tuple[str, str]]) -> pa.Table:
    """JSON rows as a table of fields with these names and types.

    >>> typed([(1, "2026-01-01")], [("n", "int"), ("day", "date")]).to_pylist()
    [{'n': 1, 'day': datetime.date(2026, 1, 1)}]
    >>> typed([("1152921504606846976",)], [("n", "bigint")]).to_pylist()
    [{'n': 1152921504606846976}]
    """
    columns = []
    for place, (name, kind) in enumerate(declared):
        values = [row[place] for row in rows]
        if kind == "void":
            columns.append(pa.nulls(len(values)))
            continue
        column, wrong = ColumnReader(Type.parse(kind)).read(
            [exact_number(value, kind) for value in values]
        )
        if wrong:
            raise RunError("BAD_ANSWER", f"{name}: {next(iter(wrong.values()))}")
        columns.append(column)
    return pa.Table.from_arrays(columns, names=[name for name, _ in declared])
