"""Byte strings that compare as the encoded values do; `_sub` consists of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = "pa.Array | pa.ChunkedArray"
Bytes = npt.NDArray[np.uint8]
_SIGN = np.uint64(1 << 63)
_NULL, _VALUE = b"\x00", b"\x01"
_ZERO, _ESCAPED, _STOP = b"\x00", b"\x00\xff", b"\x00\x00"


def sortable(columns: Sequence[Column]) -> pa.BinaryArray:
    """Concatenate each row's values as bytes that compare as the rows do.

    NULL is least, NaN above everything, -0.0 equals 0.0; strings compare as UTF-8.

    >>> [b.hex() for b in sortable([pa.array(["a", None])]).to_pylist()]
    ['01610000', '00']
    """
    pieces: list[pa.BinaryArray] = []
    fixed: list[tuple[Bytes, Any]] = []
    for column in map(whole, columns):
        if _is_text(column.type):
            pieces += [_flat(fixed)] if fixed else []
            fixed = []
            pieces.append(_text(column))
        else:
            fixed.append(_fixed(column))
    pieces += [_flat(fixed)] if fixed else []
    return joined(*pieces)


def sub_bytes(table: pa.Table) -> pa.BinaryArray:
    """The `_sub` of a table's rows; empty where it has none."""
    if "_sub" not in table.column_names:
        return empty_bytes(table.num_rows)
    column = whole(table["_sub"]).cast(pa.binary())
    return pc.fill_null(column, b"") if column.null_count else column


def moments(seq: Any) -> pa.BinaryArray:
    """Moments as 8 bytes, big endian."""
    return of_matrix(_big_endian(np.asarray(seq, np.int64).astype(np.uint64)))


def joined(*pieces: pa.BinaryArray) -> pa.BinaryArray:
    """Concatenate byte strings row by row."""
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, b"")


def empty_bytes(rows: int) -> pa.BinaryArray:
    """A column of n empty byte strings."""
    offsets = pa.py_buffer(bytes(4 * (rows + 1)))
    return pa.Array.from_buffers(pa.binary(), rows, [None, offsets, pa.py_buffer(b"")])


def of_matrix(matrix: Bytes) -> pa.BinaryArray:
    """Byte strings of one length, from one row each."""
    rows, width = matrix.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix))]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def whole(column: Column) -> pa.Array:
    """A column as one array, without dictionary."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def float_bits(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Bits of floats, the same for equal values: one NaN, no -0.0."""
    values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)


def integers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Integers, dates and timestamps as 64-bit integers; 0 for NULL."""
    kind = column.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) and kind.unit != "us":
        column = column.cast(pa.timestamp("us", kind.tz))
    return np.asarray(pc.fill_null(column.cast(pa.int64()), 0), np.int64)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind)
    return bool(text or types.is_binary(kind) or types.is_large_binary(kind))


def _text(column: pa.Array) -> pa.BinaryArray:
    column = column.cast(pa.binary())
    if pc.any(pc.match_substring(column, _ZERO)).as_py():
        column = pc.replace_substring(column, _ZERO, _ESCAPED)
    made = pc.binary_join_element_wise(_VALUE, column, _STOP, b"")
    return pc.fill_null(made, _NULL) if column.null_count else made


def _fixed(column: pa.Array) -> tuple[Bytes, Any]:
    """Payloads of one length after a byte that marks their presence; and which rows have one."""
    payload = _payload(column)
    matrix = np.empty((len(column), payload.shape[1] + 1), np.uint8)
    matrix[:, 1:] = payload
    if not column.null_count:
        matrix[:, 0] = 1
        return matrix, None
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    matrix[:, 0] = valid
    return matrix, valid


def _flat(parts: Sequence[tuple[Bytes, Any]]) -> pa.BinaryArray:
    matrix = parts[0][0] if len(parts) == 1 else np.hstack([part for part, _ in parts])
    if all(valid is None for _, valid in parts):
        return of_matrix(matrix)
    kept = np.ones(matrix.shape, bool)
    at = 0
    for part, valid in parts:
        if valid is not None:
            kept[:, at + 1 : at + part.shape[1]] = valid[:, None]
        at += part.shape[1]
    offsets = np.zeros(len(matrix) + 1, np.int32)
    np.cumsum(kept.sum(axis=1), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(matrix[kept])]
    return pa.Array.from_buffers(pa.binary(), len(matrix), buffers)


def _payload(column: pa.Array) -> Bytes:
    kind = column.type
    if pa.types.is_null(kind):
        return np.empty((len(column), 0), np.uint8)
    if pa.types.is_boolean(kind):
        return np.asarray(pc.fill_null(column, False), np.uint8)[:, None]
    if pa.types.is_decimal(kind):
        return _decimal(column)
    if pa.types.is_floating(kind):
        bits = float_bits(column)
        return _big_endian(np.where(bits >= _SIGN, ~bits, bits | _SIGN))
    return _big_endian(integers(column).view(np.uint64) ^ _SIGN)


def _decimal(column: pa.Array) -> Bytes:
    column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    raw = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    matrix = raw[16 * column.offset : 16 * (column.offset + len(column))].reshape(-1, 16)[:, ::-1]
    matrix = matrix.copy()
    matrix[:, 0] ^= 0x80
    return matrix


def _big_endian(values: npt.NDArray[np.uint64]) -> Bytes:
    return values.astype(">u8").view(np.uint8).reshape(-1, 8)
