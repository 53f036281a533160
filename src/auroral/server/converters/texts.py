"""Text of records to values by the schema's types, and back: what XML, Influx and syslog share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from auroral.io.readers.text import expected, parse
from auroral.io.sinks.render import plain
from auroral.network.types import Schema, Type

_NESTED = ("array", "map", "struct")


def read_texts(
    rows: Sequence[Mapping[str, Any] | None], schema: Schema, broken: dict[int, str]
) -> list[dict[str, Any] | None]:
    """Rows whose text values are read by the types of their fields, as in CSV.

    Nested values are JSON. Values that are no text stay as they are, names that are no fields, too.
    Reasons are added to `broken`.
    """
    found: list[dict[str, Any] | None] = [None if row is None else dict(row) for row in rows]
    types = {field.name.lower(): field.type for field in schema}
    columns: dict[str, list[int]] = {}
    for i, row in enumerate(found):
        for name, value in (row or {}).items():
            type = types.get(name.lower())
            if isinstance(value, str) and type is not None and type.name != "string":
                columns.setdefault(name, []).append(i)
    for name, places in columns.items():
        texts = [row[name] for i in places if (row := found[i]) is not None]
        values, wrong = _read(texts, types[name.lower()])
        for k, i in enumerate(places):
            row = found[i]
            if row is not None:
                row[name] = values[k]
            if k in wrong:
                broken.setdefault(i, f"{name}: {wrong[k]}")
    return found


def _read(texts: list[str], type: Type) -> tuple[list[Any], dict[int, str]]:
    if type.name in _NESTED:
        return _nested(texts, type)
    try:
        column, wrong = parse(pa.array(texts, pa.string()), type)
    except UnicodeEncodeError:
        return texts, dict.fromkeys(range(len(texts)), "invalid UTF-8")
    return _values(column), wrong


def _values(column: pa.Array) -> list[Any]:
    # Timestamps beyond what Python's datetime can hold stay numbers of Arrow's.
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(plain(column).to_pylist())


def _nested(texts: list[str], type: Type) -> tuple[list[Any], dict[int, str]]:
    values: list[Any] = []
    wrong: dict[int, str] = {}
    for i, text in enumerate(texts):
        try:
            values.append(json.loads(text) if text.strip() else None)
        except (ValueError, RecursionError):
            values.append(None)
            wrong[i] = expected(type, text)
    return values, wrong


def write_texts(table: pa.Table) -> dict[str, list[str | None]]:
    """The columns of a table as text: numbers in their shortest exact form, nested values as JSON.

    >>> write_texts(pa.table({"a": [1.5, None], "b": [[1], []]}))
    {'a': ['1.5', None], 'b': ['[1]', '[]']}
    """
    return {
        name: plain(column.combine_chunks()).to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
