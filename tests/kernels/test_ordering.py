"""Sortable bytes compare as the values do."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.ordering import empty_bytes, joined, moments, sortable, sub_bytes

INT64 = st.integers(-(2**63), 2**63 - 1)
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): INT64,
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.sampled_from("\x00\x01aé\U0001f600"), max_size=4),
    pa.binary(): st.binary(max_size=4),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(38, 2): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda v: Decimal(f"{v}E-2")  # exact, unlike arithmetic
    ),
}


def rank(value: Any) -> Any:
    """What Python compares as the bytes should."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    return (1, value.encode() if isinstance(value, str) else value)


@given(st.data())
def test_bytes_compare_as_rows(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | KINDS[kind] for kind in kinds))
    rows = data.draw(st.lists(row, max_size=8))
    columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(kinds)]
    seen = [tuple(column[i].as_py() for column in columns) for i in range(len(rows))]
    got = sortable(columns).to_pylist()
    for one, a in zip(seen, got, strict=True):
        for other, b in zip(seen, got, strict=True):
            assert (a < b) == ([rank(v) for v in one] < [rank(v) for v in other])
            assert (a == b) == ([rank(v) for v in one] == [rank(v) for v in other])


def test_layout() -> None:
    def of(value: Any, kind: pa.DataType) -> str:
        return bytes(sortable([pa.array([value], kind)])[0].as_py()).hex()

    assert of(None, pa.int64()) == "00"
    assert of(1, pa.int32()) == "018000000000000001"
    assert of(-1, pa.int64()) == "017fffffffffffffff"
    assert of(date(1970, 1, 2), pa.date32()) == "018000000000000001"
    assert of(datetime(1970, 1, 1, 0, 0, 0, 1), pa.timestamp("us")) == "018000000000000001"
    assert of(-0.0, pa.float64()) == of(0.0, pa.float64()) == "018000000000000000"
    assert of(True, pa.bool_()) == "0101"
    assert of("a\x00", pa.string()) == "016100ff0000"
    assert of(Decimal("-0.01"), pa.decimal128(10, 2)) == "017f" + "ff" * 15
    assert sortable([pa.nulls(1)])[0].as_py() == b"\x00"


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(38, 2), pa.string(), pa.bool_()])
def test_slices_and_chunks(kind: pa.DataType) -> None:
    array = pa.array([None, 1, 0, 1], pa.int8()).cast(pa.int64())
    array = array.cast(kind)
    want = sortable([array]).to_pylist()
    assert sortable([array.slice(2)]).to_pylist() == want[2:]
    assert sortable([pa.chunked_array([array.slice(0, 1), array.slice(1)])]).to_pylist() == want
    assert sortable([pa.chunked_array([], kind)]).to_pylist() == []
    assert sortable([array.dictionary_encode()]).to_pylist() == want


def test_sub_of_tables() -> None:
    plain = pa.table({"_seq": [1, 2]})
    assert sub_bytes(plain).to_pylist() == [b"", b""]
    assert sub_bytes(plain.append_column("_sub", pa.array([b"x", None]))).to_pylist() == [b"x", b""]
    assert sub_bytes(plain.slice(0, 0)).type == pa.binary()


def test_moments() -> None:
    assert moments(np.array([1, 258])).to_pylist() == [bytes(7) + b"\x01", bytes(6) + b"\x01\x02"]
    assert joined(moments([7]), empty_bytes(1), pa.array([b"z"])).to_pylist() == [
        bytes(7) + b"\x07z"
    ]
