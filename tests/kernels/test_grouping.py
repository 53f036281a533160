"""Groups are numbered by first appearance, whatever their types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.grouping import group_ids, group_keys, match_groups

KINDS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [None, -5, 0, 2**62],
    pa.float64(): [None, 0.0, -0.0, float("nan"), -float("nan"), float("inf"), 1.5],
    pa.string(): [None, "", "a", "b"],
    pa.bool_(): [None, True, False],
    pa.decimal128(38, 1): [None, Decimal("0.0"), Decimal("-1.5")],
    pa.null(): [None],
}


def same(value: Any) -> Any:
    return "nan" if value != value else value


@given(st.data())
def test_numbers_by_first_appearance(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(KINDS)), max_size=3))
    row = st.tuples(*(st.sampled_from(KINDS[kind]) for kind in kinds))
    rows = data.draw(st.lists(row, max_size=20))
    columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(kinds)]
    ids, first = group_ids(columns, len(rows))
    seen: dict[Any, int] = {}
    starts: list[int] = []
    for at, values in enumerate(rows):
        key = tuple(same(v) for v in values)
        if key not in seen:
            seen[key] = len(seen)
            starts.append(at)
        assert ids[at] == seen[key]
    assert first.tolist() == starts
    assert ids.dtype == first.dtype == np.int64


def test_sides_are_numbered_alike() -> None:
    left, right, count = match_groups([pa.array([3, 1])], 2, [pa.chunked_array([[1, 9, 3]])], 3)
    assert (left.tolist(), right.tolist(), count) == ([0, 1], [1, 2, 0], 3)


def test_many_distinct_pairs() -> None:
    wide = pa.array(np.arange(3000) * 7919)
    ids, first = group_ids([wide, wide], 3000)
    assert ids.tolist() == first.tolist() == list(range(3000))


def test_keys_as_marks_name_them() -> None:
    columns = [pa.array([1.5, float("nan"), None]), pa.array([Decimal("2.50"), None, None])]
    assert group_keys(columns, [1, 0]) == [("nan", None), (1.5, "2.50")]
