"""Order-agnostic boxes as computations on whole columns, for tasks that read logs themselves.

A task that evaluates filters and maps on Arrow columns needs no rows from Spark, so a plan has
neither an exchange nor a single task in front of a kernel (docs/adr/0039).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.continuous.sharing.template import Attribute
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.network.types import Type

HIDDEN = ("_seq", "_ts", "_sub")
"""The columns that are no fields; the last only where one moment may have several tuples."""
_BOOLEAN = Type("boolean")
Arcs = dict[str, pa.Table]


class ColumnStage(Protocol):
    """One box over whole columns: adds the arcs it writes to those it reads."""

    def run(self, arcs: Arcs) -> None:
        """Compute the arcs; an input that is not there had no tuples in the train."""


@dataclass(frozen=True)
class ColumnFilter:
    """Route tuples to the first predicate that holds; NULL counts as false.

    >>> arcs = {"s": pa.table({"_seq": [1, 2, 3], "_ts": [0, 0, 0], "x": [5, None, 7]})}
    >>> ColumnFilter("s", (("f", "x > 5"),), "f.rest").run(arcs)
    >>> arcs["f"]["x"].to_pylist(), arcs["f.rest"]["x"].to_pylist()
    ([7], [5, None])
    """

    source: str
    ports: tuple[tuple[str, str], ...]
    """Arcs and predicates, in order of precedence."""
    rest: str | None
    """The arc of the other tuples; None if nobody wants them."""

    def run(self, arcs: Arcs) -> None:
        left = arcs.get(self.source)
        if left is None:
            return
        for number, (arc, predicate) in enumerate(self.ports, 1):
            found = TupleColumns(left).evaluate(Attribute(predicate, _BOOLEAN)).values
            holds = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
            arcs[arc] = _where(left, holds)
            if number < len(self.ports) or self.rest is not None:
                left = _where(left, ~holds)
        if self.rest is not None:
            arcs[self.rest] = left


@dataclass(frozen=True)
class ComputedColumn:
    """A column of a map: a field as it is, or an expression over the fields."""

    name: str
    field: str | None
    text: str
    type: Type


@dataclass(frozen=True)
class ColumnMap:
    """Make other columns of the same tuples."""

    source: str
    target: str
    columns: tuple[ComputedColumn, ...]

    def run(self, arcs: Arcs) -> None:
        table = arcs.get(self.source)
        if table is None:
            return
        tuples = TupleColumns(table)
        hidden = [name for name in HIDDEN if name in table.column_names]
        made = [
            table[column.field]
            if column.field is not None
            else tuples.evaluate(Attribute(column.text, column.type)).values
            for column in self.columns
        ]
        names = [*hidden, *(column.name for column in self.columns)]
        arrays = [*(table[name] for name in hidden), *made]
        arcs[self.target] = pa.Table.from_arrays(arrays, names=names)


@dataclass(frozen=True)
class ColumnUnion:
    """The tuples of all inputs in order; `ranked` if one moment may come by several of them."""

    sources: tuple[str, ...]
    target: str
    fields: tuple[tuple[str, ...], ...]
    """By input, those of its fields that are wanted."""
    names: tuple[str, ...]
    """How the output calls them."""
    ranked: bool

    def run(self, arcs: Arcs) -> None:
        parts = []
        for number, (source, fields) in enumerate(zip(self.sources, self.fields, strict=True)):
            table = arcs.get(source)
            if table is not None:
                rank = number.to_bytes(2, "big") if self.ranked else b""
                parts.append(self._part(table, fields, rank))
        if not parts:
            return
        if any("_sub" in part.column_names for part in parts):
            parts = [part if "_sub" in part.column_names else _with_sub(part) for part in parts]
        arcs[self.target] = in_order_of_arrival(pa.concat_tables(parts))

    def _part(self, table: pa.Table, fields: tuple[str, ...], rank: bytes) -> pa.Table:
        hidden = [name for name in HIDDEN if name in table.column_names]
        arrays = [table[name] for name in (*hidden, *fields)]
        part = pa.Table.from_arrays(arrays, names=[*hidden, *self.names])
        return _with_sub(part, rank) if rank or "_sub" in hidden else part


@dataclass(frozen=True)
class ColumnBoxes:
    """The boxes of a superbox that remember nothing, in flow order."""

    reads: Mapping[str, pa.Schema]
    """By arc that is read from a log, the fields that are needed."""
    stages: tuple[ColumnStage, ...]

    def run(self, arcs: Mapping[str, pa.Table]) -> Arcs:
        """All arcs, given the tuples of those that are read from logs."""
        found = dict(arcs)
        for stage in self.stages:
            stage.run(found)
        return found


def kernel_input(port: int) -> str:
    """The name under which a kernel finds one of its inputs among the arcs."""
    return f"input {port}"


def in_order_of_arrival(table: pa.Table) -> pa.Table:
    """Sort by moment, and by what orders the tuples of one; mostly it is so already."""
    if "_sub" not in table.column_names or table["_sub"].null_count == table.num_rows:
        return by_moment(table)
    moments = table["_seq"].to_numpy()
    if np.all(moments[1:] > moments[:-1]):
        return table
    return table.sort_by([("_seq", "ascending"), ("_sub", "ascending")])


def by_moment(table: pa.Table) -> pa.Table:
    """Sort by moment; tuples of one moment stay as they are."""
    moments = table["_seq"].to_numpy()
    if np.all(moments[1:] >= moments[:-1]):
        return table
    return table.take(pa.array(np.argsort(moments, kind="stable")))


def _where(table: pa.Table, holds: npt.NDArray[np.bool_]) -> pa.Table:
    return table if holds.all() else table.filter(pa.array(holds))


def _with_sub(table: pa.Table, rank: bytes = b"") -> pa.Table:
    """The tuples with a rank in front of what orders those of one moment."""
    if "_sub" not in table.column_names:
        sub = pa.repeat(pa.scalar(rank, pa.binary()), table.num_rows)
        return table.add_column(2, "_sub", sub)
    sub = pc.fill_null(table["_sub"].cast(pa.binary()), b"")
    if rank:
        sub = pc.binary_join_element_wise(pa.scalar(rank, pa.binary()), sub, b"")
    return table.set_column(table.column_names.index("_sub"), "_sub", sub)
