"""Predicates of queries in plain Python: what the index has to find."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.continuous.functions import PythonFunction
from auroral.continuous.sharing.template import Atom, Attribute, Clause, Op
from auroral.eddy.filters.index import Selection
from auroral.network.types import Type

NAN = float("nan")
TYPES = {
    "i": "int",
    "f": "double",
    "s": "string",
    "b": "boolean",
    "d": "decimal(6,2)",
    "w": "decimal(30,2)",
    "t": "timestamp",
    "y": "date",
}
VALUES: dict[str, list[Any]] = {
    "i": [*range(-2, 5), 2**31 - 1],
    "f": [NAN, -0.0, 0.0, 0.5, -1.5, 1e300, math.inf, -math.inf],
    "s": ["", "a", "ab", "abc", "abd", "b", "a\0", "ä", "\U0010ffff"],
    "b": [True, False],
    "d": [Decimal("0.00"), Decimal("-1.25"), Decimal("1.25"), Decimal("9999.99")],
    "w": [Decimal("0.00"), Decimal("-1.25"), Decimal("1234567890123456789012345678.12")],
    "t": [datetime(2024, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(3)],
    "y": [date(2024, 1, n) for n in (1, 2, 3)],
}
FIELDS = {name: Attribute(name, Type.parse(text), name, (name,)) for name, text in TYPES.items()}
SUM = Attribute("i + 1", Type("int"), None, ("i",))
CALL = Attribute("risky(i)", Type("int"), None, ("i",), costly=True)
WITH_CONSTANT = Attribute("i > :0", Type("boolean"), None, ("i",), (0,))
ORDERINGS: list[Op] = ["<", "<=", ">", ">=", "=", "!=", "in", "not in", "null", "not null"]


def _risky(values: pa.Array) -> pa.Array:
    if any(value == 3 for value in values.to_pylist()):
        raise ValueError("three")
    return values


RISKY = PythonFunction("risky", _risky, Type("int"))


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def _value(attribute: Attribute, row: dict[str, Any], query: dict[str, Any]) -> Any:
    """Raises if the Python function does."""
    i = row["i"]
    if attribute is WITH_CONSTANT:
        return None if i is None or query["0"] is None else i > query["0"]
    if attribute is SUM:
        return None if i is None else -(2**31) if i == 2**31 - 1 else i + 1
    if attribute is CALL:
        if i == 3:
            raise ValueError
        return i
    return row[attribute.text]


def _holds(atom: Atom, row: dict[str, Any], query: dict[str, Any]) -> bool:
    value = _value(atom.attribute, row, query)
    if atom.op == "null" or value is None:
        return atom.op == "null" and value is None
    if atom.slot is None:
        return True
    constant = query[str(atom.slot)]
    if constant is None:
        return False
    key = _key(value)
    if atom.op == "in":
        return key in [_key(c) for c in constant if c is not None]
    if atom.op == "not in":
        return None not in constant and key not in [_key(c) for c in constant]
    other = _key(constant)
    decide: dict[Op, Callable[[], bool]] = {
        "<": lambda: key < other,
        "<=": lambda: key <= other,
        ">": lambda: key > other,
        ">=": lambda: key >= other,
        "=": lambda: key == other,
        "!=": lambda: key != other,
        "prefix": lambda: key.startswith(other),
        "not prefix": lambda: not key.startswith(other),
    }
    return decide[atom.op]()


def _clause(clause: Clause, row: dict[str, Any], query: dict[str, Any]) -> bool | None:
    """None if it could be true had a function not failed."""
    failed = False
    for atom in clause:
        try:
            if _holds(atom, row, query):
                return True
        except ValueError:
            failed = True
    return None if failed else False


def expected(
    selections: list[Selection],
    removed: set[int],
    rows: list[dict[str, Any]],
    own: dict[str, Any],
) -> tuple[dict[str, list[list[int]]], dict[tuple[str, int], int]]:
    """By kind the queries of each row, and by kind and query how often it failed."""
    found: dict[str, list[list[int]]] = {}
    errors: dict[tuple[str, int], int] = {}
    for selection in selections:
        lists = found.setdefault(selection.kind, [[] for _ in rows])
        queries = selection.constants.to_pylist()
        for query, constants in zip(selection.ids.tolist(), queries, strict=True):
            mine = own.get(selection.kind, np.ones(len(rows), bool))
            for at, row in ((at, row) for at, row in enumerate(rows) if mine[at]):
                truths = [_clause(c, row, constants) for c in selection.clauses]
                if query in removed or False in truths:
                    continue
                if None in truths:
                    key = selection.kind, query
                    errors[key] = errors.get(key, 0) + 1
                else:
                    lists[at].append(query)
    return {kind: [sorted(ids) for ids in lists] for kind, lists in found.items()}, errors
