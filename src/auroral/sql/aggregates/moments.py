"""Evaluators of variance, correlation and related functions.

They use Welford's updates in order of arrival, as Spark does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from auroral.sql.aggregates.evaluators import Values

if TYPE_CHECKING:
    from auroral.sql.aggregates.calls import AggregateCall


def _moments(rows: Values) -> tuple[float, float, float, float]:
    """Count and the sums of squares, cubes and fourth powers about the mean."""
    n = mean = m2 = m3 = m4 = 0.0
    for row in rows:
        n += 1.0
        delta = float(row[0]) - mean
        delta_n = delta / n
        mean = mean + delta_n
        m2 = m2 + delta * (delta - delta_n)
        delta2, delta_n2 = delta * delta, delta_n * delta_n
        m3 = m3 - 3.0 * delta_n * m2 + delta * (delta2 - delta_n2)
        m4 = m4 - 4.0 * delta_n * m3 - 6.0 * delta_n2 * m2
        m4 = m4 + delta * (delta * delta2 - delta_n * delta_n2)
    return n, m2, m3, m4


def _pairs(rows: Values) -> tuple[float, float, float, float]:
    """Count and the sums of products about the means: of both, of the first, of the second."""
    n = x_mean = y_mean = both = x_m2 = y_m2 = 0.0
    for row in rows:
        x, y = float(row[0]), float(row[1])
        n += 1.0
        dx, dy = x - x_mean, y - y_mean
        x_mean = x_mean + dx / n
        y_mean = y_mean + dy / n
        both = both + dx * (y - y_mean)
        x_m2 = x_m2 + dx * (x - x_mean)
        y_m2 = y_m2 + dy * (y - y_mean)
    return n, both, x_m2, y_m2


def _quotient(above: float, below: float) -> float | None:
    """A quotient; NULL if the divisor is zero."""
    return None if below == 0 else above / below


def var_pop(_call: AggregateCall, rows: Values) -> float | None:
    n, m2, _, _ = _moments(rows)
    return _quotient(m2, n)


def var_samp(_call: AggregateCall, rows: Values) -> float | None:
    n, m2, _, _ = _moments(rows)
    return m2 / (n - 1.0) if n > 1 else None


def stddev_pop(call: AggregateCall, rows: Values) -> float | None:
    return _root(var_pop(call, rows))


def stddev_samp(call: AggregateCall, rows: Values) -> float | None:
    return _root(var_samp(call, rows))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def skewness(_call: AggregateCall, rows: Values) -> float | None:
    n, m2, m3, _ = _moments(rows)
    return _quotient(math.sqrt(n) * m3, math.sqrt(m2 * m2 * m2))


def kurtosis(_call: AggregateCall, rows: Values) -> float | None:
    n, m2, _, m4 = _moments(rows)
    found = _quotient(n * m4, m2 * m2)
    return None if found is None else found - 3.0


def covar_pop(_call: AggregateCall, rows: Values) -> float | None:
    n, both, _, _ = _pairs(rows)
    return _quotient(both, n)


def covar_samp(_call: AggregateCall, rows: Values) -> float | None:
    n, both, _, _ = _pairs(rows)
    return both / (n - 1.0) if n > 1 else None


def corr(_call: AggregateCall, rows: Values) -> float | None:
    n, both, x_m2, y_m2 = _pairs(rows)
    return _quotient(both, math.sqrt(x_m2 * y_m2)) if n > 1 else None
