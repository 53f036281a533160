"""Aggregate: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.aggregate import AggregateKernel
from auroral.progress.lowwater import JointLowWater, LowWater

from . import driving
from .aggregate_model import CALLS, Model, run
from .driving import KINDS

GROUPS: dict[pa.DataType, list[Any]] = {
    pa.string(): [None, "a", "b"],
    pa.int64(): [None, 1, 2],
    pa.float64(): [None, 0.0, -0.0, float("nan"), 1.5],
}


def kernel(kind: pa.DataType, group: pa.DataType, **more: Any) -> AggregateKernel:
    """A kernel over columns f0 (on), f1 (group), f2 (number) and f3 (opens)."""
    whole = {
        "on": "f0",
        "by": ("f1",),
        "slack": None,
        "size": 4,
        "advance": 4,
        "calls": CALLS,
        "arguments": ((), ("f2",)),
        "types": (("f0", kind), ("f1", group), ("f2", pa.int64()), ("f3", pa.bool_())),
        "fields": ("f2",),
    } | more
    start = pa.int64() if whole["on"] is None else kind
    return AggregateKernel(**whole, start_type=start)


@st.composite
def lengths(draw: st.DrawFn, kind: pa.DataType) -> tuple[Any, Any]:
    """Size and advance, in any relation."""
    small = st.integers(1, 6)
    if kind == pa.float64():
        small = st.sampled_from([0.1, 0.3, 0.5, 1.0, 1.5, 2.5])
    size = draw(small)
    return size, draw(st.one_of(st.just(size), small))


@st.composite
def events(draw: st.DrawFn, kind: pa.DataType, group: pa.DataType) -> list[dict[str, Any]]:
    """Tuples with numbers in order of arrival, of few groups so that they meet."""
    groups = GROUPS[group][-draw(st.integers(1, len(GROUPS[group]))) :]
    columns = {
        "f0": driving.ons(kind),
        "f1": st.sampled_from(groups),
        "f3": st.sampled_from([True, False, False, None]),
    }
    rows = draw(driving.arrivals(columns))
    return [row | {"f2": number} for number, row in enumerate(rows)]


@st.composite
def clocks(draw: st.DrawFn, last: int) -> LowWater:
    """A clock that moves now and then."""
    moments = sorted(draw(st.sets(st.integers(0, last), max_size=8)))
    return LowWater.of([(moment, draw(st.integers(0, 70))) for moment in moments])


@st.composite
def marks(
    draw: st.DrawFn, sort: str, kind: pa.DataType, group: pa.DataType, last: int, ended: Any
) -> Any:
    """A mark: one for all, or one for each group, or one that depends on the group's value."""
    if sort == "grouped":
        keys = [(key,) for key in GROUPS[group] if key == key]
        return draw(driving.grouped_marks(kind, last, keys, ended))
    if sort == "joint":
        levels = st.lists(st.integers(0, 3), max_size=3)
        moments = st.integers(0, last // 2)
        other = LowWater.of(sorted((draw(moments), level) for level in draw(levels)))
        other = other if ended is None else other.end(ended)
        parts = [draw(driving.marks(kind, last, ended)) for _ in range(2)]
        return JointLowWater("f1", parts[0], parts[1], other)
    return draw(driving.marks(kind, last, ended))


def check(
    draw: Any, made: AggregateKernel, kind: pa.DataType, group: pa.DataType, sort: str = "one"
) -> None:
    """The kernel does on random events what the model does."""
    rows = draw(events(kind, group))
    last = driving.end_of(rows)
    ended = draw(st.sampled_from([None, last - 2, last - 2]))
    inferred = made.slack is not None or made.on is None
    mark = None if inferred else draw(marks(sort, kind, group, last, ended))
    clock = draw(clocks(last)) if made.timeout_us is not None else None
    cuts = draw(driving.cuts(last))
    if mark is not None and sort != "one":
        made = replace(made, by_mark=("f1",))
    model = Model(made, kind, mark, clock).run(rows, last, ended)
    ran = run(made, kind, rows, mark, clock, cuts, ended, parquet=draw(st.booleans()))
    assert ran.emitted == sorted(model.emitted, key=lambda row: row[:3])
    assert ran.counts == model.counts
    if made.opens is None:
        assert ran.late == model.late
    else:
        assert sorted(ran.late) == sorted(model.late)
    if ended is not None:
        assert ran.state["windows"].num_rows == 0


def kinds() -> st.SearchStrategy[tuple[pa.DataType, pa.DataType]]:
    groups = st.sampled_from(list(GROUPS))
    return st.tuples(st.sampled_from(list(KINDS)), groups)


@pytest.mark.parametrize("sort", ["one", "grouped", "joint"])
@given(st.data(), kinds(), st.sampled_from([None, None, 10, 30]))
def test_windows_close_by_marks(sort: str, data: Any, types: Any, timeout_us: int | None) -> None:
    types = (types[0], pa.int64()) if sort == "joint" else types
    size, advance = data.draw(lengths(types[0]))
    made = kernel(*types, size=size, advance=advance, timeout_us=timeout_us)
    check(data.draw, made, types[0], types[1], sort)


@pytest.mark.parametrize("order", [{}, {"slack": 0}, {"slack": 0, "history": 0.0}])
@pytest.mark.parametrize(("size", "windows"), [(0.1, 1), (0.3, 3)])
def test_a_window_over_doubles_ends_where_another_starts(
    order: dict[str, Any], size: float, windows: int
) -> None:
    """Also where 14 * 0.1 + 0.1 is above 15 * 0.1: the value 1.5 is not in window 14."""
    made = kernel(pa.float64(), pa.string(), size=size, advance=0.1, **order)
    row = {"_seq": 2, "_ts": 0, "_sub": b"", "f0": 1.5, "f1": "b", "f2": 0, "f3": True}
    mark = None if order else LowWater(ended=3)
    expected = [(3, k * 0.1, (1, "b"), 0, [0], False) for k in range(16 - windows, 16)]
    assert Model(made, pa.float64(), mark, None).run([row], 5, 3).emitted == expected
    assert run(made, pa.float64(), [row], mark, None, [5], 3).emitted == expected


@given(st.data(), kinds(), st.integers(0, 3), st.booleans(), st.sampled_from([None, None, 10, 30]))
def test_windows_close_by_slack(
    data: Any, types: Any, slack: int, align: bool, timeout_us: int | None
) -> None:
    size, advance = data.draw(lengths(types[0]))
    made = kernel(
        *types, size=size, advance=advance, slack=slack, align_first=align, timeout_us=timeout_us
    )
    check(data.draw, made, *types)


@given(st.data(), st.sampled_from(list(GROUPS)), st.sampled_from([None, 20]))
def test_windows_over_tuple_numbers(data: Any, group: Any, timeout_us: int | None) -> None:
    size, advance = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    made = kernel(pa.int64(), group, on=None, size=size, advance=advance, timeout_us=timeout_us)
    check(data.draw, made, pa.int64(), group)


@given(
    st.data(),
    kinds(),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([None, None, 15]),
    st.sampled_from([0, 1, 3, 9]),
    st.booleans(),
)
def test_late_tuples_revise(
    data: Any, types: Any, slack: Any, timeout_us: Any, history: int, align: bool
) -> None:
    size, advance = data.draw(lengths(types[0]))
    made = kernel(
        *types,
        size=size,
        advance=advance,
        slack=slack,
        history=float(history) if types[0] == pa.float64() else history,
        timeout_us=timeout_us,
        align_first=align and slack is not None,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "auroral.kernels.windowing.revising._COPIES", data.draw(st.sampled_from([1, 2, 32]))
        )
        sort = data.draw(st.sampled_from(["one", "grouped"]))
        check(data.draw, made, types[0], types[1], sort)


@given(
    st.data(),
    kinds(),
    st.sampled_from([None, 0, 1, 3, "tup#"]),
    st.booleans(),
    st.sampled_from([None, None, 15]),
)
def test_windows_opened_by_a_predicate(
    data: Any, types: Any, order: Any, sized: bool, timeout_us: Any
) -> None:
    kind, group = (pa.int64(), types[1]) if order == "tup#" else types
    size = data.draw(lengths(kind))[0] if sized else None
    made = kernel(
        kind,
        group,
        on=None if order == "tup#" else "f0",
        slack=None if order == "tup#" else order,
        size=size,
        advance=None,
        opens="f3",
        timeout_us=timeout_us,
    )
    sorts = ["one", "grouped", "joint"] if group == pa.int64() else ["one", "grouped"]
    check(data.draw, made, kind, group, data.draw(st.sampled_from(sorts)))


@given(
    st.data(),
    kinds(),
    st.sampled_from([None, 1]),
    st.sampled_from([None, 1]),
    st.sampled_from([None, 15]),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_what_waits_to_be_sent_comes_with_its_own_moment(
    data: Any, types: Any, slack: Any, history: Any, timeout_us: Any, pace: tuple[int, int]
) -> None:
    size, advance = data.draw(lengths(types[0]))
    made = kernel(
        *types,
        size=size,
        advance=advance,
        slack=slack,
        history=float(history) if history and types[0] == pa.float64() else history,
        timeout_us=timeout_us,
        flush_rows=pace[0],
        flush_windows=pace[1],
    )
    rows = data.draw(events(*types))
    last = driving.end_of(rows)
    ended = data.draw(st.sampled_from([None, last - 2]))
    mark = None if slack is not None else data.draw(driving.marks(types[0], last, ended))
    clock = data.draw(clocks(last)) if timeout_us is not None else None
    model = Model(made, types[0], mark, clock).run(rows, last, ended)
    ran = run(made, types[0], rows, mark, clock, data.draw(driving.cuts(last)), ended)
    expected = sorted(model.emitted, key=lambda row: row[:3])
    complete = ran.pending[-1]
    if complete is None:
        assert ran.emitted == expected
    else:
        assert ended is None
        assert [row for row in ran.emitted if row[0] < complete] == [
            row for row in expected if row[0] < complete
        ]
        assert all(row in expected for row in ran.emitted)
    assert (ran.counts, ran.late) == (model.counts, model.late)
