"""What Spark's types are in SQLite: columns, and values there and back, exactly.

SQLite has integers, doubles, text and bytes. Dates and timestamps (in UTC) are text that sorts as
they do. A NaN is the text `NaN`: SQLite would store a NULL for it, and text is greater than every
number, as NaN is in Spark. A decimal is a double, or an integer if it has no places, so it may
have 15 digits, or 18: more would not come back exactly. A -0.0 comes back as 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
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
_DOUBLE_DIGITS = 15
_INTEGER_DIGITS = 18


def column_type(type: Type) -> str:
    """The type of a column that SQLite is given; it knows it by the words in it."""
    if type.name == "decimal":
        most = _DOUBLE_DIGITS if type.scale else _INTEGER_DIGITS
        if type.precision > most:
            raise NetworkError(
                "TYPE_NOT_SUPPORTED",
                f"SQLite keeps decimals of at most {most} digits exactly, found {type}",
                hint="declare fewer digits, or keep the table in PostgreSQL",
            )
        kind = "DECIMAL_REAL" if type.scale else "DECIMAL_INT"
        return f"{kind}({type.precision}, {type.scale})"
    if type.name not in _COLUMNS:
        raise NetworkError("TYPE_NOT_SUPPORTED", f"a table cannot have a column of type {type}")
    return _COLUMNS[type.name]


def column_check(name: str, type: Type) -> str:
    """A condition that keeps values of other types out, as other databases do."""
    kind = f"typeof({name})"
    if type.name in SIZES:
        limit = SIZES[type.name]
        return f"{kind} = 'integer' AND {name} >= {-limit} AND {name} <= {limit - 1}"
    if type.name == "boolean":
        return f"{name} IN (0, 1)"
    if type.name == "decimal":
        wanted = "real" if type.scale else "integer"
        limit = 10 ** (type.precision - type.scale)
        return f"{kind} = '{wanted}' AND {name} > {-limit} AND {name} < {limit}"
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
        return found in ("REAL", "NUMERIC", "INTEGER")
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
        return float if type.scale else int
    if type.name == "boolean":
        return int
    if type.name == "date":
        return lambda value: str(value.isoformat())
    if type.name in ("timestamp", "timestamp_ntz"):
        return timestamp_text
    return None
