"""What Spark's types are in SQLite: columns, and values there and back, exactly.

SQLite has integers, doubles, text and bytes. Dates and timestamps (in UTC) are text that sorts as
they do. A NaN is the text `NaN`: SQLite would store a NULL for it, and text is greater than every
number, as NaN is in Spark. A decimal of up to 15 digits is a double, one of up to 18 without places
an integer; others are text that a collation of ours compares by value. SQLite computes with all of
them as doubles. A -0.0 comes back as 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import INTEGRAL, Type
from auroral.tables.values import NAN, SIZES

_COLUMNS = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "TEXT",
    "binary": "BLOB",
    "date": "DATE_TEXT",
    "timestamp": "TIMESTAMP_TEXT",
    "timestamp_ntz": "TIMESTAMP_NTZ_TEXT",
}
_DECIMALS = {"integer": "DECIMAL_INT", "real": "DECIMAL_REAL", "text": "DECIMAL_TEXT"}
COLLATION = "auroral_decimal"
_DOUBLE_DIGITS = 15
_INTEGER_DIGITS = 18


def column_type(type: Type) -> str:
    """The type of a column that SQLite is given; it knows it by the words in it."""
    if type.name == "decimal":
        digits = f"({type.precision}, {type.scale})"
        kind = decimal_kind(type)
        collation = f" COLLATE {COLLATION}" if kind == "text" else ""
        return f"{_DECIMALS[kind]}{digits}{collation}"
    if type.name not in _COLUMNS:
        raise NetworkError("TYPE_NOT_SUPPORTED", f"a table cannot have a column of type {type}")
    return _COLUMNS[type.name]


def decimal_kind(type: Type) -> str:
    """What SQLite keeps the values of a decimal as.

    >>> [decimal_kind(Type("decimal", *of)) for of in [(10, 2), (10, 0), (20, 2)]]
    ['real', 'integer', 'text']
    """
    if type.scale == 0 and type.precision <= _INTEGER_DIGITS:
        return "integer"
    return "real" if type.precision <= _DOUBLE_DIGITS else "text"


def compare_decimals(one: str, other: str) -> int:
    """How texts of numbers compare, by value; others as texts do.

    >>> compare_decimals("9.50", "10"), compare_decimals("1.0", "1.00"), compare_decimals("b", "a")
    (-1, 0, 1)
    """
    try:
        left, right = Decimal(one), Decimal(other)
        return (left > right) - (left < right)
    except ArithmeticError:
        return (one > other) - (one < other)


def column_check(name: str, type: Type) -> str:
    """A condition that keeps values of other types out, as other databases do."""
    kind = f"typeof({name})"
    if type.name in SIZES:
        limit = SIZES[type.name]
        return f"{kind} = 'integer' AND {name} >= {-limit} AND {name} <= {limit - 1}"
    if type.name == "boolean":
        return f"{name} IN (0, 1)"
    if type.name == "decimal":
        wanted, most = decimal_kind(type), f"1e{type.precision - type.scale}"
        number = f"CAST({name} AS REAL)" if wanted == "text" else name
        below = "<=" if wanted == "text" else "<"  # doubles are near long decimals only
        return f"{kind} = '{wanted}' AND abs({number}) {below} {most}"
    if type.name in ("float", "double"):
        return f"{kind} = 'real' OR {name} = '{NAN}'"
    return f"{kind} = '{'blob' if type.name == 'binary' else 'text'}'"


def affinity(declared: str) -> str:
    """What SQLite makes of the type that a column was declared with.

    >>> [affinity(text) for text in ("BIGINT", "VARCHAR(9)", "", "DECIMAL_REAL(9, 2)", "DATE")]
    ['INTEGER', 'TEXT', 'BLOB', 'REAL', 'NUMERIC']
    """
    text = declared.upper()
    for kind, words in (
        ("INTEGER", ("INT",)),
        ("TEXT", ("CHAR", "CLOB", "TEXT")),
        ("BLOB", ("BLOB",)),
        ("REAL", ("REAL", "FLOA", "DOUB")),
    ):
        if any(word in text for word in words):
            return kind
    return "NUMERIC" if text else "BLOB"


def fits(type: Type, declared: str) -> bool:
    """Whether a column of an existing table can hold a type."""
    found = affinity(declared)
    if found == "BLOB":  # SQLite changes nothing that is put there
        return type.name == "binary" or not declared
    if type.name in INTEGRAL or type.name == "boolean":
        return found in ("INTEGER", "NUMERIC")
    if type.name in ("float", "double"):
        return found in ("REAL", "NUMERIC")
    if type.name == "decimal":
        return found in ("REAL", "NUMERIC", "INTEGER", "TEXT")
    if type.name in ("date", "timestamp", "timestamp_ntz"):
        return found in ("TEXT", "NUMERIC")
    return found == "TEXT" and type.name == "string"


def timestamp_text(at: datetime) -> str:
    """A timestamp as tables have it.

    >>> timestamp_text(datetime(2024, 5, 1, 12, tzinfo=UTC))
    '2024-05-01 12:00:00.000000'
    """
    plain = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo is not None else at
    return plain.isoformat(" ", "microseconds")


def to_sqlite(type: Type) -> Callable[[Any], Any] | None:
    """How a value that is not NULL is bound; None: as it is."""
    if type.name in ("float", "double"):
        return lambda value: value if value == value else NAN
    if type.name == "decimal":
        kinds: dict[str, Callable[[Any], Any]] = {"integer": int, "real": float, "text": _number}
        return kinds[decimal_kind(type)]
    if type.name == "boolean":
        return int
    if type.name == "date":
        return lambda value: str(value.isoformat())
    if type.name in ("timestamp", "timestamp_ntz"):
        return timestamp_text
    return None


def _number(value: Decimal) -> float | str:
    """A number if that is exact: it compares with other numbers; else text."""
    exact = len(value.as_tuple().digits) <= _DOUBLE_DIGITS
    return float(value) if exact else str(value)
