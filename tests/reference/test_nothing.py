"""A window function may say that its window yields no tuple."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import auroral as au
from auroral.kernels.accumulators.choice import Accumulators, CallSpec
from auroral.kernels.emission import EmissionBuilder
from auroral.kernels.windowing.windows import WindowBatch
from auroral.network.function import Function
from auroral.testing import run


class Odd:
    """The sum of the values if it is odd; negative ones it cannot add."""

    def init(self) -> int:
        return 0

    def incr(self, state: int, x: int) -> int:
        if x < 0:
            raise ValueError("negative")
        return state + x

    def final(self, state: int) -> Any:
        return state if state % 2 else au.NOTHING


class Small(Odd):
    """The sum of the values if it is below ten."""

    def final(self, state: int) -> Any:
        return state if state < 10 else au.NOTHING


def function(name: str) -> Function:
    return Function(udf=f"{__name__}:{name}", args=["x"], returns="int")


def network(**how: Any) -> au.Network:
    net = au.Network("nothing")
    s = net.stream("s", schema="t int, x int", progress=au.Ordered("t"))
    net.output("o", s.aggregate(au.Order("t"), au.Window(size=10), name="w", **how))
    return net


def test_there_is_one_nothing() -> None:
    assert pickle.loads(pickle.dumps(au.NOTHING)) is au.NOTHING
    assert copy.deepcopy(au.NOTHING) is au.NOTHING
    assert repr(au.NOTHING) == "NOTHING"


ROWS = [(1, 2), (2, 3), (11, 4), (21, 11), (31, 7), (41, -1)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["Odd"], [(0, 5), (20, 11), (30, 7)]), (["Odd", "Small"], [(0, 5, 5), (30, 7, 7)])],
)
def test_a_window_yields_no_tuple_if_any_function_returns_nothing(
    names: list[str], expected: list[Any]
) -> None:
    out = run(network(**{name.lower(): function(name) for name in names}), {"s": ROWS})
    assert [tuple(row.values()) for row in out["o"]] == expected
    assert [letter.row for letter in out.dead_letters] == ['{"t": 40}'], "a failure is told"


def test_a_window_that_yielded_nothing_may_be_corrected_to_something() -> None:
    net = network(odd=function("Odd"), late="revise", history=100)
    out = run(net, {"s": [(1, 2), (12, 3), (2, 3), (3, 1), (4, 3)]})
    assert [tuple(row.values()) for row in out["o"]] == [(0, 5, True), (0, 9, True), (10, 3, False)]


def test_the_kernel_leaves_out_the_same_windows() -> None:
    calls = tuple(
        CallSpec("udf", (pa.int64(),), pa.int64(), function=function) for function in (Odd, Small)
    )
    functions = Accumulators(calls)
    values, slot = pa.array([2, 3, 4, 11, 7, -1]), np.array([0, 0, 1, 2, 3, 4])
    states = functions.fold(functions.fresh(5), [[values], [values]], slot)
    output = EmissionBuilder(pa.int64(), (), functions, [pa.int64()] * 2, revising=False)
    times = np.arange(5)
    output.emit(WindowBatch(times * 10, (), times, tuple(states)), times)
    assert output.table().select(["start", "agg0"]).to_pylist() == [
        {"start": 0, "agg0": 5},
        {"start": 30, "agg0": 7},
    ]
    assert output.dead == [("ValueError: negative", '{"start": 40}')]
