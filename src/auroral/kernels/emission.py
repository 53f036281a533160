"""Emissions of an aggregate: closed windows, revised ones, tuples that came too late."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.choice import Accumulators
from auroral.kernels.accumulators.window_function import NO_RESULT
from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.ordering import joined, sortable, sub_bytes
from auroral.kernels.units import Mask, shown
from auroral.kernels.windowing.windows import WindowBatch
from auroral.progress.lowwater import Values

HIDDEN = (("_seq", pa.int64()), ("_ts", pa.int64()), ("_sub", pa.binary()))


@dataclass
class EmissionBuilder:
    """Collects the emissions of a step."""

    start: pa.DataType
    by: Sequence[tuple[str, pa.DataType]]
    functions: Accumulators
    returns: Sequence[pa.DataType]
    revising: bool
    dead: list[tuple[str, str]] = field(default_factory=list)
    _parts: list[pa.Table] = field(default_factory=list)

    def schema(self) -> pa.Schema:
        computed = [(f"agg{i}", kind) for i, kind in enumerate(self.returns)]
        revises = [("revises", pa.bool_())] if self.revising else []
        return pa.schema([*HIDDEN, ("start", self.start), *self.by, *computed, *revises])

    def emit(
        self,
        windows: WindowBatch,
        moments: Ids,
        revises: bool = False,
        after: pa.Array | None = None,
    ) -> None:
        """Emit windows at moments; `after` orders those of one moment, start and group."""
        if not len(windows):
            return
        results, failures = self.functions.final(list(windows.states))
        start = shown(windows.start, self.start)
        sub = sortable([start, *windows.by])
        columns = [
            pa.array(moments),
            pa.array(windows.oldest),
            sub if after is None else joined(sub, after),
            start,
            *windows.by,
            *results,
        ]
        columns += [pa.array(np.full(len(windows), revises))] if self.revising else []
        part = pa.table(columns, schema=self.schema())
        self._parts.append(self._without(part, failures) if failures else part)

    def table(self) -> pa.Table:
        """All that was emitted."""
        return pa.concat_tables(self._parts) if self._parts else self.schema().empty_table()

    def _without(self, part: pa.Table, failures: dict[int, str]) -> pa.Table:
        """Leave out windows without result; a window whose function failed is a dead letter."""
        failed = np.zeros(part.num_rows, bool)
        failed[list(failures)] = True
        names = ["start", *(name for name, _ in self.by)]
        for index, reason in sorted(failures.items()):
            if reason == NO_RESULT:
                continue
            shown_part = part.select(names).slice(index, 1).to_pylist()[0]
            self.dead.append((reason, json.dumps(shown_part, default=str, ensure_ascii=False)))
        return part.filter(pa.array(~failed))


@dataclass(frozen=True)
class Pace:
    """Limits how many closed windows a step emits; the others wait, with their moment."""

    rows: int | None
    behind: Any
    """A window that starts further below the newest closed one goes at once."""

    def choose(self, closed: Ids, start: Values, must: Mask, context: Context) -> Ids:
        """The windows to emit now, of those that closed at moments below NEVER."""
        due = np.flatnonzero(closed < NEVER)
        # Nothing arrives in a step of no moments: then even the lazy have time.
        idle = context.first >= context.last and not self.rows
        if self.rows is None or len(due) <= self.rows or ended(context) or idle:
            return due
        order = due[np.argsort(closed[due], kind="stable")]
        urgent = must[due] | np.asarray(start[due] < start[due].max() - self.behind, bool)
        latest = closed[due[urgent]].max() if urgent.any() else -NEVER
        going = max(self.rows, int(np.searchsorted(closed[order], latest, side="right")))
        return order[:going]


def ended(context: Context) -> bool:
    """Whether the end comes in this step."""
    return context.ended is not None and context.ended < context.last


def late_table(tuples: pa.Table, rows: Ids, fields: Sequence[str]) -> pa.Table:
    """Some tuples as they leave on `late`."""
    taken = tuples.take(pa.array(rows))
    hidden = [taken["_seq"], taken["_ts"], sub_bytes(taken)]
    names = [*(name for name, _ in HIDDEN), *fields]
    return pa.table([*hidden, *(taken[name] for name in fields)], names=names)
