"""What tasks tell is added up by the driver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.eddy import report
from auroral.eddy.filters.tally import Counts
from auroral.eddy.report import Report, packed, unpacked

told = st.dictionaries(st.integers(0, 9) | st.integers(0, 2**31 - 1), st.integers(1, 2**40))


def _counts(numbers: dict[int, int]) -> Counts:
    return np.array(list(numbers), np.int32), np.array(list(numbers.values()), np.int64)


@given(told)
def test_counts_travel_unchanged(numbers: dict[int, int]) -> None:
    ids, counts = unpacked(*packed(_counts(numbers)))
    assert (ids.dtype.name, counts.dtype.name) == ("int32", "int64")
    assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == numbers


@given(st.lists(told, max_size=3))
@pytest.mark.parametrize("dense", [0, 2, 2**22])
def test_tasks_are_added_up(dense: int, tasks: list[dict[int, int]]) -> None:
    if dense > 2:
        tasks = [{query % 1000: count for query, count in task.items()} for task in tasks]
    whole = Report()
    for task in tasks:
        one = Report()
        one.count(_counts(task))
        whole.add(one.document())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_DENSE", dense)
        ids, counts = whole.totals()
    expected: dict[int, int] = {}
    for task in tasks:
        for query, count in task.items():
            expected[query] = expected.get(query, 0) + count
    assert list(zip(ids.tolist(), counts.tolist(), strict=True)) == sorted(expected.items())
