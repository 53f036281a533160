"""Expressions over a window's tuples: aggregates, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from auroral.errors import NetworkError
from auroral.network.types import Field, Schema, Type
from auroral.sql.coercion import adjusted, array_of
from auroral.sql.compiler import compile_node, result_type
from auroral.sql.expression import Resolver
from auroral.sql.parser import parse
from auroral.sql.refusals import AGGREGATES, refuse
from auroral.sql.syntax import Call, Case, Cast, Index, Member, Name, Node, free_names
from auroral.sql.typed import OnlySparkError

_COUNTS = frozenset(("count", "count_if", "approx_count_distinct", "regr_count"))
_SAME = frozenset(
    ("min", "max", "first", "first_value", "last", "last_value", "any_value", "mode")
    + ("max_by", "min_by", "bit_and", "bit_or", "bit_xor")
)
_DOUBLES = frozenset(
    ("stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "skewness")
    + ("kurtosis", "corr", "covar_pop", "covar_samp", "median", "percentile", "percentile_cont")
)
_BOOLEANS = frozenset(("bool_and", "bool_or", "every", "some", "any"))


@dataclass(frozen=True)
class Aggregation:
    """An expression over a window's tuples; `fields` are those it reads, in schema order."""

    text: str
    type: Type
    fields: tuple[str, ...]


def analyze_aggregate(
    text: str,
    schema: Schema,
    *,
    groups: tuple[str, ...] = (),
    resolver: Resolver | None = None,
) -> Aggregation:
    """Check an aggregate expression and find its type; `groups` may stand outside aggregates.

    >>> schema = Schema.parse("pos int, price decimal(8,2)")
    >>> str(analyze_aggregate("sum(pos) / count(*)", schema).type)
    'double'
    >>> str(analyze_aggregate("avg(price)", schema).type)
    'decimal(12,6)'
    """
    tree = parse(text)
    read = {schema.field(name).name for name in free_names(tree)}
    fields = tuple(name for name in schema.names if name in read)
    found: list[Field] = []

    def replaced(node: Node) -> Node:
        if isinstance(node, Call) and node.name in AGGREGATES:
            name = f"aggregate_{len(found)}"
            found.append(Field(name, _type(node, schema, text, resolver)))
            return Name(name)
        return _rebuilt(node, replaced)

    outer = replaced(tree)
    refuse(outer, schema)
    grouped = [schema.field(name) for name in groups]
    scope = Schema((*found, *grouped))
    loose = [name for name in free_names(outer) if name not in scope]
    if loose or not (found or groups):
        what = f"the field {loose[0]}" if loose else "no aggregate"
        raise NetworkError(
            "NOT_AGGREGATED",
            f"expected an aggregate such as count(*) or avg(x); found {what} in {text!r}",
            hint=f"write first({loose[0]}) or group by it" if loose else None,
        )
    try:
        return Aggregation(text, result_type(compile_node(outer, scope).type), fields)
    except OnlySparkError as only:
        if resolver is None:
            raise _unknown(only.what) from None
        return Aggregation(text, resolver(text, schema), fields)


def _type(call: Call, schema: Schema, text: str, resolver: Resolver | None) -> Type:
    for argument in call.args:
        refuse(argument, schema)
    name = call.name
    if name in _COUNTS:
        for argument in call.args:
            compile_node(argument, schema)
        return Type("bigint")
    if not call.args:
        raise NetworkError("WRONG_ARGUMENTS", f"{name} needs an argument, found none in {text!r}")
    first = compile_node(call.args[0], schema).type
    if name in _SAME:
        return first
    if name in _BOOLEANS:
        if first.name != "boolean":
            raise _mismatch(name, "a boolean", first)
        return first
    if name in ("collect_list", "collect_set", "array_agg"):
        return array_of(first)
    if name in ("sum", "try_sum", "avg", "mean", "try_avg", *_DOUBLES):
        if not (first.is_numeric or first.name == "string"):
            raise _mismatch(name, "a number", first)
        return _numeric(name, first)
    if resolver is None:
        raise _unknown(name)
    return resolver(text, schema)


def _numeric(name: str, of: Type) -> Type:
    if name in ("sum", "try_sum"):
        if of.is_integral:
            return Type("bigint")
        if of.name == "decimal":
            return Type("decimal", min(of.precision + 10, 38), of.scale)
    if name in ("avg", "mean", "try_avg") and of.name == "decimal":
        return adjusted(of.precision + 4, of.scale + 4)
    return Type("double")


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with its children changed."""
    match node:
        case Call(_, args, _):
            return replace(node, args=tuple(change(argument) for argument in args))
        case Cast(child, _, _):
            return replace(node, child=change(child))
        case Member(base, _):
            return replace(node, base=change(base))
        case Index(base, index):
            return Index(change(base), change(index))
        case Case(branches, default):
            pairs = tuple((change(when), change(then)) for when, then in branches)
            return Case(pairs, None if default is None else change(default))
        case _:
            return node


def _mismatch(name: str, expected: str, found: Type) -> NetworkError:
    return NetworkError("TYPE_MISMATCH", f"{name} expects {expected}, found {found}")


def _unknown(name: str) -> NetworkError:
    return NetworkError(
        "UNKNOWN_FUNCTION", f"there is no {name} in the catalogue, and no Spark at hand to ask"
    )
