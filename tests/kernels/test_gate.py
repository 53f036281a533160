"""Gate: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.arrivals import InputOrder
from auroral.kernels.gate import GateKernel
from auroral.progress.lowwater import GroupedLowWater, LowWater

from . import driving
from .driving import KINDS, as_table, drive, plain

GROUPS = [None, "a", "b"]


def is_below(row: dict[str, Any], column: str, kind: pa.DataType, mark: Any) -> bool:
    """Whether a tuple is below the mark of its group at the moment before its own."""
    on, moment = driving.marked(row[column], kind), row["_seq"] - 1
    known = mark.at(moment, (row["f2"],)) if isinstance(mark, GroupedLowWater) else mark.at(moment)
    return on is not None and known is not None and on < known


@given(st.data())
def test_as_one_at_a_time(data: st.DataObject) -> None:
    kinds = [data.draw(st.sampled_from(list(KINDS))) for _ in range(2)]
    columns = {
        **{f"f{at}": driving.ons(kind) for at, kind in enumerate(kinds)},
        "f2": st.sampled_from(GROUPS),
    }
    rows = data.draw(driving.arrivals(columns))
    last = driving.end_of(rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    groups = [(group,) for group in GROUPS]
    judged = data.draw(st.sampled_from([[0], [1], [0, 1]]))
    marks = [
        data.draw(
            st.one_of(
                driving.marks(kinds[at], last, ended),
                driving.grouped_marks(kinds[at], last, groups, ended),
            )
        )
        for at in judged
    ]
    orders = tuple(
        InputOrder(f"f{at}", by_mark=("f2",) if isinstance(mark, GroupedLowWater) else ())
        for at, mark in zip(judged, marks, strict=True)
    )
    fields = ("f0", "f1", "f2")
    types = {"f0": kinds[0], "f1": kinds[1], "f2": pa.string()}
    wanted = data.draw(st.booleans())
    kernel = GateKernel(orders, fields, fields if wanted else ())
    ran = drive(kernel, [as_table(rows, types)], marks, data.draw(driving.cuts(last)), ended=ended)
    below = [
        any(
            is_below(row, f"f{at}", kinds[at], mark) for at, mark in zip(judged, marks, strict=True)
        )
        for row in rows
    ]
    entered = [row for row, late in zip(rows, below, strict=True) if not late]
    left = [row for row, late in zip(rows, below, strict=True) if late]
    assert plain(ran.ports[""]) == plain(entered)
    assert plain(ran.ports.get("late", [])) == plain(left if wanted else [])
    assert ran.late == ({"late": len(left)} if left else {})
    assert set(ran.held) == {0}


def test_the_mark_of_the_moment_before_judges() -> None:
    rows = [{"_seq": m, "_ts": 0, "_sub": b"", "n": n} for m, n in [(1, 5), (2, 4), (3, 4), (4, 5)]]
    kernel = GateKernel((InputOrder("n"),), ("n",), ("n",))
    ran = drive(kernel, [as_table(rows, {"n": pa.int64()})], [LowWater.of([(2, 5)])], [2, 9])
    assert [row["n"] for row in ran.ports[""]] == [5, 4, 5]
    assert [row["n"] for row in ran.ports["late"]] == [4]
