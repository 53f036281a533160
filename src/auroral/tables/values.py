"""Values that databases give, as the fields that are declared for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from auroral.errors import RunError
from auroral.network.types import Field, Schema, Type

NAN = "NaN"
"""What stands for NaN in a database that has none."""
SIZES = {"tinyint": 1 << 7, "smallint": 1 << 15, "int": 1 << 31, "bigint": 1 << 63}
"""Integers are below these, and not below their negatives."""
_EXACT = Context(prec=100)
_AS_THEY_ARE = ("int", "bigint", "smallint", "tinyint", "double", "string", "binary")


class ValueMismatchError(ValueError):
    """A database gave a value that is none of the declared type."""


def reader(type: Type) -> Callable[[Any], Any]:
    """How a value that is not NULL is read; another type's raises ValueMismatchError.

    >>> reader(Type("int"))(7), reader(Type("boolean"))(1), reader(Type("date"))("2024-05-01")
    (7, True, datetime.date(2024, 5, 1))
    """
    if type.name in SIZES:
        return _integer(SIZES[type.name])
    if type.name == "boolean":
        return _boolean
    if type.name in ("float", "double"):
        return _double
    if type.name == "decimal":
        return _decimal(type)
    if type.name == "date":
        return _date
    if type.name in ("timestamp", "timestamp_ntz"):
        return _timestamp(UTC if type.name == "timestamp" else None)
    return _bytes if type.name == "binary" else _text


def column(field: Field, values: Sequence[Any]) -> tuple[pa.Array, dict[int, str]]:
    """Values as a column; of those that do not fit, which they are and what was found."""
    arrow = field.type.arrow()
    if field.type.name in _AS_THEY_ARE:
        try:
            return pa.array(values, arrow), {}
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass  # one by one, to tell which does not fit
    read, failed = reader(field.type), dict[int, str]()
    found: list[Any] = []
    for at, value in enumerate(values):
        try:
            found.append(None if value is None else read(value))
        except (ValueError, ArithmeticError):
            found.append(None)
            failed[at] = f"{field.name}: expected {field.type}, found {value!r:.100}"
    return pa.array(found, arrow), failed


def table_of(rows: Sequence[Sequence[Any]], schema: Schema, name: str) -> pa.Table:
    """The rows that a database gave of a table; a value that does not fit is an error."""
    fields = list(schema)
    values: list[Sequence[Any]] = [*zip(*rows, strict=True)] or [()] * len(fields)
    arrays = []
    for field, of in zip(fields, values, strict=True):
        array, failed = column(field, of)
        for reason in failed.values():
            raise RunError("BAD_TABLE", reason, where=f"table {name}")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema.arrow())


def in_key_order(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Rows in the order of their key; as they are if they have none."""
    return rows.sort_by([(name, "ascending") for name in key]) if key else rows


def _integer(limit: int) -> Callable[[Any], Any]:
    def read(value: Any) -> int:
        if isinstance(value, int | float | Decimal) and value == int(value):
            found = int(value)
            if -limit <= found < limit:
                return found
        raise ValueMismatchError

    return read


def _boolean(value: Any) -> bool:
    if value in (0, 1):
        return bool(value)
    raise ValueMismatchError


def _double(value: Any) -> float:
    if isinstance(value, int | float | Decimal):
        return float(value)
    if value == NAN:
        return math.nan
    raise ValueMismatchError


def _decimal(type: Type) -> Callable[[Any], Any]:
    unit, limit = Decimal(1).scaleb(-type.scale), 10 ** (type.precision - type.scale)

    def read(value: Any) -> Decimal:
        if isinstance(value, int | float | str | Decimal):
            found = Decimal(str(value)).quantize(unit, context=_EXACT)
            if abs(found) < limit:
                return found
        raise ValueMismatchError

    return read


def _date(value: Any) -> date:
    return value if type(value) is date else date.fromisoformat(_text(value))


def _timestamp(zone: Any) -> Callable[[Any], Any]:
    def read(value: Any) -> datetime:
        if isinstance(value, datetime):
            return value
        return datetime.fromisoformat(_text(value)).replace(tzinfo=zone)

    return read


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueMismatchError


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueMismatchError
