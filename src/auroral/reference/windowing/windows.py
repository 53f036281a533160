"""Windows of tuples, and what comes of them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auroral.boxes.aggregate import Aggregate
from auroral.boxes.order import TUPLE_NUMBER
from auroral.network.function import NOTHING, Function, fitted_value
from auroral.network.types import Field, Schema, Type
from auroral.reference.operator import (
    RAISED,
    Emission,
    Failed,
    FunctionFailedError,
    NoResultError,
    Row,
    Tuple,
)
from auroral.reference.progress.marks import Group, value_of
from auroral.sql.aggregates.analysis import aggregate_evaluator

Computation = Callable[[Sequence[Tuple]], Row]
"""Computed fields of a window's tuples, which are in order of arrival."""


@dataclass
class ReferenceWindow:
    """The tuples of one group from `start` up to, not including, `end`, in order of arrival."""

    start: Any
    end: Any
    group: Group
    tuples: list[Tuple] = field(default_factory=list)
    closed: bool = False


class Timeouts:
    """Windows that close once the clock exceeds, by the timeout, when their first tuple came."""

    def __init__(self, timeout_s: float | None):
        self._timeout_us = None if timeout_s is None else round(timeout_s * 1_000_000)
        self._due: list[tuple[int, int, ReferenceWindow]] = []
        self._added = 0

    def add(self, window: ReferenceWindow) -> None:
        """Let the time of a window run, which has its first tuple."""
        if self._timeout_us is not None:
            self._added += 1
            due_us = window.tuples[0].reached_us + self._timeout_us
            heapq.heappush(self._due, (due_us, self._added, window))

    def due(self, clock_us: int | None) -> list[ReferenceWindow]:
        """The windows whose time is over; some may have closed before."""
        found = []
        while clock_us is not None and self._due and self._due[0][0] < clock_us:
            found.append(heapq.heappop(self._due)[2])
        return found


class Emitter:
    """Turns windows of an aggregate that close, or are revised, into tuples.

    What one moment emits comes by start, then group; equal ones as they closed.
    """

    def __init__(self, box: Aggregate, schema: Schema, directory: Path | None):
        numbered = box.order.on == TUPLE_NUMBER
        self.type = Type("bigint") if numbered else schema.field(box.order.on).type
        self._start = "tup" if numbered else schema.field(box.order.on).name
        self._by = tuple(schema.field(name).name for name in box.order.by)
        self._revising = box.late == "revise"
        self._compute = computation(box.compute, schema, directory)
        self._made: list[tuple[Any, Emission | Failed]] = []

    def close(self, window: ReferenceWindow, *, revises: bool = False) -> None:
        """Let a window come out, and again if it is revised."""
        window.closed = True
        group = {name: shown(window.tuples[0].row[name]) for name in self._by}
        row = {self._start: shown(value_of(window.start, self.type))} | group
        key = (window.start, ascending(group.values()))
        more = {"_revises": revises} if self._revising else {}
        try:
            made = Tuple(row | self._compute(window.tuples) | more, oldest(window.tuples))
            self._made.append((key, Emission("", made)))
        except NoResultError:
            pass
        except FunctionFailedError as error:
            self._made.append((key, Failed(str(error), row)))

    def taken(self) -> list[Emission | Failed]:
        """What was closed since the last call, in order."""
        made = [made for _, made in sorted(self._made, key=lambda pair: pair[0])]
        self._made = []
        return made


def computation(
    compute: Mapping[str, str | Function],
    schema: Schema,
    directory: Path | None,
    constant: Field | None = None,
) -> Computation:
    """The computed fields as a function of a window's tuples, which all have a `constant` too."""
    constants = () if constant is None else (constant,)
    whole, groups = Schema((*schema.fields, *constants)), tuple(field.name for field in constants)
    run = {
        name: _folded(how, schema, directory)
        if isinstance(how, Function)
        else aggregate_evaluator(how, whole, groups=groups)
        for name, how in compute.items()
    }

    def compute_all(tuples: Sequence[Tuple]) -> Row:
        found = {name: f([t.row for t in tuples]) for name, f in run.items()}
        if any(value is NOTHING for value in found.values()):
            raise NoResultError
        return found

    return compute_all


def _folded(
    how: Function, schema: Schema, directory: Path | None
) -> Callable[[Sequence[Row]], Any]:
    """A user window function: a state from `init`, `incr` for each tuple, `final` at the end.

    An `incr` that returns nothing has changed the state itself.
    """
    make, returns = how.load(directory), how.type(directory).arrow()
    names = how.window_arguments(schema, directory)

    def call(rows: Sequence[Row]) -> Any:
        try:
            function = make()
            state = function.init()
            for row in rows:
                new = function.incr(state, *(row[name] for name in names))
                state = state if new is None else new
            found = function.final(state)
            if found is NOTHING:
                return found
            made = fitted_value(found, returns)
            return made.to_pylist(maps_as_pydicts="strict")[0]
        except RAISED as error:
            raise FunctionFailedError(f"{type(error).__name__}: {error}"[:500]) from error

    return call


def oldest(tuples: Iterable[Tuple]) -> int:
    """When what is made of tuples entered: with the first of them."""
    return min(arrived.entered_us for arrived in tuples)


def outside(arrived: Tuple) -> Emission:
    """A tuple that is in no window, which is not late."""
    return Emission(None, arrived, "outside")


def shown(value: Any) -> Any:
    """A value of a group as it comes out: zero has no sign."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def ascending(values: Any) -> tuple[Any, ...]:
    """A key by which values sort as Spark sorts them: NULL first, NaN last."""
    return tuple(_place(value) for value in values)


def _place(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (2,) if isinstance(value, float) and math.isnan(value) else (1, value)
