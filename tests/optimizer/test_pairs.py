"""The table of commuting pairs: each entry, its condition, and what is left out."""

from __future__ import annotations

import pytest

import auroral as au
from auroral.network.arc import Arc
from auroral.optimizer import COMMUTING, NOT_COMMUTING, Estimate, Optimised, optimize

SCHEMA = "k int, x bigint, s string"
CHEAP = Estimate(1e-6, 0.1)
COSTLY = Estimate(1e-3, 1.0)


def stream(net: au.Network, name: str = "a") -> Arc:
    return net.stream(name, schema=SCHEMA, progress=au.Ordered("x"))


def optimised(net: au.Network, *names: str, **known: Estimate) -> Optimised:
    """The network if `last` is a cheap selective filter and all other boxes are costly."""
    checked = net.check()
    estimates = dict.fromkeys(checked.network.boxes, COSTLY) | {"last": CHEAP} | known
    return optimize(checked, estimates, fixed=names)


def moved(found: Optimised) -> list[tuple[str, str]]:
    return [(move.box, move.past) for move in found.moves]


def shape(found: Optimised) -> dict[str, tuple[str, tuple[str, ...]]]:
    boxes = found.checked.network.boxes
    return {name: (box.kind, box.sources()) for name, box in boxes.items()}


def test_a_filter_passes_a_filter() -> None:
    net = au.Network("n")
    net.output("o", stream(net).filter("k > 1", name="first").filter("x > 2", name="last"))
    found = optimised(net)
    assert moved(found) == [("last", "first")]
    boxes = found.checked.network.boxes
    assert [getattr(boxes[place], "where", None) for place in ("first", "last")] == [
        "x > 2",
        "k > 1",
    ]
    assert found.checked.origins == {"first": "last", "last": "first"}
    assert found.checked.displaced == {"first"}


def test_a_filter_passes_a_map_that_keeps_its_fields() -> None:
    net = au.Network("n")
    doubled = stream(net).map(keep="*", x="x * 2", name="double")
    net.output("o", doubled.filter("k > 1 AND s IS NOT NULL", name="last"))
    found = optimised(net)
    assert moved(found) == [("last", "double")]
    assert shape(found) == {"double": ("filter", ("a",)), "last": ("map", ("double",))}
    assert found.checked.arcs["last"].schema == net.check().arcs["last"].schema


@pytest.mark.parametrize("where", ["x > 1", "k > 1 AND X > 1", "k > 1 OR twice = 2"])
def test_a_filter_stays_behind_a_map_that_makes_its_fields(where: str) -> None:
    net = au.Network("n")
    made = stream(net).map(keep=("k",), x="x * 2", twice="k * 2", name="made")
    net.output("o", made.filter(where, name="last"))
    assert not optimised(net).moves


def test_a_filter_passes_a_union_to_get_in_front_of_what_is_costly() -> None:
    net = au.Network("n")
    left = stream(net, "a").map(keep="*", x="x * 2", name="left")
    right = stream(net, "b").map(keep="*", x="x * 3", name="right")
    net.output("o", net.union(left, right, name="both").filter("k > 1", name="last"))
    found = optimised(net, both=Estimate(1e-7, 1.0))
    assert moved(found) == [("last", "both"), ("last", "left"), ("last", "right")]
    assert shape(found) == {
        "left": ("filter", ("a",)),
        "right": ("filter", ("b",)),
        "both": ("map", ("left",)),
        "last@copy2": ("map", ("right",)),
        "last": ("union", ("both", "last@copy2")),
    }
    assert found.checked.origins["last@copy2"] == "right"


def test_a_filter_does_not_pass_a_union_for_nothing() -> None:
    net = au.Network("n")
    both = net.union(stream(net), stream(net, "b"), name="both")
    net.output("o", both.filter("k > 1", name="last"))
    assert not optimised(net).moves


def test_names_of_fields_may_be_spelt_otherwise_behind_a_union() -> None:
    net = au.Network("n")
    one = stream(net)
    other = net.stream("b", schema="K int, X bigint, S string").map(keep="*", X="X + 1", name="up")
    net.output("o", net.union(one, other, name="both").filter("k > 1", name="last"))
    found = optimised(net)
    assert moved(found) == [("last", "both"), ("last", "up")]
    assert found.checked.arcs["last"].schema == net.check().arcs["last"].schema


def with_function(net: au.Network) -> None:
    net.function("odd", "tests.conformance.plain_functions:odd", returns="boolean")


def test_a_filter_passes_a_filter_that_calls_a_function() -> None:
    net = au.Network("n")
    with_function(net)
    net.output("o", stream(net).filter("odd(x)", name="first").filter("k > 2", name="last"))
    assert moved(optimised(net)) == [("last", "first")]


def test_a_filter_that_calls_a_function_stays_behind_its_guard() -> None:
    net = au.Network("n")
    with_function(net)
    net.output("o", stream(net).filter("x > -3", name="guard").filter("odd(x)", name="last"))
    assert not optimised(net).moves


def test_a_filter_stays_where_its_rest_is_read() -> None:
    net = au.Network("n")
    last = stream(net).map(keep="*", x="x * 2", name="double").filter("k > 1", name="last")
    net.output("o", last)
    net.output("others", last.rest)
    assert not optimised(net).moves


def test_a_filter_does_not_pass_one_whose_rest_is_read() -> None:
    net = au.Network("n")
    first = stream(net).filter("x > 2", name="first")
    net.output("o", first.filter("k > 1", name="last"))
    net.output("others", first.rest)
    assert not optimised(net).moves


def test_routes_do_not_move() -> None:
    net = au.Network("n")
    doubled = stream(net).map(keep="*", x="x * 2", name="double")
    net.output("o", doubled.filter(routes={"p": "k > 1"}, name="last").port("p"))
    assert not optimised(net).moves


def test_what_only_spark_knows_does_not_move() -> None:
    net = au.Network("n")
    doubled = stream(net).map(keep="*", x="x * 2", name="double")
    net.output("o", doubled.filter("k > 1", name="last"))
    checked = net.check()
    only_spark = {"where": "soundex(s) = 'A000'"}
    checked.network.boxes["last"] = checked.network.boxes["last"].model_copy(update=only_spark)
    assert not optimize(checked, {"double": COSTLY, "last": CHEAP}).moves


@pytest.mark.parametrize("kind", ["dedup", "bsort", "aggregate", "join", "table", "number"])
def test_boxes_with_state_are_not_passed(kind: str) -> None:
    net = au.Network("n")
    arc, order = stream(net), au.Order("x")
    if kind == "dedup":
        before = arc.dedup("k", order=order, name="before")
    elif kind == "bsort":
        before = arc.bsort(order, name="before")
    elif kind == "aggregate":
        order = au.Order("x", by=("k",))
        before = arc.aggregate(order=order, window=au.Window(size=5), n="count(*)", name="before")
    elif kind == "join":
        other = stream(net, "b")
        before = arc.join(
            other, "left.k = right.k", left=order, right=order, rows=(2, 2), name="before"
        )
    elif kind == "table":
        net.table("t", schema="k int, y int", key=("k",))
        before = arc.join("t", "left.k = right.k", name="before")  # type: ignore[arg-type]
    else:
        before = arc.stateful_map(
            "tests.conformance.stateful_functions:Count", returns="n int", keep="*", name="before"
        )
    net.output("o", before.filter("k > 1", name="last"))
    assert not optimised(net).moves


@pytest.mark.parametrize("reason", ["output", "point", "reader", "fixed"])
def test_nothing_crosses_an_arc_that_somebody_else_reads(reason: str) -> None:
    net = au.Network("n")
    doubled = stream(net).map(keep="*", x="x * 2", name="double")
    net.output("o", doubled.filter("k > 1", name="last"))
    fixed: list[str] = []
    if reason == "output":
        net.output("all", doubled)
    elif reason == "point":
        net.connection_point("recent", doubled, keep="1 h")
        fixed = ["double"]
    elif reason == "reader":
        net.output("more", doubled.filter("k < 9", name="other"))
    else:
        fixed = ["double"]
    assert not optimised(net, *fixed).moves


def test_a_box_that_was_not_measured_stays() -> None:
    net = au.Network("n")
    net.output("o", stream(net).filter("k > 1", name="first").filter("x > 2", name="last"))
    assert not optimize(net.check(), {"last": CHEAP}).moves
    assert not optimize(net.check(), {"first": COSTLY}).moves


def test_the_table_names_every_kind_of_pair_with_a_reason() -> None:
    assert [pair.before for pair in COMMUTING] == [
        "filter",
        "map",
        "union",
        "join of two streams in a band",
    ]
    assert all(pair.because and pair.if_ for pair in COMMUTING)
    assert all(NOT_COMMUTING.values())


def test_filters_that_are_steps_of_their_own_are_combined() -> None:
    net = au.Network("n")
    first = stream(net).filter("k > 1 -- one", name="first")
    net.output("o", first.filter("x > 2", name="second").filter("x < 9 OR k = 2", name="last"))
    checked = net.check()
    found = optimize(checked, {}, separate=True)
    assert [(m.tactic, m.box, m.past) for m in found.moves] == [
        ("combined", "second", "first"),
        ("combined", "last", "second"),
    ]
    assert shape(found) == {"last": ("filter", ("a",))}
    assert found.checked.displaced == set()
    assert not optimize(checked, {}).moves, "fused boxes are one step anyway"


def test_filters_that_call_functions_are_not_combined() -> None:
    net = au.Network("n")
    with_function(net)
    net.output("o", stream(net).filter("k > 1", name="guard").filter("odd(x)", name="last"))
    assert not optimize(net.check(), {}, separate=True).moves


def test_a_map_gives_only_what_is_read_behind_it() -> None:
    net = au.Network("n")
    wide = stream(net).map(keep="*", y="x * 2", z="k + 1", name="wide")
    narrow = wide.filter("k > 1", name="some").map(keep=("x",), w="y", name="narrow")
    net.output("o", narrow)
    found = optimize(net.check(), {}, separate=True)
    assert [(m.tactic, m.box, m.fields) for m in found.moves] == [
        ("narrowed", "wide", ("k", "x", "y"))
    ]
    assert found.checked.arcs["wide"].schema.names == ("k", "x", "y")
    assert found.checked.arcs["narrow"].schema == net.check().arcs["narrow"].schema


@pytest.mark.parametrize("reason", ["output", "star", "function"])
def test_a_map_gives_all_that_somebody_may_need(reason: str) -> None:
    net = au.Network("n")
    with_function(net)
    wide = stream(net).map(keep="*", y="x * 2", name="wide")
    keep: object = "*" if reason == "star" else ("x",)
    made = {"w": "odd(x)"} if reason == "function" else {"w": "k"}
    net.output("o", wide.map(keep=keep, name="next", **made))  # type: ignore[arg-type]
    if reason == "output":
        net.output("all", wide)
    assert not optimize(net.check(), {}, separate=True).moves
