"""Aggregate, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auroral.boxes.aggregate import Aggregate
from auroral.boxes.order import TUPLE_NUMBER
from auroral.boxes.window import in_marks, is_predicate
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Failed, Now, ReferenceOperator, Tuple
from auroral.reference.progress.agenda import Agenda
from auroral.reference.progress.marks import Group, reaches
from auroral.reference.windowing.grid import ReferenceGrid, grid
from auroral.reference.windowing.order import OrderProgress, TupleNumbers
from auroral.reference.windowing.predicate_windows import PredicateWindows
from auroral.reference.windowing.windows import Emitter, ReferenceWindow, Timeouts, outside


def reference_aggregate(
    box: Aggregate, inputs: Sequence[Schema], directory: Path | None = None
) -> ReferenceOperator:
    """The operator for either kind of window: on a grid, or opened by a predicate."""
    (schema,) = inputs
    advance = box.window.advance
    progress: OrderProgress | TupleNumbers
    if box.order.on == TUPLE_NUMBER:
        progress = TupleNumbers(box.order, schema)
    else:
        progress = OrderProgress(box.order, schema, jointly=True)
    emitter = Emitter(box, schema, directory)
    if advance is not None and is_predicate(advance):
        return PredicateWindows(box, schema, progress, emitter)
    return ReferenceAggregate(box, progress, emitter)


class ReferenceAggregate:
    """Keeps the tuples of every window until it closes.

    With slack windows close after the tuple that moves the threshold; otherwise once all tuples
    of the moment are there.
    """

    def __init__(self, box: Aggregate, progress: OrderProgress | TupleNumbers, emitter: Emitter):
        self._progress, self._emitter = progress, emitter
        assert box.window.size is not None
        self._grid = grid(box.window.size, box.window.advance, emitter.type)
        if isinstance(progress, TupleNumbers):
            self._grid = ReferenceGrid(self._grid.size, self._grid.advance, origin=1, first=0)
        self._aligned = box.window.align == "first"
        self._aligned_grids: dict[Group, ReferenceGrid] = {}
        self._waiting: dict[Group, list[Tuple]] = {}
        self._revising = box.late == "revise"
        self._history = 0 if box.history is None else in_marks(box.history, emitter.type)
        self._windows: dict[tuple[Group, int], ReferenceWindow] = {}
        self._closing: Agenda[ReferenceWindow] = Agenda(progress)
        self._forgetting: Agenda[tuple[Group, int]] = Agenda(progress)
        self._timeouts = Timeouts(box.window.timeout)

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        flaw = self._progress.flaw(arrived.row)
        if flaw:
            return [Emission("late", arrived, flaw)]
        group, value = self._progress.group(arrived.row), self._progress.value(arrived.row)
        if self._aligned and group not in self._aligned_grids:
            return self._wait(arrived, group, value)
        emitted = self._count(arrived, group, value)
        self._progress.take(value, group)
        self._close(self._closing.due_of(group), self._forgetting.due_of(group))
        return emitted

    def settle(self, now: Now) -> list[Emission | Failed]:
        emitted: list[Emission | Failed] = []
        if now.ended:
            for group in list(self._waiting):
                emitted += self._align(group)
        self._progress.settle(now.promises[0], now.ended)
        self._close(self._closing.due(), self._forgetting.due())
        self._close(self._timeouts.due(now.clock_us))
        return emitted + self._emitter.taken()

    def held(self) -> int:
        """Open windows, and tuples of groups whose windows have no place yet."""
        waiting = sum(len(tuples) for tuples in self._waiting.values())
        return waiting + sum(not window.closed for window in self._windows.values())

    def _count(self, arrived: Tuple, group: Group, value: Any) -> list[Emission]:
        """Add a tuple to its windows that are open, and revise those that are remembered."""
        mark = self._progress.mark(group)
        late = self._progress.slack is not None and mark is not None and value < mark
        grid = self._aligned_grids.get(group, self._grid)
        mine, counts = grid.holding(value), False
        for k in mine:
            window = self._windows.get((group, k)) or ReferenceWindow(
                grid.start(k), grid.end(k), group
            )
            closed = window.closed or reaches(mark, window.end)
            revises = self._revising and closed and not self._forgets(window, mark)
            if revises or not (closed or late):
                counts = True
                window.tuples.append(arrived)
                self._keep((group, k), window)
            if revises:
                self._emitter.close(window, revises=True)
        if counts:
            return []
        return [Emission("late", arrived, "late") if mine or late else outside(arrived)]

    def _keep(self, key: tuple[Group, int], window: ReferenceWindow) -> None:
        """Remember a window from its first tuple on."""
        if key not in self._windows:
            self._windows[key] = window
            self._closing.add(window.end, window.group, window)
            self._forgetting.add(window.end + self._history, window.group, key)
            self._timeouts.add(window)

    def _close(
        self, reached: Sequence[ReferenceWindow], forgotten: Sequence[tuple[Group, int]] = ()
    ) -> None:
        """Let windows come out that have not yet; forget some."""
        for window in reached:
            if not window.closed:
                self._emitter.close(window)
        for key in forgotten:
            del self._windows[key]

    def _forgets(self, window: ReferenceWindow, mark: Any) -> bool:
        return reaches(mark, window.end + self._history)

    def _wait(self, arrived: Tuple, group: Group, value: Any) -> list[Emission]:
        """Keep the first tuples of a group until they say where its windows start."""
        self._waiting.setdefault(group, []).append(arrived)
        self._progress.take(value, group)
        assert self._progress.slack is not None
        return self._align(group) if len(self._waiting[group]) > self._progress.slack else []

    def _align(self, group: Group) -> list[Emission]:
        tuples = self._waiting.pop(group)
        values = [self._progress.value(waited.row) for waited in tuples]
        aligned = ReferenceGrid(self._grid.size, self._grid.advance, origin=min(values), first=0)
        self._aligned_grids[group] = aligned
        pairs = zip(tuples, values, strict=True)
        return [e for waited, value in pairs for e in self._count(waited, group, value)]
