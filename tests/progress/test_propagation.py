"""Marks behind boxes: the rules agree with those that the reference derives by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from auroral.boxes import Join, Resample
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import ArcProgress, least
from auroral.reference.progress.marks import Promise
from auroral.reference.progress.promises import rule

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), max_size=5).map(sorted)
RANGES = st.tuples(st.integers(-5, 5), st.integers(-5, 5)).filter(lambda band: sum(band) >= 0)
SCHEMAS = [Schema.parse("t bigint"), Schema.parse("t bigint")]


def joining(band: tuple[float, float]) -> Join:
    order: Any = {"on": "t"}
    return Join(inputs=("l", "r"), left=order, right=order, range=band)


def at(progress: ArcProgress, moment: int) -> dict[str, Any]:
    return {name: least(mark).at(moment) for name, mark in progress.items()}


@given(STEPS, STEPS, RANGES, st.integers(0, 9), st.sampled_from(["bigint", "double"]))
@example([], [(1, 44)], (10, 10), 1, "double")
def test_a_join_promises_what_the_reference_derives(
    left: list[Any], right: list[Any], band: tuple[int, int], moment: int, kind: str
) -> None:
    """Of whole numbers, and of tenths as doubles, which are rounded."""
    part = 1 if kind == "bigint" else 10
    schemas = [Schema.parse(f"t {kind}")] * 2
    marks = [
        LowWater.of([(at, value if part == 1 else value / part) for at, value in steps])
        for steps in (left, right)
    ]
    box = joining(band if part == 1 else (band[0] / part, band[1] / part))
    made = box.progress([{"t": mark} for mark in marks], schemas)
    derived = rule(box, "", schemas)([{"t": Promise((), {(): mark.at(moment)})} for mark in marks])
    assert at(made, moment) == {name: promise.of(()) for name, promise in derived.items()}


def test_what_is_added_to_a_left_value_is_not_rounded_over_a_promise() -> None:
    """3.4 + 1.0 is 4.4, so 3.4 may still get a partner; but 4.4 - 1.0 is above 3.4."""
    schemas = [Schema.parse("t double")] * 2
    left, right = {"t": LowWater.of([(1, 9.0)])}, {"t": LowWater.of([(1, 4.4)])}
    order: Any = {"on": "t"}
    compute: Any = {"n": "count(*)"}
    join = Join(inputs=("l", "r"), left=order, right=order, within=1.0)
    near = Resample(inputs=("l", "r"), left=order, right=order, within=1.0, compute=compute)
    for box in (join, near):
        assert 3.4 - 1e-14 < at(box.progress([left, right], schemas), 1)["t"] <= 3.4


def test_a_negative_end_does_not_wrap_round() -> None:
    top = 2**63 - 1
    mark = LowWater(np.array([1]), np.array([top]))
    made = joining((-5, 5)).progress([{"t": mark}, {"t": mark}], SCHEMAS)
    assert at(made, 1) == {"t": top - 5, "right_t": top}


def test_a_mark_near_the_least_double_promises_nothing_behind_a_join() -> None:
    schemas = [Schema.parse("t double")] * 2
    lowest = -1.7976931348623157e308
    marks = [{"t": LowWater.of([(1, lowest)])}] * 2
    box = joining((1e300, 1e300))
    derived = rule(box, "", schemas)([{"t": Promise((), {(): lowest})}] * 2)
    promised = {"t": -np.inf, "right_t": -np.inf}
    assert at(box.progress(marks, schemas), 1) == promised
    assert {name: promise.of(()) for name, promise in derived.items()} == promised
