"""Families written out: the text of each member, its parameters put in as literals."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from auroral.errors import NetworkError
from auroral.network.queries import Family

_PARTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|:(?P<name>[A-Za-z_]\w*)""")
_MOST = 10_000


def members(name: str, family: Family, directory: Path | None = None) -> Iterator[tuple[str, str]]:
    """The name and the text of each member; eddies never need them, a plain interpreter does.

    >>> rows = [{"rule": 7, "sym": "A", "limit": 2.5}]
    >>> family = Family("SELECT * FROM s WHERE sym = :sym AND price > :limit", rows, "rule")
    >>> list(members("alerts", family))
    [('alerts[7]', "SELECT * FROM s WHERE sym = 'A' AND price > 2.5D")]
    """
    table = family.table(directory)
    if table.num_rows > _MOST:
        problem = f"{name} has {table.num_rows} members, too many to write out"
        raise NetworkError("BAD_QUERY", problem)
    for row in table.to_pylist():
        yield f"{name}[{row[family.key]}]", _written(family.sql, row)


def _written(sql: str, row: Mapping[str, Any]) -> str:
    def put(found: re.Match[str]) -> str:
        name = found["name"]
        return found[0] if name is None or name not in row else literal(row[name])

    return _PARTS.sub(put, sql)


def literal(value: Any) -> str:
    """A value as Spark SQL reads it."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return f"CAST('{value}' AS DOUBLE)"
        case float():
            return f"{value!r}D"
        case Decimal():
            return f"{value:f}BD"
        case dt.datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind}'{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
        case _:
            text = str(value).replace("\\", "\\\\").replace("'", "\\'")
            return f"'{text}'"
