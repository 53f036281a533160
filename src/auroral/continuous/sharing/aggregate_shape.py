"""What is known of aggregates that share partial results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from auroral.continuous.sharing.families import constants_table
from auroral.continuous.sharing.template import (
    Attribute,
    Clause,
    Template,
    TemplateItem,
    TemplateSource,
)
from auroral.network.types import Field, Schema, Type
from auroral.sql.aggregates.calls import AggregateCall


@dataclass(frozen=True)
class AggregateShape:
    """What queries have in common that share partial results: an arc, its attribute, the keys."""

    arc: str
    on: str
    by: tuple[str, ...]
    types: tuple[Type, ...]
    """Of `on`, then of the keys."""

    def results(self, calls: Iterable[SharedCall]) -> Schema:
        """The window's start, the keys and the results of calls."""
        names = (self.on, *self.by)
        fields = [Field(name, type) for name, type in zip(names, self.types, strict=True)]
        return Schema((*fields, *(Field(call.name, call.call.type) for call in calls)))


@dataclass(frozen=True)
class SharedCall:
    """An aggregate in canonical form; `arguments` end with the condition of its FILTER."""

    call: AggregateCall
    arguments: tuple[Attribute, ...]

    @cached_property
    def name(self) -> str:
        """The column of its results: the same for equal calls."""
        return f"agg_{hashlib.sha256(repr(self.call).encode()).hexdigest()[:12]}"

    @property
    def text(self) -> str:
        """As people write it."""
        where = "" if self.call.where is None else f" FILTER (WHERE {self.call.where})"
        return f"{self.call.name}({', '.join(self.call.args) or '*'}){where}"


@dataclass(frozen=True)
class ReadAggregate:
    """An aggregate query: lengths are in units of marks.

    A result is made of the columns of `shape` (the attribute is the window's start) and those of
    `calls`, by name: `items` and `having` are over them.
    """

    shape: AggregateShape
    size: int
    advance: int
    calls: tuple[SharedCall, ...]
    items: tuple[TemplateItem, ...]
    clauses: tuple[Clause, ...] = ()
    """What tuples must satisfy."""
    having: tuple[Clause, ...] = ()
    """What results must satisfy."""
    slots: tuple[Type, ...] = ()
    constants: tuple[Any, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the arc that counting reads."""
        found = [self.shape.on, *self.shape.by]
        found += [name for call in self.calls for one in call.arguments for name in one.fields]
        return tuple(dict.fromkeys(found))

    def schema(self) -> Schema:
        """The schema of the results."""
        return Schema(tuple(Field(item.name, item.attribute.type) for item in self.items))

    def template(self) -> Template:
        """Where constants stand: `clauses` are those of HAVING."""
        sources = (TemplateSource(self.shape.arc, self.clauses),)
        return Template(sources, self.items, self.slots, self.having)

    def constants_table(self) -> pa.Table:
        """The constants of WHERE and HAVING, as one row."""
        return constants_table(self.template(), [self.constants])
