"""Windows that a predicate opens, one tuple at a time."""

from __future__ import annotations

from typing import Any

from auroral.boxes.aggregate import Aggregate
from auroral.boxes.window import in_marks
from auroral.network.types import Schema
from auroral.reference.marks import END, Group, passes, reaches
from auroral.reference.operator import Emission, Failed, Now, Tuple
from auroral.reference.order import OrderProgress, TupleNumbers
from auroral.reference.windows import Emitter, Window, outside
from auroral.sql.expression import evaluator


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
        size, timeout = box.window.size, box.window.timeout
        self._size = END if size is None else in_marks(size, emitter.type)
        self._timeout_us = None if timeout is None else round(timeout * 1_000_000)
        self._arrived = 0
        self._waiting: dict[Group, list[tuple[Any, int, Tuple]]] = {}
        """Values, arrival numbers and tuples that were not taken yet."""
        self._windows: dict[Group, Window] = {}

    def push(self, _port: int, arrived: Tuple) -> list[Emission]:
        flaw = self._progress.flaw(arrived.row)
        if flaw:
            return [Emission("late", arrived, flaw)]
        group, value = self._progress.group(arrived.row), self._progress.value(arrived.row)
        mark = self._progress.mark(group)
        if mark is not None and value < mark:
            return [Emission("late", arrived, "late")]
        self._arrived += 1
        self._waiting.setdefault(group, []).append((value, self._arrived, arrived))
        self._progress.take(value, group)
        if self._progress.slack is not None:
            full = len(self._waiting[group]) > self._progress.slack
            return self._release(group) if full else []
        return self._release(group) if isinstance(self._progress, TupleNumbers) else []

    def settle(self, now: Now) -> list[Emission | Failed]:
        self._progress.settle(now.promises[0], now.ended)
        emitted: list[Emission | Failed] = []
        for group in self._next_groups(ended=now.ended):
            emitted += self._release(group)
        for group in list(self._windows):
            self._close_reached(group)
        for window in self._windows.values():
            if not window.closed and window.timed_out(self._timeout_us, now.clock_us):
                self._emitter.close(window)
        return emitted + self._emitter.taken()

    def held(self) -> int:
        """Open windows, and tuples that were not taken yet."""
        waiting = sum(len(tuples) for tuples in self._waiting.values())
        return waiting + sum(not window.closed for window in self._windows.values())

    def _next_groups(self, *, ended: bool) -> list[Group]:
        """The groups of tuples taken without another one arriving, by value, then arrival."""
        going = [
            (value, at, group)
            for group, waiting in self._waiting.items()
            for value, at, _ in waiting
            if ended or (self._progress.slack is None and passes(self._progress.mark(group), value))
        ]
        return [group for _, _, group in sorted(going, key=lambda one: one[:2])]

    def _release(self, group: Group) -> list[Emission]:
        """Take the next tuple of a group: the least, the first to arrive among equals."""
        waiting = self._waiting[group]
        value, _, taken = waiting.pop(waiting.index(min(waiting, key=lambda one: one[:2])))
        window = self._windows.get(group)
        if window is not None and value >= window.end:
            self._close(group)
            window = None
        if self._opens(taken.row) is True:
            self._close(group)
            window = self._windows[group] = Window(value, value + self._size, group)
        if window is None:
            return [outside(taken)]
        if window.closed:
            return [Emission("late", taken, "late")]
        window.tuples.append(taken)
        return []

    def _close_reached(self, group: Group) -> None:
        window = self._windows.get(group)
        if window is not None and reaches(self._progress.mark(group), window.end):
            self._close(group)

    def _close(self, group: Group) -> None:
        window = self._windows.pop(group, None)
        if window is not None and not window.closed:
            self._emitter.close(window)
