"""What a server tells of debugging, as the engine tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auroral.client.rows import typed

_VOID = "void"
"""The type of columns, and of elements of arrays, that are all NULL or not there."""


def state_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """What `Engine.debug_state` gives."""
    hit = state["hit"]
    if hit is not None:
        row = _rows([hit["tuple"]], hit["fields"])[0]
        hit = {**{key: value for key, value in hit.items() if key != "fields"}, "tuple": row}
    return {**state, "hit": hit, "trace": trace_of(state["trace"])}


def trace_of(trace: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What `Engine.step` gives: the rows of each arc, and how many were left out.

    >>> n = {"name": "n", "type": "bigint"}
    >>> shown = {"a": {"fields": [n], "rows": [{"n": "1152921504606846976"}], "truncated": 2}}
    >>> trace_of([{"box": "b", "in": {}, "out": shown, "held": None}])
    [{'box': 'b', 'in': {}, 'out': {'a': [{'n': 1152921504606846976}]}, 'truncated': {'a': 2}, \
'held': None}]
    """
    return [_entry(entry) for entry in trace]


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "kept":
            found[key] = {table: _kept(one) for table, one in value.items()}
            continue
        if key not in ("in", "out"):
            found[key] = value
            continue
        found[key] = {arc: _rows(one["rows"], one["fields"]) for arc, one in value.items()}
        if key == "out":
            shown = {**entry["in"], **value}.items()
            found["truncated"] = {arc: one["truncated"] for arc, one in shown if one["truncated"]}
    return found


def _kept(table: Mapping[str, Any]) -> dict[str, Any]:
    """Some rows of a state table, and how many it has."""
    rows = _rows(table["rows"], table["fields"])
    return {"rows": rows, "total": len(rows) + table["truncated"]}


def _rows(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """JSON rows as rows of Python values; those of unknown types stay as they are."""
    declared = [(one["name"], one["type"]) for one in fields if _VOID not in one["type"]]
    values = [[row[name] for name, _ in declared] for row in rows]
    known = typed(values, declared).to_pylist() if declared else [{} for _ in rows]
    return [{**row, **own} for row, own in zip(rows, known, strict=True)]
