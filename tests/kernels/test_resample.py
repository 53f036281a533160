"""Resample: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.eddy.vectors.pairs import PairExpression
from auroral.kernels.accumulators.choice import CallSpec
from auroral.kernels.arrivals import NUMBER
from auroral.kernels.kernel import Context
from auroral.kernels.ordering import sortable
from auroral.kernels.resample import ResampleKernel
from auroral.network.types import Type
from auroral.progress.lowwater import END, GroupedLowWater, LowWater

from . import driving
from .driving import KINDS, Timeout, as_table, drive, plain, timeouts

Rows = list[dict[str, Any]]
NUMBERS = [kind for kind in KINDS if not pa.types.is_temporal(kind)]
WHOLE = (pa.int64(), pa.int32(), pa.float64())
CALLS = (
    CallSpec("count", (), pa.int64()),
    CallSpec("first", (pa.int64(),), pa.int64()),
    CallSpec("last", (pa.int64(),), pa.int64()),
    CallSpec("last", (pa.int64(),), pa.int64()),
)
BOTH = PairExpression("f2 - left.f2", Type("bigint"), (("f2", "left.f2"),), (("f2", "f2"),))


def number(value: Any, kind: pa.DataType) -> Any:
    """A value one can add to: floats stay floats, all else is exact."""
    if isinstance(value, float):
        return value
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    return Fraction(driving.marked(value, kind), 10**scale)


class Side:
    """One input: its progress, and what has been taken from it."""

    def __init__(
        self, kind: pa.DataType, slack: int | None, by: bool, mark: Any, numbered: bool = False
    ) -> None:
        self.kind, self.slack, self.by, self.mark = kind, slack, by, mark
        self.numbered, self.numbers = numbered, dict[int, int]()
        self.counts: dict[Any, int] = {}
        self.scale = kind.scale if pa.types.is_decimal(kind) else 0
        self.values: dict[Any, list[Any]] = {}
        self.taken: Rows = []
        self.late: Rows = []

    def group(self, row: dict[str, Any]) -> Any:
        return row["f1"] if self.by else None

    def of_group(self, moment: int, group: Any, marked: Any) -> Any:
        """Progress in units of marks: of a group of `by`, and among marks of `marked`."""
        if self.slack is not None:
            values = sorted(self.values.get(group, ()), reverse=True)
            return values[self.slack] if len(values) > self.slack else None
        if isinstance(self.mark, LowWater):
            return self.mark.at(moment)
        return self.mark.at(moment, (marked,))

    def shown(self, mark: Any) -> Any:
        if mark is None or isinstance(mark, float):
            return mark
        return Fraction(mark, 10**self.scale)

    def completes(self, moment: int, group: Any, ended: int | None) -> Any:
        """The progress that completes windows of a group."""
        if ended is not None and moment >= ended:
            return END
        if self.numbered:
            return self.counts.get(group, 0) + 1
        if self.slack is None and not isinstance(self.mark, LowWater) and not self.by:
            return self.of_all(moment, ended)
        return self.shown(self.of_group(moment, group, group))

    def of_all(self, moment: int, ended: int | None) -> Any:
        """What holds of everything still to come."""
        if ended is not None and moment >= ended:
            return END
        if self.numbered:
            return None if self.by else self.counts.get(None, 0) + 1
        if self.slack is not None:
            return None if self.by else self.shown(self.of_group(moment, None, None))
        if isinstance(self.mark, LowWater):
            return self.shown(self.mark.at(moment))
        each = [self.mark.others.at(moment), *(m.at(moment) for m in self.mark.groups.values())]
        return None if None in each else self.shown(min(each))

    def take(self, row: dict[str, Any]) -> str | None:
        """Take a tuple in, or say why it is late."""
        if self.numbered:
            group = self.group(row)
            self.counts[group] = self.numbers[id(row)] = self.counts.get(group, 0) + 1
            self.taken.append(row)
            return None
        why = driving.reason(row["f0"])
        if why is None:
            on = driving.marked(row["f0"], self.kind)
            below = self.of_group(row["_seq"] - 1, self.group(row), row["f1"])
            why = "late" if below is not None and on < below else None
        if why is None:
            self.values.setdefault(self.group(row), []).append(on)
            self.taken.append(row)
        else:
            self.late.append(row)
        return why

    def on(self, row: dict[str, Any]) -> Any:
        return self.numbers[id(row)] if self.numbered else number(row["f0"], self.kind)


def model(
    sides: list[Side], rows: list[Rows], within: Any, last: int, ended: int | None, timeout: Timeout
) -> tuple[Rows, dict[str, int], list[int]]:
    left, right = sides
    over: set[int] = set()
    out, why, held = [], dict[str, int](), []
    done: set[tuple[int, Any]] = set()

    def near(one: dict[str, Any], two: dict[str, Any]) -> bool:
        near = left.on(one) - within <= right.on(two) <= left.on(one) + within
        return bool(near) and timeout.meet(one, two)

    def passed(one: dict[str, Any], moment: int, group: Any) -> bool:
        progress = right.completes(moment, group, ended)
        past = progress is not None and bool(progress > left.on(one) + within)
        return past or timeout.is_over(one, moment)

    for moment in range(last):
        for side in (0, 1):
            for row in (row for row in rows[side] if row["_seq"] == moment):
                reason = sides[side].take(row)
                if reason is not None:
                    why[reason] = why.get(reason, 0) + 1
        groups = {right.group(row) for row in right.taken}
        for number, row in enumerate(left.taken):
            for group in groups:
                if (number, group) in done or not passed(row, moment, group):
                    continue
                done.add((number, group))
                window = [r for r in right.taken if right.group(r) == group and near(row, r)]
                if window:
                    on = left.on(row) if left.numbered else row["f0"]
                    out.append(emission(row, on, group, window, moment, right.by))
        progress, below = right.of_all(moment, ended), left.of_all(moment, ended)
        waits = [r for r in left.taken if progress is None or not progress > left.on(r) + within]
        wanted = [r for r in right.taken if below is None or not below - within > right.on(r)]
        for row in (*waits, *wanted):
            if timeout.is_over(row, moment) and id(row) not in over:
                over.add(id(row))
                why["timeout"] = why.get("timeout", 0) + 1
        needed = [
            (any(r is one for one in wanted) and not timeout.is_over(r, moment))
            or any(near(one, r) and not passed(one, moment, right.group(r)) for one in left.taken)
            for r in right.taken
        ]
        held.append(sum(not timeout.is_over(r, moment) for r in waits) + sum(needed))
        # What has gone by progress is not counted when its time is over later.
        over |= {id(r) for r in left.taken if not any(r is one for one in waits)}
        over |= {id(r) for r in right.taken if not any(r is one for one in wanted)}
    return out, why, held


def emission(
    row: dict[str, Any], on: Any, group: Any, window: Rows, moment: int, by: bool
) -> dict[str, Any]:
    sub = row["_seq"].to_bytes(8, "big") + row["_sub"]
    sub += sortable([pa.array([group], pa.string())])[0].as_py() if by else b""
    ts = min(row["_ts"], *(r["_ts"] for r in window))
    found = {"_seq": moment, "_ts": ts, "_sub": sub} | ({"f1": group} if by else {})
    return found | {
        "on": on, "agg0": len(window), "agg1": window[0]["f2"], "agg2": window[-1]["f2"],
        "agg3": window[-1]["f2"] - row["f2"], "l_f2": row["f2"],
    }  # fmt: skip


def types(kind: pa.DataType) -> dict[str, pa.DataType]:
    return {"f0": kind, "f1": pa.string(), "f2": pa.int64()}


def kernel(left: pa.DataType, right: pa.DataType, within: Any, **more: Any) -> ResampleKernel:
    given: dict[str, Any] = {"by": ((), ("f1",)), "slack": (None, None)} | more
    given = {"on": ("f0", "f0"), "on_type": left} | given
    return ResampleKernel(
        within=within,
        calls=CALLS,
        arguments=((), ("f2",), ("f2",), ("p0",)),
        paired=(BOTH,),
        constants=("f2",),
        types=(tuple(types(left).items()), tuple(types(right).items())),
        **given,
    )


@settings(max_examples=150)
@given(st.data())
def test_as_one_at_a_time(data: st.DataObject) -> None:
    left = data.draw(st.sampled_from(list(KINDS)))
    mixed = left in NUMBERS and data.draw(st.integers(0, 3)) == 0
    kinds = [left, data.draw(st.sampled_from(NUMBERS)) if mixed else left]
    rows = []
    for kind in kinds:
        groups = st.sampled_from([None, "a", "b"])
        columns = {"f0": driving.ons(kind), "f1": groups, "f2": st.integers(0, 99)}
        rows.append(data.draw(driving.arrivals(columns, most=14)))
    last = driving.end_of(*rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    cuts = data.draw(driving.cuts(last))
    within: Any = data.draw(st.integers(0, 5))
    within = within / 2 if left == pa.float64() else within
    slack, by, marks = data.draw(driving.orders(kinds, last - 1, ended))
    timeout = data.draw(timeouts(last))
    numbered = [left in WHOLE and data.draw(st.integers(0, 3)) == 0 for _ in (0, 1)]
    box = kernel(
        kinds[0], kinds[1], within,
        on=tuple(NUMBER if each else "f0" for each in numbered),
        on_type=pa.int64() if numbered[0] else kinds[0],
        timeout_us=timeout.us,
        by=tuple(("f1",) if b else () for b in by),
        slack=tuple(slack),
        fields=(("f0",), ("f2",)),
        late=(True, True),
        by_mark=tuple(
            ("f1",) if isinstance(m, GroupedLowWater) and not n else ()
            for m, n in zip(marks, numbered, strict=True)
        ),
    )  # fmt: skip
    tables = [as_table(each, types(kind)) for each, kind in zip(rows, kinds, strict=True)]
    parquet, clock = data.draw(st.booleans()), timeout.clock
    ran = drive(box, tables, marks, cuts, ended=ended, parquet=parquet, clock=clock)
    sides = [Side(*each) for each in zip(kinds, slack, by, marks, numbered, strict=True)]
    exact = within if isinstance(within, float) else Fraction(within, 10 ** sides[0].scale)
    out, why, held = model(sides, rows, exact, last, ended, timeout)
    out.sort(key=lambda row: (row["_seq"], row["_sub"]))
    assert plain(ran.ports[""]) == plain(out)
    hidden = ("_seq", "_ts", "_sub")
    for side, port, name in zip(sides, ("left_late", "right_late"), ("f0", "f2"), strict=True):
        assert plain(ran.ports[port]) == plain(
            [{k: r[k] for k in (*hidden, name)} for r in side.late]
        )
    assert ran.late == why
    assert ran.held == [held[cut - 1] for cut in cuts]


@pytest.mark.parametrize("cuts", [[40], [11, 12, 13, 14, 40]])
def test_figure_11(cuts: list[int]) -> None:
    """Soldier 2's first report after 2:10 completes it, although soldier 1 reported first."""
    beats = pa.table(
        {"_seq": [1, 2], "_ts": [1, 2], "f0": [120, 135], "f1": ["", ""], "f2": [0, 0]}
    )
    seen = [("1", 115, 10), ("2", 115, 20), ("2", 131, 30), ("1", 125, 40), ("1", 141, 50)]
    reports = pa.table(
        {
            "_seq": range(11, 16),
            "_ts": range(11, 16),
            "f0": [time for _, time, _ in seen],
            "f1": [sid for sid, _, _ in seen],
            "f2": [pos for _, _, pos in seen],
        }
    )
    box = kernel(pa.int64(), pa.int64(), 10, slack=(0, 0))
    ran = drive(box, [beats, reports], [LowWater(), LowWater()], cuts)
    got = [(r["_seq"], r["f1"], r["on"], r["agg0"], r["agg1"], r["agg2"]) for r in ran.ports[""]]
    assert got == [(13, "2", 120, 1, 20, 20), (15, "1", 120, 2, 10, 40)]


def test_a_right_tuple_stays_while_a_window_waits() -> None:
    """The left has passed it, but the window of a left tuple that came before is not complete."""
    left = pa.table({"_seq": [2, 3], "_ts": [0, 0], "f0": [10, 50], "f1": [""] * 2, "f2": [0, 0]})
    right = pa.table({"_seq": [1], "_ts": [0], "f0": [9], "f1": ["a"], "f2": [7]})
    marks = [LowWater.of([(3, 50)]), LowWater.of([(8, 30)])]
    ran = drive(kernel(pa.int64(), pa.int64(), 5), [left, right], marks, [4, 5, 9])
    assert [(r["_seq"], r["on"], r["agg1"]) for r in ran.ports[""]] == [(8, 10, 7)]
    assert ran.held == [3, 3, 1]


@pytest.mark.parametrize("cuts", [[9], [2, 4, 9]])
def test_right_progress_may_be_ahead(cuts: list[int]) -> None:
    """A left tuple whose window is complete when it arrives comes out at once."""
    left = pa.table({"_seq": [5], "_ts": [4], "f0": [10], "f1": [""], "f2": [0]})
    right = pa.table({"_seq": [1], "_ts": [3], "f0": [9], "f1": ["a"], "f2": [7]})
    marks = [LowWater(), LowWater.of([(3, 30)])]
    ran = drive(kernel(pa.int64(), pa.int64(), 5), [left, right], marks, cuts)
    assert [(r["_seq"], r["_ts"], r["agg1"]) for r in ran.ports[""]] == [(5, 3, 7)]
    assert ran.held[-1] == 1  # the right one: other left tuples may come


class Picky:
    """A window function that can not take sevens."""

    def init(self) -> int:
        return 0

    def incr(self, state: int, value: int) -> int:
        if value == 7:
            raise ValueError("seven")
        return state + value

    def final(self, state: int) -> int:
        return state


def test_a_function_that_fails_makes_a_dead_letter() -> None:
    call = CallSpec("udf", (pa.int64(),), pa.int64(), function=Picky)
    columns = tuple(types(pa.int64()).items())
    box = ResampleKernel(
        ("f0", "f0"), ((), ("f1",)), (None, None), 0, (call,), (("f2",),), pa.int64(),
        (columns, columns),
    )  # fmt: skip
    left = pa.table({"_seq": [1], "_ts": [0], "f0": [1], "f1": [""], "f2": [0]})
    right = pa.table({"_seq": [2, 3], "_ts": [0, 0], "f0": [1, 1], "f1": ["a", "b"], "f2": [7, 8]})
    state = {name: schema.empty_table() for name, schema in box.tables().items()}
    emitted = box.step([left, right], state, Context(0, 9, (LowWater(), LowWater()), None, 8))
    assert emitted.ports[""]["f1"].to_pylist() == ["b"]
    assert len(emitted.dead) == 1
    assert '"f1": "a"' in emitted.dead[0][1]
