"""Windows that a predicate opens, one tuple at a time."""

from __future__ import annotations

import heapq
from typing import Any

from auroral.boxes.aggregate import Aggregate
from auroral.boxes.window import in_marks
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Failed, Now, Tuple
from auroral.reference.progress.agenda import Agenda
from auroral.reference.progress.marks import END, Group, passes
from auroral.reference.windowing.order import OrderProgress, TupleNumbers
from auroral.reference.windowing.windows import Emitter, ReferenceWindow, Timeouts, outside
from auroral.sql.expressions.expression import evaluator


class PredicateWindows:
    """Takes the tuples of each group in sorted order: one that satisfies the predicate opens.

    With slack n the least of n + 1 is next, with tuple numbers the one that arrives, otherwise
    those that the mark has passed.
    """

    def __init__(
        self,
        box: Aggregate,
        schema: Schema,
        progress: OrderProgress | TupleNumbers,
        emitter: Emitter,
    ):
        self._progress, self._emitter = progress, emitter
        self._opens = evaluator(str(box.window.advance), schema)
        size = box.window.size
        self._size = END if size is None else in_marks(size, emitter.type)
        self._arrived = 0
        self._waiting: dict[Group, list[tuple[Any, int, Tuple]]] = {}
        """Values, arrival numbers and tuples that were not taken yet."""
        self._windows: dict[Group, ReferenceWindow] = {}
        self._releasing: Agenda[tuple[Any, int, Group]] = Agenda(progress, passes)
        self._closing: Agenda[ReferenceWindow] = Agenda(progress)
        self._timeouts = Timeouts(box.window.timeout)

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        flaw = self._progress.flaw(arrived.row)
        if flaw:
            return [Emission("late", arrived, flaw)]
        group, value = self._progress.group(arrived.row), self._progress.value(arrived.row)
        mark = self._progress.mark(group)
        if mark is not None and value < mark:
            return [Emission("late", arrived, "late")]
        self._arrived += 1
        heapq.heappush(self._waiting.setdefault(group, []), (value, self._arrived, arrived))
        self._progress.take(value, group)
        if isinstance(self._progress, OrderProgress) and self._progress.slack is None:
            self._releasing.add(value, group, (value, self._arrived, group))
            return []
        full = len(self._waiting[group]) > (self._progress.slack or 0)
        emitted = self._release(group) if full else []
        self._close_all(self._closing.due_of(group))
        return emitted

    def settle(self, now: Now) -> list[Emission | Failed]:
        self._progress.settle(now.promises[0], now.ended)
        emitted: list[Emission | Failed] = []
        for _, _, group in self._next(ended=now.ended):
            emitted += self._release(group)
        self._close_all(self._closing.due())
        for window in self._timeouts.due(now.clock_us):
            if not window.closed:
                self._emitter.close(window)
        return emitted + self._emitter.taken()

    def held(self) -> int:
        """Open windows, and tuples that were not taken yet."""
        waiting = sum(len(tuples) for tuples in self._waiting.values())
        return waiting + sum(not window.closed for window in self._windows.values())

    def _next(self, *, ended: bool) -> list[tuple[Any, int, Group]]:
        """The tuples taken without another one arriving, by value, then arrival."""
        going = self._releasing.due()
        if ended:
            waiting = self._waiting.items()
            going = [(value, at, group) for group, held in waiting for value, at, _ in held]
        return sorted(going, key=lambda one: one[:2])

    def _release(self, group: Group) -> list[Emission]:
        """Take the next tuple of a group: the least, the first to arrive among equals."""
        value, _, taken = heapq.heappop(self._waiting[group])
        window = self._windows.get(group)
        if window is not None and value >= window.end:
            self._close(group)
            window = None
        if self._opens(taken.row) is True:
            self._close(group)
            window = self._windows[group] = ReferenceWindow(
                value, value + self._size, group, [taken]
            )
            self._closing.add(window.end, group, window)
            self._timeouts.add(window)
            return []
        if window is None:
            return [outside(taken)]
        if window.closed:
            return [Emission("late", taken, "late")]
        window.tuples.append(taken)
        return []

    def _close_all(self, reached: list[ReferenceWindow]) -> None:
        """Close windows whose end progress has reached, unless others have taken their place."""
        for window in reached:
            if self._windows.get(window.group) is window:
                self._close(window.group)

    def _close(self, group: Group) -> None:
        window = self._windows.pop(group, None)
        if window is not None and not window.closed:
            self._emitter.close(window)
