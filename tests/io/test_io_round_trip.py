"""What a sink writes a source reads back as it was, cut anywhere."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from auroral.io.open import open_sink
from auroral.io.sinks.sink import Delivery
from auroral.io.sources.files import FileSource
from auroral.network.types import Schema

_EXACT = Context(prec=38)
"""Keeps every digit; the default context rounds to 28, up to a value that no longer fits."""
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-128, 127),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(["", '"', '"a",\r\n', "\r", "null", " x ", "\\"]),
    "binary": st.binary(max_size=5),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(dt.UTC)),
    "timestamp_ntz": st.datetimes(),
    "decimal(12,3)": st.decimals(-(10**9) + 1, 10**9 - 1, places=3),
    "decimal(38,18)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal(n).scaleb(-18, _EXACT)
    ),
    "array<double>": st.lists(st.none() | st.floats(), max_size=3),
    "array<timestamp>": st.lists(st.datetimes(timezones=st.just(dt.UTC)), max_size=2),
    "map<string,int>": st.dictionaries(st.text('ab,"', max_size=2), st.integers(0, 9), max_size=2),
    "map<int,string>": st.dictionaries(st.integers(0, 9), st.text("xy", max_size=2), max_size=2),
    "struct<x:int,y:string>": st.fixed_dictionaries(
        {"x": st.none() | st.integers(0, 9), "y": st.none() | st.text("é\n", max_size=2)}
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    schema = Schema.parse({f"c{i} é": kind for i, kind in enumerate(kinds)})
    count = draw(st.integers(0, 6))
    columns = [
        draw(st.lists(st.none() | TYPES[kind], min_size=count, max_size=count)) for kind in kinds
    ]
    arrow = schema.arrow()
    arrays = [
        pa.array(
            [list(v.items()) if isinstance(v, dict) and kind.startswith("map") else v for v in c],
            field.type,
        )
        for c, kind, field in zip(columns, kinds, arrow, strict=True)
    ]
    return schema, pa.Table.from_arrays(arrays, schema=arrow)


def same(left: pa.Table, right: pa.Table) -> bool:
    """Equal, NaN and the sign of zero included; repr tells both."""
    return left.schema == right.schema and repr(left.to_pylist()) == repr(right.to_pylist())


def everything(source: FileSource, limit: int = 1000) -> pa.Table:
    parts = [source.schema.arrow().empty_table()]
    while (chunk := source.poll(limit)) is not None:
        assert chunk.dead == ()
        parts.append(chunk.tuples)
    assert source.exhausted
    return pa.concat_tables(parts)


def widest() -> tuple[Schema, pa.Table]:
    """The greatest and the least decimal, digit by digit."""
    values = [Decimal(f"{sign}{'9' * 20}.{'9' * 18}") for sign in ("", "-")]
    schema = Schema.parse({"c": "decimal(38,18)"})
    return schema, pa.table({"c": values}, schema=schema.arrow())


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@given(made=tables(), cut=st.integers(0, 6))
@example(made=widest(), cut=1)
@settings(max_examples=100, deadline=None)
def test_written_is_read(format: str, made: tuple[Schema, pa.Table], cut: int) -> None:
    schema, table = made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"x.{format}")
        sink = open_sink("o", {"format": format, "path": path}, schema)
        sink.open(None)
        position = sink.write(Delivery("o", table.slice(0, cut), (1, b""), (1, b"")))
        sink.write(Delivery("o", table.slice(0, 1), (2, b""), (2, b"")))
        sink.close()
        sink.open(position)
        sink.write(Delivery("o", table.slice(cut), (2, b""), (2, b"")))
        sink.close()
        assert same(everything(FileSource("s", path, schema)), table)


@given(made=tables())
@settings(max_examples=30, deadline=None)
def test_parquet_written_is_read(made: tuple[Schema, pa.Table]) -> None:
    schema, table = made
    with tempfile.TemporaryDirectory() as folder:
        sink = open_sink("o", {"format": "parquet", "path": folder}, schema)
        sink.open(None)
        sink.write(Delivery("o", table, (1, b""), (7, b"")))
        path = Path(folder, "part-00000000-1-7.parquet")
        assert same(everything(FileSource("s", path, schema)), table)
