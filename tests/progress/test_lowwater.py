"""Laws of low-water marks, against the definition: a mark at a moment is the greatest so far."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auroral.progress.lowwater import END, GroupedLowWater, LowWater, as_values, maximum, minimum

Steps = list[tuple[int, Any]]
LAST = 40
MOMENTS = range(-1, LAST + 3)
INTEGERS = st.integers(-20, 20) | st.sampled_from([-(2**63), 2**63 - 1, 10**30, -(10**30)])
FLOATS = st.floats(allow_nan=False)


def steps_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Steps]:
    moments = st.lists(st.integers(0, LAST), unique=True, max_size=12).map(sorted)
    return moments.flatmap(
        lambda at: st.tuples(*[values] * len(at)).map(lambda v: list(zip(at, v, strict=True)))
    )


STEPS = steps_of(INTEGERS) | steps_of(FLOATS)
ENDED = st.none() | st.integers(LAST + 1, LAST + 2)
SMALL = st.builds(LowWater.of, steps_of(st.integers(-20, 20)), ENDED)
EARLY = st.builds(
    lambda steps, end: LowWater.of([s for s in steps if end is None or s[0] <= end], end),
    steps_of(st.integers(-20, 20)),
    st.none() | st.integers(0, LAST),
)
"""Marks of streams that may end before others do."""


def naive(steps: Steps, moment: int) -> Any:
    return max((value for at, value in steps if at <= moment), default=None)


def lowest(values: list[Any]) -> Any:
    return None if None in values else min(values)


def raised(values: list[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


@given(STEPS)
def test_a_mark_is_the_greatest_value_so_far(steps: Steps) -> None:
    mark = LowWater.of(steps)
    assert [mark.at(m) for m in MOMENTS] == [naive(steps, m) for m in MOMENTS]
    assert mark.latest == naive(steps, LAST)


@given(STEPS, ENDED)
def test_marks_never_regress_and_hold_no_idle_steps(steps: Steps, ended: int | None) -> None:
    mark = LowWater.of(steps, ended)
    seen = [value for value in map(mark.at, MOMENTS) if value is not None]
    assert seen == sorted(seen)
    assert mark.steps() == sorted(set(mark.steps()))
    assert len({value for _, value in mark.steps()}) == len(mark.steps())


@given(STEPS, st.lists(st.integers(0, 12), max_size=4))
def test_any_cut_gives_the_same_mark(steps: Steps, cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(steps)) for cut in cuts), len(steps)]
    mark = LowWater()
    for start, stop in pairwise(borders):
        part = steps[start:stop]
        mark = mark.then(np.array([m for m, _ in part], np.int64), as_values([v for _, v in part]))
    assert mark == LowWater.of(steps)


@given(STEPS, INTEGERS, ENDED)
def test_first_reaching_is_the_first_moment_at_or_above(
    steps: Steps, value: int, ended: int | None
) -> None:
    mark = LowWater.of(steps, ended)
    found = [m for m in MOMENTS if (at := mark.at(m)) is not None and at >= value]
    assert mark.first_reaching(value) == (found[0] if found else None)


@given(st.lists(EARLY, min_size=1, max_size=4))
def test_minimum_is_the_least_at_each_moment(marks: list[LowWater]) -> None:
    least = minimum(marks)
    expected = [lowest([mark.at(m) for mark in marks]) for m in MOMENTS]
    assert [least.at(m) for m in MOMENTS] == expected


@given(SMALL, SMALL)
def test_maximum_is_the_greater_at_each_moment(one: LowWater, other: LowWater) -> None:
    greatest = maximum(one, other)
    expected = [raised([one.at(m), other.at(m)]) for m in MOMENTS]
    assert [greatest.at(m) for m in MOMENTS] == expected


@given(EARLY, st.sampled_from(MOMENTS))
def test_since_keeps_what_later_moments_see(mark: LowWater, moment: int) -> None:
    later = mark.since(moment)
    assert [later.at(m) for m in MOMENTS if m >= moment] == [
        mark.at(m) for m in MOMENTS if m >= moment
    ]
    assert len([m for m, _ in later.steps() if m < moment]) <= 1


@given(EARLY, st.integers(0, 9))
def test_shift_lowers_every_value(mark: LowWater, distance: int) -> None:
    shifted = mark.shift(distance)
    for m in MOMENTS:
        at = mark.at(m)
        assert shifted.at(m) == (at if at is None or at == END else at - distance)


@given(SMALL, st.integers(0, LAST))
def test_an_end_is_above_every_value(mark: LowWater, moment: int) -> None:
    ended = mark.end(moment)
    assert ended.at(moment) == ended.latest == END
    assert ended.at(moment - 1) == mark.at(moment - 1)
    assert ended.first_reaching(10**9) == moment


@given(st.dictionaries(st.tuples(st.integers(0, 3)), EARLY, max_size=3), st.sampled_from(MOMENTS))
def test_a_grouped_mark_is_each_group_alone(
    groups: dict[tuple[Any, ...], LowWater], moment: int
) -> None:
    grouped = GroupedLowWater(("g",), groups)
    assert grouped.at(moment, (9,)) is None
    for group, mark in groups.items():
        assert grouped.at(moment, group) == mark.at(moment)
        assert grouped.since(moment).groups[group] == mark.since(moment)
        assert grouped.end(moment).groups[group] == mark.end(moment)
