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


def near(left: pa.Array, right: pa.Array) -> Any:
    if 13 in left.to_pylist():
        raise ValueError("unlucky")
    return pc.less_equal(pc.abs(pc.subtract(left, right)), 1)


@pytest.mark.parametrize("how", ["band", "rows", "table"])
def test_a_join_calls_functions_for_pairs_with_equal_fields(how: str) -> None:
    net = au.Network("pairs")
    net.function("near", near, returns="boolean")
    left = net.stream("l", "t int, k int, v int", progress=au.Ordered("t"))
    on = "left.k = right.k AND near(left.v, right.v + 0)"
    schema = "t int, k int, v int"
    rows = [(1, 1, 5), (2, 1, 7), (3, 2, 5), (4, 1, 13)]
    others = [(1, 1, 6), (2, 3, 13), (3, 1, 9)]
    if how == "table":
        right = net.table("r", schema)
        found_in: Any = {"inputs": {"l": rows}, "tables": {"r": others}}
        keys: Any = {}
    else:
        right = net.stream("r", schema, progress=au.Ordered("t"))
        found_in = {"inputs": {"r": others, "l": rows}}
        keys = {"rows": [10, 10]}
        if how == "band":
            keys = {"left": au.Order("t"), "right": au.Order("t"), "within": 100}
    net.output("o", left.join(right, on, name="pairs", **keys))
    found = run(net, found_in["inputs"], tables=found_in.get("tables"))
    pairs = sorted((row["v"], row["right_v"]) for row in found["o"])
    assert pairs == [(5, 6), (7, 6)]
    assert {(d.source, d.reason) for d in found.dead_letters} == {("pairs", "ValueError: unlucky")}
    assert len(found.dead_letters) == 2, "pairs of (4, 1, 13); the key 3 meets nobody"


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
