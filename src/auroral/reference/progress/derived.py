"""What is promised of fields that a map computes, one mark at a time. Independent of `progress/`.

A function that never decreases keeps promises: if nothing below v comes, nothing below f(v) does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

from auroral.errors import AuroralError
from auroral.network.types import Field, Schema, Type
from auroral.reference.progress.marks import END, Promise, Promises, least, number, value_of
from auroral.sql.expressions.coercion import common_without_strings
from auroral.sql.expressions.compiler import CAST_FUNCTIONS, compile_node
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Cast, Name, Node, free_names
from auroral.sql.expressions.typed import OnlySparkError

Function = Callable[[Any], Any]
"""Of marks; None where nothing is promised."""
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TIMES = ("date", "timestamp", "timestamp_ntz")
_ROUNDED = ("floor", "ceil", "ceiling", "round", "bround")
_LATER = ("date_add", "dateadd", "date_sub", "add_months")
_UNIX = ("unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros")
_OF_TIMES = ("trunc", "last_day", "year", "to_date", "to_timestamp", "unix_date", *_UNIX)
_INTO_TIMES = ("date_from_unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros")
_ONLY_FIRST = (*_ROUNDED, *_LATER, *_OF_TIMES, *_INTO_TIMES, "positive")


@dataclass(frozen=True)
class Chain:
    """Functions of one field, each of which keeps order."""

    field: str
    type: Type
    functions: tuple[Function, ...] = ()

    def __call__(self, mark: Any) -> Any:
        for function in self.functions:
            mark = mark if mark is None or mark == END else function(mark)
        return mark

    def then(self, function: Function, type: Type) -> Chain:
        return Chain(self.field, type, (*self.functions, function))

    def promise(self, promises: Promises) -> Promise | None:
        found = promises.get(self.field)
        if found is None:
            return None
        marks = {group: self(mark) for group, mark in found.marks.items()}
        joint = tuple(replace(one, own=self(one.own)) for one in found.joint)
        return Promise(found.by, marks, self(found.others), joint)


@dataclass(frozen=True)
class Extreme:
    """The greatest or the least of several, and functions of that."""

    greatest: bool
    parts: tuple[Chain | Extreme | None, ...]
    type: Type
    after: Chain

    def then(self, function: Function, type: Type) -> Extreme:
        return replace(self, after=self.after.then(function, type), type=type)

    def promise(self, promises: Promises) -> Promise | None:
        found = [part.promise(promises) if part is not None else None for part in self.parts]
        marks = [promise.least() for promise in found if promise is not None]
        candidates = [least(marks)] if len(marks) == len(found) else []
        if self.greatest:
            candidates += self._of_pairs(promises)
        if not candidates:
            return None
        known = [self.after(mark) for mark in candidates if mark is not None]
        return Promise((), {(): max((mark for mark in known if mark is not None), default=None)})

    def _of_pairs(self, promises: Promises) -> list[Any]:
        """Of a join's pairs both are there: one of the two has reached its mark."""
        chains = [part for part in self.parts if isinstance(part, Chain)]
        found: list[Any] = []
        for one in chains:
            promise = promises.get(one.field)
            for joint in promise.joint if promise is not None else ():
                for other in chains:
                    if other.field == joint.by and promise is not None:
                        found.append(least([one(joint.own), other(joint.other)]))
                        found.append(one(promise.least()))
        return found


def order_kept(text: str, schema: Schema) -> Chain | Extreme | None:
    """How an expression keeps the order of fields; None if it does not."""
    try:
        return _read(parse(text), schema)
    except (AuroralError, OnlySparkError):
        return None


def _read(node: Node, schema: Schema) -> Chain | Extreme | None:
    if isinstance(node, Name):
        field = schema.field(node.name)
        return Chain(field.name, field.type) if field.type.is_orderable else None
    if isinstance(node, Cast):
        return _cast(_read(node.child, schema), node.to)
    if not isinstance(node, Call):
        return None
    if node.name in CAST_FUNCTIONS and len(node.args) == 1:
        return _cast(_read(node.args[0], schema), CAST_FUNCTIONS[node.name])
    if node.name in ("greatest", "least"):
        return _extreme(node, schema)
    changing = [at for at, arg in enumerate(node.args) if list(free_names(arg))]
    if len(changing) != 1:
        return None
    (at,) = changing
    inner = _read(node.args[at], schema)
    constants = [compile_node(arg, schema) for n, arg in enumerate(node.args) if n != at]
    values = [constant.value() for constant in constants]
    kinds = [constant.type for constant in constants]
    if inner is None or None in values or not _keeps(node.name, at, inner.type, kinds, values):
        return None
    called = Call(node.name, tuple(Name("v") if n == at else a for n, a in enumerate(node.args)))
    type = compile_node(called, _of(inner.type)).type
    if not type.is_orderable:
        return None
    exact = _exact(node.name, inner.type, type, values)
    return inner.then(_function(called, inner.type, type, exact), type)


def _keeps(name: str, at: int, type: Type, kinds: Sequence[Type], values: Sequence[Any]) -> bool:
    if name == "date_trunc":
        return at == 1
    if name in _ONLY_FIRST:
        return at == 0
    if name not in ("+", "-", "*", "/", "div") or (at == 1 and name not in ("+", "*")):
        return False
    (kind,), (value,) = kinds, values
    if kind.name.startswith("interval"):
        return name in ("+", "-") and (kind.name == "interval_dt" or type.name == "date")
    if not kind.is_numeric or not math.isfinite(value):
        return False
    if name in ("+", "-"):
        return True
    return bool(value > 0) and not (name == "div" and type.name == "decimal")


def _cast(inner: Chain | Extreme | None, to: Type) -> Chain | Extreme | None:
    if inner is None or inner.type == to:
        return inner
    source = inner.type
    number_like = to.is_numeric and (source.is_numeric or source.name == "timestamp")
    time_like = to.name in _TIMES and source.name in _TIMES
    if not number_like and not time_like and not (to.name == "timestamp" and source.is_numeric):
        return None
    exact = None
    if to.is_integral and source.name != "timestamp":
        exact = math.trunc
    return inner.then(_function(Cast(Name("v"), to), source, to, exact), to)


def _extreme(node: Call, schema: Schema) -> Extreme | None:
    to = common_without_strings([compile_node(arg, schema).type for arg in node.args])
    if to is None or not to.is_orderable:
        return None
    parts = tuple(_cast(_read(arg, schema), to) for arg in node.args)
    return Extreme(node.name == "greatest", parts, to, Chain("", to))


def _exact(name: str, source: Type, type: Type, values: Sequence[Any]) -> Function | None:
    """The function in whole numbers that have no end, where the data's wrap round."""
    if not source.is_integral or not type.is_integral:
        return None
    value = values[0] if values else 0
    exact: Mapping[str, Function] = {
        "+": lambda v: v + value,
        "-": lambda v: v - value,
        "*": lambda v: v * value,
        "round": lambda v: _rounded(v, value, ROUND_HALF_UP),
        "bround": lambda v: _rounded(v, value, ROUND_HALF_EVEN),
    }
    return exact.get(name)


def _rounded(value: int, places: int, mode: str) -> int:
    return value if places >= 0 else int(Decimal(value).quantize(Decimal((0, (1,), -places)), mode))


def _function(node: Node, source: Type, type: Type, exact: Function | None) -> Function:
    """A function of values as one of marks, which stay within what the type can hold."""
    run = compile_node(node, _of(source)).run
    low, high = _ends(type)

    def of_mark(mark: Any) -> Any:
        given = _least_value(mark, source)
        try:
            value = exact(given) if exact is not None else run({"v": given})
        except (AuroralError, ArithmeticError, ValueError):
            value = None
        made = value if exact is not None and value is not None else number(value, type)
        if made is None:
            return high if mark > 0 else low
        return min(max(made, low), high)

    return of_mark


def _least_value(mark: Any, type: Type) -> Any:
    """The least value of a field that is not below a mark."""
    if type.name in ("float", "double"):
        return float(mark)
    low, high = _ends(type)
    whole = mark if mark in (math.inf, -math.inf) else math.ceil(mark)
    return value_of(int(min(max(whole, low), high)), type)


def _ends(type: Type) -> tuple[Any, Any]:
    if type.name in _BITS:
        half = 2 ** (_BITS[type.name] - 1)
        return -half, half - 1
    if type.name == "decimal":
        return 1 - 10**type.precision, 10**type.precision - 1
    if type.name == "date":
        return -719162, 2932896
    if type.name in _TIMES:
        return -719162 * 86_400_000_000, 2932897 * 86_400_000_000 - 1
    return -math.inf, math.inf


def _of(type: Type) -> Schema:
    return Schema((Field("v", type),))
