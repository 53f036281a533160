"""Calls of aggregates: which there are, what they take, what type they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions.coercion import BIGINT, BOOLEAN, DOUBLE, STRING, VOID, array_of, shown
from auroral.sql.expressions.compiler import result_type
from auroral.sql.expressions.syntax import Call, Clauses, Node
from auroral.sql.expressions.typed import OnlySparkError, Typed, cast
from auroral.sql.queries.refusals import refuse_nested

CANONICAL = {
    "any": "bool_or",
    "any_value": "first",
    "array_agg": "collect_list",
    "approx_count_distinct": "count",
    "every": "bool_and",
    "first_value": "first",
    "last_value": "last",
    "mean": "avg",
    "median": "percentile",
    "regr_count": "count",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "try_avg": "avg",
    "variance": "var_samp",
}
"""Aggregates that are another one under a second name."""

_SAME = ("first", "last", "min", "max", "mode", "max_by", "min_by", "bit_and", "bit_or", "bit_xor")
_MOMENTS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop", "skewness", "kurtosis")
_PAIRS = ("corr", "covar_pop", "covar_samp")
_SUMS = ("sum", "try_sum", "avg")
_PLAIN = ("count", "count_if", "bool_and", "bool_or", "collect_list", "collect_set", "percentile")
SUPPORTED = frozenset((*_SAME, *_MOMENTS, *_PAIRS, *_SUMS, *_PLAIN, *CANONICAL))
"""Every aggregate there is, under all of its names."""

_ARITY = {
    "count": (0, 99),  # count(*) has none
    "approx_count_distinct": (1, 2),
    "first": (1, 2),
    "last": (1, 2),
    "mode": (1, 2),
    "percentile": (2, 2),
    "median": (1, 1),
    **dict.fromkeys(("regr_count", "max_by", "min_by", *_PAIRS), (2, 2)),
}
"""How many arguments an aggregate takes, if not one; by its own name, else the canonical one."""

_UNMOVED = ("min", "max", "max_by", "min_by", "bool_and", "bool_or", "bit_and", "bit_or")
"""What DISTINCT makes no difference to."""


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate under its canonical name, its arguments as Spark SQL texts.

    `where` is the condition of its FILTER; `literals` are constant arguments, such as the
    fraction of a percentile, or a tuple of them.
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


def check_call(node: Call, text: str, compiled: Callable[[Node, str], Typed]) -> CheckedCall:
    """Check a call of an aggregate that stands in `text` and find its type.

    OnlySparkError if it is an aggregate of Spark's that is not supported here.
    """
    name, clauses = node.name, node.clauses or Clauses()
    for part in (*node.args, *((clauses.where,) if clauses.where is not None else ())):
        refuse_nested(part, name)
    if name not in SUPPORTED:
        raise OnlySparkError(name)
    assert node.place is not None
    texts = [text[start:end] for start, end in node.place.args]
    args = [compiled(arg, source) for arg, source in zip(node.args, texts, strict=True)]
    _require_arity(name, len(args))
    canonical = CANONICAL.get(name, name)
    ignore_nulls = _ignore_nulls(name, canonical, clauses, args)
    literals = _literals(name, args)
    if canonical in ("first", "last", "mode", "percentile") or name == "approx_count_distinct":
        args, texts = args[:1], texts[:1]
    texts, args = _coerced(canonical, texts, args)
    type = _type(name, canonical, args)
    distinct = clauses.distinct or name == "approx_count_distinct"
    distinct = distinct and canonical not in _UNMOVED
    _require_comparable(name, canonical, args, distinct)
    if canonical == "percentile" and isinstance(literals[0], tuple):
        type = array_of(DOUBLE)
    where = where_text = None
    if clauses.where is not None:
        where_text = text[slice(*node.place.where)]
        where = compiled(clauses.where, where_text)
        if where.type == VOID:
            where, where_text = cast(where, BOOLEAN), f"CAST(({where_text}) AS boolean)"
        _require("FILTER (WHERE …)", where.type == BOOLEAN, "a boolean", where.type)
    types = tuple(arg.type for arg in args)
    call = AggregateCall(
        canonical, tuple(texts), types, type, distinct, ignore_nulls, where_text, literals
    )
    return CheckedCall(call, tuple(args), where)


def unsupported(name: str) -> NetworkError:
    """The error for an aggregate that only Spark has."""
    return NetworkError(
        "UNSUPPORTED_AGGREGATE",
        f"the aggregate {name} cannot be computed over windows;"
        f" there are {', '.join(sorted(SUPPORTED))}",
        hint="or write a window function: udf: module:Class with init, incr and final",
    )


def _require_arity(name: str, found: int) -> None:
    least, most = _ARITY.get(name) or _ARITY.get(CANONICAL.get(name, name), (1, 1))
    if not least <= found <= most:
        wanted = f"{least} to {most} arguments"
        if least == most:
            wanted = f"{least} argument{'s' if least != 1 else ''}"
        raise NetworkError("WRONG_ARITY", f"{name} takes {wanted}, found {found}")


def _ignore_nulls(name: str, canonical: str, clauses: Clauses, args: Sequence[Typed]) -> bool:
    if clauses.ignore_nulls and canonical not in ("first", "last"):
        raise NetworkError(
            "BAD_AGGREGATE",
            f"IGNORE NULLS goes with first, last and any_value; {name} ignores them anyway",
        )
    if canonical not in ("first", "last") or len(args) == 1:
        return bool(clauses.ignore_nulls)
    flag = args[1]
    fits = flag.type == BOOLEAN and flag.constant
    _require(name, fits, "true or false as second argument", flag.type)
    return bool(flag.value()) or bool(clauses.ignore_nulls)


def _literals(name: str, args: Sequence[Typed]) -> tuple[Any, ...]:
    if name == "median":
        return (0.5,)
    if name != "percentile":
        return ()
    fraction = args[1]
    value = fraction.value() if fraction.constant else None
    several = fraction.type.name == "array"
    items: list[Any] = (value or []) if several else [value]
    if not items or not all(_is_fraction(item) for item in items):
        raise NetworkError(
            "BAD_AGGREGATE",
            "percentile expects a constant between 0 and 1, or an array of them, as second"
            f" argument, found {shown(fraction.type)}",
        )
    return (tuple(map(float, items)) if several else float(items[0]),)


def _is_fraction(value: Any) -> bool:
    if value is None or isinstance(value, bool | str):
        return False
    return math.isfinite(value) and 0 <= value <= 1


def _coerced(
    name: str, texts: Sequence[str], args: Sequence[Typed]
) -> tuple[list[str], list[Typed]]:
    """The arguments as Spark casts them; what the accumulators cast as Spark would is left."""
    new_texts: list[str] = []
    new_args: list[Typed] = []
    for text, arg in zip(texts, args, strict=True):
        to = arg.type
        doubles = name in (*_MOMENTS, *_PAIRS, "percentile")
        if (to == STRING and (doubles or name in _SUMS)) or (to.name == "decimal" and doubles):
            to = DOUBLE
        elif name == "count" and to == VOID:
            to = BOOLEAN
        new_args.append(cast(arg, to))
        new_texts.append(text if to == arg.type else f"CAST(({text}) AS {to})")
        result_type(to)
    return new_texts, new_args


def _type(name: str, canonical: str, args: Sequence[Typed]) -> Type:
    of = [arg.type for arg in args]
    if canonical == "count":
        return BIGINT
    if canonical in ("count_if", "bool_and", "bool_or"):
        _require(name, of[0] == BOOLEAN, "a boolean", of[0])
        return BIGINT if canonical == "count_if" else BOOLEAN
    if canonical.startswith("bit_"):
        _require(name, of[0].is_integral, "a whole number", of[0])
    if canonical in _SAME:
        return of[0]
    if canonical in ("collect_list", "collect_set"):
        return array_of(of[0])
    for type in of:
        _require(name, type.is_numeric, "a number", type)
    if canonical in ("sum", "try_sum") and of[0].is_integral:
        return BIGINT
    if of[0].name == "decimal" and canonical in _SUMS:
        if canonical == "avg":
            return Type("decimal", min(of[0].precision + 4, 38), min(of[0].scale + 4, 38))
        return Type("decimal", min(of[0].precision + 10, 38), of[0].scale)
    return DOUBLE


def _require_comparable(name: str, canonical: str, args: Sequence[Typed], distinct: bool) -> None:
    if distinct:
        compared = [arg.type for arg in args]
    elif canonical in ("min", "max", "mode", "collect_set", "max_by", "min_by"):
        compared = [args[-1].type]
    else:
        return
    for type in compared:
        _require(name, not _has_map(type), "values that can be compared", type)


def _has_map(type: Type) -> bool:
    return type.name == "map" or any(_has_map(child.type) for child in type.children)


def _require(name: str, fits: bool, expected: str, found: Type) -> None:
    if not fits:
        raise NetworkError("TYPE_MISMATCH", f"{name} expects {expected}, found {shown(found)}")
