"""Debug states and traces of the engine as the wire has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auroral.server.models import (
    BreakpointInfo,
    DebugState,
    HitReport,
    TraceEntry,
    TraceRows,
)
from auroral.server.wire_rows import json_value

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
    hit = state["hit"]
    return DebugState(
        paused=state["paused"],
        applications=list(state["applications"]),
        hit=None if hit is None else HitReport(**{**hit, "tuple": json_value(hit["tuple"])}),
        breakpoints=[BreakpointInfo(**one) for one in state["breakpoints"]],
        trace=trace_entries(state["trace"]),
    )


def trace_entries(trace: Sequence[Mapping[str, Any]]) -> list[TraceEntry]:
    """A trace, as JSON values."""
    return [
        TraceEntry(
            box=entry["box"],
            superbox=entry["superbox"],
            in_=_rows(entry["in"], entry["truncated"]),
            out=_rows(entry["out"], entry["truncated"]),
            held=entry["held"],
            late=dict(entry["late"]),
            seconds=entry["seconds"],
        )
        for entry in trace
    ]


def _rows(by_arc: Mapping[str, Any], left_out: Mapping[str, int]) -> dict[str, TraceRows]:
    """Rows by arc, and how many more there were."""
    return {
        arc: TraceRows(rows=json_value(rows), truncated=left_out.get(arc, 0))
        for arc, rows in by_arc.items()
    }
