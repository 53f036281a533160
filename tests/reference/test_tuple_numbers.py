"""Orders on tup#, the arrival number: joins, resamples and sorts."""

from __future__ import annotations

from typing import Any

import pytest

from auroral import Network, Order, Ordered
from auroral.reference import Reference
from auroral.testing import run

NUMBERS: dict[str, Any] = {"left": Order("tup#"), "right": Order("tup#")}


def streams(net: Network, progress: Any = None) -> Any:
    return [net.stream(name, "t int, g string", progress=progress) for name in "lr"]


def feed(reference: Reference, *arrivals: tuple[str, int, str]) -> list[tuple[int, int]]:
    for stream, t, g in arrivals:
        reference.push(stream, (t, g))
    return [(row["t"], row["right_t"]) for row in reference.collected("o")]


def joining(progress: Any = None, on: str | None = None, **how: Any) -> Reference:
    net = Network("n")
    left, right = streams(net, progress)
    net.output("o", left.join(right, on, **how, name="j"))
    return Reference(net)


@pytest.mark.parametrize(
    ("band", "pairs"),
    [
        ({"within": 0}, [(70, 90), (30, 20)]),
        ({"range": (0, 1)}, [(70, 90), (70, 20), (30, 20)]),
        ({"range": (1, -1)}, [(30, 90)]),
    ],
)
def test_a_band_over_arrival_numbers(band: dict[str, Any], pairs: list[Any]) -> None:
    reference = joining(**NUMBERS, **band)
    arrivals = [("l", 70, ""), ("r", 90, ""), ("r", 20, ""), ("l", 30, "")]
    assert feed(reference, *arrivals) == pairs
    assert list(reference.collected("o")[0]) == ["t", "g", "right_t", "right_g"]
    assert (reference.promises("j"), reference.late) == ({}, {})


def test_the_next_number_is_the_progress() -> None:
    """A left tuple goes when as many right ones have come as its band reaches."""
    reference = joining(Ordered("t"), **NUMBERS, range=(0, 1))
    held = []
    for stream in "lrrrlll":
        feed(reference, (stream, 1, ""))
        held.append(reference.held("j"))
    # l1 waits for r2, r2 for l2, r3 for l2 and l3; at last l3 waits for r4, l4 for r4 and r5.
    assert held == [1, 1, 1, 2, 1, 1, 2]
    assert reference.promises("j") == {}


def test_numbers_count_per_group_on_each_side() -> None:
    by = {side: Order("tup#", by=("g",)) for side in ("left", "right")}
    reference = joining(**by, within=0, on="left.g = right.g")
    arrivals = [("l", 1, "a"), ("l", 2, "b"), ("l", 3, "a"), ("r", 4, "b"), ("r", 5, "a")]
    assert feed(reference, *arrivals, ("r", 6, "a")) == [(2, 4), (1, 5), (3, 6)]
    # Of a group that never came, the first tuples may still come.
    assert reference.held("j") == 6
    reference.end()
    assert reference.held("j") == 0


def test_one_side_may_be_numbered_and_the_other_not() -> None:
    reference = joining(left=Order("tup#"), right=Order("t", slack=0), within=0)
    assert feed(reference, ("r", 1, ""), ("r", 2, ""), ("l", 50, ""), ("l", 60, "")) == [
        *((50, 1), (60, 2))
    ]


def test_a_resample_is_complete_when_the_last_number_near_it_has_come() -> None:
    net = Network("n")
    left, right = streams(net)
    net.output("o", left.resample(right, **NUMBERS, within=1, all="collect_list(t)", name="r_"))
    reference = Reference(net)
    for stream, t in [("l", 7), ("r", 10), ("r", 20), ("l", 8), ("r", 30), ("r", 40)]:
        reference.push(stream, (t, ""))
        last = reference.collected("o")[-1:]
        assert last == [] or t != 10
    assert reference.collected("o") == [
        {"tup": 1, "all": [10, 20]},
        {"tup": 2, "all": [10, 20, 30]},
    ]


@pytest.mark.parametrize(
    ("slack", "expected"), [(None, [5, 1, 4, 2]), (0, [5, 1, 4, 2]), (1, [5, 4])]
)
def test_a_sort_on_arrival_numbers_keeps_the_order_of_arrival(
    slack: int | None, expected: list[int]
) -> None:
    net = Network("n")
    s = net.stream("s", "t int, g string", progress=Ordered("t"))
    order = Order("tup#", slack=slack, by=("g",))
    net.output("o", s.bsort(order, name="b"))
    rows = [(5, "a"), (1, "b"), (4, "a"), (2, "a")]
    out = run(net, {"s": rows}, hold=True)
    assert [row["t"] for row in out["o"]] == expected
    assert (out.reference.mark("b", "t") == 5) is (slack is None)
    whole = [row["t"] for row in run(net, {"s": rows})["o"]]
    assert whole == ([5, 4, 1, 2] if slack == 1 else expected)
