"""Bodies of requests: Arrow streams are judged by what they become, before they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from auroral.server.arrow_bodies import read_arrow_stream
from auroral.server.problems import RequestError

MEGABYTE = 1 << 20


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=1000)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def refused(body: bytes, rows: int = 1000, size: int = MEGABYTE) -> tuple[int, str]:
    before = pa.total_allocated_bytes()
    with pytest.raises(RequestError) as error:
        read_arrow_stream(body, rows, size)
    assert pa.total_allocated_bytes() - before < MEGABYTE
    return error.value.status, error.value.message


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_what_a_stream_becomes_counts(compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = stream(pa.table({"s": ["x" * 50 * MEGABYTE]}), compression)
    assert len(bomb) < MEGABYTE
    monkeypatch.setattr(ipc, "open_stream", lambda _: pytest.fail("it was read"))
    assert refused(bomb) == (413, f"a request has at most {MEGABYTE} bytes when decompressed")


def test_rows_count_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    many = stream(pa.table({"n": pa.nulls(1_000_000)}))
    assert len(many) < MEGABYTE
    monkeypatch.setattr(ipc, "open_stream", lambda _: pytest.fail("it was read"))
    assert refused(many) == (413, "a request has at most 1000 rows")


VIEW = pa.string_view()


def views() -> pa.Array:
    return pa.array(["x" * 10_000] * 9).cast(VIEW)


def views_in_a_dictionary() -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * 900, pa.int8()), views())


def shared(make: Callable[[], pa.Array]) -> bytes:
    return stream(pa.table({"s": make()}))


@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda: pa.array(["x" * 10_000] * 900).dictionary_encode(), 413),
        (lambda: pa.array([b"x" * 10_000] * 900, pa.binary(10_000)).dictionary_encode(), 413),
        (views_in_a_dictionary, 422),
        (lambda: pa.ExtensionArray.from_storage(pa.opaque(VIEW, "a", "b"), views()), 422),
        (lambda: pa.RunEndEncodedArray.from_arrays([900], ["x" * 10_000]), 422),
        (lambda: pa.array([[b"x" * 10_000] * 3]).cast(pa.list_(pa.binary_view())), 422),
        (lambda: pa.array(["x" * 10_000] * 9).cast(pa.string_view()), 422),
    ],
)
def test_rows_that_share_a_value_count_each(make: Callable[[], pa.Array], status: int) -> None:
    assert refused(shared(make))[0] == status


TABLE = pa.table(
    {
        "n": [1, None, 3],
        "s": ["a", "", None],
        "d": pa.array(["u", "v", None]).dictionary_encode(),
        "l": [[1], [], None],
        "b": [True, None, False],
    }
)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_tables_within_the_limits_are_read(compression: str | None) -> None:
    big = pa.concat_tables([TABLE] * 900).combine_chunks()
    for table in (TABLE, TABLE.slice(0, 0), big):
        assert read_arrow_stream(stream(table, compression), 3000, MEGABYTE).equals(table)


@given(st.data())
def test_broken_streams_are_refused(data: Any) -> None:
    body = bytearray(stream(TABLE, "zstd"))
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=8)):
        body[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(RequestError):
        assert read_arrow_stream(bytes(body), 1000, MEGABYTE).num_rows <= 1000
