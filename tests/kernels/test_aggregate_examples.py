"""Aggregate: the papers' examples, and what random events seldom reach."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from auroral.kernels.accumulators.choice import CallSpec
from auroral.kernels.aggregate import AggregateKernel
from auroral.kernels.kernel import Context, Emitted
from auroral.progress.lowwater import GroupedLowWater, JointLowWater, LowWater

COUNT = CallSpec("count", (), pa.int64())
REPORTS = [
    *[(1, 1, 34), (1, 2, 38), (2, 1, 24), (3, 1, 35), (3, 2, 38), (3, 3, 18), (4, 1, 21)],
    *[(5, 1, 20), (2, 2, 31), (4, 2, 36), (4, 3, 30), (5, 2, 31), (1, 3, 28), (2, 3, 41)],
    (5, 3, 31),
]
"""Soldiers' reports: sid, time, position [1 Fig. 13]."""


def aggregate(**more: Any) -> AggregateKernel:
    """Counts over f0, in windows of one value, if not told otherwise."""
    whole = {
        "on": "f0",
        "by": (),
        "slack": None,
        "size": 1,
        "advance": 1,
        "start_type": pa.int64(),
        "calls": (COUNT,),
        "arguments": ((),),
        "types": (("f0", pa.int64()),),
    } | more
    return AggregateKernel(**whole)


def table(types: Sequence[tuple[str, pa.DataType]], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows that arrive at moments 1, 2, 3 …"""
    moments = list(range(1, len(rows) + 1))
    hidden = {"_seq": moments, "_ts": moments}
    columns = zip(types, zip(*rows, strict=True), strict=True)
    return pa.table(hidden | {name: pa.array(values, kind) for (name, kind), values in columns})


def stepped(
    kernel: AggregateKernel, rows: Sequence[Sequence[Any]], context: Context | None = None
) -> Emitted:
    """Everything in one step."""
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    tuples = table(tuple(dict(kernel.types).items()), rows)
    return kernel.step([tuples], state, context or Context(0, len(rows) + 1))


def made(emitted: Emitted, *names: str) -> list[tuple[Any, ...]]:
    rows = sorted(emitted.ports[""].to_pylist(), key=lambda row: (row["_seq"], row["_sub"]))
    return [tuple(row[name] for name in names) for row in rows]


QUOTES = [
    *[("MSF", "1:00", 20), ("INT", "1:00", 16), ("IBM", "1:00", 24), ("IBM", "1:15", 20)],
    *[("IBM", "1:30", 23), ("MSF", "1:30", 24), ("INT", "1:30", 12), ("IBM", "2:00", 17)],
    *[("INT", "2:00", 16), ("MSF", "2:00", 22), ("IBM", "1:45", 13)],
]


def quotes(slack: int) -> AggregateKernel:
    hour = 3_600_000_000
    return aggregate(
        by=("f1",),
        slack=slack,
        size=hour,
        advance=hour,
        start_type=pa.timestamp("us", "UTC"),
        calls=(CallSpec("avg", (pa.int64(),), pa.float64()),),
        arguments=(("f2",),),
        types=(("f0", pa.timestamp("us", "UTC")), ("f1", pa.string()), ("f2", pa.int64())),
    )


def at(clock: str) -> datetime:
    hours, minutes = clock.split(":")
    return datetime(2003, 1, 1) + timedelta(hours=int(hours), minutes=int(minutes))


@pytest.mark.parametrize(("slack", "ibm", "late"), [(1, 20, {}), (0, 67 / 3, {"late": 1})])
def test_figure_9_with_its_late_quote(slack: int, ibm: float, late: dict[str, int]) -> None:
    rows = [(at(when), sid, price) for sid, when, price in QUOTES]
    emitted = stepped(quotes(slack), rows, Context(0, 20, ended=15))
    found = {(sid, start.hour): price for sid, start, price in made(emitted, "f1", "start", "agg0")}
    assert found == {
        ("IBM", 1): pytest.approx(ibm),
        ("INT", 1): 14,
        ("MSF", 1): 22,
        ("IBM", 2): 17,
        ("INT", 2): 16,
        ("MSF", 2): 22,
    }
    assert emitted.late == late


def test_figure_13() -> None:
    across = [(time,) for _, time, position in REPORTS if position >= 30]
    emitted = stepped(aggregate(slack=1), across, Context(0, 20, ended=15))
    assert made(emitted, "start", "agg0") == [(1, 2), (2, 5), (3, 3)]


@pytest.mark.parametrize(("slack", "late"), [(3, {}), (2, {"late": 2})])
def test_query_2(slack: int, late: dict[str, int]) -> None:
    mean = CallSpec("avg", (pa.int64(),), pa.float64())
    types = (("f0", pa.int64()), ("f1", pa.int64()))
    kernel = aggregate(slack=slack, calls=(mean,), arguments=(("f1",),), types=types)
    reports = [(time, position) for _, time, position in REPORTS]
    emitted = stepped(kernel, reports, Context(0, 20, ended=16))
    assert emitted.late == late
    if not late:
        assert made(emitted, "start", "agg0") == [(1, 26.8), (2, 34.8), (3, 29.6)]


def test_windows_close_with_the_tuple_that_completes_them() -> None:
    across = [(time,) for _, time, position in REPORTS if position >= 30]
    emitted = stepped(aggregate(slack=1), across)
    assert made(emitted, "_seq", "start", "agg0") == [(4, 1, 2), (9, 2, 5)]


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63), 2**62])
def test_values_at_the_ends_of_64_bits(extreme: int) -> None:
    kernel = aggregate(slack=0, size=10, advance=3)
    emitted = stepped(kernel, [(extreme,), (extreme,)])
    emitted = kernel.step(
        [table(kernel.types, [(0,)]).slice(1)], emitted.state, Context(3, 9, ended=5)
    )
    starts = range(-(-(extreme - 9) // 3) * 3, extreme + 1, 3)
    shown = [start if start >= -(2**63) else None for start in starts]
    assert sorted(made(emitted, "start", "agg0"), key=str) == [
        (start, 2) for start in sorted(shown, key=str)
    ]


def test_starts_the_field_can_not_hold_are_null() -> None:
    kind = pa.decimal128(3, 1)
    kernel = aggregate(slack=0, size=300, advance=300, start_type=kind, types=(("f0", kind),))
    emitted = stepped(kernel, [(Decimal("-99.9"),), (Decimal("1.0"),)])
    assert made(emitted, "start", "agg0") == [(None, 1)]


def test_several_functions_and_no_groups() -> None:
    calls = (
        COUNT,
        CallSpec("sum", (pa.int64(),), pa.int64()),
        CallSpec("max", (pa.int64(),), pa.int64()),
    )
    kernel = aggregate(size=10, advance=5, calls=calls, arguments=((), ("f0",), ("f0",)))
    mark = LowWater.of([(2, 11)])
    emitted = stepped(kernel, [(1,), (7,), (12,)], Context(0, 4, (mark,)))
    assert made(emitted, "_seq", "start", "agg0", "agg1", "agg2") == [
        (2, -5, 1, 1, 1),
        (2, 0, 2, 8, 7),
    ]


class Picky:
    """Fails over windows that hold a 13."""

    def init(self) -> list[int]:
        return []

    def incr(self, state: list[int], value: int) -> list[int]:
        return [*state, value]

    def final(self, state: list[int]) -> int:
        if 13 in state:
            raise ValueError("unlucky")
        return len(state)


def test_a_window_whose_function_fails_is_a_dead_letter() -> None:
    call = CallSpec("udf", (pa.int64(),), pa.int64(), function=Picky)
    kernel = aggregate(slack=0, size=10, advance=10, calls=(call,), arguments=(("f0",),))
    emitted = stepped(kernel, [(3,), (13,), (21,)], Context(0, 9, ended=7))
    assert made(emitted, "start", "agg0") == [(0, 1), (20, 1)]
    ((reason, letter),) = emitted.dead
    assert "unlucky" in reason
    assert json.loads(letter) == {"start": 10}


class Test_closed_windows_may_wait:  # noqa: N801
    """At most `flush_rows` windows go in a step, with the moment they closed at."""

    groups = 10

    def run(self, **more: Any) -> list[tuple[list[tuple[Any, ...]], int | None]]:
        types = (("f0", pa.int64()), ("f1", pa.int64()))
        kernel = aggregate(by=("f1",), size=10, advance=10, types=types, flush_rows=4, **more)
        state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
        found = []
        for step in range(5):
            rows = [(step * 10, g) for g in range(self.groups)] if step < 2 else [(40, 0)]
            tuples = table(kernel.types, rows)
            base = step * 100
            moments = pa.array([base + m for m in tuples["_seq"].to_pylist()])
            tuples = tuples.set_column(0, "_seq", moments)
            mark = LowWater.of([(50, 10), (150, 20), (350, 50)])
            ended = 450 if step == 4 else None
            emitted = kernel.step([tuples], state, Context(base, base + 100, (mark,), None, ended))
            state |= emitted.state
            found.append((made(emitted, "_seq", "start", "f1", "agg0"), emitted.pending))
        return found

    def test_the_rest_waits(self) -> None:
        steps = self.run(flush_windows=9)
        assert [len(rows) for rows, _ in steps] == [4, 4, 4, 4, 5]
        assert [pending for _, pending in steps] == [50, 50, 150, 150, None]

    def test_but_not_for_long(self) -> None:
        steps = self.run(flush_windows=2)
        assert [len(rows) for rows, _ in steps][:3] == [4, 4, 4]
        assert [pending for _, pending in steps][:3] == [50, 50, 150]
        assert (len(steps[3][0]), steps[3][1]) == (8, 350)

    def test_and_all_is_as_without_waiting(self) -> None:
        paced = sorted(row for rows, _ in self.run(flush_windows=9) for row in rows)
        assert paced == sorted(row for rows, _ in self.run(flush_windows=0) for row in rows)
        assert [row[0] for row in paced] == [50] * 10 + [150] * 10 + [350] * 1


def test_a_window_that_waits_takes_no_more_tuples() -> None:
    kernel = aggregate(size=10, advance=5, flush_rows=1, flush_windows=9)
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    mark = LowWater.of([(2, 20)])
    first = kernel.step(
        [table(kernel.types, [(6,), (7,)])],
        state,
        Context(0, 3, (mark,)),
    )
    assert (made(first, "start", "agg0"), first.pending) == ([(5, 2)], 2)
    late = table(kernel.types, [(8,)]).set_column(0, "_seq", pa.array([4]))
    second = kernel.step([late], state | first.state, Context(3, 5, (mark,)))
    assert (made(second, "_seq", "start", "agg0"), second.late) == ([(2, 0, 2)], {"late": 1})
    assert second.pending is None


def test_what_does_not_change_is_not_written() -> None:
    kernel = aggregate(slack=1)
    emitted = stepped(replace(kernel), [(1,), (2,)])
    assert set(emitted.state) == {"windows", "groups"}
    none = table(kernel.types, [(1,)]).slice(0, 0)
    again = kernel.step([none], emitted.state, Context(5, 9))
    assert again.state == {}
    assert again.held == 2


def test_a_step_that_is_cut_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = aggregate(slack=1, size=10, advance=2, fields=("f0",))
    rows = [(n * 7 % 30,) for n in range(40)]
    whole = stepped(kernel, rows, Context(0, 50, ended=45))
    monkeypatch.setattr("auroral.kernels.aggregate._PAIRS", 20)
    cut = stepped(kernel, rows, Context(0, 50, ended=45))
    assert cut.ports[""].num_rows
    assert made(cut, "_seq", "_sub", "agg0") == made(whole, "_seq", "_sub", "agg0")
    assert (cut.late, cut.held, cut.ports["late"]) == (whole.late, 0, whole.ports["late"])


@pytest.mark.parametrize(
    "mark",
    [
        GroupedLowWater(("x",), {(1,): LowWater.of([(1, 9)])}, LowWater.of([(2, 5)])),
        JointLowWater("x", LowWater.of([(2, 5)]), LowWater.of([(0, 90)]), LowWater.of([(0, 90)])),
    ],
)
def test_marks_of_groups_that_windows_do_not_have_hold_together(mark: Any) -> None:
    emitted = stepped(aggregate(size=5, advance=5), [(1,), (2,), (7,)], Context(0, 9, (mark,)))
    assert made(emitted, "_seq", "start", "agg0") == [(2, 0, 2)]


def test_a_group_is_complete_in_the_moment_after_the_other_mark_passed_it() -> None:
    """What the mark of a tuple's own moment says is no reason to refuse the tuple."""
    own, other = LowWater.of([(0, 90)]), LowWater.of([(2, 8)])
    mark = JointLowWater("f1", LowWater(), own, other)
    types = (("f0", pa.int64()), ("f1", pa.int64()))
    kernel = aggregate(by=("f1",), by_mark=("f1",), size=5, advance=5, types=types)
    emitted = stepped(kernel, [(1, 7), (2, 7), (3, 7), (3, 9)], Context(0, 9, (mark,)))
    assert made(emitted, "_seq", "start", "f1", "agg0") == [(2, 0, 7, 2)]
    assert emitted.late == {"late": 1}
    windows = emitted.state["windows"]
    assert isinstance(windows, pa.Table)
    assert windows["f1"].to_pylist() == [9]


def test_a_closed_window_is_revised_while_history_lasts() -> None:
    kernel = aggregate(slack=0, size=5, advance=5, history=10)
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    found, late = [], []
    for moment, value in enumerate([1, 6, 2, 14, 3, 15, 4, 7]):
        tuples = table(kernel.types, [(value,)]).set_column(0, "_seq", pa.array([moment]))
        emitted = kernel.step([tuples], state, Context(moment, moment + 1))
        state |= emitted.state
        found += made(emitted, "_seq", "start", "agg0", "revises")
        late.append(emitted.late.get("late", 0))
    assert found == [
        *[(1, 0, 1, False), (2, 0, 2, True), (3, 5, 1, False), (4, 0, 3, True)],
        *[(5, 10, 1, False), (7, 5, 2, True)],
    ]
    assert late == [0, 0, 0, 0, 0, 0, 1, 0]


def test_a_tuple_taken_after_its_window_timed_out_is_late() -> None:
    types = (("f0", pa.int64()), ("f1", pa.bool_()))
    kernel = aggregate(
        slack=1, size=None, advance=None, opens="f1", timeout_us=3, types=types, fields=("f0",)
    )
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    clock = LowWater.of([(moment, moment) for moment in range(9)])
    rows = [(1, True), (3, False), (5, False), (7, False), (9, False), (11, True), (13, False)]
    tuples, found, late = table(types, rows), [], []
    for moment in range(1, 9):
        context = Context(moment, moment + 1, (), clock, 8)
        emitted = kernel.step([tuples.slice(moment - 1, 1)], state, context)
        state |= emitted.state
        found += made(emitted, "_seq", "start", "agg0")
        late += [tuple(row.values()) for row in emitted.ports["late"].to_pylist()]
    assert found == [(5, 1, 4), (8, 11, 2)]
    assert late == [(6, 5, b"", 9)]
