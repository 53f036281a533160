"""Columns to text, vectorised: numbers in their shortest exact form, ISO times, RFC 4180, JSON."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as at

_DAY_START = pa.timestamp("s")


def plain(column: pa.Array) -> pa.Array:
    """A column as bare text, NULL staying NULL; nested values as JSON.

    >>> plain(pa.array([20.0, 0.1, 1e22, float("nan"), None])).to_pylist()
    ['20', '0.1', '1e22', 'NaN', None]
    """
    kind = column.type
    if at.is_string(kind):
        return column
    if at.is_floating(kind):
        return _floats(column)
    if at.is_decimal(kind):
        return _decimals(column)
    if at.is_timestamp(kind):
        return _timestamps(column)
    if at.is_binary(kind):
        found = [None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()]
        return pa.array(found, pa.string())
    if at.is_nested(kind):
        found = [None if v is None else dumps(v, kind) for v in column.to_pylist()]
        return pa.array(found, pa.string())
    return column.cast(pa.string())


def csv_fields(column: pa.Array) -> pa.Array:
    """A column as CSV fields: NULL is empty, an empty string is quoted, others if needed."""
    texts = plain(column)
    if at.is_string(column.type) or at.is_binary(column.type) or at.is_nested(column.type):
        needs = pc.or_(pc.match_substring_regex(texts, '[",\r\n]'), pc.equal(texts, ""))
        if pc.any(needs).as_py():
            doubled = pc.replace_substring(texts, '"', '""')
            quoted = pc.binary_join_element_wise('"', doubled, '"', "")
            texts = pc.if_else(needs, quoted, texts)
    return pc.fill_null(texts, "")


def json_values(column: pa.Array) -> pa.Array:
    """A column as JSON values; NaN and the infinities are strings."""
    kind = column.type
    texts = plain(column)
    if at.is_floating(kind):
        special = pc.invert(pc.is_finite(column))
        if pc.any(special).as_py():
            texts = pc.if_else(special, _between_quotes(texts), texts)
    elif at.is_string(kind):
        odd = pc.match_substring_regex(texts, r'["\\\x00-\x1f]')
        if pc.any(odd).as_py():
            found = [None if t is None else _string(t) for t in texts.to_pylist()]
            texts = pa.array(found, pa.string())
        else:
            texts = _between_quotes(texts)
    elif at.is_temporal(kind) or at.is_binary(kind):
        texts = _between_quotes(texts)
    return pc.fill_null(texts, "null")


def dumps(value: Any, kind: pa.DataType) -> str:
    """One value as JSON, by its Arrow type."""
    if value is None:
        return "null"
    if at.is_list(kind):
        return f"[{','.join(dumps(v, kind.value_type) for v in value)}]"
    if at.is_struct(kind):
        parts = (f"{_string(f.name)}:{dumps(value[f.name], f.type)}" for f in kind)
        return f"{{{','.join(parts)}}}"
    if at.is_map(kind):
        return _map(value, kind)
    if at.is_floating(kind):
        return _float(value, kind)
    if isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return _string(base64.b64encode(value).decode())
    if isinstance(value, dt.date):
        return _string(str(plain(pa.array([value], kind))[0].as_py()))
    return _string(value)


def _map(pairs: list[tuple[Any, Any]], kind: pa.DataType) -> str:
    """An object if the keys are strings, else an array of pairs."""
    found = [(dumps(key, kind.key_type), dumps(item, kind.item_type)) for key, item in pairs]
    if at.is_string(kind.key_type):
        return f"{{{','.join(f'{key}:{item}' for key, item in found)}}}"
    return f"[{','.join(f'[{key},{item}]' for key, item in found)}]"


def _float(value: float, kind: pa.DataType) -> str:
    text = str(_floats(pa.array([value], kind))[0].as_py())
    return text if math.isfinite(value) else f'"{text}"'


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _between_quotes(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _floats(column: pa.Array) -> pa.Array:
    texts = pc.replace_substring(column.cast(pa.string()), "e+", "e")
    finite = pc.is_finite(column)
    if pc.all(finite).as_py():
        return texts
    special = pc.case_when(
        pc.make_struct(pc.is_nan(column), pc.greater(column, 0)), "NaN", "Infinity", "-Infinity"
    )
    return pc.if_else(finite, texts, special)


def _decimals(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():
        found = [None if v is None else format(v, "f") for v in column.to_pylist()]
        return pa.array(found, pa.string())
    return texts


def _timestamps(column: pa.Array) -> pa.Array:
    zone = "Z" if column.type.tz is not None else ""
    # The same instants without a zone, so that no time zone database is asked.
    bare = column.cast(pa.int64()).cast(pa.timestamp("us"))
    whole = pc.equal(pc.subsecond(bare), 0)
    texts = pc.floor_temporal(bare, unit="second").cast(_DAY_START).cast(pa.string())
    if not pc.all(whole).as_py():
        texts = pc.if_else(whole, texts, pc.utf8_rtrim(bare.cast(pa.string()), "0"))
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise(texts, zone, "") if zone else texts
