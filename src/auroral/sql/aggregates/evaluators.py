"""The value of each aggregate function over rows, as Spark computes it with ANSI mode off.

These evaluators define what the functions mean; the accumulators of the kernels must agree with
them. Rows are in order of arrival. Where Spark's result depends on chance, the order of arrival
decides: `collect_set` keeps first appearances, and `max_by` and `min_by` take the first of equals.
`mode` takes the least of the most frequent values. `min` and `max` order -0.0 below 0.0; all other
functions treat the two zeros as equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

from auroral.network.types import Type
from auroral.sql.expressions.numbers import WIDE, order_key, to_decimal, wrap

if TYPE_CHECKING:
    from auroral.sql.aggregates.calls import AggregateCall

Values = Sequence[tuple[Any, ...]]
"""The arguments of each row that counts: rows that the function's `nulls` skips are left out."""

Evaluator = Callable[["AggregateCall", Values], Any]


def distinct(values: Values) -> list[tuple[Any, ...]]:
    """Each combination once, in order of first appearance."""
    found: dict[Any, tuple[Any, ...]] = {}
    for row in values:
        found.setdefault(_identity(list(row)), tuple(_plain_zero(value) for value in row))
    return list(found.values())


def _column(values: Values) -> list[Any]:
    """The first argument of each row."""
    return [row[0] for row in values]


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


def count(_call: AggregateCall, values: Values) -> int:
    return len(values)


def count_if(_call: AggregateCall, values: Values) -> int:
    return sum(row[0] is True for row in values)


def total(call: AggregateCall, values: Values) -> Any:
    """`sum`: integers wrap round."""
    found = _column(values)
    if not found:
        return None
    if call.type.name == "decimal":
        return _decimal_sum(found, call.type)
    return _float_sum(found) if call.type.name == "double" else wrap(sum(found), "bigint")


def total_that_fits(call: AggregateCall, values: Values) -> Any:
    """`try_sum`: NULL if the sum of integers overflows after any of the rows."""
    if call.type.name != "bigint":
        return total(call, values)
    added = 0
    for value in _column(values):
        added += value
        if added != wrap(added, "bigint"):
            return None
    return added if values else None


def _float_sum(values: Sequence[Any]) -> float:
    added = 0.0
    for value in values:
        added += float(value)
    return added


def _decimal_sum(values: Sequence[Decimal], type: Type) -> Decimal | None:
    """The exact sum, NULL if it has more digits than the type."""
    added = Decimal(0)
    for value in values:
        added = WIDE.add(added, value)
    return to_decimal(added, type)


def decimal_sum_type(of: Type) -> Type:
    """The type of a sum of decimals."""
    return Type("decimal", min(of.precision + 10, 38), of.scale)


def average(call: AggregateCall, values: Values) -> Any:
    found = _column(values)
    if not found:
        return None
    if call.type.name != "decimal":
        return _float_sum(found) / len(found)
    added = _decimal_sum(found, decimal_sum_type(call.types[0]))
    if added is None:
        return None
    # Spark rounds the quotient to 39 places before it rounds to the type.
    quotient = WIDE.divide(added, Decimal(len(found)))
    return to_decimal(quotient.quantize(Decimal(1).scaleb(-39), ROUND_HALF_UP, WIDE), call.type)


def least(_call: AggregateCall, values: Values) -> Any:
    return min(_column(values), key=_total_key, default=None)


def greatest(_call: AggregateCall, values: Values) -> Any:
    return max(_column(values), key=_total_key, default=None)


def _total_key(value: Any) -> Any:
    """Spark's order, with -0.0 below 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return order_key(value)


def first(_call: AggregateCall, values: Values) -> Any:
    return values[0][0] if values else None


def last(_call: AggregateCall, values: Values) -> Any:
    return values[-1][0] if values else None


def beside_least(_call: AggregateCall, values: Values) -> Any:
    """`min_by`: among equals the first one counts."""
    return min(values, key=_last_key)[0] if values else None


def beside_greatest(_call: AggregateCall, values: Values) -> Any:
    """`max_by`: among equals the first one counts."""
    return max(values, key=_last_key)[0] if values else None


def _last_key(row: tuple[Any, ...]) -> Any:
    return order_key(row[-1])


def _folded(operation: Callable[[Any, Any], Any]) -> Evaluator:
    def fold(_call: AggregateCall, values: Values) -> Any:
        return reduce(operation, _column(values)) if values else None

    return fold


bits_and, bits_or, bits_xor = _folded(and_), _folded(or_), _folded(xor)
"""Of integers and of booleans."""


def collect_list(_call: AggregateCall, values: Values) -> list[Any]:
    return _column(values)


def collect_set(_call: AggregateCall, values: Values) -> list[Any]:
    return _column(distinct(values))


def mode(_call: AggregateCall, values: Values) -> Any:
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


def percentile(call: AggregateCall, values: Values) -> Any:
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
