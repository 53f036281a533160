"""Variance, correlation and related functions: Welford's updates for many windows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import Floats, Ints, column_of, floats, present_rows
from auroral.kernels.accumulators.segments import Segments

State = Sequence[pa.Array]
Update = Callable[..., tuple[Any, ...]]

_NARROW = 32
"""With fewer windows in a round than this, plain Python is faster than numpy."""


def _second(n: Any, mean: Any, m2: Any, x: Any) -> tuple[Any, ...]:
    n = n + 1.0
    delta = x - mean
    delta_n = delta / n
    return n, mean + delta_n, m2 + delta * (delta - delta_n)


def _fourth(n: Any, mean: Any, m2: Any, m3: Any, m4: Any, x: Any) -> tuple[Any, ...]:
    n = n + 1.0
    delta = x - mean
    delta_n = delta / n
    m2 = m2 + delta * (delta - delta_n)
    delta2, delta_n2 = delta * delta, delta_n * delta_n
    m3 = m3 - 3.0 * delta_n * m2 + delta * (delta2 - delta_n2)
    m4 = m4 - 4.0 * delta_n * m3 - 6.0 * delta_n2 * m2
    m4 = m4 + delta * (delta * delta2 - delta_n * delta_n2)
    return n, mean + delta_n, m2, m3, m4


def _pair(
    n: Any, x_mean: Any, y_mean: Any, both: Any, x_m2: Any, y_m2: Any, x: Any, y: Any
) -> tuple[Any, ...]:
    n = n + 1.0
    dx, dy = x - x_mean, y - y_mean
    x_mean, y_mean = x_mean + dx / n, y_mean + dy / n
    both = both + dx * (y - y_mean)
    return n, x_mean, y_mean, both, x_m2 + dx * (x - x_mean), y_m2 + dy * (y - y_mean)


def _population(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    return state[2], state[0]


def _sample(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    return state[2], np.maximum(state[0] - 1.0, 0.0)


def _pair_population(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    return state[3], state[0]


def _pair_sample(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    return state[3], np.maximum(state[0] - 1.0, 0.0)


def _correlation(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    return state[3], np.where(state[0] > 1, np.sqrt(state[4] * state[5]), 0.0)


def _skewness(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    n, m2 = state[0], state[2]
    return np.sqrt(n) * state[3], np.sqrt(m2 * m2 * m2)


def _kurtosis(state: Sequence[Floats]) -> tuple[Floats, Floats]:
    n, m2 = state[0], state[2]
    return n * state[4], m2 * m2


def _quotient(value: Floats) -> Floats:
    return value


def _root(value: Floats) -> Floats:
    return np.sqrt(value)


def _excess(value: Floats) -> Floats:
    return value - 3.0


@dataclass(frozen=True)
class MomentFunction:
    """How a function of moments is computed from `width` states of each window.

    `quotient` gives dividend and divisor, and the result is NULL where the divisor is zero;
    `finish` is applied to the quotient.
    """

    update: Update
    width: int
    quotient: Callable[[Sequence[Floats]], tuple[Floats, Floats]]
    finish: Callable[[Floats], Floats] = _quotient


_FUNCTIONS = {
    "var_pop": MomentFunction(_second, 3, _population),
    "var_samp": MomentFunction(_second, 3, _sample),
    "stddev_pop": MomentFunction(_second, 3, _population, _root),
    "stddev_samp": MomentFunction(_second, 3, _sample, _root),
    "skewness": MomentFunction(_fourth, 5, _skewness),
    "kurtosis": MomentFunction(_fourth, 5, _kurtosis, _excess),
    "covar_pop": MomentFunction(_pair, 6, _pair_population),
    "covar_samp": MomentFunction(_pair, 6, _pair_sample),
    "corr": MomentFunction(_pair, 6, _correlation),
}


class Moments:
    """Variance, standard deviation, skewness, kurtosis, covariance or correlation, by name."""

    def __init__(self, name: str):
        self._function = _FUNCTIONS[name]
        self.types = (pa.float64(),) * self._function.width

    def fresh(self, n: int) -> list[pa.Array]:
        return [column_of(np.zeros(n), None, pa.float64()) for _ in self.types]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        columns, slot = present_rows(columns, slot)
        states = [floats(column).copy() for column in state]
        inputs = [floats(column) for column in columns]
        with np.errstate(all="ignore"):
            in_rounds(states, inputs, slot, self._function.update)
        return [column_of(values, None, pa.float64()) for values in states]

    def final(self, state: State) -> pa.Array:
        with np.errstate(all="ignore"):
            above, below = self._function.quotient([floats(column) for column in state])
            value = self._function.finish(above / below)
        return column_of(value, below != 0, pa.float64())

    def running(self, state: State, columns: State, slot: Ints) -> tuple[Ints, pa.Array]:
        columns, rows = present_rows(columns, np.arange(len(slot)))
        segments, update = Segments.of(slot[rows]), self._function.update
        before = zip(*(floats(c)[segments.windows].tolist() for c in state), strict=True)
        inputs = list(zip(*(floats(column).tolist() for column in columns), strict=True))
        after: list[tuple[Any, ...]] = []
        for current, start, size in zip(before, segments.starts, segments.sizes, strict=True):
            for values in inputs[start : start + size]:
                current = update(*current, *values)
                after.append(current)
        states = np.array(after, np.float64).reshape(len(rows), len(state)).T
        return rows, self.final([column_of(values, None, pa.float64()) for values in states])


def in_rounds(
    states: Sequence[Floats], inputs: Sequence[Floats], slot: Ints, update: Update
) -> None:
    """Update the states in place: the first rows of all windows at once, then the second, …

    Once few windows have rows left (as when one window has most rows), the remaining rows are
    processed one by one.
    """
    if not len(slot):
        return
    order = np.argsort(slot, kind="stable")
    grouped = slot[order]
    starts = np.flatnonzero(np.concatenate(([True], grouped[1:] != grouped[:-1])))
    sizes = np.diff(np.append(starts, len(slot)))
    turn = np.arange(len(slot)) - np.repeat(starts, sizes)
    by_turn = order[np.argsort(turn, kind="stable")]
    at = 0
    for width in np.bincount(turn).tolist():
        if width < _NARROW:
            break
        rows = by_turn[at : at + width]
        where = slot[rows]
        new = update(*(state[where] for state in states), *(values[rows] for values in inputs))
        for state, values in zip(states, new, strict=True):
            state[where] = values
        at += width
    _one_by_one(states, inputs, slot, np.sort(by_turn[at:]), update)


def _one_by_one(
    states: Sequence[Floats], inputs: Sequence[Floats], slot: Ints, rows: Ints, update: Update
) -> None:
    touched, local = np.unique(slot[rows], return_inverse=True)
    found = list(zip(*(state[touched].tolist() for state in states), strict=True))
    values = zip(*(values[rows].tolist() for values in inputs), strict=True)
    for at, row in zip(local.tolist(), values, strict=True):
        found[at] = update(*found[at], *row)
    for state, column in zip(states, zip(*found, strict=True), strict=False):
        state[touched] = column
