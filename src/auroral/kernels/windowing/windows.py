"""Windows over values: which ones a tuple belongs to, and what is remembered of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER
from auroral.kernels.ordering import whole
from auroral.kernels.units import Mask, numbers, stored
from auroral.progress.advances import FARTHEST, advances_in
from auroral.progress.lowwater import Values

REACHED = "_reached"
"""The column that says when a tuple reached the box, µs, where windows time out."""


@dataclass(frozen=True)
class WindowGrid:
    """Windows whose starts are `advance` apart, each `size` long."""

    size: Any
    advance: Any
    bounded: bool = False
    """Whether the first window starts at the base; otherwise there are windows below it too."""

    def pairs(self, values: Values, base: Values | int = 0) -> tuple[Ids | None, Values]:
        """The windows of each value: rows, in order, and starts. No rows: one window each."""
        if values.dtype == np.float64:
            return self._approximate(values, base)
        offset = values - base if self.bounded else values
        number = offset // self.advance
        if self.size == self.advance and not (self.bounded and (number < 0).any()):
            return None, number * self.advance + base
        overlap = -(-self.size // self.advance)
        rows = np.repeat(np.arange(len(values)), overlap)
        starts = (number[:, None] - np.arange(overlap)) * self.advance
        inside = offset[:, None] - starts < self.size
        if self.bounded:
            inside &= starts >= 0
        inside = np.asarray(inside, bool).ravel()
        return rows[inside], (starts + _column(base)).ravel()[inside]

    def ends(self, starts: Values, base: Values | int = 0) -> Values:
        """Where windows end: in floating point where the window begins that lies a size further."""
        if starts.dtype != np.float64 or self._advances is None:
            plain: Values = starts + self.size
            return plain
        base = base if self.bounded else 0
        number = np.rint((starts - base) / self.advance)
        ends: Values = (number + self._advances) * self.advance + base
        return ends

    @cached_property
    def _advances(self) -> int | None:
        return advances_in(self.size, self.advance)

    def _approximate(self, values: Values, base: Values | int) -> tuple[Ids, Values]:
        """Floating point: look at windows around, keep what really holds it."""
        base = base if self.bounded else 0
        if self.size / self.advance >= FARTHEST:
            return np.empty(0, np.int64), np.empty(0, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            distance = (values - base) / self.advance
            told = (np.abs(distance) < FARTHEST) & (np.abs(values / self.advance) < FARTHEST)
            highest = np.floor(distance) + 2
            for _ in range(4):
                highest -= highest * self.advance + base > values
            tries = self._advances or int(min(np.ceil(self.size / self.advance) + 5, 2**31))
            number = highest[:, None] - np.arange(tries, dtype=np.float64)
            starts = number * self.advance + _column(base) + 0.0
            inside = np.repeat(told[:, None], tries, axis=1)
            if self._advances is None:
                inside &= values[:, None] < starts + self.size
        if self.bounded:
            inside &= number >= 0
        rows = np.repeat(np.arange(len(values)), tries)
        return rows[inside.ravel()], starts.ravel()[inside.ravel()]


def _column(base: Values | int) -> Any:
    return base if isinstance(base, int) else base[:, None]


@dataclass(frozen=True)
class WindowBatch:
    """Some windows, one per row."""

    start: Values
    by: tuple[pa.Array, ...]
    oldest: Ids
    """The least entry time of its tuples, µs."""
    states: tuple[pa.Array, ...]
    """What the functions have accumulated."""
    group: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """Numbers of groups in this step; not remembered."""
    began: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """When its first tuple reached the box, µs; nothing where windows do not time out."""
    closed: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """The moment it closed; NEVER: it is open."""
    sent: Mask = field(default_factory=lambda: np.empty(0, bool))
    """Whether it has been emitted."""
    tie: tuple[pa.Array, ...] = ()
    """What orders windows of one group with the same start, if there can be several."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def unsent(self) -> int:
        """How many have not been emitted."""
        return len(self) - int(self.sent.sum())

    def stands(self, before: WindowBatch) -> bool:
        """Whether these are the windows there were, none closed or emitted since."""
        if len(self) != len(before):
            return False
        return np.array_equal(self.closed, before.closed) and np.array_equal(self.sent, before.sent)

    def take(self, index: Ids) -> WindowBatch:
        """Some of the windows."""
        taken = pa.array(index)
        return WindowBatch(
            self.start[index],
            tuple(column.take(taken) for column in self.by),
            self.oldest[index],
            tuple(column.take(taken) for column in self.states),
            self.group[index] if len(self.group) else self.group,
            self.began[index] if len(self.began) else self.began,
            self.closed[index],
            self.sent[index],
            tuple(column.take(taken) for column in self.tie),
        )

    def then(self, more: WindowBatch) -> WindowBatch:
        """These windows, and others."""
        if not len(more):
            return self
        if not len(self):
            return more
        return WindowBatch(
            np.concatenate([self.start, more.start]),
            _joined(self.by, more.by),
            np.concatenate([self.oldest, more.oldest]),
            _joined(self.states, more.states),
            np.concatenate([self.group, more.group]),
            np.concatenate([self.began, more.began]),
            np.concatenate([self.closed, more.closed]),
            np.concatenate([self.sent, more.sent]),
            _joined(self.tie, more.tie),
        )


@dataclass(frozen=True)
class WindowTable:
    """How windows are remembered: the columns depend on what a kernel needs to know."""

    start: pa.DataType
    by: tuple[tuple[str, pa.DataType], ...]
    states: tuple[pa.Field, ...]
    timed: bool
    """Whether windows time out, so that their beginning matters."""
    lasting: bool
    """Whether closed windows stay: to be revised, to be sent, or to refuse tuples."""
    tied: bool = False
    """Whether a group may have several windows with the same start."""
    measure: int = 1
    """What starts are multiples of: the number fits 64 bits even if the start does not."""

    def schema(self) -> pa.Schema:
        fields = [pa.field("start", self.start), pa.field("oldest", pa.int64())]
        fields += [pa.field("began", pa.int64())] if self.timed else []
        if self.lasting:
            fields += [pa.field("closed", pa.int64()), pa.field("sent", pa.bool_())]
        fields += [pa.field("tie", pa.binary())] if self.tied else []
        return pa.schema([*fields, *(pa.field(n, t) for n, t in self.by), *self.states])

    def load(self, table: pa.Table) -> WindowBatch:
        rows = table.num_rows
        start = self._starts(table)
        closed, sent = np.full(rows, NEVER, np.int64), np.zeros(rows, bool)
        if self.lasting:
            closed = np.asarray(whole(table["closed"]).fill_null(NEVER), np.int64)
            sent = np.asarray(whole(table["sent"]), bool)
        return WindowBatch(
            start,
            tuple(whole(table[name]) for name, _ in self.by),
            _integers(table, "oldest"),
            tuple(whole(table[field.name]) for field in self.states),
            began=_integers(table, "began") if self.timed else np.empty(0, np.int64),
            closed=closed,
            sent=sent,
            tie=(whole(table["tie"]),) if self.tied else (),
        )

    def _starts(self, table: pa.Table) -> Values:
        number, _ = numbers(table["start"])
        if self.measure == 1:
            return number
        far = len(number) and int(max(-number.min(), number.max())) * self.measure >= 2**62
        return number.astype(object) * self.measure if far else number * self.measure

    def store(self, windows: WindowBatch) -> pa.Table:
        start = windows.start if self.measure == 1 else windows.start // self.measure
        columns: list[pa.Array] = [stored(start, self.start), pa.array(windows.oldest)]
        columns += [pa.array(windows.began)] if self.timed else []
        if self.lasting:
            closed = pa.array(windows.closed, mask=windows.closed == NEVER)
            columns += [closed, pa.array(windows.sent)]
        columns += windows.tie
        return pa.table([*columns, *windows.by, *windows.states], schema=self.schema())


def _integers(table: pa.Table, name: str) -> Ids:
    return np.asarray(whole(table[name]), np.int64)


def _joined(columns: Sequence[pa.Array], others: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
    pairs = zip(columns, others, strict=True)
    return tuple(pa.concat_arrays([one, other]) for one, other in pairs)


def columns_of(
    arguments: Sequence[Sequence[str]], tuples: pa.Table, rows: Ids
) -> list[list[pa.Array]]:
    """The arguments of each call, of some rows."""
    names = dict.fromkeys(name for call in arguments for name in call)
    everything = len(rows) == tuples.num_rows and np.array_equal(rows, np.arange(len(rows)))
    index = pa.array(rows)
    taken = {}
    for name in names:
        column = tuples[name].combine_chunks()
        taken[name] = column if everything else column.take(index)
    return [[taken[name] for name in call] for call in arguments]
