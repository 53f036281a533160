"""Queries that share panes get what each would get alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.aggregate_reading import read_shared_aggregate
from auroral.eddy.lineage import Lineage
from auroral.eddy.panes import closing
from auroral.eddy.panes.step import AggregateGroup, step
from auroral.kernels.kernel import Context
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater

from .pane_model import Query, Row, alone, as_table, group_of, lineage_of, read, shared, stored

CALLS = (
    "count(*) AS a",
    "count(price) AS a, avg(price) AS b",
    "sum(price) AS a, count_if(n > 0) AS b, sum(n) AS c",
    "min(price) AS a, max(sym) AS b, bit_xor(n) AS c",
    "sum(cost) AS a, avg(cost) AS b, avg(n) AS c",
    "sum(n) FILTER (WHERE region = 1) AS a, max(cost) AS b, bool_or(n = 3) AS c",
)
LENGTHS = ((6, 2), (4, 4), (9, 3), (2, 5), (10, 1), (7, 3))


@st.composite
def predicates(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["all", "region", "price", "null"]))
    bound = draw(st.integers(0, 2))
    if kind == "region":
        return lambda row: row["region"] == bound
    if kind == "price":
        return lambda row: row["price"] is not None and row["price"] > bound
    if kind == "null":
        return lambda row: row["sym"] is None
    return lambda row: True


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Row], LowWater, int]:
    """Tuples out of order, and a mark some distance behind the greatest."""
    delay = draw(st.integers(0, 8))
    rows: list[Row] = []
    marks = []
    moment, now, most = 0, draw(st.integers(-30, 30)), None
    for _ in range(draw(st.integers(0, 30))):
        again = rows and draw(st.integers(0, 5)) == 0
        moment += 0 if again else draw(st.integers(1, 2))
        now += draw(st.integers(0, 4))
        ts = None if draw(st.integers(0, 15)) == 0 else now - draw(st.integers(0, 14))
        rows.append(
            {
                "_seq": moment,
                "_ts": draw(st.integers(0, 50)),
                "_sub": bytes([len(rows)]) if again else b"",
                "ts": ts,
                "sym": draw(st.sampled_from(["a", "b", None])),
                "region": draw(st.sampled_from([0, 1, 2, None])),
                "price": draw(st.sampled_from([0.25, -1.5, 3.0, None, 1.75, 2.5])),
                "n": draw(st.integers(-2, 4)),
                "cost": Decimal(draw(st.integers(-999, 999))) / 100,
            }
        )
        most = ts if most is None or (ts is not None and ts > most) else most
        if most is not None:
            marks.append((moment, most - delay))
    return rows, LowWater.of(marks), moment + 2


@st.composite
def registered(draw: st.DrawFn, cuts: list[int], keys: str) -> list[Query]:
    starts = [0, *cuts[:-1]]
    queries: list[Query] = []
    for number in range(draw(st.integers(1, 6))):
        size, advance = draw(st.sampled_from(LENGTHS))
        made = read(draw(st.sampled_from(CALLS)), f"RANGE {size}, SLIDE {advance}", keys)
        begin = draw(st.integers(0, len(starts) - 1))
        until = None
        if draw(st.integers(0, 3)) == 0:
            until = cuts[draw(st.integers(begin, len(cuts) - 1))]
        later = draw(st.integers(0, cuts[begin] - starts[begin] - 1))
        since = starts[begin] + (later if draw(st.booleans()) else 0)
        queries.append(Query(7 * number + 3, made, draw(predicates()), since, until))
    return queries


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_queries_together_get_what_each_gets_alone(data: st.DataObject) -> None:
    rows, mark, last = data.draw(streams())
    cuts = sorted(data.draw(st.sets(st.integers(1, last), max_size=14)) | {last})
    queries = data.draw(registered(cuts, data.draw(st.sampled_from(["", "sym", "sym, region"]))))
    ended = data.draw(st.sampled_from([None, last - 1]))
    dense = data.draw(st.sets(st.sampled_from([q.id for q in queries])))
    parquet = data.draw(st.integers(0, 5)) == 0
    found = shared(rows, queries, mark, cuts, ended, sorted(dense), parquet)
    for query in queries:
        expected = alone(query, rows, mark, last, ended)
        assert found.rows.get(query.id, []) == expected.rows.get(query.id, [])
        assert found.late.get(query.id, {}) == expected.late.get(query.id, {})


def row(seq: int, ts: int | None, sym: str | None = "a", n: int = 1) -> Row:
    return {
        "_seq": seq,
        "_ts": 100 - seq,
        "_sub": b"",
        "ts": ts,
        "sym": sym,
        "region": n % 3,
        "price": n / 4,
        "n": n,
        "cost": Decimal(n),
    }


def everything(_row: Row) -> bool:
    return True


def test_a_window_comes_out_when_the_mark_reaches_its_end() -> None:
    query = Query(5, read("count(*) AS c, sum(n) AS s", "RANGE 4, SLIDE 2", "sym"), everything)
    rows = [row(1, 1), row(2, 3, n=10), row(3, 3, "b", 7), row(4, 9)]
    made = shared(rows, [query], LowWater.of([(2, 3), (4, 9)]), [3, 6], None)
    count, total = (call.name for call in query.read.calls)
    assert [(r["_seq"], r["ts"], r["sym"], r["_ts"], r[count], r[total]) for r in made.rows[5]] == [
        (2, -2, "a", 99, 1, 1),
        (4, 0, "a", 98, 2, 11),
        (4, 0, "b", 97, 1, 7),
        (4, 2, "a", 98, 1, 10),
        (4, 2, "b", 97, 1, 7),
    ]


def test_a_tuple_below_the_mark_counts_in_windows_that_are_open() -> None:
    query = Query(1, read("count(*) AS c", "RANGE 6, SLIDE 2"), everything)
    rows = [row(1, 5), row(2, 1), row(3, -1), row(4, 20)]
    mark = LowWater.of([(1, 5), (4, 20)])
    made = shared(rows, [query], mark, [2, 3, 4, 5], None)
    (count,) = (call.name for call in query.read.calls)
    assert [(r["ts"], r[count]) for r in made.rows[1]] == [(0, 2), (2, 1), (4, 1)]
    assert made.late == {1: {"late": 1}}


@pytest.mark.parametrize("base", [2**63 - 20, -(2**63) + 12, 2**61 - 4])
def test_values_at_the_ends_of_their_type_have_windows(base: int) -> None:
    lengths = ((6, 2), (4, 4), (10, 1))
    queries = [
        Query(at, read("count(*) AS c, max(n) AS m", f"RANGE {size}, SLIDE {advance}"), everything)
        for at, (size, advance) in enumerate(lengths)
    ]
    rows = [row(at, base + 3 * at - (at % 3), n=at) for at in range(1, 6)]
    mark = LowWater.of([(at, base + 3 * at - 4) for at in range(2, 6)])
    found = shared(rows, queries, mark, [2, 4, 9], 8)
    for query in queries:
        expected = alone(query, rows, mark, 9, 8)
        assert found.rows[query.id] == expected.rows[query.id]


def test_however_few_are_merged_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(at, at // 2, "abc"[at % 3], at) for at in range(60)]
    queries = [
        Query(at, read("sum(n) AS s", f"RANGE {2 + at % 4}", keys), everything)
        for keys in ("sym",)
        for at in range(8)
    ]
    mark = LowWater.of([(at, at // 2) for at in range(60)])
    usual = shared(rows, queries, mark, [20, 61], 60)
    monkeypatch.setattr(closing, "_PAIRS", 3)
    assert shared(rows, queries, mark, [20, 61], 60) == usual


def test_queries_that_agree_have_their_partial_results_in_common() -> None:
    held = []
    for many in (1, 100):
        queries = [
            Query(at, read("count(*) AS c", f"RANGE {10 * (1 + at % 7)}, SLIDE 10"), everything)
            for at in range(0, 7 * many, 7)
        ]
        rows = [row(at, at) for at in range(100)]
        made = step(
            group_of(queries), as_table(rows), lineage_of(rows, queries), {}, LowWater(), _upto(100)
        )
        held.append(made.held)
    assert held == [10, 10]


def test_partial_results_go_when_no_window_can_ask_for_them() -> None:
    queries = [Query(3, read("count(*) AS c", "RANGE 20, SLIDE 10"), everything)]
    group, first = group_of(queries), 0
    state: dict[str, pa.Table] = {}
    for last in range(10, 400, 10):
        rows = [row(at, at) for at in range(first, last)]
        mark = LowWater.of([(at, at) for at in range(last)])
        context = Context(first, last)
        made = step(group, as_table(rows), lineage_of(rows, queries), state, mark, context)
        for name, changed in made.state.items():
            state[name] = stored(state.get(name), changed)
        assert made.held <= 4
        assert state["panes"].num_rows <= 12
        assert state["classes"].num_rows == 1
        first = last


def test_signs_of_zero_and_nan_make_no_groups() -> None:
    query = Query(2, read("count(*) AS c", "RANGE 9", "price"), everything)
    values = [0.0, -0.0, float("nan"), -float("nan"), None]
    rows = [row(at, 1) | {"price": value} for at, value in enumerate(values)]
    made = shared(rows, [query], LowWater(), [9], 8)
    (count,) = (call.name for call in query.read.calls)
    assert [(str(r["price"]), r[count]) for r in made.rows[2]] == [
        ("None", 1),
        ("0.0", 2),
        ("nan", 2),
    ]


def test_sums_of_decimals_that_leave_their_digits_come_back() -> None:
    schema = Schema.parse("ts bigint, d decimal(38,0)")
    found = read_shared_aggregate(
        "SELECT sum(d) AS s FROM S [RANGE 10, SLIDE 1, WA ts]", {"S": schema}, {}
    )
    group = AggregateGroup("g", found.shape, found.calls, {1: (10, 1)})
    most = 10**38 - 1
    values = [most, most, -most, 5]
    state: dict[str, pa.Table] = {}
    totals = []
    for at, value in enumerate(values):
        table = pa.table(
            {
                "_seq": pa.array([at]),
                "_ts": pa.array([0]),
                "_sub": pa.array([b""]),
                "ts": pa.array([at]),
                "d": pa.array([Decimal(value)], pa.decimal128(38, 0)),
            }
        )
        lineage = Lineage.from_pairs(1, np.array([0]), np.array([1], np.int32))
        context = Context(at, at + 1, (), None, 3)
        made = step(group, table, lineage, state, LowWater(), context)
        for name, changed in made.state.items():
            state[name] = stored(state.get(name), changed)
        totals += made.results.sort_by("ts")[found.calls[0].name].to_pylist()
    expected = [sum(values[max(0, a) : a + 10]) for a in range(-9, 4)]
    assert totals == [Decimal(total) if abs(total) <= most else None for total in expected]


def _upto(last: int) -> Context:
    return Context(0, last)
