"""Values of an ordered attribute as numbers a kernel computes with, and back.

They are in mark units: timestamps in µs, dates in days, decimals unscaled. Arrays are int64 or
float64; where 64 bits might not hold a sum they are objects (Python integers): slow, but exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.ordering import integers, whole
from auroral.progress.lowwater import Values

Mask = npt.NDArray[np.bool_]
_LONG = pa.decimal256(76, 0)
_EXACT = Context(prec=76)
_ROOM = 2**61
"""Below this, a start, an end and a history can be added without leaving 64 bits."""


def stored_type(kind: pa.DataType) -> pa.DataType:
    """How state keeps values of a field of this type."""
    if pa.types.is_floating(kind):
        return pa.float64()
    # Window bounds may have more digits than the field.
    return _LONG if pa.types.is_decimal(kind) else pa.int64()


def numbers(column: pa.Array | pa.ChunkedArray) -> tuple[Values, Mask]:
    """The values of a column, and which rows have one; NaN and infinities are values here."""
    array = whole(column)
    known = np.asarray(array.is_valid()) if array.null_count else np.ones(len(array), bool)
    if pa.types.is_floating(array.type):
        filled = pc.fill_null(array.cast(pa.float64()), 0.0)
        return np.asarray(filled, np.float64) + 0.0, known  # -0.0 is 0.0
    if pa.types.is_decimal(array.type):
        return _unscaled(array, known), known
    return integers(array), known


def stored(values: Values, kind: pa.DataType) -> pa.Array:
    """Numbers as a column of a `stored_type`."""
    if kind != _LONG:
        return pa.array(values.astype(np.float64 if kind == pa.float64() else np.int64))
    return _decimals(values, None, _LONG)


def shown(values: Values, kind: pa.DataType) -> pa.Array:
    """Numbers as values of a field; what the field's type can not hold is NULL."""
    if pa.types.is_floating(kind):
        return pa.array(values.astype(np.float64)).cast(kind)
    if pa.types.is_decimal(kind):
        bound = 10**kind.precision
        return _decimals(*_within(values, -bound + 1, bound - 1), kind)
    width = 64 if pa.types.is_timestamp(kind) else kind.bit_width
    fitting, lost = _within(values, -(2 ** (width - 1)), 2 ** (width - 1) - 1)
    array = pa.array(fitting.astype(np.int64), mask=lost)
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us")).cast(pa.timestamp("us", kind.tz)).cast(kind)
    return array.cast(kind)


def roomy(arrays: Sequence[Values], lengths: Sequence[Any]) -> list[Values]:
    """Make them objects if adding lengths to them might leave 64 bits."""
    whole_numbers = [a for a in arrays if a.dtype != np.float64]
    if not whole_numbers or not _far(whole_numbers, lengths):
        return list(arrays)
    return [a.astype(object) if a.dtype != np.float64 else a for a in arrays]


def alike(arrays: Sequence[Values]) -> list[Values]:
    """Arrays of one type that holds all their values."""
    objects = any(a.dtype == object for a in arrays if len(a))
    floats = any(a.dtype == np.float64 for a in arrays if len(a))
    kind: Any = object if objects else np.float64 if floats else np.int64
    return [a.astype(kind, copy=False) for a in arrays]


def _far(arrays: Sequence[Values], lengths: Sequence[Any]) -> bool:
    if any(a.dtype == object for a in arrays) or any(n and abs(n) > _ROOM // 2 for n in lengths):
        return True
    return any(len(a) and (a.max() > _ROOM or a.min() < -_ROOM) for a in arrays)


def _within(values: Values, least: int, most: int) -> tuple[Values, Any]:
    if values.dtype != object and least <= -(2**63) and most >= 2**63 - 1:
        return values, None
    lost = np.asarray((values < least) | (values > most), bool)
    if not lost.any():
        return values, None
    return np.where(lost, 0, values), lost


def _unscaled(array: pa.Array, known: Mask) -> Values:
    """Decimals without their point."""
    words = array.type.bit_width // 64
    raw = np.frombuffer(array.buffers()[1] or b"", np.int64).reshape(-1, words)
    raw = raw[array.offset : array.offset + len(array)]
    low = np.where(known, raw[:, 0], 0)
    high = np.where(known[:, None], raw[:, 1:], 0)
    if not len(low) or (high == (low >> 63)[:, None]).all():
        return low
    scale = array.type.scale
    exact = [0 if v is None else int(v.scaleb(scale, _EXACT)) for v in array.to_pylist()]
    return np.array([*exact, None], object)[:-1]


def _decimals(values: Values, lost: Any, kind: pa.DataType) -> pa.Array:
    """Unscaled numbers as decimals."""
    if values.dtype == object:
        try:
            values = values.astype(np.int64)
        except OverflowError:
            exact = [Decimal(int(v)).scaleb(-kind.scale, _EXACT) for v in values]
            return pa.array(exact, kind, mask=lost)
    raw = np.empty((len(values), kind.bit_width // 64), np.int64)
    raw[:, 0] = values
    raw[:, 1:] = (raw[:, 0] >> 63)[:, None]
    array = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(raw)])
    return array if lost is None else pc.if_else(pa.array(~lost), array, pa.scalar(None, kind))
