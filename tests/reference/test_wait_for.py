"""WaitFor: when tuples leave, and when they are discarded, by tables one can check."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import Network, Ordered, Window
from auroral.boxes.order import Order
from auroral.reference import Reference

Arrival = tuple[str, int, float]
"""Stream, id, time."""


def waiting(match: str = "held.id = signal.id", timeout: float = 5, **how: Any) -> Reference:
    net = Network("n")
    held, signal = (net.stream(name, "id int", **how) for name in ("h", "s"))
    net.output("o", held.wait_for(signal, match, timeout=timeout, name="w"))
    return Reference(net)


def feed(reference: Reference, *arrivals: Arrival) -> None:
    for stream, id, at in arrivals:
        reference.push(stream, (id,), at=at)


def ids(reference: Reference, arc: str) -> list[int]:
    return [row["id"] for row in reference.collected(arc)]


def test_a_tuple_leaves_once_at_the_first_signal_that_matches_it() -> None:
    reference = waiting()
    feed(reference, ("h", 1, 0), ("h", 2, 0), ("s", 2, 1), ("s", 2, 2), ("s", 1, 3))
    assert ids(reference, "o") == [2, 1]
    assert reference.late == {}
    assert reference.held("w") == 0


def test_a_signal_that_came_before_does_not_count() -> None:
    reference = waiting()
    feed(reference, ("s", 1, 0), ("h", 1, 1))
    assert ids(reference, "o") == []
    assert reference.held("w") == 1


def test_a_signal_releases_all_that_match_in_order_of_arrival() -> None:
    reference = waiting("held.id <= signal.id")
    feed(reference, ("h", 3, 0), ("h", 9, 0), ("h", 1, 0), ("h", 3, 0), ("s", 5, 1))
    assert ids(reference, "o") == [3, 1, 3]
    assert reference.held("w") == 1


def test_signals_of_one_moment_release_in_order_of_arrival_too() -> None:
    net = Network("n")
    held, s = net.stream("h", "id int"), net.stream("s", "id int")
    # One tuple of s makes two signals, the one for 2 first.
    signals = net.union(s.map(id="id + 1"), s.map(id="id"))
    net.output("o", held.wait_for(signals, "held.id = signal.id", timeout=5))
    reference = Reference(net)
    feed(reference, ("h", 1, 0), ("h", 2, 0), ("s", 1, 1))
    assert ids(reference, "o") == [1, 2]


def test_a_signal_of_the_same_moment_counts() -> None:
    """As with an update that reports at the moment of the tuple that asks to read after it."""
    net = Network("n")
    s = net.stream("s", "id int")
    net.output("o", s.wait_for(s.filter("id % 2 = 0"), "held.id >= signal.id", timeout=5))
    reference = Reference(net)
    feed(reference, ("s", 1, 0), ("s", 2, 0), ("s", 5, 0), ("s", 4, 0))
    assert ids(reference, "o") == [2, 5, 4]
    assert reference.held("wait_for_1") == 1


@pytest.mark.parametrize(("at", "released"), [(14.9, True), (15, True), (15.1, False)])
def test_a_signal_may_come_until_the_clock_exceeds_the_arrival_by_the_timeout(
    at: float, released: bool
) -> None:
    reference = waiting()
    feed(reference, ("h", 1, 10), ("s", 1, at))
    assert ids(reference, "o") == [1] * released
    assert ids(reference, "w.late") == [1] * (not released)
    assert reference.late == ({} if released else {("w", "timeout"): 1})


def test_what_is_discarded_leaves_at_the_tick_of_the_clock() -> None:
    reference = waiting()
    feed(reference, ("h", 1, 0), ("h", 2, 1), ("h", 3, 7))
    assert ids(reference, "w.late") == [1, 2]
    assert reference.held("w") == 1


def test_the_time_counts_from_when_a_tuple_reached_the_box() -> None:
    net = Network("n")
    h, s = net.stream("h", "id int, t int", progress=Ordered("t")), net.stream("s", "id int")
    window = h.aggregate(Order("t", by=("id",)), Window(size=10), n="count(*)")
    net.output("o", window.wait_for(s, "held.id = signal.id", timeout=5, name="w"))
    reference = Reference(net)
    reference.push("h", (1, 3), at=0)
    reference.push("h", (1, 12), at=100)  # closes the window, whose tuple entered long ago
    reference.push("s", (1,), at=105)
    assert [row["t"] for row in reference.collected("o")] == [0]
    assert [made.entered_us for made in reference.tuples("o")] == [0]


def test_at_the_end_what_is_held_is_discarded_and_counted() -> None:
    reference = waiting()
    feed(reference, ("h", 1, 0), ("h", 2, 7), ("h", 3, 8), ("s", 3, 9))
    reference.end()
    assert ids(reference, "o") == [3]
    assert ids(reference, "w.late") == [1, 2]
    assert reference.late == {("w", "timeout"): 1, ("w", "ended"): 1}
    assert reference.held("w") == 0


def test_a_signal_that_the_end_makes_still_releases() -> None:
    net = Network("n")
    h, s = net.stream("h", "id int"), net.stream("s", "id int")
    counts = s.aggregate(Order("id"), Window(size=1), n="count(*)")
    net.output("o", h.wait_for(counts, "held.id = signal.id", timeout=5, name="w"))
    reference = Reference(net)
    feed(reference, ("h", 1, 0), ("h", 2, 0), ("s", 2, 1))
    reference.end()
    assert ids(reference, "o") == [2]
    assert reference.late == {("w", "ended"): 1}


@pytest.mark.parametrize(
    "match", ["held.id = signal.id", "held.id < signal.id", "NOT (held.id = 1)"]
)
def test_null_counts_as_false(match: str) -> None:
    reference = waiting(match)
    for stream, id in (("h", None), ("s", None), ("s", 5)):
        reference.push(stream, (id,), at=0)
    assert ids(reference, "o") == []
    assert reference.held("w") == 1


def test_nothing_is_promised_of_what_may_wait() -> None:
    reference = waiting(progress=Ordered("id"))
    feed(reference, ("h", 1, 0), ("h", 7, 0), ("s", 7, 1), ("s", 1, 2))
    assert ids(reference, "o") == [7, 1]
    assert reference.promises("w") == reference.promises("w.late") == {}


@given(
    st.lists(st.tuples(st.sampled_from("hhs"), st.integers(0, 3), st.integers(0, 3)), max_size=40)
)
def test_every_tuple_leaves_once_or_is_discarded(events: list[tuple[str, int, int]]) -> None:
    reference, now = waiting("held.id <= signal.id"), 0
    for number, (stream, id, later) in enumerate(events, 1):
        now += later
        feed(reference, (stream, id, now))
        held = sum(arrived == "h" for arrived, _, _ in events[:number])
        left = len(ids(reference, "o")) + len(ids(reference, "w.late"))
        assert left + reference.held("w") == held
    reference.end()
    came = sorted(id for stream, id, _ in events if stream == "h")
    assert sorted(ids(reference, "o") + ids(reference, "w.late")) == came
    assert sum(reference.late.values()) == len(ids(reference, "w.late"))
