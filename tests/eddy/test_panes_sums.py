"""Sums of doubles: exact, in whatever order, rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.eddy.panes.exact_sums import ExactAverage, ExactSum

ODD = (math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1.7976931348623157e308, -0.0, 2.0**53, 0.1)
VALUES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.one_of(
            st.none(),
            st.sampled_from(ODD),
            st.floats(allow_nan=True),
            st.floats(-1000, 1000),
            st.integers(-9999, 9999).map(lambda n: n / 100),
        ),
    ),
    max_size=20,
)


def exact(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    odd = {value for value in known if math.isinf(value)}
    if not known:
        return None
    if any(map(math.isnan, known)) or len(odd) == 2:
        return math.nan
    if odd:
        return odd.pop()
    total = sum(map(Fraction, known), Fraction())
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@settings(max_examples=150, deadline=None)
@given(VALUES, st.integers(0, 20), st.booleans())
def test_sums_are_exact_however_they_are_put_together(
    pairs: list[tuple[int, float | None]], cut: int, merged: bool
) -> None:
    sums = ExactSum()
    slot = np.array([owner for owner, _ in pairs], np.int64)
    values = pa.array([value for _, value in pairs], pa.float64())
    one = sums.fold(sums.fresh(4), [values[:cut]], slot[:cut])
    if merged:
        other = sums.fold(sums.fresh(4), [values[cut:]], slot[cut:])
        both = [pa.concat_arrays(columns) for columns in zip(one, other, strict=True)]
        row = np.array([0, 4, 5, 1, 2, 6, 7, 3])
        state = sums.merge(both, row, row % 4, 4)
    else:
        state = sums.fold(one, [values[cut:]], slot[cut:])
    expected = [exact([value for at, value in pairs if at == owner]) for owner in range(4)]
    assert repr(sums.final(state).to_pylist()) == repr(expected)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_states_of_different_heights_stand_side_by_side(values: list[float]) -> None:
    sums = ExactSum()
    each = [sums.fold(sums.fresh(1), [pa.array([v])], np.zeros(1, np.int64)) for v in values]
    state = [pa.concat_arrays(list(columns)) for columns in zip(*each, strict=True)]
    assert repr(sums.final(state).to_pylist()) == repr([v + 0.0 for v in values])


def test_an_average_is_the_sum_by_the_count() -> None:
    average = ExactAverage()
    values = [0.1, 0.2, 0.3, 1e16, -1e16]
    slot = np.zeros(5, np.int64)
    state = average.fold(average.fresh(2), [pa.array(values)], slot)
    assert average.final(state).to_pylist() == [math.fsum(values) / 5, None]
