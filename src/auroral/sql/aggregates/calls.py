"""Calls of aggregate functions in expressions: checked, typed, and evaluated over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.aggregates.evaluators import Values, distinct
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS, AggregateFunction
from auroral.sql.expressions.coercion import BOOLEAN, VOID, shown
from auroral.sql.expressions.compiler import result_type
from auroral.sql.expressions.syntax import Call, Clauses, Node
from auroral.sql.expressions.typed import OnlySparkError, Row, Typed, cast
from auroral.sql.queries.refusals import refuse_nested


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate under its canonical name, its arguments as Spark SQL texts.

    `where` is the condition of its FILTER; `literals` are what the function's `constants` gives,
    such as the fraction of a percentile, or a tuple of fractions.
    """

    name: str
    args: tuple[str, ...]
    types: tuple[Type, ...]
    type: Type
    distinct: bool = False
    ignore_nulls: bool = False
    where: str | None = None
    literals: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CheckedCall:
    """An aggregate call with what evaluates its arguments."""

    call: AggregateCall
    inputs: tuple[Typed, ...]
    where: Typed | None

    def evaluate(self, rows: Sequence[Row]) -> Any:
        """The value over rows, which are in order of arrival."""
        function = AGGREGATE_FUNCTIONS[self.call.name]
        if self.where is not None:
            rows = [row for row in rows if self.where.run(row) is True]
        values: Values = [tuple(arg.run(row) for arg in self.inputs) for row in rows]
        if function.nulls == "skip_last":
            values = [row for row in values if row[-1] is not None]
        elif function.nulls == "skip_any" or self.call.ignore_nulls:
            values = [row for row in values if None not in row]
        if self.call.distinct:
            values = distinct(values)
        return function.evaluate(self.call, values)


def check_call(node: Call, text: str, compiled: Callable[[Node, str], Typed]) -> CheckedCall:
    """Check a call of an aggregate that stands in `text` and find its type.

    OnlySparkError if it is an aggregate of Spark's that is not supported here.
    """
    name, clauses = node.name, node.clauses or Clauses()
    for part in (*node.args, *((clauses.where,) if clauses.where is not None else ())):
        refuse_nested(part, name)
    function = AGGREGATE_FUNCTIONS.get(name)
    if function is None:
        raise OnlySparkError(name)
    assert node.place is not None
    texts = [text[start:end] for start, end in node.place.args]
    args = [compiled(arg, source) for arg, source in zip(node.args, texts, strict=True)]
    _require_arity(name, function, len(args))
    ignore_nulls = _ignore_nulls(name, function, clauses, args)
    constants = function.constants(args)
    columns = slice(function.columns)
    texts, args = _coerced(function, texts[columns], args[columns])
    types = tuple(arg.type for arg in args)
    for type in types:
        _require(name, function.takes.fits(type), function.takes.expected, type)
    is_distinct = function.distinct == "always"
    is_distinct |= function.distinct == "optional" and clauses.distinct
    for type in types if is_distinct else types[-1:] if function.compares else ():
        _require(name, not _has_map(type), "values that can be compared", type)
    where, where_text = _filter(node, text, clauses, compiled)
    call = AggregateCall(
        function.name,
        tuple(texts),
        types,
        function.result(types, constants),
        is_distinct,
        ignore_nulls,
        where_text,
        constants,
    )
    return CheckedCall(call, tuple(args), where)


def unsupported(name: str) -> NetworkError:
    """The error for an aggregate that only Spark has."""
    return NetworkError(
        "UNSUPPORTED_AGGREGATE",
        f"the aggregate {name} cannot be computed over windows;"
        f" there are {', '.join(sorted(AGGREGATE_FUNCTIONS))}",
        hint="or write a window function: udf: module:Class with init, incr and final",
    )


def _require_arity(name: str, function: AggregateFunction, found: int) -> None:
    least, most = function.arguments
    if not least <= found <= most:
        wanted = f"{least} to {most} arguments"
        if least == most:
            wanted = f"{least} argument{'s' if least != 1 else ''}"
        raise NetworkError("WRONG_ARITY", f"{name} takes {wanted}, found {found}")


def _ignore_nulls(
    name: str, function: AggregateFunction, clauses: Clauses, args: Sequence[Typed]
) -> bool:
    """Whether the call says IGNORE NULLS, or `true` as second argument."""
    if function.nulls != "keep":
        if clauses.ignore_nulls:
            raise NetworkError(
                "BAD_AGGREGATE",
                f"IGNORE NULLS goes with first, last and any_value; {name} ignores them anyway",
            )
        return False
    if len(args) == 1:
        return bool(clauses.ignore_nulls)
    flag = args[1]
    fits = flag.type == BOOLEAN and flag.constant
    _require(name, fits, "true or false as second argument", flag.type)
    return bool(flag.value()) or bool(clauses.ignore_nulls)


def _coerced(
    function: AggregateFunction, texts: Sequence[str], args: Sequence[Typed]
) -> tuple[list[str], list[Typed]]:
    """The arguments, cast as Spark casts them."""
    new_texts: list[str] = []
    new_args: list[Typed] = []
    for text, arg in zip(texts, args, strict=True):
        to = function.casts(arg.type)
        new_args.append(cast(arg, to))
        new_texts.append(text if to == arg.type else f"CAST(({text}) AS {to})")
        result_type(to)
    return new_texts, new_args


def _filter(
    node: Call, text: str, clauses: Clauses, compiled: Callable[[Node, str], Typed]
) -> tuple[Typed | None, str | None]:
    """The condition of FILTER (WHERE …) and its text."""
    if clauses.where is None or node.place is None:
        return None, None
    where_text = text[slice(*node.place.where)]
    where = compiled(clauses.where, where_text)
    if where.type == VOID:
        where, where_text = cast(where, BOOLEAN), f"CAST(({where_text}) AS boolean)"
    _require("FILTER (WHERE …)", where.type == BOOLEAN, "a boolean", where.type)
    return where, where_text


def _has_map(type: Type) -> bool:
    return type.name == "map" or any(_has_map(child.type) for child in type.children)


def _require(name: str, fits: bool, expected: str, found: Type) -> None:
    if not fits:
        raise NetworkError("TYPE_MISMATCH", f"{name} expects {expected}, found {shown(found)}")
