"""What boxes mean, by tables one can check in one's head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from auroral import AuroralError, Delayed, Network, Ordered, Punctuated, function
from auroral.network.box import OneInput, Scope
from auroral.network.types import Schema
from auroral.reference import Reference
from auroral.testing import punctuation, run


def numbers(*values: Any) -> list[dict[str, Any]]:
    return [{"n": value} for value in values]


def shown(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["n"] for row in rows]


@pytest.mark.parametrize(
    ("where", "kept", "rest"),
    [
        ("n >= 2", [2, 3], [1, None]),
        ("n <> 2", [1, 3], [2, None]),
        ("n IS NULL", [None], [1, 2, 3]),
        ("NOT (n > 2)", [1, 2], [3, None]),
        ("CAST(NULL AS boolean)", [], [1, 2, 3, None]),
        ("true", [1, 2, 3, None], []),
    ],
)
def test_filter_keeps_what_is_true_and_rests_the_others(
    where: str, kept: list[Any], rest: list[Any]
) -> None:
    net = Network("n")
    net.output("kept", net.stream("s", schema="n int").filter(where, name="f"))
    out = run(net, {"s": numbers(1, 2, 3, None)})
    assert (shown(out["kept"]), shown(out["f.rest"])) == (kept, rest)


def test_first_predicate_that_holds_wins() -> None:
    net = Network("n")
    routes = {"few": "n < 3", "some": "n < 6", "odd": "n % 2 = 1"}
    net.stream("s", schema="n int").filter(routes=routes, name="f")
    out = run(net, {"s": numbers(1, 4, 7, 8, None, 2)})
    ports = {port: shown(out[f"f.{port}"]) for port in ("few", "some", "odd", "rest")}
    assert ports == {"few": [1, 2], "some": [4], "odd": [7], "rest": [8, None]}


@pytest.mark.parametrize(
    ("keep", "compute", "expected"),
    [
        ((), {"x": "a + b"}, {"x": 3}),
        ("*", {"x": "a + b"}, {"a": 1, "b": 2, "x": 3}),
        ("*", {"b": "a * 10"}, {"a": 1, "b": 10}),
        ("*", {"x": "b", "a": "b"}, {"a": 2, "b": 2, "x": 2}),
        ("*", {"B": "b + 1"}, {"a": 1, "B": 3}),
        (("b", "a"), {}, {"b": 2, "a": 1}),
        (("b",), {"a": "-a"}, {"b": 2, "a": -1}),
        ((), {"y": "b", "x": "a"}, {"y": 2, "x": 1}),
    ],
)
def test_map_keeps_then_computes_in_order(
    keep: Any, compute: dict[str, str], expected: dict[str, int]
) -> None:
    net = Network("n")
    net.output("o", net.stream("s", schema="a int, b int").map(keep=keep, **compute))
    (row,) = run(net, {"s": [(1, 2)]})["o"]
    assert list(row.items()) == list(expected.items())


def test_python_function_that_raises_makes_dead_letters_and_the_others_go_on() -> None:
    @function("double")
    def inverse(n: pa.Array) -> pa.Array:
        return pc.divide(pa.scalar(1.0), n.cast(pa.float64()))

    @function("int")
    def picky(n: pa.Array) -> list[int]:
        return [{1: 10, 2: 20}[value] for value in n.to_pylist()]

    net = Network("n")
    mapped = net.stream("s", schema="n int").map(keep=["n"], i=inverse, p=picky, name="m")
    net.output("o", mapped)
    out = run(net, {"s": numbers(1, 3, 2, None)})
    assert out["o"] == [{"n": 1, "i": 1.0, "p": 10}, {"n": 2, "i": 0.5, "p": 20}]
    letters = [(d.source, d.place, d.reason, d.row) for d in out.dead_letters]
    assert letters == [
        ("m", "python function", "KeyError: 3", '{"n": 3}'),
        ("m", "python function", "KeyError: None", '{"n": null}'),
    ]


def test_function_of_the_wrong_length_or_type_fails_its_tuples() -> None:
    two = function("int", "n")(lambda n: [1, 2])
    text = function("int", "n")(lambda n: ["x"])
    net = Network("n")
    stream = net.stream("s", schema="n int")
    net.output("two", stream.map(n=two, name="t"))
    net.output("text", stream.map(n=text, name="x"))
    out = run(net, {"s": numbers(1)})
    assert out == {"two": [], "text": []}
    reasons = [d.reason.split(":")[0] for d in out.dead_letters]
    assert reasons == ["ValueError", "TypeError"]


def test_union_takes_tuples_as_they_arrive() -> None:
    net = Network("n")
    a, b = (net.stream(name, schema="n int") for name in "ab")
    net.output("o", net.union(b, a))
    assert shown(run(net, {"a": numbers(1, 3, 5, 7), "b": numbers(2, 4)})["o"]) == [
        1,
        2,
        3,
        4,
        5,
        7,
    ]


def test_what_one_moment_brings_comes_in_order_of_inputs() -> None:
    net = Network("n")
    s = net.stream("s", schema="n int")
    less, more = s.map(n="n - 1"), s.map(n="n + 1")
    net.output("up", net.union(less, s, more))
    net.output("down", net.union(more, s, less))
    net.output("twice", net.union(s, s))
    out = run(net, {"s": numbers(10, 20)})
    assert shown(out["up"]) == [9, 10, 11, 19, 20, 21]
    assert shown(out["down"]) == [11, 10, 9, 21, 20, 19]
    assert shown(out["twice"]) == [10, 10, 20, 20]


def test_all_tuples_of_an_input_come_before_the_next_input() -> None:
    net = Network("n")
    s = net.stream("s", schema="n int")
    pair = net.union(s.map(n="n + 1"), s.map(n="n + 2"))
    net.output("outer", net.union(s, pair, pair.map(n="n * 100"), s))
    expected = [0, 1, 2, 100, 200, 0, 5, 6, 7, 600, 700, 5]
    assert shown(run(net, {"s": numbers(0, 5)})["outer"]) == expected


def test_diamond_of_filter_ports_keeps_every_tuple_once() -> None:
    net = Network("n")
    s = net.stream("s", schema="n int")
    split = s.filter(routes={"low": "n < 10", "mid": "n < 20"}, name="split")
    arms = [split.port(port) for port in ("rest", "mid", "low")]
    net.output("o", net.union(*arms))
    given = [25, 3, None, 12, 4, 19]
    assert shown(run(net, {"s": numbers(*given)})["o"]) == given


def test_rows_come_by_arrival_time_ties_in_order_of_inputs() -> None:
    net = Network("n")
    a, b = (net.stream(name, schema="n int") for name in "ab")
    net.output("o", net.union(a, b))
    first = [{"n": 1, "_at": 0}, {"n": 2, "_at": 5}, {"n": 3, "_at": 5}]
    second = [{"n": 4, "_at": 0}, {"n": 5, "_at": 1}, {"n": 6, "_at": 5}]
    assert shown(run(net, {"a": first, "b": second})["o"]) == [1, 4, 5, 2, 3, 6]
    assert shown(run(net, {"b": second, "a": first})["o"]) == [4, 1, 5, 6, 2, 3]


def test_values_are_those_the_fields_hold() -> None:
    net = Network("n")
    schema = "f float, d decimal(5,2), t timestamp, x double, m map<string,int>"
    net.output("o", net.stream("s", schema=schema))
    row = {"f": 0.1, "d": Decimal("1.5"), "t": datetime(2024, 1, 1), "x": 1, "m": {"k": 1}}
    (out,) = run(net, {"s": [row]})["o"]
    assert out["f"] == pytest.approx(0.1)
    assert out["f"] != 0.1
    assert str(out["d"]) == "1.50"
    assert out["t"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert isinstance(out["x"], float)
    assert out["m"] == {"k": 1}


# ── marks ──


def test_marks_move_after_each_tuple_and_never_back() -> None:
    net = Network("n")
    s = net.stream("s", schema="n int, v double", progress=Delayed("n", 2))
    s.filter("v > 0", name="f").map(t="n", n="n + 1", name="m")
    reference = Reference(net)
    seen = []
    for n in (5, 3, None, 9, 8):
        reference.push("s", {"n": n})
        seen.append(reference.mark("s", "n"))
    assert seen == [3, 3, 3, 7, 7]
    assert reference.mark("f.rest", "n") == 7
    assert (reference.mark("m", "t"), reference.mark("m", "n")) == (7, 8)
    reference.end()
    assert reference.mark("m", "t") == math.inf


def test_union_promises_the_least_of_its_inputs() -> None:
    net = Network("n")
    a = net.stream("a", schema="n int", progress=Ordered("n"))
    b = net.stream("b", schema="n int", progress=Punctuated("n", heartbeat=10))
    net.union(a, b, name="u")
    reference = Reference(net)
    reference.push("a", [7])
    assert reference.mark("u", "n") is None
    reference.punctuate("b", 4)
    assert reference.mark("u", "n") == 4
    reference.push("a", [8], at=15.5)
    assert reference.mark("b", "n") == 5
    reference.push("a", [9], at=100)
    assert (reference.mark("b", "n"), reference.mark("u", "n")) == (90, 9)


def test_each_group_has_its_own_mark() -> None:
    net = Network("n")
    s = net.stream("s", schema="g string, n int", progress=Ordered("n", by=("g",)))
    s.map(n="n", group="g", name="kept")
    s.map(n="n", name="lost")
    out = run(net, {"s": [("x", 1), ("y", 5), (None, 2), punctuation(4, g="x")]}, hold=True)
    reference = out.reference
    assert [reference.mark("kept", "n", (g,)) for g in ("x", "y", None, "z")] == [4, 5, 2, None]
    assert reference.promises("lost") == {}


# ── refusals ──


class Strange(OneInput):
    """A box that can be declared, and of which the interpreter knows nothing."""

    kind: ClassVar[str] = "strange"
    box: str = "strange"

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        return {"": inputs[0]}


def test_what_cannot_be_run_is_refused_by_name() -> None:
    net = Network("n")
    net.stream("s", schema="n int")
    net.boxes["strange"] = Strange(input="s")
    with pytest.raises(AuroralError, match=r"BOX_NOT_EXECUTABLE.*box strange"):
        run(net, {})


def test_what_only_spark_can_evaluate_is_refused_by_name() -> None:
    net = Network.parse(
        {
            "network": "n",
            "streams": {"s": {"schema": {"n": "int"}}},
            "boxes": {"f": {"box": "filter", "input": "s", "where": "bit_count(n) > 1"}},
        }
    )
    with pytest.raises(AuroralError, match=r"NOT_IN_REFERENCE.*bit_count"):
        run(net, {})


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda r: r.push("t", [1]), "UNKNOWN_STREAM"),
        (lambda r: r.push("s", [1, 2]), "BAD_ROW"),
        (lambda r: r.push("s", ["x"]), "BAD_ROW"),
        (lambda r: r.push("s", {"m": 1}), "UNKNOWN_FIELD"),
        (lambda r: r.punctuate("s", 1), "BAD_ROW"),
        (lambda r: r.collected("o"), "UNKNOWN_OUTPUT"),
    ],
)
def test_mistakes_are_named(call: Any, code: str) -> None:
    net = Network("n")
    net.stream("s", schema="n int")
    with pytest.raises(AuroralError, match=code):
        call(Reference(net))
