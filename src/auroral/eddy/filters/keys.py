"""Values as keys: numbers that compare as Spark SQL compares the values.

NaN equals itself and is above all numbers, −0.0 equals 0.0, strings go by their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from auroral.network.types import Type

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Scale = str
"""How values become keys: `int`, `float`, `time`, `bytes`, `null`, `decimal:s` or `wide:s`."""

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_TIMES = ("timestamp", "timestamp_ntz")


@lru_cache(maxsize=4096)
def scale_of(type: Type, constants: pa.DataType) -> Scale | None:
    """On what scale an attribute is compared with constants; None if on none."""
    name = type.name
    if pa.types.is_list(constants) or pa.types.is_large_list(constants):
        constants = constants.value_type
    if pa.types.is_dictionary(constants):
        constants = constants.value_type
    if pa.types.is_null(constants):
        constants = type.arrow()
    if name in ("string", "binary"):
        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
        return "bytes" if any(is_text(constants) for is_text in texts) else None
    if name == "boolean":
        return "int" if pa.types.is_boolean(constants) else None
    if name == "date" and pa.types.is_date32(constants):
        return "int"
    if name == "date" or name in _TIMES:
        return "time" if pa.types.is_temporal(constants) else None
    if not type.is_numeric:
        return None
    return _number_scale(type, constants)


def _number_scale(type: Type, constants: pa.DataType) -> Scale | None:
    if pa.types.is_floating(constants) or type.name in ("float", "double"):
        return "float"
    if pa.types.is_integer(constants) and type.is_integral:
        return "int"
    if not pa.types.is_integer(constants) and not pa.types.is_decimal(constants):
        return None
    scale = max(type.scale, constants.scale if pa.types.is_decimal(constants) else 0)
    whole = _DIGITS.get(type.name, type.precision - type.scale)
    if pa.types.is_decimal(constants):
        whole = max(whole, constants.precision - constants.scale)
    else:
        whole = max(whole, 19 if constants.bit_width == 64 else 10)
    return f"{'decimal' if whole + scale <= 18 else 'wide'}:{scale}"


@dataclass(frozen=True)
class Keys:
    """Some values as keys; for `bytes` they are places in `distinct`."""

    data: NDArray[Any]
    """int64; bytes of one length for `wide`; int32 places for `bytes`. 0 where NULL."""
    nulls: Mask | None
    distinct: pa.Array | None = None
    """The different values as binary, of `bytes` only."""

    def __len__(self) -> int:
        return len(self.data)

    def take(self, rows: NDArray[Any] | slice) -> Keys:
        nulls = None if self.nulls is None else self.nulls[rows]
        return Keys(self.data[rows], nulls, self.distinct)


def keys_of(values: pa.Array, scale: Scale) -> Keys:
    """The keys of values."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if pa.types.is_null(values.type):
        nulls = np.ones(len(values), bool)
        distinct = pa.array([], pa.binary()) if scale == "bytes" else None
        width = int(scale == "bytes")
        return Keys(np.zeros(len(values), np.int32 if width else _dtype(scale)), nulls, distinct)
    if scale == "null":
        return Keys(np.zeros(len(values), np.int64), nulls)
    if scale == "bytes":
        return _coded(values, nulls)
    if scale == "float":
        return Keys(_float_keys(_numbers(values, pa.float64(), nulls)), nulls)
    if scale == "time":
        if not pa.types.is_timestamp(values.type) or values.type.unit != "us":
            zone = getattr(values.type, "tz", None)
            values = values.cast(pa.timestamp("us", zone))
        return Keys(_numbers(values.view(pa.int64()), pa.int64(), nulls), nulls)
    if scale == "int":
        if pa.types.is_date32(values.type):
            values = values.view(pa.int32())
        return Keys(_numbers(values, pa.int64(), nulls), nulls)
    return Keys(_decimal_keys(values, scale, nulls), nulls)


def _dtype(scale: Scale) -> Any:
    return "S16" if scale.startswith("wide") else np.int64


def _numbers(values: pa.Array, type: pa.DataType, nulls: Mask | None) -> NDArray[Any]:
    if nulls is not None:
        values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    converted: NDArray[Any] = found.astype(type.to_pandas_dtype(), copy=False)
    return converted


def _float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bits of a double, turned so that they order as the doubles do."""
    keys = (values + 0.0).view(np.int64)
    keys = keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    nan = np.isnan(values)
    if nan.any():
        keys[nan] = np.iinfo(np.int64).max
    return keys


def _decimal_keys(values: pa.Array, scale: Scale, nulls: Mask | None) -> NDArray[Any]:
    kind, digits = scale.split(":")
    places = int(digits)
    if pa.types.is_integer(values.type) and kind == "decimal":
        return _numbers(values, pa.int64(), nulls) * np.int64(10**places)
    if nulls is not None:
        zero = 0 if pa.types.is_integer(values.type) else Decimal(0)
        values = pc.if_else(values.is_valid(), values, pa.scalar(zero, values.type))
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(19, 0))
    values = values.cast(pa.decimal128(38, places))
    buffer = values.buffers()[1]
    halves = np.frombuffer(buffer, np.int64, 2 * len(values), values.offset * 16).reshape(-1, 2)
    if kind == "decimal":
        return halves[:, 0].copy()
    # Sixteen bytes, highest first, with the sign turned, order as the numbers do.
    wide = np.empty((len(values), 2), ">u8")
    wide[:, 0] = halves[:, 1].view(np.uint64) ^ np.uint64(1 << 63)
    wide[:, 1] = halves[:, 0].view(np.uint64)
    return wide.view("S16").reshape(-1)


def _coded(values: pa.Array, nulls: Mask | None) -> Keys:
    if not pa.types.is_dictionary(values.type):
        if pa.types.is_large_string(values.type):
            values = values.cast(pa.large_binary()).cast(pa.binary())
        values = values.cast(pa.binary()).dictionary_encode()
    codes = values.indices.fill_null(0) if nulls is not None else values.indices
    distinct = values.dictionary.cast(pa.binary())
    return Keys(codes.to_numpy(zero_copy_only=False).astype(np.int32, copy=False), nulls, distinct)
