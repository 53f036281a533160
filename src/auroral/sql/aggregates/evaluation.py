"""Aggregates one row at a time, as Spark computes them with ANSI mode off.

Rows are in order of arrival. Where Spark leaves it to chance, the order decides: `collect_set`
keeps first appearances, `max_by` and `min_by` the first of equals, `mode` the least of the most
frequent. Of zeros -0.0 is the lesser for `min` and `max`, and the same for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from operator import and_, or_, xor
from typing import Any

from auroral.network.types import Type
from auroral.sql.aggregates.calls import AggregateCall, CheckedCall
from auroral.sql.aggregates.moments import MOMENTS
from auroral.sql.expressions.numbers import WIDE, order_key, to_decimal, wrap
from auroral.sql.expressions.typed import Row

Values = list[tuple[Any, ...]]
"""The arguments of each row that counts."""


def evaluate_call(checked: CheckedCall, rows: Sequence[Row]) -> Any:
    """The value of an aggregate over rows."""
    call, where = checked.call, checked.where
    if where is not None:
        rows = [row for row in rows if where.run(row) is True]
    values = [tuple(arg.run(row) for arg in checked.inputs) for row in rows]
    if call.distinct:
        values = _distinct(values)
    if call.name in MOMENTS:
        return MOMENTS[call.name](_present(values))
    return _FUNCTIONS[call.name](call, values)


def _present(values: Values) -> Values:
    return [row for row in values if None not in row]


def _column(values: Values) -> list[Any]:
    """The first argument where it is not NULL."""
    return [row[0] for row in values if row[0] is not None]


def _distinct(values: Values) -> Values:
    """Each combination once, in order of first appearance."""
    found: dict[Any, tuple[Any, ...]] = {}
    for row in values:
        found.setdefault(_identity(list(row)), tuple(_plain_zero(value) for value in row))
    return list(found.values())


def _identity(value: Any) -> Any:
    """A key that is the same for the same value: NaN is one value, -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(_identity(item) for item in value)
    if isinstance(value, dict):
        return tuple(_identity(item) for item in value.values())
    return value


def _plain_zero(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def _count(_call: AggregateCall, values: Values) -> int:
    return len(_present(values))


def _count_if(_call: AggregateCall, values: Values) -> int:
    return sum(row[0] is True for row in values)


def _sum(call: AggregateCall, values: Values) -> Any:
    found = _column(values)
    if not found:
        return None
    if call.type.name == "decimal":
        return _decimal_sum(found, call.type)
    if call.type.name == "double":
        return _float_sum(found)
    total = 0
    for value in found:
        total += value
        if call.name == "try_sum" and total != wrap(total, "bigint"):
            return None
    return wrap(total, "bigint")


def _float_sum(values: Sequence[Any]) -> float:
    total = 0.0
    for value in values:
        total += float(value)
    return total


def _decimal_sum(values: Sequence[Decimal], type: Type) -> Decimal | None:
    """The exact sum, NULL if it has more digits than the type."""
    total = Decimal(0)
    for value in values:
        total = WIDE.add(total, value)
    return to_decimal(total, type)


def _avg(call: AggregateCall, values: Values) -> Any:
    found = _column(values)
    if not found:
        return None
    if call.type.name != "decimal":
        return _float_sum(found) / len(found)
    of = call.types[0]
    total = _decimal_sum(found, Type("decimal", min(of.precision + 10, 38), of.scale))
    if total is None:
        return None
    # Spark rounds the quotient to 39 places before it rounds to the type.
    quotient = WIDE.divide(total, Decimal(len(found)))
    return to_decimal(quotient.quantize(Decimal(1).scaleb(-39), ROUND_HALF_UP, WIDE), call.type)


def _extreme(call: AggregateCall, values: Values) -> Any:
    found = _column(values)
    if not found:
        return None
    return (min if call.name == "min" else max)(found, key=_total_key)


def _total_key(value: Any) -> Any:
    """Spark's order, with -0.0 below 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return order_key(value)


def _first(call: AggregateCall, values: Values) -> Any:
    found = [row[0] for row in values if row[0] is not None or not call.ignore_nulls]
    if not found:
        return None
    return found[0] if call.name == "first" else found[-1]


def _by(call: AggregateCall, values: Values) -> Any:
    """`max_by` and `min_by`; among equals the first one counts."""
    found = [row for row in values if row[1] is not None]
    if not found:
        return None
    choose = max if call.name == "max_by" else min
    return choose(found, key=lambda row: order_key(row[1]))[0]


def _folded(operation: Callable[[Any, Any], Any]) -> Callable[[AggregateCall, Values], Any]:
    def fold(_call: AggregateCall, values: Values) -> Any:
        found = _column(values)
        if not found:
            return None
        total = found[0]
        for value in found[1:]:
            total = operation(total, value)
        return total

    return fold


def _collect_list(_call: AggregateCall, values: Values) -> list[Any]:
    return _column(values)


def _collect_set(_call: AggregateCall, values: Values) -> list[Any]:
    return _column(_distinct(values))


def _mode(_call: AggregateCall, values: Values) -> Any:
    counts: dict[Any, int] = {}
    found: dict[Any, Any] = {}
    for value in _column(values):
        key = _identity(value)
        counts[key] = counts.get(key, 0) + 1
        found.setdefault(key, _plain_zero(value))
    if not found:
        return None
    most = max(counts.values())
    return min((found[key] for key in found if counts[key] == most), key=order_key)


def _percentile(call: AggregateCall, values: Values) -> Any:
    found = sorted((float(value) for value in _column(values)), key=order_key)
    if not found:
        return None
    fractions = call.literals[0]
    if isinstance(fractions, tuple):
        return [_interpolated(found, fraction) for fraction in fractions]
    return _interpolated(found, fractions)


def _interpolated(values: list[float], fraction: float) -> float:
    position = (len(values) - 1) * fraction
    lower, higher = math.floor(position), math.ceil(position)
    if lower == higher or values[lower] == values[higher]:
        return values[lower]
    return (higher - position) * values[lower] + (position - lower) * values[higher]


_FUNCTIONS: dict[str, Callable[[AggregateCall, Values], Any]] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "try_sum": _sum,
    "avg": _avg,
    "min": _extreme,
    "max": _extreme,
    "first": _first,
    "last": _first,
    "max_by": _by,
    "min_by": _by,
    "bool_and": _folded(and_),
    "bool_or": _folded(or_),
    "bit_and": _folded(and_),
    "bit_or": _folded(or_),
    "bit_xor": _folded(xor),
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "mode": _mode,
    "percentile": _percentile,
}
