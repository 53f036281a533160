"""The physical form of a stateful box: a kernel, the columns it takes, what becomes of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.boxes.order import Order
from auroral.continuous.functions import PythonFunction
from auroral.kernels.arrivals import NUMBER
from auroral.kernels.joining.shelf import side_of
from auroral.kernels.kernel import Kernel
from auroral.network.box import Resolver
from auroral.network.types import Field, Schema, Type
from auroral.progress.lowwater import GroupedLowWater, JointLowWater, Mark
from auroral.sql.expressions.function_calls import FunctionCall


@dataclass(frozen=True)
class Given:
    """What a stateful box is lowered with.

    `marks` show of which kind the marks are that the box relies on. `wanted` are the ports that
    somebody reads.
    """

    schemas: Sequence[Schema]
    output: Schema
    wanted: frozenset[str]
    marks: Sequence[Mark | JointLowWater]
    tables: Sequence[int] = ()
    """Which of the inputs are static tables."""
    directory: Path | None = None
    imports: bool = True
    """Whether modules of Python functions may be imported on the driver."""
    flush: str = "eager"
    resolver: Resolver | None = None
    functions: Mapping[str, PythonFunction] = field(default_factory=dict)
    """What queries may call."""
    unread: frozenset[str] = frozenset()
    """The fields of its main arc that nobody reads."""


@dataclass
class KernelColumns:
    """The columns a kernel takes of one input, by name: the Spark SQL text of each, its type."""

    schema: Schema
    texts: dict[str, tuple[str, Type]] = field(default_factory=dict)

    def field(self, name: str) -> str:
        """The column of a field: `f3` for the fourth."""
        found = self.schema.field(name)
        column = f"f{self.schema.names.index(found.name)}"
        self.texts[column] = (quoted(found.name), found.type)
        return column

    def fields(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """The columns of several fields, or of all."""
        return tuple(self.field(name) for name in (self.schema.names if names is None else names))

    def computed(self, text: str, type: Type) -> str:
        """A column for an expression; a plain field is not copied."""
        bare = text.strip().strip("`")
        if bare in self.schema and self.schema.field(bare).type == type:
            return self.field(bare)
        for column, made in self.texts.items():
            if made == (text, type):
                return column
        column = f"x{sum(name[0] == 'x' for name in self.texts)}"
        self.texts[column] = (text, type)
        return column

    def types(self) -> tuple[tuple[str, pa.DataType], ...]:
        return tuple((column, type.arrow()) for column, (_, type) in self.texts.items())


@dataclass(frozen=True)
class Physical:
    """A stateful box made for Spark.

    `keys` are the columns of each input that decide which bucket a tuple belongs to; with none
    there is one bucket. `ports` give the kernel's columns of each output arc, in the order of its
    fields. What cannot be said in the kernel is said in SQL over the main port's columns: `where`
    drops rows, `compute` makes the arc's fields.
    """

    kernel: Kernel
    inputs: tuple[KernelColumns, ...]
    ports: Mapping[str, tuple[str, ...]]
    keys: tuple[tuple[str, ...], ...] | None = None
    where: str | None = None
    compute: Mapping[str, str] | None = None
    calls: tuple[FunctionCall, ...] = ()
    """Python functions whose results `where` reads; rows for which `equal` is false are spared."""
    equal: str = "true"
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    returns: tuple[tuple[str, Type], ...] = ()
    """The main port's columns and types, if `where` or `compute` see them."""
    structs: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """What `where` calls by one name: columns and the names they have in it."""
    whole: bool = False
    """Whether the kernel gets all tuples and finds out for itself which are a bucket's."""

    def state_keys(self) -> dict[str, tuple[str, ...]] | None:
        """By state table, the columns that decide on the bucket of a row; None: there is one."""
        if self.keys is None or self.whole:
            return None
        sides = {"left": 0, "right": 1} if len(self.keys) == 2 else {}
        return {
            table: self.keys[sides.get(side_of(table) or table, 0)]
            for table in self.kernel.tables()
        }

    def returned(self) -> Schema:
        """What `where` and `compute` see: the main port's columns, and those of `structs`."""
        types = dict(self.returns)
        fields = [Field(name, type) for name, type in self.returns]
        for name, parts in self.structs.items():
            children = tuple(Field(part, types[column]) for column, part in parts)
            fields.append(Field(name, Type("struct", children=children)))
        return Schema(tuple(fields))


def ordered_column(columns: KernelColumns, order: Order) -> str:
    """The column by which an input is ordered."""
    return NUMBER if order.numbered else columns.field(order.on)


def quoted(name: str) -> str:
    return f"`{name}`"


def mark_fields(mark: Mark | JointLowWater) -> tuple[str, ...]:
    """The fields that choose among the marks of groups."""
    if isinstance(mark, GroupedLowWater):
        return tuple(mark.by)
    return (mark.by,) if isinstance(mark, JointLowWater) else ()
