"""What join and resample mean, by tables one can check in one's head."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from auroral import AuroralError, Network, Order, Ordered, Punctuated, Window
from auroral.reference import Reference
from auroral.testing import run

Rows = list[tuple[Any, ...]]
SLACK: dict[str, Any] = {"left": Order("t", slack=0), "right": Order("t", slack=0)}
MARKS: dict[str, Any] = {"left": Order("t"), "right": Order("t")}


def values(rows: list[dict[str, Any]]) -> Rows:
    return [tuple(row.values()) for row in rows]


def sides(net: Network, progress: Any = None, schema: str = "t int, x string") -> Any:
    return [net.stream(name, schema=schema, progress=progress) for name in "lr"]


def joining(on: str | None = None, *, progress: Any = None, **how: Any) -> Reference:
    net = Network("n")
    left, right = sides(net, progress)
    net.output("o", left.join(right, on, name="j", **how))
    return Reference(net)


def feed(reference: Reference, *arrivals: tuple[str, Any, Any]) -> Rows:
    for stream, t, x in arrivals:
        reference.push(stream, (t, x))
    return values(reference.collected("o"))


@pytest.mark.parametrize(
    ("band", "met"),
    [
        ({"within": 2}, [8, 9, 10, 11, 12]),
        ({"within": 0}, [10]),
        ({"range": (1, 3)}, [9, 10, 11, 12, 13]),
        ({"range": (0, 1)}, [10, 11]),
        ({"range": (-1, 5)}, [11, 12, 13, 14, 15]),
        ({"range": (4, -3)}, [6, 7]),
        ({"range": (-2, 2)}, [12]),
    ],
)
def test_pairs_lie_within_the_band(band: dict[str, Any], met: list[int]) -> None:
    for first in "lr":
        reference = joining(**SLACK, **band)
        rights = [("r", t, None) for t in range(5, 16)]
        left = ("l", 10, None)
        found = feed(reference, *([left, *rights] if first == "l" else [*rights, left]))
        assert [row[2] for row in found] == met


def test_a_pair_comes_with_the_later_in_the_order_of_the_partners() -> None:
    reference = joining(**MARKS, within=5)
    assert feed(reference, ("l", 1, "a"), ("l", 0, "b"), ("r", 2, "c"), ("r", 1, "d")) == [
        *((1, "a", 2, "c"), (0, "b", 2, "c"), (1, "a", 1, "d"), (0, "b", 1, "d"))
    ]
    assert list(reference.collected("o")[0]) == ["t", "x", "right_t", "right_x"]


def test_of_one_moment_left_tuples_come_before_right_ones() -> None:
    net = Network("n")
    s = net.stream("s", schema="t int")
    plus = s.map(t="t + 1")
    net.output("o", s.join(plus, **SLACK, within=1, name="j"))
    assert values(run(net, {"s": [(1,), (2,)]})["o"]) == [(1, 2), (2, 2), (2, 3)]


def test_the_predicate_must_be_true() -> None:
    reference = joining("left.x = right.x", **SLACK, within=5)
    found = feed(reference, ("l", 1, "a"), ("l", 1, None), ("r", 1, "a"), ("r", 1, None))
    assert found == [(1, "a", 1, "a")]


def test_late_tuples_join_nothing() -> None:
    reference = joining(**SLACK, within=5)
    arrivals = [("l", 5, "a"), ("l", 4, "b"), ("r", 4, "c"), ("r", None, "d"), ("r", 3, "e")]
    assert feed(reference, *arrivals) == [(5, "a", 4, "c")]
    assert values(reference.collected("j.left_late")) == [(4, "b")]
    assert values(reference.collected("j.right_late")) == [(None, "d"), (3, "e")]
    assert reference.late == {("j", "late"): 2, ("j", "null"): 1}


def test_with_slack_by_groups_nothing_is_purged_before_the_end() -> None:
    held = []
    for by in ((), ("x",)):
        order = Order("t", slack=0, by=by)
        reference = joining(left=order, right=order, within=1)
        feed(reference, ("l", 1, "a"), ("r", 1, "a"), ("l", 9, "a"), ("r", 9, "a"))
        held.append(reference.held("j"))
    assert held == [2, 4]
    reference.end()
    assert reference.held("j") == 0


def test_a_slack_side_promises_nothing() -> None:
    for how in (SLACK, {**MARKS, "right": Order("t", slack=3)}):
        reference = joining(**how, within=1, progress=Ordered("t"))
        assert reference.promises("j") == {}


def test_each_side_promises_what_both_can_still_bring() -> None:
    reference = joining(**MARKS, within=1, progress=Ordered("t"))
    feed(reference, ("l", 4, ""), ("r", 9, ""))
    assert (reference.mark("j", "t"), reference.mark("j", "right_t")) == (4, 3)


EPOCH = datetime(1970, 1, 1)


def test_a_window_behind_a_join_waits_for_pairs_that_rounding_lets_in() -> None:
    """3.4 + 1.0 is 4.4, so both right tuples are near; but 4.4 - 1.0 is above 3.4."""
    net = Network("doubles")
    left, right = (net.stream(name, "t double", progress=Ordered("t")) for name in "lr")
    pairs = left.join(right, left=Order("t"), right=Order("t"), within=1.0)
    net.output("o", pairs.aggregate(Order("t"), Window(size=0.1), n="count(*)"))
    # All left tuples come first.
    lefts = [{"t": t, "_at": 0} for t in (3.4, 9.0)]
    out = run(net, {"l": lefts, "r": [{"t": t, "_at": 1} for t in (4.4, 4.4, 9.0)]})
    assert [row["n"] for row in out["o"]] == [2, 1]
    assert out.reference.late == {}


@pytest.mark.parametrize(
    ("type", "range_", "value", "pairs"),
    [
        ("timestamp_ntz", ("-5 seconds", "8 s"), lambda n: EPOCH + timedelta(seconds=n), [25, 28]),
        ("timestamp_ntz", ("1 min", " - 3 s"), lambda n: EPOCH + timedelta(seconds=n), [0, 17]),
        ("timestamp_ntz", ("-1 s", "1 s"), lambda n: EPOCH + timedelta(seconds=n), []),
        ("date", ("-5 days", 7), lambda n: EPOCH.date() + timedelta(days=n), [25]),
        ("date", (3, -3), lambda n: EPOCH.date() + timedelta(days=n), [17]),
        ("double", (-5.0, 8.5), float, [25, 28]),
        ("decimal(6,2)", (-5, 7.99), Decimal, [25]),
    ],
)
def test_a_negative_end_is_in_units_of_the_attribute(
    type: str, range_: tuple[Any, Any], value: Any, pairs: list[int]
) -> None:
    net = Network("n")
    left, right = sides(net, schema=f"t {type}")
    net.output("o", left.join(right, **MARKS, range=range_, name="j"))
    rights = [(value(n),) for n in (0, 17, 20, 25, 28)]
    out = run(net, {"l": [(value(20),)], "r": rights})["o"]
    assert [row["right_t"] for row in out] == [value(n) for n in pairs]


@pytest.mark.parametrize(
    ("range_", "marks", "held"),
    [((-1, 5), (4, 5), 2), ((-1, 4), (4, 5), 1), ((4, -3), (4, 0), 1), ((-6, 6), (3, 9), 1)],
)
def test_a_negative_end_makes_the_band_narrower_for_marks_and_purging(
    range_: tuple[int, int], marks: tuple[int, int], held: int
) -> None:
    reference = joining(**MARKS, range=range_, progress=Punctuated("t"))
    feed(reference, ("l", 4, ""), ("r", 9, ""))
    reference.punctuate("l", 4)
    reference.punctuate("r", 9)
    assert (reference.mark("j", "t"), reference.mark("j", "right_t")) == marks
    assert reference.held("j") == held


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((1, 1), [("b", "c"), ("b", "d"), ("e", "d")]),
        ((2, 1), [("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("e", "d")]),
        ((1, 2), [("b", "c"), ("b", "d"), ("e", "c"), ("e", "d")]),
    ],
)
def test_rows_meet_the_latest_of_the_other_side(rows: tuple[int, int], expected: Rows) -> None:
    reference = joining(rows=rows)
    arrivals = [("l", 1, "a"), ("l", 1, "b"), ("r", 1, "c"), ("r", None, "d"), ("l", 0, "e")]
    found = feed(reference, *arrivals)
    assert [(row[1], row[3]) for row in found] == expected
    assert (reference.promises("j"), reference.late) == ({}, {})


def test_a_table_meets_every_tuple_in_the_order_of_its_rows() -> None:
    net = Network("n")
    stream = net.stream("s", schema="k int, t int", progress=Ordered("t"))
    net.table("names", schema="k int, t string")
    net.box("join", "right", inputs=(stream, "names"), on="left.k = right.k")
    net.box("join", "left", inputs=("names", stream), on="left.k = right.k")
    rows = [(1, "b"), (2, "x"), (1, "a")]
    out = run(net, {"s": [(1, 5), (3, 6), (2, 7)]}, tables={"names": rows}, hold=True)
    assert values(out["right"]) == [(1, 5, 1, "b"), (1, 5, 1, "a"), (2, 7, 2, "x")]
    assert values(out["left"]) == [(1, "b", 1, 5), (1, "a", 1, 5), (2, "x", 2, 7)]
    reference = out.reference
    assert (reference.mark("right", "t"), reference.mark("left", "right_t")) == (7, 7)
    assert (reference.mark("left", "t"), reference.held("left")) == (None, 0)
    assert values(run(net, {"s": [(1, 5)]})["left"]) == []


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(AuroralError, match="UNKNOWN_TABLE"):
        Reference(Network("n"), tables={"t": []})


# ── resample ──


def resampling(*, progress: Any = None, left: Order, right: Order) -> Reference:
    net = Network("n")
    one, other = sides(net, progress)
    made = one.resample(other, left=left, right=right, within=2, n="count(*)", name="r_")
    net.output("o", made)
    return Reference(net)


def test_by_punctuation_a_left_tuple_waits_for_the_right_to_pass_it() -> None:
    reference = resampling(**MARKS, progress=Punctuated("t"))
    feed(reference, ("r", 3, ""), ("r", 8, ""), ("l", 5, ""), ("r", 6, ""), ("l", 20, ""))
    reference.punctuate("r", 7)
    assert reference.collected("o") == []
    feed(reference, ("r", 7, ""), ("r", 6, ""))
    reference.punctuate("r", 8)
    assert reference.collected("o") == [{"t": 5, "n": 3}]
    assert values(reference.collected("r_.right_late")) == [(6, "")]
    assert reference.mark("r_", "t") is None
    reference.punctuate("l", 11)
    # Of the left 20 waits; of the right nothing is near what may still come.
    assert (reference.held("r_"), reference.mark("r_", "t")) == (1, 6)
    feed(reference, ("l", 10, ""))
    reference.end()
    assert reference.collected("o")[1:] == []
    assert reference.late == {("r_", "late"): 2}


def test_a_left_tuple_that_comes_after_the_right_has_passed_is_complete_at_once() -> None:
    reference = resampling(**MARKS, progress=Punctuated("t"))
    feed(reference, ("r", 4, ""), ("r", 5, ""))
    reference.punctuate("r", 50)
    assert feed(reference, ("l", 5, ""), ("l", 6, "")) == [(5, 2), (6, 2)]
    assert reference.held("r_") == 2


def test_with_slack_each_right_group_concludes_by_itself() -> None:
    right = Order("t", slack=0, by=("x",))
    reference = resampling(left=Order("t", slack=0), right=right)
    feed(reference, ("l", 5, ""), ("r", 4, "b"), ("r", 6, "a"), ("r", 9, "b"))
    assert values(reference.collected("o")) == [("b", 5, 1)]
    feed(reference, ("r", 5, "c"), ("r", 8, "a"))
    assert values(reference.collected("o"))[1:] == [("a", 5, 1)]
    reference.end()
    assert values(reference.collected("o"))[2:] == [("c", 5, 1)]
    assert reference.promises("r_") == {}


def test_one_moment_emits_by_left_arrival_then_group() -> None:
    right = Order("t", by=("x",))
    reference = resampling(left=Order("t"), right=right, progress=Punctuated("t"))
    feed(reference, ("l", 5, ""), ("l", 4, ""), ("r", 5, "b"), ("r", 4, None), ("r", 4, "a"))
    reference.punctuate("r", 9)
    assert values(reference.collected("o")) == [
        *((None, 5, 1), ("a", 5, 1), ("b", 5, 1), (None, 4, 1), ("a", 4, 1), ("b", 4, 1))
    ]
