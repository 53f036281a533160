"""Which boxes commute with a filter behind them, and why (pure).

The table is complete: a pair that it does not have is never exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from auroral.boxes import Filter, Join, Map, Union
from auroral.boxes.filter import REST
from auroral.boxes.join import Sieve, joined
from auroral.errors import AuroralError
from auroral.ids import ArcId, QueryBoxId, is_eddy
from auroral.network.box import Box, Scope
from auroral.network.check import CheckedNetwork
from auroral.network.types import Schema
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.function_calls import called_of
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.rewriting import conjuncts, substituted
from auroral.sql.expressions.syntax import free_names
from auroral.sql.expressions.typed import OnlySparkError


@dataclass(frozen=True)
class CommutingPair:
    """A box, and a filter behind it that may take its place."""

    before: str
    """The kind of the box that the filter passes."""
    if_: str
    """Under which condition."""
    because: str


COMMUTING: tuple[CommutingPair, ...] = (
    CommutingPair(
        "filter",
        "always",
        "a tuple passes both or not, in whichever order it is asked; filters keep tuples, order"
        " and marks as they are",
    ),
    CommutingPair(
        "map",
        "the map keeps the fields that the filter reads",
        "the filter sees the same values in front of the map; a map makes one tuple of each and"
        " keeps their order; the marks of kept fields pass both",
    ),
    CommutingPair(
        "union",
        "always; each input gets a copy of the filter",
        "a union passes tuples as they are, in an order that the number of the input and the order"
        " of arrival decide; neither depends on tuples that are dropped",
    ),
    CommutingPair(
        "join of two streams in a band",
        "a part of the predicate reads fields of one side only; the filter stays, and the join"
        " sifts that side by this part",
        "the filter would drop all pairs of a tuple that fails; the join judges the tuple as"
        " before, so that late tuples, slack and arrival numbers stay, and shelves it, so that it"
        " is there when the sieve is taken away",
    ),
)
"""What a filter may pass. The filter calls no Python function, and only its main arc is read."""
SIFTING = COMMUTING[3]
"""By which a filter gets in front of a join, although it stays behind it."""

NOT_COMMUTING: dict[str, str] = {
    "filter that calls a Python function": "it never moves: in front of a box that guards it, it"
    " would fail on tuples that never reached it before",
    "filter with routes, or whose rest is read": "a port would get other tuples",
    "join by rows or with a timeout": "which tuples are among the latest, and which have waited too"
    " long, depends on all tuples of a side",
    "join with a table": "the join ends a superbox of its own; a filter in front of it would move"
    " the boundary of the superbox, and with it what is written to logs",
    "dedup": "the first of tuples that are alike would be another one, and late tuples would not"
    " be counted",
    "bsort": "with slack, which tuple leaves depends on all that wait; without slack, late tuples"
    " would not be counted",
    "aggregate, resample, wait_for, latch, number, map with state": "what they emit depends on all"
    " tuples that they got",
    "read, update": "their statements change or see tables for each tuple",
}
"""Pairs that were looked at and left out, and the reason."""


class CommutingRules:
    """Applies the table to one network.

    It is asked about declared boxes only: filters change no fields, so what is true where boxes
    are declared is true wherever filters have moved to.
    """

    def __init__(
        self,
        checked: CheckedNetwork,
        scope: Scope,
        fixed: Collection[str],
        in_columns: Callable[[str, Schema], bool] | None = None,
    ):
        """`fixed` arcs stay as they are: somebody else reads them.

        `in_columns` tells which predicates tasks compute on whole columns: others are no sieves.
        """
        self._checked = checked
        self._scope = scope
        self._readers: dict[str, list[str]] = {}
        for name, box in checked.network.boxes.items():
            for arc in box.sources():
                self._readers.setdefault(arc, []).append(name)
        self._fixed = set(fixed)
        self._in_columns = in_columns
        self._functions = {name.lower() for name in checked.network.functions}
        self._movable = {
            name: self.fields_read(name)
            for name, box in checked.network.boxes.items()
            if isinstance(box, Filter) and self._may_move(name, box)
        }

    def is_plain(self, name: str) -> bool:
        """Whether a box may be part of a subnetwork: it remembers nothing and is no query's."""
        box = self._checked.network.boxes.get(name)
        own = QueryBoxId.query_of(name) is None and not is_eddy(name)
        return own and isinstance(box, Filter | Map | Union)

    def is_free(self, arc: str) -> bool:
        """Whether only one box sees an arc, so that nobody misses it if it carries something else.

        Both its ends must be boxes that remember nothing.
        """
        readers = self._readers.get(arc, [])
        if arc in self._fixed or len(readers) != 1 or arc not in self._checked.arcs:
            return False
        typed = self._checked.arcs[arc]
        return not typed.port and self.is_plain(typed.producer) and self.is_plain(readers[0])

    def is_movable(self, name: str) -> bool:
        """Whether a box is a filter that may pass others."""
        return name in self._movable

    def pair(self, before: str, behind: str) -> CommutingPair | None:
        """The entry of the table by which one box passes another; None if it may not."""
        fields = self._movable.get(behind)
        box = self._checked.network.boxes[before]
        if fields is None or not self.has_one_arc(before):
            return None
        if isinstance(box, Map):
            (schema,) = self._checked.schemas_of(before)
            kept = {name.lower() for name in box.kept(schema)}
            return COMMUTING[1] if fields <= kept else None
        if isinstance(box, Union):
            return COMMUTING[2]
        return COMMUTING[0] if isinstance(box, Filter) else None

    def is_sifting(self, arc: str) -> bool:
        """Whether an arc is that of a join that may sift its inputs: only plain boxes see it."""
        join = self._checked.network.boxes.get(arc)
        if not isinstance(join, Join) or join.has_table or join.rows or join.times_out:
            return False
        readers = self._readers.get(arc, [])
        own = QueryBoxId.query_of(arc) is None and arc not in self._fixed
        return own and len(readers) == 1 and self.is_plain(readers[0])

    def sieves(self, join: str, filter_: str) -> tuple[Sieve, ...]:
        """The parts of a filter's predicate that read one side of a join only, if it may move."""
        if not self.is_movable(filter_):
            return ()
        box = self._checked.network.boxes[filter_]
        assert isinstance(box, Filter)
        assert box.where is not None
        schemas = self._checked.schemas_of(join)
        named = iter(joined(*schemas).names)
        names = [{next(named).lower(): name for name in schema.names} for schema in schemas]
        found: dict[int, list[str]] = {}
        for part in conjuncts(box.where):
            read = {name.lower() for name in free_names(parse(part))}
            for side, own in enumerate(names):
                if read and read <= own.keys():
                    text = substituted(part, {name: f"`{own[name]}`" for name in read})
                    if text is not None and self._may_sift(text, schemas[side]):
                        found.setdefault(side, []).append(text)
        return tuple(Sieve(side, filter_, _all_of(parts)) for side, parts in sorted(found.items()))

    def is_whole(self, sieve: Sieve) -> bool:
        """Whether a sieve is all of its filter's predicate."""
        box = self._checked.network.boxes[sieve.filter]
        assert isinstance(box, Filter)
        return len(conjuncts(box.where or "")) == len(conjuncts(sieve.where))

    def _may_sift(self, text: str, schema: Schema) -> bool:
        if self._in_columns is not None:
            return self._in_columns(text, schema)
        return True

    def _may_move(self, name: str, box: Filter) -> bool:
        if box.where is None or not self.has_one_arc(name) or not self.is_plain(name):
            return False
        if called_of(box.where, self._functions):
            return False
        try:  # what only Spark knows may differ from call to call
            compile_node(parse(box.where), self._checked.schemas_of(name)[0])
        except (OnlySparkError, AuroralError, RecursionError):
            return False
        return True

    def calls(self, name: str) -> bool:
        """Whether a box calls Python functions."""
        return calls_functions(self._checked.network.boxes[name], self._functions)

    def fields_read(self, name: str) -> frozenset[str]:
        """The fields that a box with one input reads, in lower case."""
        box = self._checked.network.boxes[name]
        (fields,) = box.reads(self._checked.schemas_of(name), self._scope)
        return frozenset(field.lower() for field in fields)

    def has_one_arc(self, name: str) -> bool:
        """Whether nobody reads another arc than the one that is named like the box."""
        box = self._checked.network.boxes[name]
        if not isinstance(box, Filter):
            return True
        rest = str(ArcId(name, REST))
        return box.where is not None and rest not in self._readers and rest not in self._fixed


def _all_of(parts: Collection[str]) -> str:
    """A predicate that is true where all of some are; a comment may end one of them."""
    return " AND ".join(f"({part}\n)" for part in parts) if len(parts) > 1 else next(iter(parts))


def calls_functions(box: Box, functions: Collection[str]) -> bool:
    """Whether a box calls Python functions; `functions` are declared ones, in lower case."""
    texts: Iterable[str] = ()
    if isinstance(box, Filter):
        texts = box.predicates.values()
    elif isinstance(box, Map):
        texts = box.texts.values()
    return bool(box.functions()) or any(called_of(text, functions) for text in texts)
