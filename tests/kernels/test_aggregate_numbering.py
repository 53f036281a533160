"""Numbers of windows: by whatever way they are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.windowing.numbering import number_groups, number_windows

WIDE = {
    "addressed": 1,
    "sorted": 2**40,
    "hashed": 2**60,
    "not packed": 2**62,
}
"""How far keys are apart decides how they are numbered."""


@given(st.data(), st.sampled_from(list(WIDE)), st.booleans())
def test_windows_are_numbered_by_first_appearance(data: Any, way: str, text: bool) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(-1, 1), st.integers(-2, 2)), max_size=30))
    known = list(dict.fromkeys(rows[: data.draw(st.integers(0, len(rows)))]))
    keys = {-1: "a", 0: None, 1: "b"} if text else {n: n * WIDE[way] for n in (-1, 0, 1)}

    def columns(some: list[tuple[int, int]]) -> Any:
        by = pa.array([keys[key] for key, _ in some], pa.string() if text else pa.int64())
        return [by], np.array([start * 5 for _, start in some], np.int64)

    ids, made = number_windows(columns(known), columns(rows))
    expected = list(dict.fromkeys([*known, *rows]))
    assert [expected[n] for n in ids.tolist()] == rows
    assert [rows[n] for n in made.tolist()] == expected[len(known) :]


@pytest.mark.parametrize("kind", [np.float64, object])
def test_starts_may_be_of_any_type(kind: Any) -> None:
    start = np.array([0.5, -0.5, 0.5] if kind is np.float64 else [10**30, -1, 10**30], kind)
    by = [pa.array([1, 1, 1])]
    ids, made = number_windows((by[:1], start), (by, start))
    assert (ids.tolist(), made.tolist()) == ([0, 1, 0], [])


def test_groups_of_several_tables_are_numbered_alike() -> None:
    found = number_groups([[pa.array(["b", "b"])], [pa.array(["a", "b"])]], [2, 2])
    assert [part.tolist() for part in found.parts] == [[0, 0], [1, 0]]
    assert [column.to_pylist() for column in found.by] == [["b", "a"]]
