"""Accumulators give, however their rows are cut, what the reference gives for all of them."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.kernels.accumulators.choice import Accumulators, CallSpec
from auroral.network.types import Schema
from auroral.sql.aggregates.analysis import aggregate_evaluator, analyze_aggregate
from auroral.sql.expressions.expression import evaluator

SCHEMA = Schema.parse(
    "y tinyint, i int, l bigint, f float, d double, e double, m decimal(8,2), w decimal(38,4), "
    "s string, z binary, b boolean, day date, t timestamp, a array<double>, "
    "st struct<x:double,y:string>"
)
FIELDS = tuple(SCHEMA.names)
MOMENTS = "stddev_samp stddev_pop var_samp var_pop skewness kurtosis".split()  # noqa: SIM905

TEXTS = [
    "count(*)", "count(s)", "count(i, d)", "count_if(b)", "count_if(d > 1)", "regr_count(d, i)",
    *(f"{name}({x})" for name in ("sum", "avg", "min", "max", "mode") for x in "yilfdmw"),
    *(f"{name}({x})" for name in ("min", "max", "mode") for x in ("s", "z", "b", "day", "t", "st")),
    *(f"{name}({x})" for name in ("min", "max") for x in "ea"),
    *(f"{name}({x})" for name in ("first", "last") for x in FIELDS),
    *(f"{name}({x}, true)" for name in ("first", "last", "any_value") for x in "dsw"),
    *(f"{name}({x})" for name in MOMENTS for x in ("d", "i", "f", "m")),
    "corr(d, e)", "covar_pop(d, i)", "covar_samp(e, f)", "corr(i, m)",
    "try_sum(l)", "try_sum(w)", "try_avg(w)", "sum(s)", "avg(s)",
    "max_by(s, d)", "min_by(d, s)", "max_by(a, w)", "min_by(i, st)", "max_by(f, b)",
    "bool_and(b)", "bool_or(b)", "bit_and(y)", "bit_or(i)", "bit_xor(l)",
    *(f"{name}({x})" for name in ("collect_list", "collect_set") for x in "ifdwsbat"),
    "collect_set(st)", "collect_list(st)",
    "percentile(d, 0.3)", "percentile(i, array(0, 0.5, 1))", "median(f)", "median(m)",
    *(f"count(DISTINCT {x})" for x in ("i", "d", "s", "w", "st", "a", "i, s", "d, b, t")),
    "sum(DISTINCT d)", "sum(DISTINCT m)", "avg(DISTINCT i)", "stddev(DISTINCT d)",
    "collect_list(DISTINCT s)", "first(DISTINCT d)", "bit_xor(DISTINCT i)",
    "approx_count_distinct(d)",
    *(f"{call} FILTER (WHERE i > 0)" for call in ("count(*)", "sum(d)", "first(s)", "mode(s)")),
    "count(DISTINCT s) FILTER (WHERE b)", "collect_list(d) FILTER (WHERE d < 2)",
]  # fmt: skip


def calls_of(texts: list[str]) -> list[Any]:
    found: list[Any] = []
    for text in texts:
        analyzed = analyze_aggregate(text, SCHEMA)
        assert analyzed.outer is None
        found += analyzed.calls
    return found


CALLS = calls_of(TEXTS)
ACCUMULATORS = Accumulators([CallSpec.of(call) for call in CALLS])
REFERENCE = [aggregate_evaluator(text, SCHEMA) for text in TEXTS]
COLUMNS = [
    [
        (evaluator(text, SCHEMA), type)
        for text, type in (
            *zip(call.args, (type.arrow() for type in call.types), strict=True),
            *([(call.where, pa.bool_())] if call.where else []),
        )
    ]
    for call in CALLS
]
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 0.1, 1e300, -1e300, math.nan, math.inf, -math.inf])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "y": st.sampled_from([0, 1, -128, 127]),
    "i": st.sampled_from([0, 1, -5, 7, 2**31 - 1]),
    "l": st.sampled_from([0, 3, -4, 2**63 - 1, -(2**63)]),
    "f": st.sampled_from([0.0, -0.0, 1.5, 0.10000000149011612, math.nan]),
    "d": FLOATS | st.floats(-10, 10),
    "e": FLOATS | st.floats(-10, 10),
    "m": st.sampled_from([Decimal("0.05"), Decimal("-999999.99"), Decimal("1.00")]),
    "w": st.sampled_from(
        [Decimal("9" * 34 + ".9999"), Decimal("-0.0003"), Decimal("922337203685477.5807")]
    )
    | st.decimals(-(10**20), 10**20, places=4),
    "s": st.sampled_from(["", "a", "ab", "é", "😀", "7", "2.5"]),
    "z": st.sampled_from([b"", b"a", b"\xff"]),
    "b": st.booleans(),
    "day": st.sampled_from([date(1969, 12, 31), date(2024, 2, 29)]),
    "t": st.sampled_from([datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, tzinfo=UTC)]),
    "a": st.lists(st.none() | FLOATS, max_size=2),
    "st": st.builds(
        lambda x, y: {"x": x, "y": y},
        st.sampled_from([None, 0.0, math.nan, 2.0]),
        st.sampled_from(["", "q"]),
    ),
}
ROWS = st.lists(
    st.tuples(
        st.integers(0, 3), st.fixed_dictionaries({n: st.none() | v for n, v in VALUES.items()})
    ),
    max_size=25,
)


def arguments(rows: list[dict[str, Any]]) -> list[list[pa.Array]]:
    return [[pa.array([run(row) for row in rows], type) for run, type in c] for c in COLUMNS]


def shown(value: Any) -> Any:
    """Floats by their text, so that NaN is NaN and the sign of zero counts."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    return value


def within(column: pa.Array) -> pa.Array:
    """The same column as part of a longer one."""
    return pa.concat_arrays([pa.nulls(3, column.type), column]).slice(3)


@settings(max_examples=80)
@given(ROWS, st.lists(st.integers(0, 25), max_size=4))
def test_every_cut_gives_what_the_reference_gives(
    rows: list[tuple[int, dict[str, Any]]], cuts: list[int]
) -> None:
    given_columns = arguments([row for _, row in rows])
    slot = np.array([at for at, _ in rows], dtype=np.int64)
    state = ACCUMULATORS.fresh(4)
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for start, end in pairwise(bounds):
        part = [[column.slice(start, end - start) for column in c] for c in given_columns]
        folded = ACCUMULATORS.fold(state, part, slot[start:end])
        assert [column.type for column in folded] == [f.type for f in ACCUMULATORS.fields()]
        state = [within(column) for column in folded]
    values, failures = ACCUMULATORS.final(state)
    assert not failures
    for text, call, run, column in zip(TEXTS, CALLS, REFERENCE, values, strict=True):
        column.validate(full=True)
        assert column.type == call.type.arrow(), text
        wanted = [run([row for at, row in rows if at == window]) for window in range(4)]
        assert shown(column.to_pylist()) == shown(wanted), text


@settings(max_examples=60)
@given(ROWS, st.integers(0, 25))
def test_running_values_are_those_of_each_row_folded_by_itself(
    rows: list[tuple[int, dict[str, Any]]], cut: int
) -> None:
    given_columns = arguments([row for _, row in rows])
    slot = np.array([at for at, _ in rows], dtype=np.int64)
    state, first = ACCUMULATORS.fresh(4), min(cut, len(rows))
    found: list[list[Any]] = [[] for _ in TEXTS]
    for start, end in ((0, first), (first, len(rows))):
        part = [[within(column.slice(start, end - start)) for column in c] for c in given_columns]
        values = ACCUMULATORS.running(state, part, slot[start:end])
        for text, call, column, held in zip(TEXTS, CALLS, values, found, strict=True):
            column.validate(full=True)
            assert column.type == call.type.arrow(), text
            held += column.to_pylist()
        state = [within(column) for column in ACCUMULATORS.fold(state, part, slot[start:end])]
    alone = ACCUMULATORS.fresh(4)
    for at, window in enumerate(slot.tolist()):
        part = [[column.slice(at, 1) for column in c] for c in given_columns]
        alone = ACCUMULATORS.fold(alone, part, slot[at : at + 1])
        values, _ = ACCUMULATORS.final([column.slice(window, 1) for column in alone])
        for text, column, held in zip(TEXTS, values, found, strict=True):
            assert shown(held[at]) == shown(column[0].as_py()), (text, at)


@pytest.mark.parametrize("windows", [1, 40, 2000])
def test_running_values_of_many_rows_are_added_in_order_of_arrival(windows: int) -> None:
    """Long windows by themselves and short ones all at once give the floats of a plain loop."""
    random = np.random.default_rng(7)
    slot = (windows * random.random(4000) ** 2).astype(np.int64)
    values, weights = random.normal(size=(2, 4000)).tolist()
    texts = ["sum(d)", "avg(d)", "stddev(d)", "max(d)", "count(*)", "min_by(e, d)"]
    accumulators = Accumulators([CallSpec.of(call) for call in calls_of(texts)])
    one, two = pa.array(values), pa.array(weights)
    columns = [*([one] for _ in texts[:4]), [], [two, one]]
    found = accumulators.running(accumulators.fresh(windows), columns, slot)
    kept: dict[int, list[tuple[float, float]]] = {}
    for at, window in enumerate(slot.tolist()):
        mine = kept.setdefault(window, [])
        mine.append((values[at], weights[at]))
        total = 0.0
        for value, _ in mine if at % 50 == 0 else ():
            total += value
        if at % 50 == 0:
            assert found[0][at].as_py() == total
            assert found[1][at].as_py() == total / len(mine)
            assert found[3][at].as_py() == max(value for value, _ in mine)
            assert found[4][at].as_py() == len(mine)
            assert found[5][at].as_py() == min(mine)[1]
        if at % 500 == 0:
            wanted = aggregate_evaluator("stddev(d)", SCHEMA)([{"d": value} for value, _ in mine])
            assert shown(found[2][at].as_py()) == shown(wanted)


@pytest.mark.parametrize("windows", [1, 40, 2000])
def test_many_rows_are_added_in_order_of_arrival(windows: int) -> None:
    """Rounds, narrow rounds and rows one by one give the same floats."""
    random = np.random.default_rng(7)
    slot = (windows * random.random(4000) ** 2).astype(np.int64)
    rows = [{**dict.fromkeys(FIELDS), "d": float(x), "e": float(x * y), "i": int(9 * y)}
            for x, y in random.normal(size=(4000, 2))]  # fmt: skip
    texts = [*(f"{name}(d)" for name in (*MOMENTS, "sum", "avg")), "corr(d, e)", "covar_samp(e, i)"]
    accumulators = Accumulators([CallSpec.of(call) for call in calls_of(texts)])
    columns = [[pa.array([row["d"] for row in rows])] for _ in texts[:-2]]
    columns += [[pa.array([row["d"] for row in rows]), pa.array([row["e"] for row in rows])]]
    ints = pa.array([row["i"] for row in rows], pa.int32())
    columns += [[columns[-1][1], ints]]
    state = accumulators.fresh(windows)
    for start, end in ((0, 1), (1, 1500), (1500, 4000)):
        part = [[column.slice(start, end - start) for column in c] for c in columns]
        state = accumulators.fold(state, part, slot[start:end])
    values, _ = accumulators.final(state)
    for window in (0, windows // 2, windows - 1):
        mine = [row for at, row in zip(slot, rows, strict=True) if at == window]
        for text, column in zip(texts, values, strict=True):
            wanted = aggregate_evaluator(text, SCHEMA)(mine)
            assert shown(column[window].as_py()) == shown(wanted), text


class Joined:
    """Joins texts, by returning the new state."""

    def init(self) -> str:
        return ""

    def incr(self, state: str, text: str | None, number: int) -> str:
        return f"{state}{text}{number};"

    def final(self, state: str) -> str:
        return state


class Gathered:
    """Changes its state in place; fails on what it does not like."""

    def init(self) -> list[Any]:
        return []

    def incr(self, state: list[Any], number: int) -> None:
        if number == 13:
            raise ValueError("unlucky")
        state.append(number)

    def final(self, state: list[Any]) -> Any:
        return sum(state) if state else "nothing"


def folded_udf(cls: Any, returns: pa.DataType, *columns: pa.Array) -> Any:
    spec = CallSpec("udf", tuple(c.type for c in columns), returns, function=cls)
    accumulators = Accumulators([pickle.loads(pickle.dumps(spec))])
    state = accumulators.fold(accumulators.fresh(3), [list(columns)], np.array([0, 1, 0]))
    return accumulators.final(accumulators.fold(state, [list(columns)], np.array([0, 0, 0])))


def test_a_window_function_sees_rows_in_order_of_arrival() -> None:
    texts, numbers = pa.array(["a", None, "c"]), pa.array([1, 2, 3])
    (found,), failures = folded_udf(Joined, pa.string(), texts, numbers)
    assert found.to_pylist() == ["a1;c3;a1;None2;c3;", "None2;", ""]
    assert failures == {}


def test_a_window_function_that_fails_gives_null_and_says_why() -> None:
    (found,), failures = folded_udf(Gathered, pa.float64(), pa.array([1, 13, 3]))
    assert found.to_pylist() == [None, None, None]
    assert failures[0] == failures[1] == "ValueError: unlucky"
    assert "nothing" in failures[2]
    (found,), failures = folded_udf(Gathered, pa.float64(), pa.array([1, 2, 3]))
    assert (found.to_pylist(), list(failures)) == ([10.0, 2.0, None], [2])
    assert found.type == pa.float64()


def test_a_window_function_is_found_by_name(tmp_path: Any) -> None:
    text = "class Longest:\n    def init(self): return 0\n"
    text += "    def incr(self, state, s): return max(state, len(s))\n"
    text += "    def final(self, state): return state\n"
    (tmp_path / "window_functions_here.py").write_text(text)
    spec = CallSpec("udf", (pa.string(),), pa.int32(),
                    function="window_functions_here:Longest", directory=str(tmp_path))  # fmt: skip
    accumulators = Accumulators([spec])
    state = accumulators.fold(accumulators.fresh(1), [[pa.array(["ab", "c"])]], np.array([0, 0]))
    assert accumulators.final(state)[0][0].to_pylist() == [2]


def test_chunked_columns_and_no_rows() -> None:
    accumulators = Accumulators([CallSpec("sum", (pa.int64(),), pa.int64())])
    column = pa.chunked_array([[1, 2], [3]])
    state = accumulators.fold(accumulators.fresh(2), [[column]], np.array([0, 1, 0]))
    again = accumulators.fold(state, [[column.slice(0, 0)]], np.array([], dtype=np.int64))
    assert accumulators.final(again)[0][0].to_pylist() == [4, 2]
    assert accumulators.final(accumulators.fresh(0))[0][0].to_pylist() == []
