"""Declared Python functions in expressions of boxes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import auroral as au
from auroral.errors import NetworkError
from auroral.testing import run

CALLS: list[int] = []


def score(celsius: pa.Array) -> pa.Array:
    if pc.any(pc.less(celsius, 0.0)).as_py():
        raise ValueError("too cold")
    return pc.divide(pc.subtract(celsius, 70.0), 8.0)


def twice(n: pa.Array) -> Any:
    CALLS.append(len(n))
    return pc.multiply(n, 2)


def plant() -> tuple[au.Network, Any]:
    net = au.Network("plant")
    net.function("score", score, returns="double")
    net.function("Twice", twice, returns="int")
    return net, net.stream("readings", "machine string, celsius double, n int")


ROWS = [("mill", 94.0, 1), ("press", 95.0, 2), ("mill", -5.0, 3), ("x", 99.0, 4), ("mill", None, 5)]


def test_a_filter_calls_a_function() -> None:
    net, arc = plant()
    kept = arc.filter("score(celsius) >= 3 AND machine <> 'x'", name="hot")
    net.output("o", kept)
    found = run(net, {"readings": ROWS})
    assert [row["n"] for row in found["o"]] == [1, 2]
    assert [row["n"] for row in found["hot.rest"]] == [4, 5]
    (dead,) = found.dead_letters
    assert (dead.source, dead.reason) == ("hot", "ValueError: too cold")
    assert dead.row == '{"machine": "mill", "celsius": -5.0, "n": 3}'


def test_every_call_of_a_box_is_made_for_every_tuple() -> None:
    """Neither AND nor an earlier route spares a tuple the call, so failures depend on nothing."""
    net, arc = plant()
    net.output(
        "o", arc.filter(routes={"all": "true", "some": "n < 0 AND score(celsius) > 0"}).port("all")
    )
    found = run(net, {"readings": ROWS})
    assert [row["n"] for row in found["o"]] == [1, 2, 4, 5]
    assert len(found.dead_letters) == 1


def test_a_map_calls_functions_in_expressions() -> None:
    net, arc = plant()
    net.output("o", arc.map(a="twice(TWICE(n) + 1) - 1", b="twice(n)", keep=["n"], name="m"))
    CALLS.clear()
    assert run(net, {"readings": ROWS[:2]})["o"] == [
        {"n": 1, "a": 5, "b": 2},
        {"n": 2, "a": 9, "b": 4},
    ]
    assert len(CALLS) == 4, "the same call is made once for a tuple"
    assert str(net.check().arcs["m"].schema) == "n int, a int, b int"


def test_a_field_of_the_name_of_a_result_stays_a_field() -> None:
    net = au.Network("n")
    net.function("twice", twice, returns="int")
    arc = net.stream("s", "_call0 int")
    net.output("o", arc.map(a="_call0 + twice(_call0)"))
    assert run(net, {"s": [(5,)]})["o"] == [{"a": 15}]


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ("score(celsius)", "TYPE_MISMATCH", "expected a predicate"),
        ("score(kelvin) > 1", "UNKNOWN_FIELD", "kelvin"),
        ("score(celsius, n) > 1", "WRONG_ARITY", "score is called with 2 arguments"),
        ("exists(array(1), x -> twice(x) > 1)", "BAD_EXPRESSION", "in a lambda function"),
        (
            "floor(celsius) > 1",
            "DUPLICATE_NAME",
            "floor is a function of SQL and a Python function",
        ),
    ],
)
def test_mistakes(where: str, code: str, said: str) -> None:
    net, arc = plant()
    net.function("floor", twice, returns="int")
    with pytest.raises(NetworkError) as raised:
        arc.filter(where, name="hot")
    assert raised.value.code == code, str(raised.value)
    assert said in str(raised.value)
    assert "hot" in str(raised.value)
    assert "where" in str(raised.value)
