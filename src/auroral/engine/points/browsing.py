"""Browsing kept history: rows by key and by time, newest last."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.engine.parts import EngineParts
from auroral.engine.points.attaching import as_mark_of, beginning
from auroral.engine.points.beginning import may_reach
from auroral.engine.points.point import PointHistory
from auroral.engine.runtime.train import cut
from auroral.errors import StateError, UsageError
from auroral.history import Interval, KeyPredicate, choose_access
from auroral.history.predicate import comparable
from auroral.network.types import Type
from auroral.progress.values import column_marks, to_mark
from auroral.spark.plans.plan import in_order
from auroral.storage import Segment, Store

AT = pa.timestamp("us", tz="UTC")
_ATTEMPTS = 5


def kept_rows(
    parts: EngineParts,
    name: str,
    key: Any,
    span: tuple[Any, Any],
    limit: int,
    before: int | None = None,
) -> pa.Table:
    """The latest rows that a point keeps with a value of its key, and within a span of time.

    `span` are values of the field by which the arc makes progress, from and up to; on an arc
    without one they are entry times. Only rows of moments below `before`, if it is given. The
    columns `_seq` and `_at` come first.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise UsageError("BAD_CALL", f"limit is a number of rows, not {limit!r}")
    if before is not None and (not isinstance(before, int) or isinstance(before, bool)):
        raise UsageError("BAD_CALL", f"before is a moment, not {before!r}")
    loop, history, store = parts.loop, parts.context.history, parts.context.store
    point = history.require(name, parts.context.queries.epochs.latest.declared.network)
    chosen = None if key is None else _predicate(point, key)
    bounds = [
        None if value is None else _bound(point, value, called)
        for value, called in zip(span, ("since", "until"), strict=True)
    ]
    with loop.between_rounds():
        execution = loop.execution
        execution.stepper.fold(parts.ingest.seal())
        complete = execution.stepper.emitted_before(point.arc)
        begins = beginning(history, point, execution.watermarks, complete, None)
    if before is not None:
        complete = max(min(complete, before), begins)
    if chosen is not None and point.keyed is not None:
        plan = point.keyed.plan(chosen, begins, complete - 1)
        read = point.keyed.lookup if choose_access(plan).how == "lookup" else point.keyed.scan
        found = _within(point, read(chosen, begins, complete - 1).rows, bounds)
    else:
        found = _latest(store, point, (begins, complete), bounds, limit)
    return _shown(point, found, limit)


def _predicate(point: PointHistory, key: Any) -> KeyPredicate:
    field = point.kept.key
    if field is None or point.keyed is None:
        raise UsageError(
            "BAD_CALL", f"{point.name} has no key", hint="declare one: key: field", where="key"
        )
    kind = point.schema.field(field).type
    try:
        value = comparable(_from_text(key, kind))
    except (ValueError, TypeError, InvalidOperation, KeyError):
        problem = f"key is a value of {field} ({kind}), found {key!r:.60}"
        raise UsageError("BAD_CALL", problem) from None
    return KeyPredicate(point.keyed.key, (Interval(value, value),))


def _from_text(value: Any, kind: Type) -> Any:
    """A value of a type; requests bring numbers and times as text."""
    if not isinstance(value, str) or kind.name == "string":
        if kind.name == "string" and not isinstance(value, str):
            raise TypeError
        return value
    if kind.name.startswith("timestamp"):
        return datetime.fromisoformat(value)
    if kind.name == "date":
        return date.fromisoformat(value)
    if kind.name == "decimal":
        return Decimal(value)
    if kind.name == "boolean":
        return {"true": True, "false": False}[value.lower()]
    return float(value) if kind.name in ("float", "double") else int(value)


def _bound(point: PointHistory, value: Any, called: str) -> Any:
    """A border of the span, as marks are; entry times in microseconds."""
    if point.attribute is not None:
        kind = point.schema.field(point.attribute).type
        with suppress(ValueError, TypeError, InvalidOperation, KeyError):  # told by the next line
            value = _from_text(value, kind)
        return as_mark_of(point, value, called)
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return to_mark(value if value.tzinfo else value.replace(tzinfo=UTC))
        return int(float(value) * 1e6)
    except (ValueError, TypeError):
        problem = f"{called} is an entry time, as ISO text or seconds, found {value!r:.60}"
        raise UsageError("BAD_CALL", problem) from None


def _latest(
    store: Store,
    point: PointHistory,
    moments: tuple[int, int],
    bounds: Sequence[Any],
    limit: int,
) -> pa.Table:
    """The rows of the latest segments, as many as are wanted."""
    for attempt in range(1, _ATTEMPTS + 1):
        held = [s for s in store.segments(point.arc, moments[0]) if s.file]
        found: list[pa.Table] = []
        total, oldest = 0, moments[1]
        try:
            for segment in sorted(held, key=lambda s: -s.last):
                if total >= limit and segment.last < oldest:
                    break  # those of buckets overlap
                if segment.first < moments[1] and _may_hold(point, segment, bounds):
                    part = _within(point, cut(store.table(segment), *moments), bounds)
                    total += part.num_rows
                    found.append(part)
                    oldest = min(oldest, segment.first)
        except StateError:
            if attempt == _ATTEMPTS or all(map(store.holds, held)):
                raise
            continue  # segments have become one meanwhile, or have expired
        break
    parts = [part for part in found if part.num_rows]
    if not parts:
        return point.schema.arrow().empty_table()
    return in_order(pa.concat_tables(parts, promote_options="permissive"))


def _may_hold(point: PointHistory, segment: Segment, bounds: Sequence[Any]) -> bool:
    since, until = bounds
    if point.attribute is None or point.attribute not in segment.bounds:
        return True
    low = segment.bounds[point.attribute][0]
    below = until is None or bool(low <= until)
    return below and (since is None or may_reach(segment, point.attribute, since))


def _within(point: PointHistory, table: pa.Table, bounds: Sequence[Any]) -> pa.Table:
    """The rows within a span."""
    since, until = bounds
    if not table.num_rows or (since is None and until is None):
        return table
    if point.attribute is None:
        values, known = table["_ts"].to_numpy(), np.ones(table.num_rows, np.bool_)
    else:
        values, known = column_marks(table[point.attribute])
    if since is not None:
        known = known & (values >= since)
    if until is not None:
        known = known & (values <= until)
    return table.filter(pa.array(known))


def _shown(point: PointHistory, table: pa.Table, limit: int) -> pa.Table:
    names = point.schema.names
    if not table.num_rows:
        fields = [pa.field("_seq", pa.int64()), pa.field("_at", AT), *point.schema.arrow()]
        return pa.schema(fields).empty_table()
    table = table.slice(max(table.num_rows - limit, 0))
    return table.append_column("_at", table["_ts"].cast(AT)).select(["_seq", "_at", *names])
