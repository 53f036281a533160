"""Debug states and traces of the engine as the wire has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from auroral.server.models import (
    BreakpointInfo,
    DebugState,
    FieldInfo,
    HitReport,
    TraceEntry,
    TraceRows,
)
from auroral.server.wire_rows import fields_of, json_value

NOTHING: dict[str, Any] = {
    "paused": False,
    "applications": [],
    "hit": None,
    "breakpoints": [],
    "trace": [],
}
"""The state of an engine that nobody debugs."""


def debug_state(state: Mapping[str, Any]) -> DebugState:
    """What `Engine.debug_state` gives, as JSON values."""
    return DebugState(
        paused=state["paused"],
        applications=list(state["applications"]),
        hit=None if state["hit"] is None else _hit(state["hit"]),
        breakpoints=[BreakpointInfo(**one) for one in state["breakpoints"]],
        trace=trace_entries(state["trace"]),
    )


def _hit(hit: Mapping[str, Any]) -> HitReport:
    row = hit["tuple"]
    return HitReport(**{**hit, "fields": _fields([row]), "tuple": json_value(row)})


def trace_entries(trace: Sequence[Mapping[str, Any]]) -> list[TraceEntry]:
    """A trace, as JSON values."""
    return [
        TraceEntry(
            step=entry["step"],
            box=entry["box"],
            superbox=entry["superbox"],
            moments=entry["moments"],
            in_=_rows(entry["in"], entry["truncated"]),
            out=_rows(entry["out"], entry["truncated"]),
            held=entry["held"],
            kept=_kept(entry["kept"]),
            late=dict(entry["late"]),
            seconds=entry["seconds"],
        )
        for entry in trace
    ]


def _rows(by_arc: Mapping[str, Any], left_out: Mapping[str, int]) -> dict[str, TraceRows]:
    """Rows by arc, and how many more there were."""
    return {
        arc: TraceRows(fields=_fields(rows), rows=json_value(rows), truncated=left_out.get(arc, 0))
        for arc, rows in by_arc.items()
    }


def _kept(tables: Mapping[str, Any]) -> dict[str, TraceRows]:
    """Rows of state tables, and how many more these have."""
    rows = {name: table["rows"] for name, table in tables.items()}
    return _rows(rows, {name: table["total"] - len(rows[name]) for name, table in tables.items()})


def _fields(rows: Sequence[Mapping[str, Any]]) -> list[FieldInfo]:
    """The types that the values of rows have; none if there are no rows, or Arrow cannot tell."""
    try:
        schema = pa.Table.from_pylist(list(rows)).schema
    except pa.ArrowException:
        return []
    return [FieldInfo(**field) for field in fields_of(schema)]
