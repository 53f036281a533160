"""What arcs after boxes with state promise, by tables one can check in one's head."""

from __future__ import annotations

import math
from typing import Any

import pytest

from auroral import Network, Order, Ordered, Punctuated, Window
from auroral.reference import Reference


def windowed(
    order: Order, window: Window, progress: Any, type: str = "int", **how: Any
) -> Reference:
    net = Network("n")
    s = net.stream("s", schema=f"t {type}, g string", progress=progress)
    s.aggregate(order, window, n="count(*)", name="w", **how)
    return Reference(net)


@pytest.mark.parametrize(
    ("size", "advance", "mark", "promised"),
    [
        (10, None, 9, 0),
        (10, None, 10, 10),
        (10, None, 25, 20),
        (10, 5, 14, 5),
        (10, 5, 15, 10),
        (3, 10, 12, 10),
        (3, 10, 13, 20),
        (10, None, -1, -10),
        (10, None, 0, 0),
    ],
)
def test_an_aggregate_promises_its_first_window_that_is_open(
    size: int, advance: int | None, mark: int, promised: int
) -> None:
    reference = windowed(Order("t"), Window(size=size, advance=advance), Punctuated("t"))
    assert reference.mark("w", "t") is None
    reference.punctuate("s", mark)
    assert reference.mark("w", "t") == promised


@pytest.mark.parametrize(("mark", "promised"), [(12, 0), (14, 0), (15, 10), (24, 10), (25, 20)])
def test_with_history_it_promises_its_first_window_that_is_remembered(
    mark: int, promised: int
) -> None:
    how: dict[str, Any] = {"late": "revise", "history": 5}
    reference = windowed(Order("t"), Window(size=10), Punctuated("t"), **how)
    reference.punctuate("s", mark)
    assert reference.mark("w", "t") == promised


@pytest.mark.parametrize("mark", [0.1, 0.3, 0.7, 1.1, 2.3, 4.35, 1e6 + 0.3])
def test_on_doubles_a_promise_is_never_above_an_open_window(mark: float) -> None:
    reference = windowed(Order("t"), Window(size=0.1), Punctuated("t"), "double")
    reference.punctuate("s", mark)
    promised: Any = reference.mark("w", "t")
    k = round(promised / 0.1)
    assert promised == k * 0.1
    assert k * 0.1 + 0.1 > mark
    assert (k - 1) * 0.1 + 0.1 <= mark


@pytest.mark.parametrize(
    ("order", "window"),
    [
        (Order("t", slack=1), Window(size=10)),
        (Order("tup#"), Window(size=10)),
        (Order("t"), Window(advance="t % 10 = 0")),
        (Order("t", slack=1), Window(size=10, align="first")),
    ],
)
def test_other_windows_promise_nothing_not_even_at_the_end(order: Order, window: Window) -> None:
    reference = windowed(order, window, Ordered("t"))
    reference.push("s", [5, "a"])
    reference.end()
    assert reference.promises("w") == {}


def test_at_the_end_nothing_comes_any_more() -> None:
    reference = windowed(Order("t"), Window(size=10), Ordered("t"))
    reference.end()
    assert reference.mark("w", "t") == math.inf
    assert reference.promises("w.late") == {}


@pytest.mark.parametrize(("by", "a", "b", "new"), [(("g",), 20, 0, -10), ((), -10, -10, -10)])
def test_groups_keep_their_promises_if_windows_keep_groups_apart(
    by: tuple[str, ...], a: int, b: int, new: int
) -> None:
    progress = Punctuated("t", by=("g",), heartbeat=105)
    reference = windowed(Order("t", by=by), Window(size=10), progress)
    reference.push("s", [1, "a"], at=100)
    reference.punctuate("s", 25, ("a",))
    reference.punctuate("s", 5, ("b",))
    assert [reference.mark("w", "t", (g,)) for g in "abc"] == [a, b, new]


def test_joint_promises_pass_filters_and_copies_but_no_union() -> None:
    net = Network("n")
    one, other = (net.stream(n, schema="t int", progress=Punctuated("t")) for n in "ab")
    pairs = one.join(other, left=Order("t"), right=Order("t"), within=9, name="j")
    pairs.filter("t > 0", name="f").map(x="right_t", y="t", z="t", name="m")
    pairs.map(t="t", name="alone")
    net.union(pairs, pairs, name="u")
    reference = Reference(net)
    reference.punctuate("a", 20)
    reference.punctuate("b", 30)
    joint = {
        arc: {
            (attribute, joint.by): (joint.own, joint.other)
            for attribute, promise in reference.promises(arc).items()
            for joint in promise.joint
        }
        for arc in ("j", "m", "alone", "u")
    }
    assert joint == {
        "j": {("t", "right_t"): (20, 30), ("right_t", "t"): (30, 20)},
        "m": {
            ("x", "y"): (30, 20),
            ("x", "z"): (30, 20),
            ("y", "x"): (20, 30),
            ("z", "x"): (20, 30),
        },
        "alone": {},
        "u": {},
    }
