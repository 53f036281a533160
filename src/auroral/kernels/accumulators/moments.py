"""Variance and its kind: Welford's updates, row after row, for many windows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import Floats, Ints, column_of, floats, present_rows

State = Sequence[pa.Array]
Update = Callable[..., tuple[Any, ...]]

_NARROW = 32
"""Rounds of fewer windows than this are slower by numpy than one by one."""


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


def _value(name: str, state: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The value as a quotient; where it divides by zero it is NULL."""
    n = state[0]
    if name in ("var_pop", "stddev_pop"):
        return state[2], n
    if name in ("var_samp", "stddev_samp"):
        return state[2], np.maximum(n - 1.0, 0.0)
    if name == "covar_pop":
        return state[3], n
    if name == "covar_samp":
        return state[3], np.maximum(n - 1.0, 0.0)
    if name == "corr":
        return state[3], np.where(n > 1, np.sqrt(state[4] * state[5]), 0.0)
    m2 = state[2]
    if name == "skewness":
        return np.sqrt(n) * state[3], np.sqrt(m2 * m2 * m2)
    return n * state[4], m2 * m2


class Moments:
    """One of the functions of moments, by name."""

    def __init__(self, name: str):
        self._name = name
        self._update: Update
        if name in ("skewness", "kurtosis"):
            self._update, width = _fourth, 5
        elif name.startswith("co"):
            self._update, width = _pair, 6
        else:
            self._update, width = _second, 3
        self.types = (pa.float64(),) * width

    def fresh(self, n: int) -> list[pa.Array]:
        return [column_of(np.zeros(n), None, pa.float64()) for _ in self.types]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        columns, slot = present_rows(columns, slot)
        states = [floats(column).copy() for column in state]
        with np.errstate(all="ignore"):
            in_rounds(states, [floats(column) for column in columns], slot, self._update)
        return [column_of(values, None, pa.float64()) for values in states]

    def final(self, state: State) -> pa.Array:
        with np.errstate(all="ignore"):
            above, below = _value(self._name, [floats(column) for column in state])
            value = above / below
            if self._name.startswith("stddev"):
                value = np.sqrt(value)
            elif self._name == "kurtosis":
                value = value - 3.0
        return column_of(value, below != 0, pa.float64())


def in_rounds(
    states: Sequence[Floats], inputs: Sequence[Floats], slot: Ints, update: Update
) -> None:
    """Update the states in place, row after row: first rows of all windows at once, then second …

    What comes after the rounds are narrow, as when one window has most rows, goes one by one.
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
