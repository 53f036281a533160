"""Fusion: all expression boxes fed by one source as one wide DataFrame.

Instead of one DataFrame per box, each source has a single frame that gains a column per
predicate and computed field. A *lane* says which rows and columns of a frame are the tuples of
an arc: boxes turn lanes into lanes. Every row is scanned, and every expression evaluated, once,
however many outputs there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from auroral.network.types import Field, Schema, Type
from auroral.spark.plans.attempts import computed

PREFIX = "__"
HIDDEN_COLUMNS = ("_seq", "_ts")


@dataclass(frozen=True)
class LaneCondition:
    """A boolean frame column that must hold, or must not."""

    column: str
    holds: bool = True

    def sql(self) -> str:
        return self.column if self.holds else f"NOT {self.column}"


@dataclass(frozen=True)
class Lane:
    """The tuples of one arc that come from one source by one path.

    `columns` maps the arc's fields to frame columns. `rank` orders what one moment brings to
    the arc by several paths.
    """

    source: str
    columns: Mapping[str, str]
    conditions: tuple[LaneCondition, ...] = ()
    rank: bytes = b""

    def where(self, *conditions: LaneCondition) -> Lane:
        return replace(self, conditions=(*self.conditions, *conditions))

    def condition_sql(self) -> str:
        """The predicate over frame columns; `true` if all rows belong."""
        return " AND ".join(condition.sql() for condition in self.conditions) or "true"


class Frame:
    """The growing DataFrame of one source."""

    def __init__(self, source: str, scan: DataFrame, schema: Schema, *, made: bool = False):
        self.source = source
        self.made = made
        """Whether boxes made its tuples: several may have one moment, `_sub` orders them."""
        self.hidden = (*HIDDEN_COLUMNS, "_sub") if made else HIDDEN_COLUMNS
        self._types: dict[str, Type] = {}
        self._made: dict[tuple[object, ...], str] = {}
        names = {field.name: self._fresh(field.type) for field in schema}
        columns = [F.col(f"`{field}`").alias(name) for field, name in names.items()]
        self.data = scan.select(*self.hidden, *columns)
        self.lane = Lane(source, names)

    def type_of(self, column: str) -> Type:
        return self._types[column]

    def schema(self, lane: Lane) -> Schema:
        """The fields of a lane."""
        return Schema(tuple(Field(n, self._types[c]) for n, c in lane.columns.items()))

    def evaluate(
        self, lane: Lane, wanted: Sequence[tuple[str, Type]], *, instead: bool | None = None
    ) -> list[str]:
        """Columns for expressions over a lane's fields, `instead` where they are NULL.

        The same expression is made once.
        """
        scope = (instead, tuple(sorted(lane.columns.items())))
        fresh = [
            (t, ty) for t, ty in dict.fromkeys(wanted) if (t, str(ty), scope) not in self._made
        ]
        if fresh:
            own = [*self.hidden, *self._types]
            # The lane's fields get their own names for as long as the user's text is resolved.
            named = [F.col(column).alias(field) for field, column in lane.columns.items()]
            made = {self._fresh(ty): (text, ty) for text, ty in fresh}
            schema = self.schema(lane)
            columns = [
                _typed(computed(text, schema), ty, instead).alias(name)
                for name, (text, ty) in made.items()
            ]
            self.data = self.data.select("*", *named).select(*own, *columns)
            for name, (text, ty) in made.items():
                self._made[text, str(ty), scope] = name
        return [self._made[text, str(ty), scope] for text, ty in wanted]

    def add(self, column: Column, type: Type) -> str:
        """A column of its own."""
        own = [*self.hidden, *self._types]
        name = self._fresh(type)
        self.data = self.data.select(*own, column.alias(name))
        return name

    def _fresh(self, type: Type) -> str:
        name = f"{PREFIX}{len(self._types)}"
        self._types[name] = type
        return name


def _typed(column: Column, type: Type, instead: bool | None) -> Column:
    made = column.cast(str(type))
    return made if instead is None else F.coalesce(made, F.lit(instead))
