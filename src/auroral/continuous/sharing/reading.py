"""Read queries into templates: what they ask for, and their constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from auroral.continuous.analysis import Analysis, Functions, Surroundings, analysis, constants_of
from auroral.continuous.sharing.families import (
    Constant,
    Derived,
    ReadFamily,
    constants_table,
    family_constants,
    family_of,
)
from auroral.continuous.sharing.likeness import Likeness, Skeleton, skeleton
from auroral.continuous.sharing.predicates import NotShared, OtherShape
from auroral.continuous.sharing.template import Template
from auroral.errors import AuroralError
from auroral.network.box import Scope
from auroral.network.types import Schema

__all__ = [
    "Constant",
    "Derived",
    "NotShared",
    "ReadFamily",
    "ReadQuery",
    "TemplateReader",
    "constants_table",
    "family_constants",
    "read_family",
    "read_shared",
]


@dataclass(frozen=True)
class ReadQuery:
    """A query as a row of its template; constants in the order of slots, lists for `in`."""

    template: Template
    constants: tuple[Any, ...]


def read_shared(
    sql: str,
    arcs: Mapping[str, Schema],
    progress: Mapping[str, Collection[str]],
    *,
    scope: Scope | None = None,
    streams: Collection[str] | None = None,
    functions: Functions | None = None,
) -> ReadQuery:
    """Read a query that the eddy can run; NotShared if it cannot.

    A clause that always holds is left out; one that never does is `field in ()`.

    >>> arcs = {"ticks": Schema.parse("sym string, price int")}
    >>> read = read_shared("SELECT sym FROM ticks WHERE price > 2.5 AND sym = 'A'", arcs, {})
    >>> [(atom.attribute.text, atom.op) for (atom,) in read.template.sources[0].clauses]
    [('price', '>='), ('sym', '=')]
    >>> read.constants
    (3, 'A')
    """
    around = Surroundings(arcs, progress, scope or Scope(), streams, functions or {})
    found = analysis(sql, around)
    return ReadQuery(found.template, constants_of(found.slots, sql))


def read_family(
    sql: str,
    arcs: Mapping[str, Schema],
    progress: Mapping[str, Collection[str]],
    *,
    columns: Schema,
    scope: Scope | None = None,
    streams: Collection[str] | None = None,
    functions: Functions | None = None,
) -> ReadFamily:
    """Read a query with parameters `:name`, the columns of a table of values.

    A parameter that is compared with an attribute takes its type.

    >>> arcs = {"ticks": Schema.parse("sym string, price int")}
    >>> sql = "SELECT sym FROM ticks WHERE price > :limit AND sym <> 'A'"
    >>> read = read_family(sql, arcs, {}, columns=Schema.parse("limit bigint"))
    >>> read.parameters, [str(slot) for slot in read.template.slots]
    (('limit', Constant(value='A')), ['int', 'string'])
    """
    around = Surroundings(arcs, progress, scope or Scope(), streams, functions or {})
    found = analysis(sql, around, columns)
    return family_of(found.template, found.slots)


class TemplateReader:
    """Reads many queries; those that differ in literals alone are taken apart once.

    >>> reader = TemplateReader({"ticks": Schema.parse("sym string, price double")}, {})
    >>> one, other = (reader.read(f"SELECT * FROM ticks WHERE price > {n}") for n in (1.5, 2.5))
    >>> one.template is other.template, other.constants
    (True, (2.5,))
    """

    def __init__(
        self,
        arcs: Mapping[str, Schema],
        progress: Mapping[str, Collection[str]],
        *,
        scope: Scope | None = None,
        streams: Collection[str] | None = None,
        functions: Functions | None = None,
    ):
        self._around = Surroundings(arcs, progress, scope or Scope(), streams, functions or {})
        self._known: dict[Any, Likeness] = {}
        self._templates: dict[Template, Template] = {}

    def read(self, sql: str) -> ReadQuery:
        """A query as `read_shared` reads it."""
        shape = skeleton(sql)
        if shape is None:
            return self._read(sql, analysis(sql, self._around))
        known = self._known.get(shape.key)
        if known is None:
            return self._read_first(sql, shape)
        like = known.like(shape)
        if like is None:
            return self._read_first(sql, shape, known)
        try:
            return ReadQuery(like.template, like.constants(shape))
        except (OtherShape, AuroralError, ValueError):
            return self._read(sql, analysis(sql, self._around))

    def read_family(self, sql: str, columns: Schema) -> ReadFamily:
        """A family as `read_family` reads it."""
        found = analysis(sql, self._around, columns)
        return family_of(found.template, found.slots)

    def _read_first(self, sql: str, shape: Skeleton, known: Likeness | None = None) -> ReadQuery:
        found = analysis(sql, self._around)
        read = self._read(sql, found)
        known = known or Likeness()
        known.learn(shape, Analysis(read.template, found.slots, found.frozen))
        self._known[shape.key] = known
        return read

    def _read(self, sql: str, found: Analysis) -> ReadQuery:
        template = self._templates.setdefault(found.template, found.template)
        return ReadQuery(template, constants_of(found.slots, sql))
