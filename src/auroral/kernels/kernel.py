"""The interface of kernels: one bucket's tuples and state in, emissions and new state out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from auroral.progress.lowwater import GroupedLowWater, JointLowWater, LowWater

NEVER = 2**62
"""A moment that does not come."""


@dataclass(frozen=True)
class Context:
    """What the driver knows of a step: the same for every bucket.

    The step covers moments `first` up to, not including, `last`. `marks` has one mark per input,
    of the attribute the box orders it on, valid up to `last`; what an input promises nothing of
    has an empty mark. `clock` maps moments to µs. From moment `ended` on nothing arrives.
    """

    first: int
    last: int
    marks: tuple[LowWater | GroupedLowWater | JointLowWater, ...] = ()
    clock: LowWater | None = None
    ended: int | None = None
    extra: Any = None
    """What a kernel of its own kind is told besides."""


@dataclass(frozen=True)
class Appended:
    """Rows to append to a state table."""

    table: pa.Table


@dataclass
class Emitted:
    """What a step of a kernel made.

    `ports` have the hidden columns `_seq`, `_ts` and `_sub` first. A state table that is not
    in `state` is unchanged. `late` counts by reason, `dead` are (reason, tuple as JSON).
    """

    ports: dict[str, pa.Table] = field(default_factory=dict)
    state: dict[str, pa.Table | Appended] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    dead: list[tuple[str, str]] = field(default_factory=list)
    held: int | None = None
    """Tuples or windows it holds now, if that is not the number of rows of its state."""
    pending: int | None = None
    """The first moment of which not everything has been emitted yet."""
    note: dict[str, Any] = field(default_factory=dict)
    """What else the driver wants to know, as JSON can hold it."""


TableReader = Callable[[Sequence[str] | None], pa.Table]
"""Reads all columns of a table, or some."""


class StateTables(Mapping[str, pa.Table]):
    """State tables that are read when a kernel asks for them."""

    def __init__(self, tables: Mapping[str, tuple[int, TableReader]]):
        """By name, in how many parts a table is stored, and how to read it."""
        self._tables = tables
        self._read: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._read:
            self._read[name] = self._tables[name][1](None)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def parts(self, name: str) -> int:
        """In how many parts a table is stored."""
        return self._tables[name][0]

    def columns(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a table; others are not read."""
        return self._tables[name][1](columns)


def columns_of(state: Mapping[str, pa.Table], name: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a state table, its rows in the order of the whole table."""
    if isinstance(state, StateTables):
        return state.columns(name, columns)
    return state[name].select(columns)


def parts_of(state: Mapping[str, pa.Table], name: str) -> int:
    """In how many parts a state table is stored; none if it is empty."""
    if isinstance(state, StateTables):
        return state.parts(name)
    return int(state[name].num_rows > 0)


class Kernel(Protocol):
    """One box at work on one bucket of groups. A kernel is pickled: plain data only."""

    def tables(self) -> Mapping[str, pa.Schema]:
        """The state tables it keeps."""

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        """Process the tuples of one step, which are in order of arrival."""
