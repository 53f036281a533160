"""Timeouts of join and resample: how long tuples are held for partners, by the clock."""

from __future__ import annotations

from typing import Any

import pytest

from auroral import Network, Order, Ordered, Punctuated, Window
from auroral.reference import Reference

MARKS: dict[str, Any] = {"left": Order("t"), "right": Order("t")}
Arrival = tuple[str, int, float]
"""Stream, value, time."""


def streams(net: Network, progress: Any = None) -> Any:
    return [net.stream(name, "t int", progress=progress) for name in "lr"]


def joining(progress: Any = None, **how: Any) -> Reference:
    net = Network("n")
    left, right = streams(net, progress)
    net.output("o", left.join(right, **how, name="j"))
    return Reference(net)


def resampling(progress: Any = None, timeout: float = 5) -> Reference:
    net = Network("n")
    left, right = streams(net, progress)
    made = left.resample(
        right, **MARKS, within=2, timeout=timeout, n="count(*)", all="collect_list(t)", name="j"
    )
    net.output("o", made)
    return Reference(net)


def feed(reference: Reference, *arrivals: Arrival) -> list[tuple[Any, ...]]:
    for stream, t, at in arrivals:
        reference.push(stream, (t,), at=at)
    return [tuple(row.values()) for row in reference.collected("o")]


@pytest.mark.parametrize("first", ["l", "r"])
def test_a_join_forgets_a_tuple_once_the_clock_exceeds_its_arrival_by_the_timeout(
    first: str,
) -> None:
    reference = joining(**MARKS, within=9, timeout=5)
    second = "r" if first == "l" else "l"
    feed(reference, (first, 1, 10), (second, 2, 15), (second, 3, 15.5))
    pairs = [set(row.values()) for row in reference.collected("o")]
    assert pairs == [{1, 2}]
    assert (reference.held("j"), reference.late) == (2, {("j", "timeout"): 1})


def test_the_clock_moves_before_the_tuple_that_arrives_then() -> None:
    reference = joining(**MARKS, within=9, timeout=5)
    assert feed(reference, ("l", 1, 0), ("r", 1, 5.000001)) == []
    assert not reference.collected("j.left_late") + reference.collected("j.right_late")


def test_what_progress_drops_first_does_not_time_out() -> None:
    reference = joining(Ordered("t"), **MARKS, within=1, timeout=5)
    feed(reference, ("l", 1, 0), ("r", 9, 1), ("l", 9, 20))
    assert reference.late == {("j", "timeout"): 1}  # the right 9


def test_rows_are_kept_no_longer_than_the_timeout() -> None:
    reference = joining(rows=(2, 2), timeout=5)
    arrivals = [("l", 1, 0), ("l", 2, 3), ("r", 3, 6), ("l", 4, 9), ("r", 5, 14.5)]
    assert feed(reference, *arrivals) == [(2, 3), (4, 3)]
    assert (reference.late, reference.held("j")) == ({("j", "timeout"): 4}, 1)


def test_time_counts_from_when_a_tuple_reaches_the_join() -> None:
    """A window that closes at 8 reaches the join at 8, although its first tuple came at 0."""
    net = Network("n")
    left, right = streams(net, Ordered("t"))
    counts = left.aggregate(Order("t"), Window(size=10), n="count(*)", name="w")
    how: dict[str, Any] = {"left": Order("t"), "right": Order("t"), "within": 100, "timeout": 5}
    net.output("o", counts.join(right, **how, name="j"))
    reference = Reference(net)
    found = feed(reference, ("l", 1, 0), ("l", 12, 8), ("r", 3, 13), ("r", 4, 13.5))
    assert found == [(0, 1, 3)]


def test_two_of_one_clock_moment_reach_the_join_at_that_time() -> None:
    """What a timeout makes comes at the moment of the clock, after what is over by then went."""
    net = Network("n")
    left, right = streams(net, Ordered("t"))
    counts = left.aggregate(Order("t"), Window(size=10, timeout=6), n="count(*)", name="w")
    how: dict[str, Any] = {"left": Order("t"), "right": Order("t"), "within": 100, "timeout": 5}
    net.output("o", counts.join(right, **how, name="j"))
    reference = Reference(net)
    feed(reference, ("l", 1, 0), ("r", 1, 2), ("r", 2, 3), ("r", 3, 8))
    assert [row["right_t"] for row in reference.collected("o")] == [2, 3]


def test_a_join_with_a_timeout_promises_what_one_without_does() -> None:
    marks = []
    for how in ({}, {"timeout": 1}):
        reference = joining(Ordered("t"), **MARKS, within=1, **how)
        feed(reference, ("l", 4, 0), ("r", 9, 50))
        marks.append((reference.mark("j", "t"), reference.mark("j", "right_t")))
    assert marks == [(4, 3)] * 2


# ── resample ──


def test_a_left_tuple_is_answered_with_what_there_is_when_its_time_is_over() -> None:
    reference = resampling(Punctuated("t"))
    assert feed(reference, ("r", 4, 0), ("l", 5, 1), ("r", 6, 4), ("r", 5, 6)) == []
    assert feed(reference, ("r", 5, 6.5)) == [(5, 3, [4, 6, 5])]
    # The answer does not change, whatever comes for it later.
    assert len(feed(reference, ("r", 5, 7))) == 1
    reference.end()
    assert len(reference.collected("o")) == 1
    # The left 5 and the right 4.
    assert reference.late == {("j", "timeout"): 2}


def test_an_empty_window_gives_nothing_and_the_left_tuple_goes() -> None:
    reference = resampling(Punctuated("t"))
    feed(reference, ("l", 5, 0), ("r", 50, 6))
    assert (reference.collected("o"), reference.held("j")) == ([], 1)
    assert reference.late == {("j", "timeout"): 1}


def test_a_right_tuple_is_not_for_left_ones_that_come_when_its_time_is_over() -> None:
    reference = resampling(Punctuated("t"))
    feed(reference, ("r", 5, 0), ("l", 4, 3), ("l", 6, 5.5))
    # Its time is over, but the window of the left 4 has it.
    assert reference.held("j") == 3
    reference.punctuate("r", 20, at=7)
    assert [tuple(row.values()) for row in reference.collected("o")] == [(4, 1, [5])]
    assert reference.held("j") == 0


def test_a_resample_with_a_timeout_promises_what_one_without_does() -> None:
    reference = resampling(Ordered("t"), timeout=1)
    feed(reference, ("l", 5, 0), ("r", 6, 10))
    assert reference.mark("j", "t") == 4
    assert [row["t"] for row in reference.collected("o")] == []
