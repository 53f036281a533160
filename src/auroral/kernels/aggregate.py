"""The aggregate kernel: functions over windows, per group [1 §5.2.2.2, 3 §A.2.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.choice import Accumulators, CallSpec
from auroral.kernels.emission import HIDDEN, EmissionBuilder, Pace, ended, late_table
from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context, Emitted
from auroral.kernels.ordering import whole
from auroral.kernels.stored import with_sub
from auroral.kernels.units import numbers, stored_type
from auroral.kernels.windowing.closing import reached_at
from auroral.kernels.windowing.cutting import in_parts
from auroral.kernels.windowing.observing import Observed, groups_schema, observe
from auroral.kernels.windowing.predicate import take_in_order
from auroral.kernels.windowing.revising import revise
from auroral.kernels.windowing.valued import Assigned, Rules, assign
from auroral.kernels.windowing.windows import (
    REACHED,
    WindowBatch,
    WindowGrid,
    WindowTable,
    columns_of,
)

_PAIRS = 4_000_000
"""How many tuples with their windows are in memory at once."""


@dataclass(frozen=True)
class AggregateKernel:
    """Windows over values of `on`, or over tuple numbers; lengths are in mark units.

    State is what open windows have accumulated (`windows`), with slack or tuple numbers what each
    group has seen (`groups`), and tuples that cannot be assigned to windows yet (`held`).
    """

    on: str | None
    """The column that orders tuples; None: their number."""
    by: tuple[str, ...]
    slack: int | None
    """None: progress is the mark of the input."""
    size: Any
    advance: Any
    start_type: pa.DataType
    calls: tuple[CallSpec, ...]
    arguments: tuple[tuple[str, ...], ...]
    """The columns of each call's arguments."""
    types: tuple[tuple[str, pa.DataType], ...]
    """The types of all columns named."""
    align_first: bool = False
    opens: str | None = None
    """A boolean column: a tuple where it is true opens a window and closes the one before."""
    timeout_us: int | None = None
    history: Any = None
    """How far below progress closed windows are revised; None: not at all."""
    fields: tuple[str, ...] = ()
    """What leaves on `late`; nothing: late tuples are only counted."""
    by_mark: tuple[str, ...] = ()
    """The columns of `by` that the groups of a grouped or joint mark are made of."""
    flush_rows: int | None = None
    """How many closed windows a step emits; the others wait."""
    flush_windows: int = 2
    """How many advances behind the newest closed window one may wait."""

    @property
    def kinds(self) -> Mapping[str, pa.DataType]:
        return dict(self.types)

    @property
    def inferred(self) -> bool:
        """Whether progress is inferred from arrival."""
        return self.on is None or self.slack is not None

    @property
    def lasting(self) -> bool:
        return not (self.timeout_us is None and self.history is None and self.flush_rows is None)

    def tables(self) -> Mapping[str, pa.Schema]:
        found = {"windows": self._windows(Accumulators(self.calls)).schema()}
        if self.inferred:
            found["groups"] = groups_schema(self)
        if self.align_first or self.opens is not None:
            reached = [] if self.timeout_us is None else [(REACHED, pa.int64())]
            found["held"] = pa.schema([*HIDDEN, *reached, *self.kinds.items()])
        return found

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        """Assign the tuples to windows and emit the windows that close."""
        most = _PAIRS if self.advance is None else max(int(_PAIRS * self.advance // self.size), 1)
        return in_parts(self._step, inputs[0], state, context, min(most, _PAIRS))

    def _step(self, table: pa.Table, state: Mapping[str, pa.Table], context: Context) -> Emitted:
        functions = Accumulators(self.calls)
        output = self._output(functions)
        windows = self._windows(functions).load(state["windows"])
        if self.timeout_us is not None:
            seq = np.asarray(whole(table["_seq"]), np.int64)
            table = table.append_column(REACHED, pa.array(reached_at(context.clock, seq)))
        tuples, refused = self._admitted(table)
        after = self._released if self.opens is not None else self._assigned
        emitted, late = after(tuples, windows, state, output, context)
        emitted.ports[""] = output.table()
        emitted.dead = output.dead
        for reason, rows in refused.items():
            emitted.late[reason] = len(rows)
            late.append(late_table(table, rows, self.fields))
        if self.fields:
            emitted.ports["late"] = pa.concat_tables(late)
        return emitted

    def _assigned(
        self,
        tuples: pa.Table,
        windows: WindowBatch,
        state: Mapping[str, pa.Table],
        output: EmissionBuilder,
        context: Context,
    ) -> tuple[Emitted, list[pa.Table]]:
        """A step with windows over values or tuple numbers; also the late tuples."""
        observed = observe(self, tuples, windows, state, context)
        rules = Rules(self._grid(), output.functions, self.inferred, self.history, self.timeout_us)
        assigned = assign(rules, observed.arrived, observed.windows, observed.progress, context)
        kept, pending = self._closed(assigned, observed, output, context)
        waiting = observed.state.get("held", state.get("held", ())) if self.align_first else ()
        held = len(waiting) + kept.unsent
        emitted = Emitted(state=dict(observed.state), held=held, pending=pending)
        if len(assigned.slot) or not kept.stands(windows):
            emitted.state["windows"] = self._windows(output.functions).store(kept)
        counts = {"late": len(assigned.late), "outside": len(assigned.outside)}
        emitted.late = {reason: count for reason, count in counts.items() if count}
        return emitted, [late_table(observed.arrived.tuples, assigned.late, self.fields)]

    def _released(
        self,
        tuples: pa.Table,
        windows: WindowBatch,
        state: Mapping[str, pa.Table],
        output: EmissionBuilder,
        context: Context,
    ) -> tuple[Emitted, list[pa.Table]]:
        """A step with windows that a predicate opens."""
        taken = take_in_order(self, output.functions, tuples, windows, state, output, context)
        held = taken.waiting.num_rows + taken.windows.unsent
        emitted = Emitted(state=taken.state, held=held)
        if taken.changed:
            emitted.state["windows"] = self._windows(output.functions).store(taken.windows)
            emitted.state["held"] = taken.waiting
        late = sum(table.num_rows for table in taken.late)
        counts = {"late": late, "outside": taken.outside}
        emitted.late = {reason: count for reason, count in counts.items() if count}
        return emitted, taken.late

    def _grid(self) -> WindowGrid:
        return WindowGrid(self.size, self.advance, self.on is None or self.align_first)

    @property
    def measure(self) -> Any:
        """In what the stored starts of windows count: in advances, if these are whole."""
        if self.on is None or self.align_first or self.opens:
            return 1
        return self.advance if stored_type(self.kinds[self.on]) == pa.int64() else 1

    def _windows(self, functions: Accumulators) -> WindowTable:
        kind = pa.int64() if self.on is None else stored_type(self.kinds[self.on])
        by = tuple((name, self.kinds[name]) for name in self.by)
        timed = self.timeout_us is not None
        states = tuple(functions.fields())
        opened = self.opens is not None
        return WindowTable(kind, by, states, timed, self.lasting, opened, self.measure)

    def _output(self, functions: Accumulators) -> EmissionBuilder:
        by = [(name, self.kinds[name]) for name in self.by]
        returns = [call.returns for call in self.calls]
        return EmissionBuilder(self.start_type, by, functions, returns, self.history is not None)

    def _admitted(self, table: pa.Table) -> tuple[pa.Table, dict[str, Ids]]:
        """Tuples that have a value of the ordered attribute; the rows of the others, by reason."""
        if self.align_first or self.opens is not None:
            table = with_sub(table)
        if self.on is None:
            return table, {}
        values, known = numbers(table[self.on])
        refused = {"null": np.flatnonzero(~known)}
        if values.dtype == np.float64:
            refused["nan"] = np.flatnonzero(known & ~np.isfinite(values))
        refused = {reason: rows for reason, rows in refused.items() if len(rows)}
        if refused:
            kept = np.ones(table.num_rows, bool)
            for rows in refused.values():
                kept[rows] = False
            table = table.filter(pa.array(kept))
        return table, refused

    def _closed(
        self, assigned: Assigned, observed: Observed, output: EmissionBuilder, context: Context
    ) -> tuple[WindowBatch, int | None]:
        """Fold tuples into windows, emit windows that closed, and say which windows to keep."""
        windows = self._folded(assigned, observed)
        closing = assigned.closing
        revised = np.zeros(len(windows), bool)
        revised[assigned.slot[assigned.revises]] = True
        unsent = np.where(windows.sent, NEVER, closing)
        pace = Pace(self.flush_rows, self.flush_windows * self.advance)
        going = pace.choose(unsent, windows.start, revised, context)
        if len(going):
            output.emit(windows.take(going), closing[going])
            unsent[going] = NEVER
        sent = windows.sent.copy()
        sent[going] = True
        windows = replace(windows, closed=closing, sent=sent)
        if revised.any():
            windows = revise(windows, assigned, observed.arrived, self.arguments, output)
        waiting = int(unsent.min(initial=NEVER))
        return self._kept(windows, observed, context), None if waiting == NEVER else waiting

    def _folded(self, assigned: Assigned, observed: Observed) -> WindowBatch:
        """The windows with the tuples folded in."""
        windows, arrived = assigned.windows, observed.arrived
        rows, slot = assigned.row[assigned.counts], assigned.slot[assigned.counts]
        if not len(rows):
            return windows
        oldest = windows.oldest.copy()
        np.minimum.at(oldest, slot, arrived.entered[rows])
        arguments = columns_of(self.arguments, arrived.tuples, rows)
        states = Accumulators(self.calls).fold(list(windows.states), arguments, slot)
        return replace(windows, oldest=oldest, states=tuple(states))

    def _kept(self, windows: WindowBatch, observed: Observed, context: Context) -> WindowBatch:
        """Windows that are open, that wait to be emitted, or that late tuples may still revise."""
        kept = (windows.closed == NEVER) | ~windows.sent
        if (self.timeout_us is not None or self.history is not None) and not ended(context):
            until = observed.arrived.ends(self._grid(), windows) + (self.history or 0)
            kept |= ~observed.progress.reached(windows.group, until)
        return windows if kept.all() else windows.take(np.flatnonzero(kept))
