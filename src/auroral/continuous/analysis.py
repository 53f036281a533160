"""Queries taken apart: their template, and how its constants are made of what is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auroral.continuous.boxing.aggregation import aggregated
from auroral.continuous.boxing.compiler import compile_query
from auroral.continuous.boxing.plan import Flow
from auroral.continuous.functions import PythonFunction
from auroral.continuous.sharing.columns import columns
from auroral.continuous.sharing.join_reading import JoinCondition, Nearness, nearness
from auroral.continuous.sharing.predicates import Atoms, Names, NotShared, Slot, folded, sharing
from auroral.continuous.sharing.template import Atom, Clause, JoinShape, Template, TemplateItem
from auroral.continuous.sharing.template import TemplateSource as Arc
from auroral.errors import NetworkError, closest, list_existing
from auroral.network.box import Scope
from auroral.network.types import FRACTIONAL, Field, Schema, Type
from auroral.sql.expressions.compiler import result_type
from auroral.sql.expressions.expression import analyze
from auroral.sql.expressions.lexer import tokens, unquote
from auroral.sql.expressions.syntax import Call, Literal, Name, Node, walk
from auroral.sql.expressions.typed import OnlySparkError, Typed
from auroral.sql.queries.from_clause import FromSource, arc_name
from auroral.sql.queries.names import FromSide, Resolved, conjuncts, substituted
from auroral.sql.queries.queries import ParsedQuery, read_query
from auroral.sql.queries.refusals import refuse
from auroral.sql.queries.text import Piece

Functions = Mapping[str, PythonFunction | Type]
_EQUATED = ("boolean", "string", "date", "timestamp", "timestamp_ntz", "decimal")


@dataclass(frozen=True)
class Analysis:
    """A template, how its constants are made, and the places of literals it depends on."""

    template: Template
    slots: tuple[Slot, ...]
    frozen: frozenset[int]


@dataclass(frozen=True)
class Surroundings:
    """What a query may read: arcs and the fields that make progress on each, tables, functions."""

    arcs: Mapping[str, Schema]
    progress: Mapping[str, Collection[str]] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)
    streams: Collection[str] | None = None
    functions: Functions = field(default_factory=dict)

    def returns(self) -> dict[str, Type]:
        """The functions' types by their lower-case names."""
        return {
            name.lower(): made.returns if isinstance(made, PythonFunction) else made
            for name, made in self.functions.items()
        }

    def require_callable(self, tree: Node) -> None:
        """Refuse calls of functions with more or fewer arguments than they take."""
        by_name = {name.lower(): made for name, made in self.functions.items()}
        for call in (node for node in walk(tree) if isinstance(node, Call)):
            made = by_name.get(call.name)
            if isinstance(made, PythonFunction):
                made.require(len(call.args))


def constants_of(slots: Iterable[Slot], sql: str) -> tuple[Any, ...]:
    """The constants of a query without parameters; a mistake says where one stands."""
    with sharing():
        return tuple(_constant_of(slot, sql) for slot in slots)


def _constant_of(slot: Slot, sql: str) -> Any:
    try:
        return slot.finish([folded(tree) for tree in slot.trees])
    except NetworkError as error:
        for token in tokens(sql):
            if token.kind == "string" and repr(unquote(token.text)) in error.message:
                raise error.at(Piece(sql, token.start, token.end).place()) from None
        raise


def analysis(sql: str, around: Surroundings, parameters: Schema | None = None) -> Analysis:
    """Read a query; `parameters` are the columns that `:name` may name."""
    try:
        return _Reading(sql, around, parameters).read()
    except NetworkError:
        called = any(name in sql.lower() for name in around.returns())
        if parameters is None and not called and len(read_query(sql).sources) <= 2:
            # A mistake reads as it does of a query that is not shared.
            compile_query(
                "query",
                sql,
                around.arcs,
                around.progress,
                scope=around.scope,
                streams=around.streams,
            )
        raise


@dataclass(frozen=True)
class QueryTree:
    """A query that selects or joins, as trees: what it says, and not how an eddy shares it.

    Fields are called as in templates: by their names, of joined tuples `s0.price`, `s1.price`.
    """

    arcs: tuple[str, ...]
    fields: Schema
    """Of all sources."""
    conditions: tuple[JoinCondition, ...]
    """Of which all must hold."""
    near: Nearness | None
    """How near joined tuples must lie."""
    items: tuple[tuple[str, Type, Node], ...]
    """Name, type and expression of the result's fields."""

    @property
    def schema(self) -> Schema:
        """The schema of the results."""
        return Schema(tuple(Field(name, type) for name, type, _ in self.items))


def asked(sql: str, around: Surroundings) -> QueryTree:
    """Read a query that an eddy can run; NotShared if it cannot.

    >>> arcs = {"ticks": Schema.parse("sym string, price int")}
    >>> found = asked("SELECT price FROM ticks WHERE sym = 'A'", Surroundings(arcs))
    >>> found.arcs, len(found.conditions), str(found.schema)
    (('ticks',), 1, 'price int')
    """
    return _Reading(sql, around, None).asked()


@dataclass(frozen=True)
class _Flow(Flow):
    """A source whose expressions may hold parameters."""

    extra: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, piece: Piece, extra: Mapping[str, str] | None = None) -> Resolved:
        return super().resolve(piece, {**self.extra, **(extra or {})})


class _Reading:
    def __init__(self, sql: str, around: Surroundings, parameters: Schema | None):
        self.around = around
        self.parameters = parameters
        self.query = read_query(sql)
        _require_shared(self.query, around)
        self.flows = [self._entered(source) for source in self.query.sources]
        self._require_windows()
        schemas = [flow.sides[0].schema for flow in self.flows]
        self.names = Names(schemas, around.returns(), parameters)
        self.atoms = Atoms(self.names)
        self.extra = {f":{n.lower()}": f":{n}" for n in (parameters.names if parameters else ())}
        self.whole = _Flow(
            "",
            tuple(flow.sides[0] for flow in self.flows),
            tuple(
                {name: self.names.called(side, name) for name in schema.names}
                for side, schema in enumerate(schemas)
            ),
            (),
            self.extra,
        )

    def asked(self) -> QueryTree:
        conditions, near = self._conditions()
        arcs = tuple(flow.arc for flow in self.flows)
        items = tuple((name, self.names.typed(tree).type, tree) for name, tree in self._columns())
        return QueryTree(arcs, self.names.schema, tuple(conditions), near, items)

    def _conditions(self) -> tuple[list[JoinCondition], Nearness | None]:
        """What WHERE says, and windows; conditions that are windows are left out of the first."""
        query = self.query
        conditions = [
            self._condition(part) for piece in query.conditions for part in conjuncts(piece)
        ]
        if not self.names.joined:
            return conditions, None
        near = nearness(query.sources, self.flows, conditions)
        return near.conditions, near

    def read(self) -> Analysis:
        conditions, near = self._conditions()
        single, rest, equal = self._clauses(conditions, near)
        arcs = tuple(flow.arc for flow in self.flows)
        join = None
        if near is not None:
            kind = "rows" if near.rows else "range"
            join = JoinShape(arcs, equal, kind, near.on)  # type: ignore[arg-type]
        template = Template(
            tuple(Arc(arc, tuple(own)) for arc, own in zip(arcs, single, strict=True)),
            self._items(),
            tuple(slot.type for slot in self.atoms.slots),
            tuple(rest),
            join,
            near.rows if near else (),
            near.bands if near else (),
        )
        return Analysis(template, tuple(self.atoms.slots), frozenset(self.atoms.frozen))

    def _entered(self, source: FromSource) -> Flow:
        """A source of FROM as an arc."""
        name = self.around.scope.arc(arc_name(source.arcs[0]))
        if name not in self.around.arcs:
            raise source.arcs[0].error(
                f"there is no stream {name}; {list_existing(self.around.arcs)}",
                code="UNKNOWN_STREAM",
                hint=closest(name, self.around.arcs),
            )
        schema = self.around.arcs[name]
        promised = {n.lower() for n in self.around.progress.get(name, ())}
        progress = tuple(n for n in schema.names if n.lower() in promised)
        names = {name: name for name in schema.names}
        return Flow(name, (FromSide(source.name, schema),), (names,), progress)

    def _require_windows(self) -> None:
        """Refuse windows that stand where they mean nothing."""
        window, sources = self.query.window, self.query.sources
        if window is not None and len(sources) == 1 and sources[0].window is not None:
            raise window.piece.error(
                f"{sources[0].label} has a window already", code="BAD_WINDOW", hint="leave out one"
            )
        if window is not None and window.rows is not None:
            raise window.piece.error(
                "[ROWS n] counts the tuples of a stream",
                code="BAD_WINDOW",
                hint="write it after FROM S",
            )

    def _condition(self, piece: Piece) -> JoinCondition:
        resolved = self.whole.resolve(piece)
        with piece.located():
            typed, tree = self._typed(resolved)
            if typed.type.name != "boolean":
                raise NetworkError(
                    "TYPE_MISMATCH",
                    f"expected a predicate (boolean), but {piece.text!r} is {typed.type}",
                )
        return JoinCondition(piece, tree, self.names.sides(tree))

    def _typed(self, resolved: Resolved) -> tuple[Typed, Node]:
        """An expression's type and tree, whose literals know their places in the query."""
        start = resolved.piece.start

        def look(node: Node) -> Node | None:
            if isinstance(node, Literal) and node.place is not None:
                return replace(node, place=node.place + start)
            return None

        assert resolved.meant is not None
        tree = substituted(resolved.meant, look)
        refuse(tree, self.names.schema)
        self.around.require_callable(tree)
        try:
            typed = self.names.typed(tree)
        except OnlySparkError as only:
            raise self._only_spark(only, tree, resolved) from None
        result_type(typed.type)
        return typed, tree

    def _only_spark(self, only: OnlySparkError, tree: Node, resolved: Resolved) -> Exception:
        if not self.names.calls(tree) and self.parameters is None:
            analyze(resolved.text, self.names.schema, resolver=self.around.scope.resolver)
        elif self.around.scope.resolver is None:
            return NetworkError(
                "UNKNOWN_FUNCTION",
                f"there is no function {only.what} in the catalogue, and no Spark at hand to ask",
                hint=closest(only.what, self.names.functions),
            )
        return NotShared(f"only Spark can evaluate {only.what}")

    def _clauses(
        self, conditions: Sequence[JoinCondition], near: Nearness | None
    ) -> tuple[list[list[Clause]], list[Clause], tuple[tuple[int, str, int, str], ...]]:
        """The clauses of each source alone, those of joined tuples, and equalities of fields."""
        single: list[list[Clause]] = [[] for _ in self.flows]
        rest: list[Clause] = []
        equal: list[tuple[int, str, int, str]] = []
        for condition in conditions:
            for leaves in self.atoms.clauses(condition.tree):
                sides = frozenset(s for leaf in leaves for s in self.names.sides(leaf.tree))
                pair = self._equated(leaves[0].tree) if len(leaves) == 1 else None
                if near is not None and pair is not None and not leaves[0].negated:
                    equal.append(pair)
                    continue
                side = 0 if not self.names.joined else min(sides) if len(sides) == 1 else None
                with condition.piece.located():
                    clause = self.atoms.clause(leaves, side)
                if clause is True:
                    continue
                if clause is False:
                    single[0].append(self._never())
                else:
                    assert not isinstance(clause, bool)
                    (rest if side is None else single[side]).append(clause)
        return single, rest, tuple(dict.fromkeys(equal))

    def _never(self) -> Clause:
        """A clause that holds for no tuple."""
        field = self.names.called(0, self.flows[0].sides[0].schema.names[0])
        attribute = self.atoms.attribute(Name(field), 0)
        slot = self.atoms.add(Slot(attribute.type, (), lambda _: [], listed=True))
        return (Atom(attribute, "in", slot),)

    def _equated(self, tree: Node) -> tuple[int, str, int, str] | None:
        """The fields of an equality of two sources."""
        if not isinstance(tree, Call) or tree.name != "=" or len(tree.args) != 2:
            return None
        if not all(isinstance(arg, Name) and arg.name in self.names.side_of for arg in tree.args):
            return None
        sides = []
        for arg in tree.args:
            assert isinstance(arg, Name)
            sides.append((self.names.side_of[arg.name], arg.name.partition(".")[2], arg.name))
        (i, one, a), (j, other, b) = sorted(sides)
        types = [self.names.schema.field(name).type for name in (a, b)]
        plain = types[0].is_integral or types[0].name in _EQUATED
        if i == j or types[0] != types[1] or not plain or types[0].name in FRACTIONAL:
            return None
        return i, one, j, other

    def _columns(self) -> Iterator[tuple[str, Node]]:
        """The result's fields, with their expressions."""
        for column in columns(self.query, self.whole):
            with column.piece.located():
                if column.resolved is not None:
                    yield column.name, self._typed(column.resolved)[1]
                else:
                    assert column.field is not None
                    yield column.name, Name(column.field)

    def _items(self) -> tuple[TemplateItem, ...]:
        side = None if self.names.joined else 0
        return tuple(
            TemplateItem(name, self.atoms.attribute(tree, side)) for name, tree in self._columns()
        )


def _require_shared(query: ParsedQuery, around: Surroundings) -> None:
    """Refuse what the eddy does not run."""
    if query.distinct is not None:
        raise NotShared("DISTINCT")
    window = query.window or (query.sources[0].window if len(query.sources) == 1 else None)
    if aggregated(query, window):
        raise NotShared("aggregates")
    for source in query.sources:
        if len(source.arcs) > 1:
            raise NotShared("UNION in FROM")
        name = around.scope.arc(arc_name(source.arcs[0]))
        if name in around.scope.tables and name not in around.arcs:
            raise NotShared("tables")
