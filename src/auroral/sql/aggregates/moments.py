"""Variance and its kind, by Welford's updates in order of arrival, as Spark has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Rows = list[tuple[Any, ...]]


def _moments(rows: Rows) -> tuple[float, float, float, float]:
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


def _pairs(rows: Rows) -> tuple[float, float, float, float]:
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
    """A division, NULL by zero."""
    return None if below == 0 else above / below


def _var_pop(rows: Rows) -> float | None:
    n, m2, _, _ = _moments(rows)
    return _quotient(m2, n)


def _var_samp(rows: Rows) -> float | None:
    n, m2, _, _ = _moments(rows)
    return m2 / (n - 1.0) if n > 1 else None


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _skewness(rows: Rows) -> float | None:
    n, m2, m3, _ = _moments(rows)
    return _quotient(math.sqrt(n) * m3, math.sqrt(m2 * m2 * m2))


def _kurtosis(rows: Rows) -> float | None:
    n, m2, _, m4 = _moments(rows)
    found = _quotient(n * m4, m2 * m2)
    return None if found is None else found - 3.0


def _covar_pop(rows: Rows) -> float | None:
    n, both, _, _ = _pairs(rows)
    return _quotient(both, n)


def _covar_samp(rows: Rows) -> float | None:
    n, both, _, _ = _pairs(rows)
    return both / (n - 1.0) if n > 1 else None


def _corr(rows: Rows) -> float | None:
    n, both, x_m2, y_m2 = _pairs(rows)
    return _quotient(both, math.sqrt(x_m2 * y_m2)) if n > 1 else None


MOMENTS: dict[str, Callable[[Rows], float | None]] = {
    "var_pop": _var_pop,
    "var_samp": _var_samp,
    "stddev_pop": lambda rows: _root(_var_pop(rows)),
    "stddev_samp": lambda rows: _root(_var_samp(rows)),
    "skewness": _skewness,
    "kurtosis": _kurtosis,
    "covar_pop": _covar_pop,
    "covar_samp": _covar_samp,
    "corr": _corr,
}
