"""Columns of values while expressions are computed: numpy where values have a fixed width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.network.types import Field, Type

Bools = npt.NDArray[np.bool_]
DTYPES: dict[str, Any] = {
    "boolean": np.bool_,
    "tinyint": np.int8,
    "smallint": np.int16,
    "int": np.int32,
    "bigint": np.int64,
    "float": np.float32,
    "double": np.float64,
    "date": np.int32,
    "timestamp": np.int64,
    "timestamp_ntz": np.int64,
    "interval_dt": np.int64,
    "interval_ym": np.int64,
    "void": np.bool_,
}
_ARROW = {
    Type(name).arrow(): Type(name)
    for name in DTYPES
    if not name.startswith("interval") and name != "void"
} | {pa.string(): Type("string"), pa.binary(): Type("binary")}
_LIKE: tuple[tuple[Any, str], ...] = (
    (pa.types.is_large_string, "string"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_uint16, "int"),
    (pa.types.is_uint32, "bigint"),
    (pa.types.is_float16, "float"),
    (pa.types.is_date64, "date"),
)


@dataclass(frozen=True)
class Vector:
    """Values of one type; one that is the same for every tuple stands once.

    Fixed-width values are numpy with `valid` beside them (None: no value is NULL), others Arrow.
    """

    type: Type
    data: npt.NDArray[Any] | pa.Array
    valid: Bools | None = None

    def __post_init__(self) -> None:
        if self.valid is not None and len(self.valid) != len(self.data):
            object.__setattr__(self, "valid", np.broadcast_to(self.valid, len(self.data)))

    @property
    def narrow(self) -> bool:
        return isinstance(self.data, np.ndarray)

    def nulls(self) -> Bools:
        """Where it is NULL."""
        if not isinstance(self.data, np.ndarray):
            found: Bools = self.data.is_null().to_numpy(zero_copy_only=False)
            return found
        if self.valid is None:
            return np.zeros(len(self.data), bool)
        return ~self.valid

    def spread(self, rows: int) -> Vector:
        """The same with one value for each of so many tuples."""
        if len(self.data) == rows:
            return self
        at = np.zeros(rows, np.int64)
        valid = None if self.valid is None else self.valid[at]
        return Vector(self.type, _take(self.data, at), valid)

    def arrow(self) -> pa.Array:
        """The values as Arrow of the type; intervals as whole numbers."""
        if not isinstance(self.data, np.ndarray):
            return self.data
        mask = None if self.valid is None else ~self.valid
        made = pa.array(self.data, mask=mask)
        if self.type.name in ("date", "timestamp", "timestamp_ntz"):
            return made.view(self.type.arrow())
        return made

    def python(self) -> list[Any]:
        """The values as the row evaluator takes them; raises if Python lacks one of them."""
        return plain(self.arrow(), self.type)


def plain(array: pa.Array, type: Type) -> list[Any]:
    """The values of an array as the row evaluator takes them."""
    found: list[Any] = array.to_pylist()
    if type.name == "map":
        return [None if value is None else dict(value) for value in found]
    return found


def _take(data: Any, at: npt.NDArray[Any]) -> Any:
    return data[at] if isinstance(data, np.ndarray) else data.take(pa.array(at))


def from_arrow(array: pa.Array, type: Type) -> Vector:
    """A column as a vector."""
    if type.name not in DTYPES:
        return Vector(type, array)
    valid = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    if type.name in ("date", "timestamp", "timestamp_ntz"):
        array = array.view(pa.int32() if type.name == "date" else pa.int64())
    if valid is not None:
        array = pc.fill_null(array, pa.scalar(0, pa.int8()).cast(array.type))
    return Vector(type, array.to_numpy(zero_copy_only=False), valid)


def from_python(values: Sequence[Any], type: Type) -> Vector:
    """Python values, as the row evaluator gives them, as a vector."""
    if type.name == "void" or type.name.startswith("interval"):
        valid = np.array([value is not None for value in values], bool)
        data = np.array([value or 0 for value in values], DTYPES[type.name])
        return Vector(type, data, None if valid.all() else valid)
    if type.name == "map":
        values = [None if value is None else list(value.items()) for value in values]
    return from_arrow(pa.array(values, type=type.arrow()), type)


def absent(type: Type) -> Vector:
    """NULL of a type."""
    if type.name not in DTYPES:
        return Vector(type, pa.nulls(1, type.arrow()))
    return Vector(type, np.zeros(1, DTYPES[type.name]), np.zeros(1, bool))


def both(*valids: Bools | None) -> Bools | None:
    """Where all are valid."""
    found: Bools | None = None
    for valid in valids:
        if valid is not None:
            found = valid if found is None else found & valid
    return found


@lru_cache(maxsize=4096)
def type_of(arrow: pa.DataType) -> Type:
    """The SQL type of an Arrow type; for a type that Spark lacks, one that holds its values."""
    if arrow in _ARROW:
        return _ARROW[arrow]
    if pa.types.is_decimal(arrow):
        return Type("decimal", arrow.precision, arrow.scale)
    if pa.types.is_uint64(arrow):
        return Type("decimal", 20)
    if pa.types.is_timestamp(arrow):
        return Type("timestamp_ntz" if arrow.tz is None else "timestamp")
    if pa.types.is_dictionary(arrow):
        return type_of(arrow.value_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return Type("array", children=(Field("element", type_of(arrow.value_type)),))
    if pa.types.is_map(arrow):
        pair = (Field("key", type_of(arrow.key_type)), Field("value", type_of(arrow.item_type)))
        return Type("map", children=pair)
    if pa.types.is_struct(arrow):
        parts = tuple(Field(part.name, type_of(part.type)) for part in arrow)
        return Type("struct", children=parts)
    for test, name in _LIKE:
        if test(arrow):
            return Type(name)
    raise TypeError(f"no field can hold Arrow's {arrow}")


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece, in the Arrow type Spark gives its type."""
    if isinstance(column, pa.ChunkedArray):
        # Combining copies, also what is one chunk already.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    to = type_of(column.type).arrow()
    return column if column.type == to else column.cast(to)


def joined(parts: Sequence[tuple[npt.NDArray[np.int64], Vector]], rows: int, type: Type) -> Vector:
    """Combine vectors that each have some of the tuples."""
    if len(parts) == 1 and len(parts[0][0]) == rows:
        return parts[0][1]
    order = np.argsort(np.concatenate([at for at, _ in parts]), kind="stable")
    if type.name not in DTYPES:
        return Vector(type, pa.concat_arrays([v.data for _, v in parts]).take(pa.array(order)))
    data = np.concatenate([vector.data for _, vector in parts])[order]
    if all(vector.valid is None for _, vector in parts):
        return Vector(type, data)
    valid = np.concatenate([~vector.nulls() for _, vector in parts])[order]
    return Vector(type, data, valid)
