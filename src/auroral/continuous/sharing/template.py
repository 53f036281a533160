"""What a query asks for, apart from its constants: queries that differ in nothing else share it.

`sym = 'A' AND price > 3` and `sym = 'B' AND price > 7` are two rows of one template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from auroral.network.types import Field, Schema, Type

Op = Literal[
    "<", "<=", ">", ">=", "=", "!=", "in", "not in", "prefix", "not prefix", "null", "not null"
]


@dataclass(frozen=True)
class Attribute:
    """What a predicate looks at: a field, or an expression over fields.

    `text` is Spark SQL; of a field its name. Within a query over one source fields are called by
    their names; over joined tuples `s0.price`, `s1.price`: the field of the n-th source. An
    expression may hold `:n`, the n-th constant of the query; then `slots` has n, and it can only
    be evaluated for a tuple and a query together.
    """

    text: str
    type: Type
    field: str | None = None
    """The field's name (`s1.price` for joined tuples) if it is nothing but a field."""
    fields: tuple[str, ...] = ()
    """All the fields it reads, called as in the text."""
    slots: tuple[int, ...] = ()
    costly: bool = False
    """Whether it calls a Python function."""


@dataclass(frozen=True)
class Atom:
    """`attribute op constant`; a predicate that is nothing of the kind is `attribute = TRUE`.

    A NULL attribute satisfies `null` and nothing else; a NULL constant satisfies nothing.
    """

    attribute: Attribute
    op: Op
    slot: int | None = None
    """Which constant of the query; None for tests of NULL."""


Clause = tuple[Atom, ...]
"""Atoms of which one must hold."""


@dataclass(frozen=True)
class TemplateItem:
    """A field of the result: a copy of a field, or an expression (which may hold `:n`)."""

    name: str
    attribute: Attribute


@dataclass(frozen=True)
class TemplateSource:
    """One of what FROM lists: an arc, and the predicates on it alone."""

    arc: str
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True)
class JoinShape:
    """How sources are joined; queries with the same shape share one join.

    `equal` are (i, field, j, field) with sources i < j, as many as WHERE has. With `kind` rows each
    source has a window of its latest tuples; with `range` the attributes `on`, one of each
    source, lie near each other.
    """

    arcs: tuple[str, ...]
    equal: tuple[tuple[int, str, int, str], ...]
    kind: Literal["rows", "range"]
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Template:
    """A query without its constants.

    `clauses` are those of WHERE that no single source can decide and that are no part of
    `join.equal`: over joined tuples. `slots` are the types of the constants; a slot used by `in`
    holds a list of such values.
    """

    sources: tuple[TemplateSource, ...]
    items: tuple[TemplateItem, ...]
    slots: tuple[Type, ...] = ()
    clauses: tuple[Clause, ...] = ()
    join: JoinShape | None = None
    rows: tuple[int, ...] = ()
    """With row windows, the size of each source's window."""
    bands: tuple[tuple[int | float, ...], ...] = ()
    """With `range`: bands[i][j] is the most by which source j's attribute may exceed source i's,
    in units of marks; every pair has one. If that is not all the windows say, `clauses` say the
    rest (`s1.ts < s0.ts + 2.5D`)."""

    def schema(self) -> Schema:
        """The schema of the results."""
        return Schema(tuple(Field(item.name, item.attribute.type) for item in self.items))
