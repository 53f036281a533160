"""What is registered under one name: a query, or a family of queries with one text."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.continuous.sharing.aggregate_reading import ReadAggregate
from auroral.continuous.sharing.template import Atom, Attribute, Clause, Template
from auroral.eddy.filters.index import Selection
from auroral.ids import ResultsLogId
from auroral.network.queries import Family, Query
from auroral.network.types import Schema, Type

Ids = npt.NDArray[np.int32]
SELECT, COUNT = "select", "count"
"""The kinds of select-project queries: results kept, results counted."""
NEVER = 2**62


@dataclass
class RegisteredQuery:
    """A registered query or family; member n has the id `first + n`.

    It sees tuples with since <= moment < until. `gone` are members removed before: by number,
    the moment.
    """

    name: str
    query: Query
    first: int
    read: Template | ReadAggregate
    constants: pa.Table
    """A row for each member; column "n" is slot n of the template."""
    keys: pa.ChunkedArray | None = None
    """The names of a family's members."""
    since: int = 0
    until: int = NEVER
    gone: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return int(self.constants.num_rows)

    @property
    def after(self) -> int:
        """The first id that may be another's; a family without members takes one, too."""
        return self.first + max(self.count, 1)

    @property
    def is_empty(self) -> bool:
        """Whether it was added to a family later, and no member of it is left."""
        return self.keys is not None and "+" in self.name and len(self.gone) == self.count

    @property
    def ids(self) -> Ids:
        return np.arange(self.first, self.first + self.count, dtype=np.int32)

    @property
    def kept(self) -> bool:
        return self.query.results == "keep"

    @cached_property
    def kind(self) -> str:
        """Whose lineage its queries are in."""
        if isinstance(self.read, ReadAggregate):
            return group_name("aggregate", self.read.shape)
        if self.read.join is not None:
            return group_name("join", self.read.join)
        return SELECT if self.kept else COUNT

    @cached_property
    def log(self) -> str:
        """Where its results are."""
        return log_of(self.arcs[0], self.kind)

    @cached_property
    def arcs(self) -> tuple[str, ...]:
        """The arcs it reads."""
        if isinstance(self.read, ReadAggregate):
            return (self.read.shape.arc,)
        return tuple(dict.fromkeys(source.arc for source in self.read.sources))

    def schema(self) -> Schema:
        """The fields of its results."""
        return self.read.schema()

    def selections(self) -> list[tuple[str, Selection]]:
        """What each arc is asked on its behalf; of groups, also joined tuples and aggregates."""
        if isinstance(self.read, ReadAggregate):
            where, having = self.read.clauses, self.read.having
            return [
                (self.read.shape.arc, Selection(self.kind, where, self.ids, self.constants)),
                (self.kind, Selection(self.kind, having, self.ids, self.constants)),
            ]
        template, kind = self.read, self.kind
        arcs = [source.arc for source in template.sources]
        found = [
            (s.arc, Selection(place(kind, arcs, n), s.clauses, self.ids, self.constants))
            for n, s in enumerate(template.sources)
        ]
        if template.join is not None:
            windows = _windows(template)
            clauses = template.clauses + tuple((atom,) for atom, _ in windows)
            constants = self.constants
            for atom, value in windows:
                column = pa.array(np.full(self.count, value), atom.attribute.type.arrow())
                constants = constants.append_column(str(atom.slot), column)
            found.append((kind, Selection(kind, clauses, self.ids, constants)))
        return found


def is_family(query: Query) -> bool:
    return isinstance(query, Family)


def group_name(what: str, shape: object) -> str:
    """A name for queries of one shape, the same in every run."""
    return f"{what}~{zlib.crc32(repr(shape).encode()):08x}"


def is_group(name: str) -> bool:
    """Whether a name is that of queries of one shape, not of an arc."""
    return "~" in name


def log_of(arc: str, kind: str) -> str:
    """The log of the results of a kind; joined tuples are no single arc's."""
    return str(ResultsLogId(arc if kind == SELECT else kind))


def place(kind: str, arcs: Sequence[str], n: int) -> str:
    """The kind under which source n of a join is asked; an arc may be joined with itself."""
    return kind if arcs.count(arcs[n]) == 1 else f"{kind}/{n}"


def _windows(template: Template) -> list[tuple[Atom, int | float]]:
    """The sizes of a join's windows as predicates on joined tuples."""
    found: list[tuple[Atom, int | float]] = []

    def add(name: str, op: str, value: int | float) -> None:
        type = Type("double" if isinstance(value, float) else "bigint")
        attribute = Attribute(name, type, name, (name,))
        slot = len(template.slots) + len(found)
        found.append((Atom(attribute, op, slot), value))  # type: ignore[arg-type]

    for n, rows in enumerate(template.rows):
        add(f"#age{n}", "<", rows)
    for i, row in enumerate(template.bands):
        for j in range(i + 1, len(row)):
            add(f"#diff{i}_{j}", "<=", row[j])
            add(f"#diff{i}_{j}", ">=", -template.bands[j][i])
    return found


def fields_of(clauses: tuple[Clause, ...]) -> set[str]:
    """The fields that predicates read."""
    return {name for clause in clauses for atom in clause for name in atom.attribute.fields}
