"""What a box with state keeps after a step: some rows of its state tables, in words of people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from auroral.engine.debug.pins import PinnedSegment, pin
from auroral.ids import StateLogId
from auroral.kernels.joining.shelf import side_of
from auroral.network.check import CheckedNetwork
from auroral.network.types import Schema
from auroral.storage import Segment, Store

MOST_KEPT = 50
"""So many rows of a state table are in a trace."""
_BOOKKEEPING = frozenset({"seen", "left_seen", "right_seen", "groups", "released"})
"""Tables by which a box knows how far it is; nothing comes out of them."""
_INTERNAL = frozenset({"oldest", "sent"})
_COLUMN = re.compile(r"([fs])(\d+)$")


@dataclass
class PinnedTable:
    """Segments of a state table of which some rows may be read later, and how many rows it has."""

    measure: Any = 1
    """In what the starts of windows count."""
    pins: list[PinnedSegment] = field(default_factory=list)
    rows: int = 0
    pinned: int = 0

    def add(self, store: Store, segments: Sequence[Segment]) -> None:
        for segment in segments:
            if self.pinned < MOST_KEPT:
                self.pins += pin(store, [segment])
                self.pinned += segment.rows
            self.rows += segment.rows


def pin_state(store: Store, box: str, measure: Any) -> dict[str, PinnedTable]:
    """The state tables of a box, as they are now, in all buckets."""
    found: dict[str, PinnedTable] = {}
    for log in sorted(store.names()[0]):
        id = StateLogId.parse(log)
        if id is None or id.box != box or id.table in _BOOKKEEPING or side_of(id.table):
            continue
        found.setdefault(id.table, PinnedTable(measure)).add(store, store.segments(log))
    return found


def kept_rows(
    checked: CheckedNetwork, box: str, state: Mapping[str, PinnedTable]
) -> dict[str, dict[str, Any]]:
    """Some rows of each state table, and how many it has."""
    return {
        name: {"rows": _shown(checked, box, name, table), "total": table.rows}
        for name, table in state.items()
        if table.rows
    }


def _shown(
    checked: CheckedNetwork, box: str, name: str, table: PinnedTable
) -> list[dict[str, Any]]:
    left, parts = MOST_KEPT, []
    for one in table.pins:
        parts.append(one.some(left))
        left -= parts[-1].num_rows
        if left <= 0:
            break
    if not parts:
        return []
    rows = pa.concat_tables(parts, promote_options="permissive")
    inputs = checked.inputs_of(box)
    side = 1 if name == "right" and len(inputs) > 1 else 0
    schema = inputs[side].schema
    order = getattr(checked.network.boxes[box], "order", None)
    on = getattr(order, "on", None)
    found: list[dict[str, Any]] = _readable(rows, schema, on, table.measure).to_pylist()
    return found


def _readable(rows: pa.Table, schema: Schema, order: str | None, measure: Any) -> pa.Table:
    """Under the names of fields, without what only the kernel understands.

    >>> rows = pa.table({"_seq": [7], "start": [5], "f1": [30], "s0": [2], "sent": [False]})
    >>> _readable(rows, Schema.parse("time bigint, pos int"), "time", 2).to_pylist()
    [{'start': 10, 'pos': 30, 'accumulator 1': 2}]
    """
    fields = list(schema.arrow())
    on = next(
        (field.type for field in fields if order and field.name.lower() == order.lower()), None
    )
    columns: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        column, known = rows[name], _COLUMN.match(name)
        if name.startswith("_") or name in _INTERNAL or pa.types.is_binary(column.type):
            continue
        if known is None:
            is_start = name == "start"
            whole = pc.multiply(column, measure) if is_start and measure != 1 else column
            columns[name] = _timed(whole, on if is_start else None)
        elif known[1] == "s":
            columns[f"accumulator {int(known[2]) + 1}"] = column
        else:
            field = fields[int(known[2])]
            columns[field.name] = _timed(column, field.type)
    return pa.table(columns)


def _timed(column: pa.ChunkedArray, type: pa.DataType | None) -> pa.ChunkedArray:
    """Kernels keep times as microseconds."""
    is_time = type is not None and pa.types.is_timestamp(type) and column.type == pa.int64()
    return column.cast(type) if is_time else column
