"""Expressions over a window's tuples: aggregates, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from auroral.errors import NetworkError, closest
from auroral.network.types import Field, Schema, Type
from auroral.sql.aggregates.calls import AggregateCall, CheckedCall, check_call, unsupported
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS
from auroral.sql.expressions.compiler import compile_node, result_type
from auroral.sql.expressions.expression import Resolver
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import (
    Call,
    Case,
    Cast,
    IndexAccess,
    Member,
    Name,
    Node,
    free_names,
    walk,
)
from auroral.sql.expressions.typed import OnlySparkError, Row, Typed
from auroral.sql.functions.catalogue import CATALOGUE
from auroral.sql.queries.refusals import AGGREGATES, refuse


@dataclass(frozen=True)
class AggregatePlan:
    """The aggregates of an expression, and the expression over them as text and as a tree.

    `outer` is None if the expression is nothing but one call.
    """

    checked: tuple[CheckedCall, ...]
    outer: str | None
    tree: Node

    def scope(self, schema: Schema, groups: tuple[str, ...]) -> Schema:
        """What the outer expression may name: agg0, agg1, … and the groups."""
        found = (Field(f"agg{at}", one.call.type) for at, one in enumerate(self.checked))
        return Schema((*found, *(schema.field(name) for name in groups)))


@dataclass(frozen=True)
class Aggregation:
    """An expression over a window's tuples; `fields` are those it reads, in schema order."""

    text: str
    type: Type
    fields: tuple[str, ...]
    plan: Callable[[], AggregatePlan] = field(repr=False, compare=False)

    @cached_property
    def calls(self) -> tuple[AggregateCall, ...]:
        """Its aggregates; an error names those that only Spark has."""
        return tuple(one.call for one in self.plan().checked)

    @cached_property
    def outer(self) -> str | None:
        """Spark SQL over the columns agg0, agg1, …, None if it is nothing but one aggregate."""
        return self.plan().outer


def analyze_aggregate(
    text: str,
    schema: Schema,
    *,
    groups: tuple[str, ...] = (),
    resolver: Resolver | None = None,
) -> Aggregation:
    """Check an aggregate expression and find its type; `groups` may stand outside aggregates.

    >>> schema = Schema.parse("pos int, price decimal(8,2)")
    >>> found = analyze_aggregate("sum( pos+1 ) / count(*)", schema)
    >>> str(found.type), found.outer, found.calls[0].args
    ('double', 'agg0 / agg1', ('pos+1',))
    >>> str(analyze_aggregate("avg(price)", schema).type)
    'decimal(12,6)'
    """
    try:
        return _analyzed(text, schema, groups, resolver)
    except RecursionError:
        raise NetworkError("SYNTAX_ERROR", "the expression is nested too deeply") from None


def aggregate_evaluator(
    text: str, schema: Schema, *, groups: tuple[str, ...] = ()
) -> Callable[[Sequence[Row]], Any]:
    """Compile an aggregate expression into a function of a window's rows in order of arrival.

    >>> evaluate = aggregate_evaluator("max(x) - min(x)", Schema.parse("x int"))
    >>> evaluate([{"x": 3}, {"x": None}, {"x": 8}])
    5
    """
    analyze_aggregate(text, schema, groups=groups, resolver=_not_in_reference)
    plan = _planned(text, schema)
    outer = _in_reference(plan.tree, plan.scope(schema, groups))
    names = tuple(schema.field(name).name for name in groups)

    def evaluate(rows: Sequence[Row]) -> Any:
        values = {name: rows[0][name] if rows else None for name in names}
        for at, one in enumerate(plan.checked):
            values[f"agg{at}"] = one.evaluate(rows)
        return outer.run(values)

    return evaluate


def _analyzed(
    text: str, schema: Schema, groups: tuple[str, ...], resolver: Resolver | None
) -> Aggregation:
    tree = parse(text)
    read = {schema.field(name).name for name in free_names(tree)}
    fields = tuple(name for name in schema.names if name in read)
    try:
        plan = _plan(text, schema, lambda node, _: compile_node(node, schema))
        _require_aggregated(text, plan, schema, groups)
        type = result_type(compile_node(plan.tree, plan.scope(schema, groups)).type)
        return Aggregation(text, type, fields, lambda: plan)
    except OnlySparkError as only:
        if resolver is None:
            raise NetworkError(
                "UNKNOWN_FUNCTION",
                f"there is no {only.what} in the catalogue, and no Spark at hand to ask",
                hint=closest(only.what, (*AGGREGATE_FUNCTIONS, *CATALOGUE)),
            ) from None
        # Ask Spark for the types of arguments only when the aggregates are to be computed.
        later = partial(_planned, text, schema, resolver)
        return Aggregation(text, resolver(text, schema), fields, later)


def _planned(text: str, schema: Schema, resolver: Resolver | None = None) -> AggregatePlan:
    """The plan of an expression; the resolver finds types that only Spark knows."""

    def compiled(node: Node, source: str) -> Typed:
        try:
            return compile_node(node, schema)
        except OnlySparkError as only:
            if resolver is None:
                raise _unknown_to_reference(only) from None
            return Typed(resolver(source, schema), partial(_unevaluated, only))

    try:
        return _plan(text, schema, compiled)
    except OnlySparkError as only:
        raise unsupported(only.what) from None


def _plan(text: str, schema: Schema, compiled: Callable[[Node, str], Typed]) -> AggregatePlan:
    """Take the aggregates out of an expression, in the tree and in the text."""
    tree = parse(text)
    found: list[CheckedCall] = []
    places: dict[tuple[int, int], str] = {}

    def argument(node: Node, source: str) -> Typed:
        refuse(node, schema)
        return compiled(node, source)

    def replaced(node: Node) -> Node:
        if isinstance(node, Call) and node.name in AGGREGATES:
            checked = check_call(node, text, argument)
            calls = [one.call for one in found]
            at = calls.index(checked.call) if checked.call in calls else len(found)
            if at == len(found):
                found.append(checked)
            assert node.place is not None
            places[node.place.whole] = f"agg{at}"
            return Name(f"agg{at}")
        return _rebuilt(node, replaced)

    outer = replaced(tree)
    refuse(outer, schema)
    if isinstance(outer, Name) and places:
        return AggregatePlan(tuple(found), None, outer)
    for (start, end), name in sorted(places.items(), reverse=True):
        text = text[:start] + name + text[end:]
    return AggregatePlan(tuple(found), text, outer)


def _require_aggregated(
    text: str, plan: AggregatePlan, schema: Schema, groups: tuple[str, ...]
) -> None:
    scope = plan.scope(schema, groups)
    loose = [name for name in free_names(plan.tree) if name not in scope]
    if not loose and (plan.checked or groups):
        return
    _refuse_misspelt(plan.tree)
    what = f"the field {loose[0]}" if loose else "none"
    raise NetworkError(
        "NOT_AGGREGATED",
        f"expected an aggregate such as count(*) or avg(x); found {what} in {text!r}",
        hint=f"write first({loose[0]}) or group by it" if loose else None,
    )


def _refuse_misspelt(outer: Node) -> None:
    """Say `there is no summ` rather than that nothing is aggregated."""
    for node in walk(outer):
        if isinstance(node, Call) and node.name not in CATALOGUE:
            hint = closest(node.name, AGGREGATE_FUNCTIONS)
            if hint:
                raise NetworkError("UNKNOWN_FUNCTION", f"there is no {node.name}", hint=hint)


def _in_reference(tree: Node, scope: Schema) -> Typed:
    try:
        return compile_node(tree, scope)
    except OnlySparkError as only:
        raise _unknown_to_reference(only) from None


def _not_in_reference(_text: str, _schema: Schema) -> Type:
    """A resolver for use without Spark; evaluating the plan later names what is missing."""
    return Type("boolean")


def _unevaluated(only: OnlySparkError, _row: Row) -> Any:
    raise _unknown_to_reference(only)


def _unknown_to_reference(only: OnlySparkError) -> NetworkError:
    return NetworkError(
        "NOT_IN_REFERENCE",
        f"only Spark can evaluate {only.what}; the reference evaluator does not know it",
    )


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with its children changed."""
    match node:
        case Call(_, args, _):
            return replace(node, args=tuple(change(argument) for argument in args))
        case Cast(child, _, _):
            return replace(node, child=change(child))
        case Member(base, _):
            return replace(node, base=change(base))
        case IndexAccess(base, index):
            return IndexAccess(change(base), change(index))
        case Case(branches, default):
            pairs = tuple((change(when), change(then)) for when, then in branches)
            return Case(pairs, None if default is None else change(default))
        case _:
            return node
