"""Expressions over a window's tuples: aggregates, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from auroral.errors import NetworkError, closest
from auroral.network.types import Field, Schema, Type
from auroral.sql.catalogue import CATALOGUE
from auroral.sql.coercion import adjusted, array_of
from auroral.sql.compiler import compile_node, result_type
from auroral.sql.expression import Resolver
from auroral.sql.parser import parse
from auroral.sql.refusals import AGGREGATES, refuse
from auroral.sql.syntax import Call, Case, Cast, Index, Member, Name, Node, free_names, walk
from auroral.sql.typed import OnlySparkError

_COUNTS = frozenset(("count", "count_if", "approx_count_distinct", "regr_count"))
_SAME = frozenset(
    "min max first first_value last last_value any_value mode max_by min_by".split()  # noqa: SIM905
)
_BITS = frozenset(("bit_and", "bit_or", "bit_xor"))
_DOUBLES = frozenset(
    """
    stddev std stddev_samp stddev_pop variance var_samp var_pop skewness kurtosis corr covar_pop
    covar_samp median percentile
    """.split()  # noqa: SIM905
)
_SUMS = frozenset(("sum", "try_sum", "avg", "mean", "try_avg"))
_BOOLEANS = frozenset(("bool_and", "bool_or", "every", "some", "any"))
_LISTS = frozenset(("collect_list", "collect_set", "array_agg"))
_ONE = (1, 1)
_ARITY = {
    "count": (0, 99),  # count(*) has none
    "approx_count_distinct": (1, 2),
    "regr_count": (2, 2),
    "first": (1, 2),
    "first_value": (1, 2),
    "last": (1, 2),
    "last_value": (1, 2),
    "any_value": (1, 2),
    "mode": (1, 2),
    "max_by": (2, 2),
    "min_by": (2, 2),
    "corr": (2, 2),
    "covar_pop": (2, 2),
    "covar_samp": (2, 2),
    "percentile": (2, 3),
}
"""How many arguments an aggregate takes, if not one."""


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
    try:
        return _analyzed(text, schema, groups, resolver)
    except RecursionError:
        raise NetworkError("SYNTAX_ERROR", "the expression is nested too deeply") from None


def _analyzed(
    text: str, schema: Schema, groups: tuple[str, ...], resolver: Resolver | None
) -> Aggregation:
    tree = parse(text)
    read = {schema.field(name).name for name in free_names(tree)}
    fields = tuple(name for name in schema.names if name in read)
    found: list[Field] = []

    def replaced(node: Node) -> Node:
        if isinstance(node, Call) and node.name in AGGREGATES:
            name = f"aggregate_{len(found)}"
            found.append(Field(name, _type(node, schema)))
            return Name(name)
        return _rebuilt(node, replaced)

    try:
        outer = replaced(tree)
        refuse(outer, schema)
        scope = Schema((*found, *(schema.field(name) for name in groups)))
        loose = [name for name in free_names(outer) if name not in scope]
        if loose or not (found or groups):
            _refuse_misspelt(outer)
            what = f"the field {loose[0]}" if loose else "none"
            raise NetworkError(
                "NOT_AGGREGATED",
                f"expected an aggregate such as count(*) or avg(x); found {what} in {text!r}",
                hint=f"write first({loose[0]}) or group by it" if loose else None,
            )
        return Aggregation(text, result_type(compile_node(outer, scope).type), fields)
    except OnlySparkError as only:
        if resolver is None:
            raise NetworkError(
                "UNKNOWN_FUNCTION",
                f"there is no {only.what} in the catalogue, and no Spark at hand to ask",
                hint=closest(only.what, (*AGGREGATES, *CATALOGUE)),
            ) from None
        return Aggregation(text, resolver(text, schema), fields)


def _refuse_misspelt(outer: Node) -> None:
    """Say `there is no summ` rather than that nothing is aggregated."""
    for node in walk(outer):
        if isinstance(node, Call) and node.name not in CATALOGUE:
            hint = closest(node.name, AGGREGATES)
            if hint:
                raise NetworkError("UNKNOWN_FUNCTION", f"there is no {node.name}", hint=hint)


def _type(call: Call, schema: Schema) -> Type:
    name = call.name
    for argument in call.args:
        refuse(argument, schema)
    of = [compile_node(argument, schema).type for argument in call.args]
    least, most = _ARITY.get(name, _ONE)
    if name in _KNOWN and not least <= len(of) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise NetworkError("WRONG_ARITY", f"{name} takes {wanted} arguments, found {len(of)}")
    if name in _COUNTS:
        if name == "count_if":
            _require(name, of[0].name == "boolean", "a boolean", of[0])
        return Type("bigint")
    if name in _SAME:
        return of[0]
    if name in _BITS:
        _require(name, of[0].is_integral, "a whole number", of[0])
        return of[0]
    if name in _BOOLEANS:
        _require(name, of[0].name == "boolean", "a boolean", of[0])
        return of[0]
    if name in _LISTS:
        return array_of(of[0])
    if name in _SUMS or name in _DOUBLES:
        _require(name, of[0].is_numeric or of[0].name == "string", "a number", of[0])
        several = name == "percentile" and of[1].name == "array"
        return array_of(Type("double")) if several else _numeric(name, of[0])
    raise OnlySparkError(name)


_KNOWN = _COUNTS | _SAME | _BITS | _DOUBLES | _SUMS | _BOOLEANS | _LISTS


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


def _require(name: str, fits: bool, expected: str, found: Type) -> None:
    if not fits:
        raise NetworkError("TYPE_MISMATCH", f"{name} expects {expected}, found {found}")
