"""Functions without state: no call sees anything of another."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
from auroral.kernels.calling import called
from auroral.network.types import Type
from auroral.testing import run


class Counter:
    """Counts its calls, and fails on a batch with a seven and something else."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, n: pa.Array) -> list[int]:
        self.calls.append(len(n))
        if len(n) > 1 and 7 in n.to_pylist():
            raise ValueError("seven")
        return [len(self.calls)] * len(n)

    def count(self, n: pa.Array) -> list[int]:
        return self(n)


def step(counter: Counter, n: pa.Array) -> list[int]:
    return counter(n)


@pytest.mark.parametrize("how", ["a class", "an object", "a method", "a partial"])
@pytest.mark.parametrize("cut", [1, 2, 3, 10])
def test_a_count_of_calls_is_the_same_for_every_train(how: str, cut: int) -> None:
    one = Counter()
    functions: dict[str, Any] = {
        "a class": Counter,
        "an object": one,
        "a method": one.count,
        "a partial": partial(step, one),
    }
    numbers = pa.array(range(10), pa.int64())
    found: list[Any] = []
    for first in range(0, 10, cut):
        part = numbers.slice(first, cut)
        values, failures = called(functions[how], Type("bigint"), [part], len(part))
        assert not failures
        found += values.to_pylist()
    assert found == [1] * 10
    assert one.calls == [], "calls get copies of it"


def test_the_arguments_of_a_class_are_those_of_its_call() -> None:
    net = au.Network("n")
    arc = net.stream("s", "n bigint, m bigint")
    net.output("o", arc.map(keep=["n"], c={"udf": Counter, "returns": "bigint"}))
    assert run(net, {"s": [(5, 1), (7, 2)]})["o"] == [{"n": 5, "c": 1}, {"n": 7, "c": 1}]


def test_queries_call_new_instances_too() -> None:
    net = au.Network("n")
    net.stream("s", "n bigint")
    net.function("counted", Counter, returns="bigint")
    net.query("q", "SELECT n FROM s WHERE counted(n) = 1")
    net.check()
    net.query("wrong", "SELECT n FROM s WHERE counted(n, n) = 1")
    with pytest.raises(au.NetworkError, match="counted is called with 2 arguments"):
        net.check()
