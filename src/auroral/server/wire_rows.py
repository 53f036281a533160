"""Arrow tables on the wire: JSON values that lose nothing, CSV, NDJSON and Arrow streams."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import ipc
from pyarrow import types as at

from auroral.io.sinks.render import csv_fields, plain

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
TABLE_TYPES = (JSON, NDJSON, CSV, ARROW)
_EXACT = 1 << 53
"""Whole numbers beyond it are not exact in JavaScript."""
_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.null(): "void",
}


def type_name(kind: pa.DataType) -> str:
    """The Spark SQL name of an Arrow type.

    >>> type_name(pa.list_(pa.decimal128(10, 2)))
    'array<decimal(10,2)>'
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if at.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if at.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if at.is_list(kind) or at.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if at.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if at.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in kind)}>"
    if at.is_dictionary(kind):
        return type_name(kind.value_type)
    return str(kind)


def fields_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The fields of a table as the wire has them."""
    return [{"name": field.name, "type": type_name(field.type)} for field in schema]


def table_document(table: pa.Table, most_rows: int) -> dict[str, Any]:
    """A table as JSON: fields, rows as lists, and whether rows were left out.

    >>> table_document(pa.table({"n": [1, 2], "x": [float("nan"), 0.5]}), 1)["rows"]
    [[1, 'NaN']]
    """
    shown = table.slice(0, most_rows)
    found: dict[str, Any] = {"fields": fields_of(table.schema), "rows": row_lists(shown)}
    if table.num_rows > most_rows:
        found["truncated"] = True
    return found


def row_lists(table: pa.Table) -> list[list[Any]]:
    """The rows of a table as lists of JSON values."""
    if not table.num_columns:
        return [[] for _ in range(table.num_rows)]
    columns = [column_values(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def unique_names(names: Sequence[str]) -> list[str]:
    """Names for the keys of an object, where a name may come only once.

    >>> unique_names(["n", "n_2", "n", "n"])
    ['n', 'n_2', 'n_3', 'n_4']
    """
    taken, found = set(names), list[str]()
    for name in names:
        unique, number = name, 1
        while unique in found or (unique != name and unique in taken):
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


def row_objects(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as objects of JSON values."""
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in row_lists(table)]


def column_values(column: pa.ChunkedArray) -> list[Any]:
    """The JSON values of a column."""
    kind = column.type
    if at.is_dictionary(kind):
        return column_values(column.cast(kind.value_type))
    if at.is_timestamp(kind) or at.is_date(kind) or at.is_binary(kind):
        return [text for chunk in column.chunks for text in plain(_unified(chunk)).to_pylist()]
    values: list[Any] = column.to_pylist()
    if at.is_boolean(kind) or at.is_string(kind) or at.is_large_string(kind):
        return values
    if at.is_nested(kind):
        return [_nested(value, kind) for value in values]
    return [json_value(value) for value in values]


def _unified(chunk: pa.Array) -> pa.Array:
    """Times in microseconds, which is how they are shown."""
    kind = chunk.type
    if at.is_timestamp(kind) and kind.unit != "us":
        return chunk.cast(pa.timestamp("us", tz=kind.tz), safe=False)
    return chunk


def _nested(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if at.is_struct(kind):
        return {field.name: _nested(value[field.name], field.type) for field in kind}
    if at.is_list(kind) or at.is_large_list(kind):
        return [_nested(one, kind.value_type) for one in value]
    if at.is_map(kind):
        pairs = [(_nested(k, kind.key_type), _nested(v, kind.item_type)) for k, v in value]
        return dict(pairs) if at.is_string(kind.key_type) else [list(pair) for pair in pairs]
    return json_value(value)


def json_value(value: Any) -> Any:
    """A Python value as a JSON value that loses nothing; containers, too.

    >>> json_value({"n": 2**60, "d": Decimal("1.50"), "t": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)})
    {'n': '1152921504606846976', 'd': '1.50', 't': '2026-01-01T00:00:00Z'}
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): json_value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_value(one) for one in value]
    if hasattr(value, "item"):  # a number of NumPy's
        return json_value(value.item())
    return str(value)


def json_bytes(value: Any) -> bytes:
    """JSON text of what `json_value` and the others give."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", errors="replace")


def encoded(table: pa.Table, media: str, *, truncated: bool = False) -> bytes:
    """A table in one of `TABLE_TYPES`; only JSON itself can say that it was `truncated`."""
    if media == JSON:
        document = table_document(table, table.num_rows)
        return json_bytes({**document, "truncated": True} if truncated else document)
    if media == NDJSON:
        table = table.rename_columns(unique_names(table.column_names))
        return b"".join(json_bytes(row) + b"\n" for row in row_objects(table))
    if media == CSV:
        return _csv(table)
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _csv(table: pa.Table) -> bytes:
    names = pa.array(table.column_names, pa.string())
    lines = [",".join(csv_fields(names).to_pylist())]
    for batch in table.to_batches():
        columns = [csv_fields(_unified(_plain(column))).to_pylist() for column in batch.columns]
        lines += map(",".join, zip(*columns, strict=True))
    return ("\n".join(lines) + "\n").encode()


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(column.type.value_type) if at.is_dictionary(column.type) else column
