"""Conversions between Arrow columns and numpy arrays: values, validity, keys in Spark's order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.sql.expressions.numbers import nullable_key

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_MAGNITUDE = np.int64(2**63 - 1)
_NAN = np.array([np.nan]).view(np.int64)[0] & _MAGNITUDE


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def is_decimal(type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type))


def is_float(type: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type))


def is_narrow(type: pa.DataType) -> bool:
    """Whether every value has a 64-bit key in Spark's order from which it can be restored."""
    if is_decimal(type):
        return bool(type.precision <= 18)
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(kind(type) for kind in (*kinds, pa.types.is_date32, pa.types.is_timestamp))


def valid(column: pa.Array) -> Bools:
    """Where the column is not NULL."""
    if column.null_count == 0:
        return np.ones(len(column), dtype=bool)
    found: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return found


def _raw(column: pa.Array, dtype: str, width: int = 1) -> npt.NDArray[Any]:
    """The data buffer as it is; its content at NULLs is undefined."""
    data, count = column.buffers()[1], len(column) * width
    if data is None or not count:
        return np.zeros(count, dtype=dtype)
    offset = column.offset * width * np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype=dtype, count=count, offset=offset)


def _dtype(type: pa.DataType) -> str:
    if pa.types.is_date32(type):
        return "<i4"
    if pa.types.is_timestamp(type):
        return "<i8"
    return str(np.dtype(type.to_pandas_dtype()).str)


def integers(column: pa.Array) -> Ints:
    """Whole numbers, booleans, dates, timestamps and unscaled narrow decimals."""
    if is_decimal(column.type):
        return _raw(column, "<i8", width=2)[::2]
    if pa.types.is_boolean(column.type):
        truth: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        return truth.astype(np.int64)
    return _raw(column, _dtype(column.type)).astype(np.int64, copy=False)


def floats(column: pa.Array) -> Floats:
    """Numbers as doubles."""
    if is_float(column.type):
        return _raw(column, _dtype(column.type)).astype(np.float64, copy=False)
    return integers(column).astype(np.float64)


def keys(column: pa.Array) -> Ints:
    """Keys in Spark's order: NaN greatest; -0.0 below 0.0."""
    if not is_float(column.type):
        return integers(column)
    values = floats(column)
    return np.where(np.isnan(values), _NAN, _turned(values.view(np.int64)))


def _turned(bits: Ints) -> Ints:
    """Map the bits of doubles to integers in the same order; it is its own inverse."""
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def from_keys(found: Ints, present: Bools, type: pa.DataType) -> pa.Array:
    """The column that has these keys."""
    if is_float(type):
        return column_of(_turned(found).view(np.float64), present, type)
    return column_of(found, present, type)


def column_of(values: npt.NDArray[Any], present: Bools | None, type: pa.DataType) -> pa.Array:
    """A narrow column of numbers, NULL where not present."""
    if pa.types.is_boolean(type):
        return pa.array(values.astype(bool), mask=None if present is None else ~present)
    if is_decimal(type):
        pairs = np.empty((len(values), 2), dtype="<i8")
        pairs[:, 0], pairs[:, 1] = values, values >> 63
        values = pairs
    else:
        values = np.ascontiguousarray(values, dtype=_dtype(type))
    length = len(values)
    return pa.Array.from_buffers(type, length, [_bitmap(present), pa.py_buffer(values)])


def _bitmap(present: Bools | None) -> pa.Buffer | None:
    if present is None or present.all():
        return None
    return pa.array(present).buffers()[1]


def words(column: pa.Array) -> tuple[Ints, Ints]:
    """The low and the high word of decimals; undefined at NULLs."""
    pairs = _raw(column, "<i8", width=2)
    return pairs[::2], pairs[1::2]


def unscaled(column: pa.Array) -> list[int]:
    """The unscaled values of decimals of any width; undefined at NULLs."""
    low, high = words(column)
    pairs = zip(low.astype(np.uint64).tolist(), high.tolist(), strict=True)
    return [(above << 64) + below for below, above in pairs]


def decimals(values: Sequence[int | None], type: pa.DataType) -> pa.Array:
    """Decimals of unscaled values."""
    data = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
    present = np.array([value is not None for value in values], dtype=bool)
    return pa.Array.from_buffers(type, len(values), [_bitmap(present), pa.py_buffer(data)])


def present_rows(
    columns: Sequence[pa.Array], slot: Ints, nulls: Sequence[pa.Array] | None = None
) -> tuple[list[pa.Array], Ints]:
    """The rows where none of `nulls` (all columns, if not given) is NULL."""
    judged = [column for column in nulls or columns if column.null_count]
    if not judged:
        return list(columns), slot
    mask = valid(judged[0])
    for column in judged[1:]:
        mask = mask & valid(column)
    return [column.filter(pa.array(mask)) for column in columns], slot[mask]


def one_zero(column: pa.Array) -> pa.Array:
    """Floats with all NaNs made equal, and -0.0 made 0.0."""
    if not is_float(column.type):
        return column
    values = floats(column)
    same = np.where(np.isnan(values), np.nan, values + 0.0)
    return column_of(same, valid(column), column.type)


def ranks(column: pa.Array) -> Ints:
    """Numbers in Spark's order, equal for equal values; undefined at NULLs."""
    if is_narrow(column.type):
        return keys(one_zero(column))
    if pa.types.is_nested(column.type):
        items = [nullable_key(value) for value in column.to_pylist()]
        order = sorted(range(len(items)), key=items.__getitem__)
        rank = np.zeros(len(items), dtype=np.int64)
        for before, at in pairwise(order):
            rank[at] = rank[before] + (items[before] != items[at])
        return rank
    coded = column.dictionary_encode(null_encoding="encode")
    rank = np.empty(len(coded.dictionary), dtype=np.int64)
    rank[pc.array_sort_indices(coded.dictionary).to_numpy()] = np.arange(len(rank))
    code: Ints = coded.indices.to_numpy(zero_copy_only=False)
    return rank.take(code)


def codes(columns: Sequence[pa.Array]) -> Ints:
    """Numbers that are equal where all columns are, NULLs included."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if pa.types.is_nested(column.type):
            code = ranks(column)
        else:
            coded = one_zero(column).dictionary_encode(null_encoding="encode")
            code = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        combined = found * (int(code.max(initial=0)) + 1) + code
        found = np.unique(combined, return_inverse=True)[1] if len(columns) > 1 else combined
    return found
