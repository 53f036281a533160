"""Thresholds: the (slack + 1)-th largest value of each group, as a sorted list would say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.units import stored_type
from auroral.kernels.windowing.slack import (
    Carried,
    RankCodes,
    by_group,
    carried_lists,
    counted,
    thresholds,
)

KINDS = {
    pa.int64(): st.integers(-5, 9),
    pa.float64(): st.sampled_from([-1.5, 0.0, 0.25, 3.0, 1e300]),
    pa.decimal128(38, 0): st.integers(-3, 4).map(lambda n: n * 10**30),
    pa.timestamp("us"): st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1]),
}
"""Values, some too far apart to be packed into one number with their group."""


def array(values: list[Any], kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return np.array([*values, None], object)[:-1]
    return np.array(values, np.float64 if kind == pa.float64() else np.int64)


@given(st.data(), st.sampled_from(list(KINDS)), st.sampled_from([0, 1, 3, 40]))
def test_thresholds_are_running_order_statistics(data: Any, kind: Any, slack: int) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), KINDS[kind]), max_size=60))
    cut = data.draw(st.integers(0, len(rows)))
    column = pa.array([], pa.list_(stored_type(kind)))
    seen: dict[int, list[Any]] = {}
    for part in (rows[:cut], rows[cut:]):
        ids = np.array([group for group, _ in part], np.int64)
        carried = Carried.of(column, 4)
        running = thresholds(ids, array([value for _, value in part], kind), carried, slack)
        before, had = running.before()
        after, has = running.after()
        for at, (group, value) in enumerate(part):
            assert (before[at] if had[at] else None) == nth(seen.get(group, []), slack)
            seen.setdefault(group, []).append(value)
            assert (after[at] if has[at] else None) == nth(seen[group], slack)
        last, known = running.last()
        found = [value if there else None for value, there in zip(last, known, strict=True)]
        assert found == [nth(seen.get(group, []), slack) for group in range(4)]
        column = carried_lists(running, stored_type(kind))


def nth(values: list[Any], slack: int) -> Any:
    ordered = sorted(values, reverse=True)
    return ordered[slack] if len(ordered) > slack else None


@given(st.data(), st.sampled_from(list(KINDS)))
def test_the_row_that_reaches_a_value(data: Any, kind: Any) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), KINDS[kind]), max_size=30))
    wanted = data.draw(st.lists(st.tuples(st.integers(0, 2), KINDS[kind]), max_size=5))
    ids = np.array([group for group, _ in rows], np.int64)
    carried = Carried.of(pa.array([], pa.list_(stored_type(kind))), 3)
    running = thresholds(ids, array([value for _, value in rows], kind), carried, 0)
    groups = np.array([group for group, _ in wanted], np.int64)
    found = running.reaching(groups, array([value for _, value in wanted], kind))
    for (group, value), row in zip(wanted, found.tolist(), strict=True):
        hits = [at for at, (g, v) in enumerate(rows) if g == group and v >= value]
        assert row == (hits[0] if hits else -1)


def test_tuple_numbers_pass_when_their_tuple_is_there() -> None:
    running = counted(np.array([0, 1, 0]), np.array([4, 1, 5]), 2)
    assert running.reaching(np.array([0, 0, 0, 1, 1]), np.array([5, 6, 7, 2, 3])).tolist() == [
        *[0, 2, -1],
        *[1, -1],
    ]


@pytest.mark.parametrize("groups", [1, 300, 70_000])
def test_by_group_keeps_the_order_of_arrival(groups: int) -> None:
    ids = np.random.default_rng(1).integers(0, groups, 5_000)
    assert by_group(ids, groups).tolist() == np.argsort(ids, kind="stable").tolist()


def test_codes_of_nothing_are_below_every_wish() -> None:
    codes = RankCodes.of(np.empty(0, np.int64), 5)
    assert codes.encode(np.array([-3, 0, 9])).tolist() == [codes.span] * 3
