"""Dedup: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.dedup import DedupKernel
from auroral.progress.lowwater import LowWater

from . import driving
from .driving import KINDS, NAN, as_table, drive, plain

GROUPS = [None, "a", "b"]
KEYS = [None, 0.0, -0.0, NAN, -NAN, 1.5]


class Model:
    """Judge and remember one tuple at a time."""

    def __init__(self, kind: pa.DataType, slack: int | None, mark: Any) -> None:
        self.kind, self.slack, self.mark = kind, slack, mark
        self.values: dict[Any, list[Any]] = {}
        self.remembered: list[tuple[Any, Any, Any]] = []
        self.late: dict[str, int] = {}

    def progress(self, group: Any, moment: int) -> Any:
        """With slack, what is so now; else what the mark is at a moment."""
        if self.slack is not None:
            values = sorted(self.values.get(group, ()), reverse=True)
            return values[self.slack] if len(values) > self.slack else None
        if isinstance(self.mark, LowWater):
            return self.mark.at(moment)
        return self.mark.at(moment, (group,))

    def forget(self, moment: int) -> None:
        def alive(on: Any, group: Any) -> bool:
            now = self.progress(group, moment)
            return now is None or not now > on

        self.remembered = [item for item in self.remembered if alive(item[1], item[2])]

    def arrive(self, row: dict[str, Any]) -> str:
        """`passes`, `duplicate`, or why it is late."""
        self.forget(row["_seq"] - 1)
        reason = driving.reason(row["f0"])
        on, group = driving.marked(row["f0"], self.kind), row["f1"]
        below = self.progress(group, row["_seq"] - 1)
        if reason is None and below is not None and on < below:
            reason = "late"
        if reason is not None:
            self.late[reason] = self.late.get(reason, 0) + 1
            return reason
        self.values.setdefault(group, []).append(on)
        key = tuple("nan" if v != v else v for v in (row["f2"], row["f3"]))
        if any(key == other for other, _, _ in self.remembered):
            return "duplicate"
        self.remembered.append((key, on, group))
        return "passes"


def model(
    model: Model, rows: list[dict[str, Any]], last: int, ended: int | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[int]]:
    out, late, held = [], [], []
    for moment in range(last):
        for row in (row for row in rows if row["_seq"] == moment):
            what = model.arrive(row)
            if what == "passes":
                out.append(row)
            elif what == "duplicate":
                model.late["duplicate"] = model.late.get("duplicate", 0) + 1
            else:
                late.append(row)
        model.forget(moment)
        if moment == ended:
            model.remembered = []
        held.append(len(model.remembered))
    return out, late, held


@given(st.data())
def test_as_one_at_a_time(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    slack = data.draw(st.sampled_from([None, None, 0, 1, 3]))
    columns = {
        "f0": driving.ons(kind),
        "f1": st.sampled_from(GROUPS if data.draw(st.booleans()) else ["a"]),
        "f2": st.sampled_from(KEYS),
        "f3": st.sampled_from([None, "x"]),
    }
    rows = data.draw(driving.arrivals(columns))
    last = driving.end_of(rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    cuts = data.draw(driving.cuts(last))
    grouped = slack is None and data.draw(st.booleans())
    mark = data.draw(
        driving.grouped_marks(kind, last - 1, [(group,) for group in GROUPS], ended)
        if grouped
        else driving.marks(kind, last - 1, ended)
    )
    types = {"f0": kind, "f1": pa.string(), "f2": pa.float64(), "f3": pa.string()}
    box = DedupKernel(
        "f0", ("f1",), slack, ("f2", "f3"), ("f3", "f0"), tuple(types.items()), ("f0",),
        by_mark=("f1",) if grouped else (),
    )  # fmt: skip
    ran = drive(
        box, [as_table(rows, types)], [mark], cuts, ended=ended, parquet=data.draw(st.booleans())
    )
    naive = Model(kind, slack, mark)
    out, late, held = model(naive, rows, last, ended)
    hidden = ("_seq", "_ts", "_sub")
    assert plain(ran.ports[""]) == plain([{k: r[k] for k in (*hidden, "f3", "f0")} for r in out])
    assert plain(ran.ports["late"]) == plain([{k: r[k] for k in (*hidden, "f0")} for r in late])
    assert ran.late == naive.late
    assert ran.held == [held[cut - 1] for cut in cuts]


@pytest.mark.parametrize("cuts", [[10], [2, 3, 10], [1, 4, 5, 6, 10]])
def test_remembers_until_progress_passes(cuts: list[int]) -> None:
    table = pa.table({"_seq": [1, 2, 4, 5], "_ts": [0] * 4, "f0": [12, 13, 12, 14], "f1": [7] * 4})
    box = DedupKernel("f0", (), None, ("f1",), ("f0",), (("f0", pa.int64()), ("f1", pa.int64())))
    ran = drive(box, [table], [LowWater.of([(1, 10), (4, 13)])], cuts)
    assert [row["f0"] for row in ran.ports[""]] == [12, 14]
    assert ran.held[-1] == 1


@pytest.mark.parametrize("step", [1, 40])
def test_long_chains(step: int) -> None:
    """Every second tuple of one key passes: what has passed hides just the next."""
    n = 400
    table = pa.table({"_seq": range(n), "_ts": range(n), "f0": range(n), "f1": ["k"] * n})
    mark = LowWater.of([(m, m) for m in range(n)])
    box = DedupKernel("f0", (), None, ("f1",), ("f0",), (("f0", pa.int64()), ("f1", pa.string())))
    ran = drive(box, [table], [mark], [*range(step, n, step), n])
    assert [row["f0"] for row in ran.ports[""]] == list(range(0, n, 2))
    assert all(stored["remembered"] <= 3 for stored in ran.stored)
