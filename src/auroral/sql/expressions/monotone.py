"""Which expressions keep order, and how they map marks.

An expression keeps order if it never decreases while a field it reads grows: `ts + 5`,
`ts div 60`, `date_trunc('minute', ts)`, `greatest(a, b)`. The mark of the result is the
expression's value at the mark of the field. It is computed by the same evaluator as the data,
with two exceptions: common integer arithmetic is vectorised, and where the data's arithmetic
wraps round, leaves its type or gives NULL, the mark stays at the end of the type's range. Data
that wrap round are below such a mark, and late.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from auroral.errors import AuroralError
from auroral.network.types import Field, Schema, Type
from auroral.progress import monotone
from auroral.progress.lowwater import Values
from auroral.progress.monotone import Applied, Change, Derived, Greatest, LeastTerm
from auroral.progress.values import to_mark
from auroral.sql.expressions import times
from auroral.sql.expressions.coercion import (
    DATE,
    TIMES,
    TIMESTAMP,
    common_without_strings,
    is_interval,
)
from auroral.sql.expressions.compiler import CAST_FUNCTIONS, compile_node
from auroral.sql.expressions.monotone_vectors import EXACT, vectorised
from auroral.sql.expressions.numbers import LIMITS, rounded
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Cast, Name, Node, free_names
from auroral.sql.expressions.typed import OnlySparkError, Typed

_ARGUMENT = "x"
_GROWING = {
    "+": (0, 1),
    "*": (0, 1),
    "date_trunc": (1,),
    **dict.fromkeys(("-", "/", "div", "positive"), (0,)),
    **dict.fromkeys(("floor", "ceil", "ceiling", "round", "bround"), (0,)),
    **dict.fromkeys(("date_add", "dateadd", "date_sub", "add_months", "last_day"), (0,)),
    **dict.fromkeys(("trunc", "year", "to_date", "to_timestamp"), (0,)),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp", "unix_date"), (0,)),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros", "date_from_unix_date"), (0,)),
    **dict.fromkeys(("timestamp_seconds", "timestamp_millis", "timestamp_micros"), (0,)),
}
"""By function, the arguments in which it never decreases while the others are constants."""
_EXACT: dict[str, Callable[[int, Any], int]] = {
    "cast": lambda value, _: value,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
"""What wraps round, on integers that have no end."""


@lru_cache(maxsize=4096)
def order_kept(text: str, schema: Schema) -> Derived | None:
    """How an expression maps the marks of fields whose order it keeps; None if it keeps none.

    >>> from auroral.progress.lowwater import LowWater
    >>> schema = Schema.parse("ts int")
    >>> minute = order_kept("ts div 60", schema)
    >>> mark = {"ts": LowWater.of([(1, 59), (2, 61), (3, 125)])}
    >>> monotone.derived(mark, {"minute": minute})["minute"].steps()
    [(1, 0), (2, 1), (3, 2)]
    >>> order_kept("ts % 60", schema), order_kept("60 - ts", schema)
    (None, None)
    """
    try:
        tree = parse(text)
        if isinstance(tree, Name):
            return monotone.FieldTerm(schema.field(tree.name).name)  # fields that group marks, too
        found = _read(tree, schema)
    except (AuroralError, OnlySparkError, RecursionError):
        return None
    return None if found is None else found[0]


def _read(node: Node, schema: Schema) -> tuple[Derived, Type] | None:
    match node:
        case Name(name):
            field = schema.field(name)
            return (monotone.FieldTerm(field.name), field.type) if field.type.is_orderable else None
        case Cast(child, to, _):
            inner = _read(child, schema)
            return None if inner is None else _cast(inner, to)
        case Call(name, (child,)) if name in CAST_FUNCTIONS:
            inner = _read(child, schema)
            return None if inner is None else _cast(inner, CAST_FUNCTIONS[name])
        case Call("greatest" | "least", _):
            return _extreme(node, schema)
        case Call(name, _) if name in _GROWING:
            return _call(node, schema)
    return None


def _cast(inner: tuple[Derived, Type], to: Type) -> tuple[Derived, Type] | None:
    derived, source = inner
    if source == to:
        return inner
    numeric = to.is_numeric and (source.is_numeric or source.name == "timestamp")
    timely = to.name in TIMES and source.name in TIMES
    if not (numeric or timely or (to == TIMESTAMP and source.is_numeric)):
        return None
    node = Cast(Name(_ARGUMENT), to)
    return Applied(derived, _change(node, source, to, None)), to


def _extreme(node: Call, schema: Schema) -> tuple[Derived, Type] | None:
    types = [compile_node(arg, schema).type for arg in node.args]
    to = common_without_strings(types)
    if to is None or not to.is_orderable:
        return None
    read = [_read(arg, schema) for arg in node.args]
    cast = [None if inner is None else _cast(inner, to) for inner in read]
    parts = tuple(part[0] for part in cast if part is not None)
    all_known = len(parts) == len(cast)
    if node.name == "greatest":
        return (Greatest(parts, all_known), to) if parts else None
    return (LeastTerm(parts), to) if all_known else None


def _call(node: Call, schema: Schema) -> tuple[Derived, Type] | None:
    """A call of which one argument keeps order and the others are constants."""
    moving = [at for at, arg in enumerate(node.args) if any(True for _ in free_names(arg))]
    if len(moving) != 1 or moving[0] not in _GROWING[node.name]:
        return None
    (at,) = moving
    inner = _read(node.args[at], schema)
    if inner is None:
        return None
    derived, source = inner
    constants = [compile_node(arg, schema) for n, arg in enumerate(node.args) if n != at]
    if not all(_is_steady(node.name, source, constant) for constant in constants):
        return None
    args = (*node.args[:at], Name(_ARGUMENT), *node.args[at + 1 :])
    node = replace(node, args=args)
    type = compile_node(node, _one(source)).type
    if not type.is_orderable or (node.name == "div" and source.name == "decimal"):
        return None
    constant = constants[0].value() if constants else None
    return Applied(derived, _change(node, source, type, constant)), type


def _is_steady(name: str, source: Type, constant: Typed) -> bool:
    """Whether a function with this constant keeps the order of its other argument."""
    value = constant.value()
    if value is None:
        return False
    if name in ("+", "-"):
        if is_interval(constant.type):
            # 31 January and 30 January, 1:00, become 28 February and 28 February, 1:00.
            return constant.type.name != "interval_ym" or source == DATE
        return constant.type.is_numeric and math.isfinite(value)
    if name in ("*", "/", "div"):
        return constant.type.is_numeric and math.isfinite(value) and value > 0
    return True


def _change(node: Call | Cast, source: Type, type: Type, constant: Any) -> Change:
    """How a function maps marks of its argument."""
    vector = vectorised(_called(node), source, type, constant)
    if vector is None:
        vector = _one_by_one(_function(node, source, type, constant), source, type)

    return lambda marks: vector(_fitted(marks, source))


def _called(node: Call | Cast) -> str:
    return "cast" if isinstance(node, Cast) else node.name


def _function(node: Call | Cast, source: Type, type: Type, constant: Any) -> Callable[[Any], Any]:
    """The function of one value of the field; whole numbers do not wrap round."""
    if type.is_integral and source.name == "decimal" and isinstance(node, Cast):
        return int
    if type.is_integral and source.is_integral and _called(node) in _EXACT:
        exact = _EXACT[_called(node)]
        return lambda value: exact(value, constant)
    if type.is_integral and source.name == "float" and isinstance(node, Cast):
        return lambda value: math.trunc(value) if math.isfinite(value) else None
    if type.is_integral and _called(node) in ("round", "bround"):
        places, half_up = int(constant or 0), _called(node) == "round"
        return lambda value: int(rounded(Decimal(value), places, half_up))
    run = compile_node(node, _one(source)).run
    return lambda value: run({_ARGUMENT: value})


def _one(type: Type) -> Schema:
    return Schema((Field(_ARGUMENT, type),))


# ── marks and values ──


def limits(type: Type) -> tuple[Any, Any]:
    """The least and the greatest mark a value of the type can have."""
    if type.name in LIMITS:
        return LIMITS[type.name]
    if type.name == "date":
        return times.days(date.min), times.days(date.max)
    if type.name in TIMES:
        return times.micros(datetime.min), times.micros(datetime.max)
    if type.name == "decimal":
        return 1 - 10**type.precision, 10**type.precision - 1
    return -math.inf, math.inf


def _fitted(marks: Values, type: Type) -> Values:
    """Marks as values that the field can have: the least at or above each, within its range."""
    if type.name in ("float", "double"):
        return marks.astype(np.float64)
    low, high = limits(type)
    if marks.dtype == np.float64:
        marks = np.array([_whole(mark, low, high) for mark in marks.tolist()], object)
    elif marks.dtype == np.int64 and low < -(2**63):
        return marks
    bounded = np.clip(marks, low, high)
    return bounded.astype(np.int64) if high < 2**63 else bounded


def _whole(mark: float, low: int, high: int) -> int:
    if math.isinf(mark):
        return high if mark > 0 else low
    return math.ceil(mark)


def _one_by_one(function: Callable[[Any], Any], source: Type, type: Type) -> Change:
    """A function of Python values for marks; evaluated only where its result may change."""

    def result(mark: Any) -> Any:
        try:
            value = function(_value(mark, source))
        except (AuroralError, ArithmeticError, ValueError):
            value = None
        if value is None or value != value:
            return limits(type)[mark > 0]
        if isinstance(value, float):
            return value
        low, high = limits(type)
        return min(max(to_mark(value, type.scale), low), high)

    return lambda marks: _array(_everywhere(marks.tolist(), result), type)


def _everywhere(given: Sequence[Any], result: Callable[[Any], Any]) -> list[Any]:
    """A non-decreasing function at ascending values: equal at both ends means equal between."""
    last = len(given) - 1
    found: list[Any] = [None] * len(given)
    found[0], found[last] = result(given[0]), result(given[last])
    stretches = [(0, last)]
    while stretches:
        low, high = stretches.pop()
        if high - low < 2:
            continue
        if found[low] == found[high]:
            found[low + 1 : high] = [found[low]] * (high - low - 1)
            continue
        middle = (low + high) // 2
        found[middle] = result(given[middle])
        stretches += [(low, middle), (middle, high)]
    return found


def _array(values: Sequence[Any], type: Type) -> Values:
    if type.name in ("float", "double"):
        return np.array(values, np.float64)
    fits = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, np.int64 if fits else object)


def _value(mark: Any, type: Type) -> Any:
    """The value of a field at a mark."""
    if type.name in ("float", "double"):
        return float(mark)
    if type.name == "date":
        return times.from_days(mark)
    if type.name in TIMES:
        return times.from_micros(mark, naive=type.name == "timestamp_ntz")
    if type.name == "decimal":
        return Decimal(mark).scaleb(-type.scale, EXACT)
    return mark


__all__ = ["limits", "order_kept"]
