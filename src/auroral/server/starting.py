"""Networks to begin with: examples that run, and streams that fit a CSV."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import types as at

from auroral.errors import UsageError
from auroral.network.network import Network
from auroral.network.types import RESERVED
from auroral.server.models import InferredStream, Starter
from auroral.server.wire_rows import type_name

_STARTERS = Path(__file__).with_name("starters")
_ORDER = ("border", "plant", "market")
_DELAY = {"timestamp": "10 seconds", "timestamp_ntz": "10 seconds", "date": "1 day"}
"""What a stream that fits a CSV allows for tuples that come out of order."""
_MOST_FIELDS = 1000


@cache
def starters() -> tuple[Starter, ...]:
    """The examples; the first lines of each file are its title and its description."""
    found = []
    for name in _ORDER:
        path = _STARTERS / f"{name}.yaml"
        title, about = path.read_text(encoding="utf-8").splitlines()[:2]
        document = Network.load(path).document()
        found.append(
            Starter(
                name=name,
                title=title.lstrip("# "),
                description=about.lstrip("# "),
                network=document,
            )
        )
    return tuple(found)


def infer_stream(text: bytes, name: str) -> InferredStream:
    """A stream whose schema fits some CSV with a header.

    >>> found = infer_stream(b"id,at,x\\n1,2026-01-01T00:00:00Z,0.5\\n", "S 1")
    >>> found.stream, found.declaration["schema"]
    ('S_1', {'id': 'bigint', 'at': 'timestamp', 'x': 'double'})
    >>> found.declaration["progress"]
    {'on': 'at', 'delay': '10 seconds'}
    """
    table = _read(text)
    schema = {field: _type(table.column(at)) for at, field in enumerate(_names(table.column_names))}
    declaration: dict[str, Any] = {"schema": schema}
    progress = _progress(table, list(schema), list(schema.values()))
    if progress is not None:
        declaration["progress"] = progress
    return InferredStream(stream=_name(name), declaration=declaration, rows=table.num_rows)


def _read(text: bytes) -> pa.Table:
    if not text.strip():
        raise UsageError("EMPTY_FILE", "the CSV is empty; expected a header and some rows")
    try:
        table = csv.read_csv(
            pa.BufferReader(text.removeprefix(b"\xef\xbb\xbf")),
            read_options=csv.ReadOptions(use_threads=False, block_size=max(len(text), 1 << 20)),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=[""]),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        why = str(error).splitlines()[0]
        raise UsageError("BAD_BATCH", f"this is no CSV with a header: {why}") from None
    if table.num_columns > _MOST_FIELDS:
        raise UsageError("BAD_BATCH", f"expected at most {_MOST_FIELDS} columns")
    return table


def _type(column: pa.ChunkedArray) -> str:
    kind = column.type
    if at.is_null(kind) or at.is_time(kind) or at.is_duration(kind):
        return "string"
    if at.is_timestamp(kind):
        return "timestamp"
    return type_name(kind)


def _name(given: str) -> str:
    """A name for a stream."""
    found = re.sub(r"\W+", "_", given, flags=re.ASCII).strip("_")[:90]
    return found if re.match(r"[A-Za-z]", found) else f"s_{found}".rstrip("_")


def _names(columns: list[str]) -> list[str]:
    """Names of fields for the columns of a header: none empty, reserved or there twice."""
    found: list[str] = []
    for number, column in enumerate(columns, start=1):
        name = column.replace("`", "").strip() or f"column_{number}"
        while name.lower() in RESERVED or name.lower() in (one.lower() for one in found):
            name = f"{name}_{number}"
        found.append(name)
    return found


def _progress(table: pa.Table, names: list[str], types: list[str]) -> dict[str, Any] | None:
    """Progress on the first time; else on the first whole number that never falls."""
    for name, kind in zip(names, types, strict=True):
        if kind in _DELAY:
            return {"on": name, "delay": _DELAY[kind]}
    for at_, (name, kind) in enumerate(zip(names, types, strict=True)):
        if kind in ("int", "bigint") and _rises(table.column(at_)):
            return {"on": name, "delay": 0}
    return None


def _rises(column: pa.ChunkedArray) -> bool:
    values = column.combine_chunks()
    if len(values) < 2 or values.null_count:
        return False
    steps = pc.subtract(values[1:], values[:-1])
    return bool(pc.min(steps).as_py() >= 0 and pc.max(steps).as_py() > 0)
