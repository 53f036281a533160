"""Marks behind boxes: the rules agree with those that the reference derives by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auroral.boxes import Join
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import ArcProgress, least
from auroral.reference.progress.marks import Promise
from auroral.reference.progress.promises import rule

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), max_size=5).map(sorted)
RANGES = st.tuples(st.integers(-5, 5), st.integers(-5, 5)).filter(lambda band: sum(band) >= 0)
SCHEMAS = [Schema.parse("t bigint"), Schema.parse("t bigint")]


def joining(band: tuple[int, int]) -> Join:
    order: Any = {"on": "t"}
    return Join(inputs=("l", "r"), left=order, right=order, range=band)


def at(progress: ArcProgress, moment: int) -> dict[str, Any]:
    return {name: least(mark).at(moment) for name, mark in progress.items()}


@given(STEPS, STEPS, RANGES, st.integers(0, 9))
def test_a_join_promises_what_the_reference_derives(
    left: list[Any], right: list[Any], band: tuple[int, int], moment: int
) -> None:
    marks = [LowWater.of(steps) for steps in (left, right)]
    box = joining(band)
    made = box.progress([{"t": mark} for mark in marks], SCHEMAS)
    derived = rule(box, "", SCHEMAS)([{"t": Promise((), {(): mark.at(moment)})} for mark in marks])
    assert at(made, moment) == {name: promise.of(()) for name, promise in derived.items()}


def test_a_negative_end_does_not_wrap_round() -> None:
    top = 2**63 - 1
    mark = LowWater(np.array([1]), np.array([top]))
    made = joining((-5, 5)).progress([{"t": mark}, {"t": mark}], SCHEMAS)
    assert at(made, 1) == {"t": top - 5, "right_t": top}
