"""Values as marks: what compares like the field's values and fits a JSON number.

Timestamps become microseconds, dates days, decimals unscaled integers.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.progress.lowwater import END, Values

_EPOCH = datetime(1970, 1, 1)
# Python rounds decimals to 28 digits unless told otherwise; fields have up to 38.
_EXACT = Context(prec=38)


def column_marks(column: pa.ChunkedArray) -> tuple[Values, Any]:
    """The values of a column as marks, and which rows have one (NULL and NaN have none)."""
    if pa.types.is_floating(column.type):
        values = column.to_numpy().astype(np.float64)
        return values, ~np.isnan(values)
    valid = pc.is_valid(column).to_numpy()
    if pa.types.is_decimal(column.type):
        scale = column.type.scale
        unscaled = [0 if v is None else int(v.scaleb(scale, _EXACT)) for v in column.to_pylist()]
        fits = all(-(2**63) <= v < 2**63 for v in unscaled)
        return np.array(unscaled, np.int64 if fits else object), valid
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), valid


def to_mark(value: Any, scale: int = 0) -> int | float:
    """One Python value as a mark."""
    if isinstance(value, datetime):
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return (plain - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days
    if isinstance(value, Decimal):
        return int(value.scaleb(scale, _EXACT))
    return float(value) if isinstance(value, float) else int(value)


def from_mark(mark: Any, type_name: str, scale: int = 0) -> Any:
    """A mark as the field shows it; `None` and the end mark stay as they are.

    >>> from_mark(86_400_000_000, "timestamp")
    '1970-01-02T00:00:00'
    """
    if mark is None or mark == END:
        return mark
    if type_name.startswith("timestamp"):
        return (_EPOCH + timedelta(microseconds=int(mark))).isoformat()
    if type_name == "date":
        return (_EPOCH.date() + timedelta(days=int(mark))).isoformat()
    if type_name == "decimal":
        return str(Decimal(int(mark)).scaleb(-scale, _EXACT))
    return mark


PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of each unit a second has."""


def clock_to_mark(us: Any, type_name: str, scale: int = 0, unit: str = "s") -> Any:
    """A clock time in µs (or an array of them) in the units of the progressing field.

    >>> clock_to_mark(5_000_000, "bigint", unit="ms")
    5000
    """
    if type_name.startswith("timestamp"):
        return us
    if type_name == "date":
        return us // 86_400_000_000
    per_second = PER_SECOND[unit]
    times, parts = max(per_second // 10**6, 1), max(10**6 // per_second, 1)
    if type_name in ("float", "double"):
        return us * times / parts
    exact = np.asarray(us, object) if scale else us  # int64 could wrap round
    return exact * 10**scale * times // parts
