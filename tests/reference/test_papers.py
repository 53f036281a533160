"""The papers' own traces come out as printed."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from auroral import Network, Order, Punctuated, Window
from auroral.network.function import Function
from auroral.reference import Reference
from auroral.testing import Results, punctuation, run

Rows = list[tuple[Any, ...]]


def values(rows: list[dict[str, Any]]) -> Rows:
    return [tuple(row.values()) for row in rows]


# ── paper 1 ──


def test_bsort_keeps_slack_plus_one_tuples() -> None:
    net = Network("figure_8")
    net.output("o", net.stream("s", schema="a int").bsort(Order("a", slack=2)))
    given = [(a,) for a in (1, 3, 1, 2, 4, 4, 8, 3, 4, 4)]
    assert values(run(net, {"s": given}, hold=True)["o"]) == [
        (a,) for a in (1, 1, 2, 3, 4, 3, 4, 4)
    ]
    assert values(run(net, {"s": given})["o"])[8:] == [(4,), (8,)]


QUOTES: Rows = [
    ("MSF", 60, 20),
    ("INT", 60, 16),
    ("IBM", 60, 24),
    ("IBM", 75, 20),
    ("IBM", 90, 23),
    ("MSF", 90, 24),
    ("INT", 90, 12),
    ("IBM", 105, 13),
    ("IBM", 120, 17),
    ("INT", 120, 16),
    ("MSF", 120, 22),
]
LATE = [*QUOTES[:7], *QUOTES[8:], QUOTES[7]]
"""The 1:45 quote of IBM comes last."""
HOURLY = [(60, "IBM", 20.0), (60, "INT", 14.0), (60, "MSF", 22.0)]


def hourly(slack: int, rows: Rows, *, hold: bool = True) -> Results:
    net = Network("figure_9")
    quotes = net.stream("quotes", schema="sid string, time int, price int")
    order = Order("time", slack=slack, by=("sid",))
    net.output("o", quotes.aggregate(order, Window(size=60), avg="avg(price)", name="agg"))
    return run(net, {"quotes": rows}, hold=hold)


def test_hourly_averages() -> None:
    assert values(hourly(0, QUOTES)["o"]) == HOURLY


@pytest.mark.parametrize("slack", [1, 2])
def test_slack_of_one_or_more_counts_the_late_quote(slack: int) -> None:
    assert values(hourly(slack, LATE, hold=False)["o"])[:3] == HOURLY
    assert hourly(slack, LATE).reference.late == {}


def test_without_slack_the_late_quote_is_ignored() -> None:
    out = hourly(0, LATE)
    assert values(out["o"])[0] == (60, "IBM", 67 / 3)
    assert values(out["agg.late"]) == [("IBM", 105, 13)]
    assert out.reference.late == {("agg", "late"): 1}


PLATOON_X: Rows = [
    (sid, time, pos)
    for time, row in ((120, (3, 1, 1)), (125, (4, 2, 1)), (130, (4, 3, 1)), (135, (2, 4, 1)))
    for sid, pos in enumerate(row, start=1)
]
PLATOON_Y: Rows = [
    *((10, 115, 3), (11, 115, 4), (12, 115, 5), (13, 115, 6)),
    *((10, 125, 3), (11, 125, 4), (10, 135, 4), (11, 135, 4), (10, 145, 4), (13, 145, 1)),
]
"""As far as the text of the figure has it."""
MET: Rows = [
    *((1, 120, 3, 10, 115, 3), (1, 120, 3, 10, 125, 3), (1, 125, 4, 11, 115, 4)),
    *((1, 125, 4, 11, 125, 4), (1, 125, 4, 10, 135, 4), (1, 125, 4, 11, 135, 4)),
    *((1, 130, 4, 11, 125, 4), (1, 130, 4, 10, 135, 4), (1, 130, 4, 11, 135, 4)),
    *((2, 130, 3, 10, 125, 3), (2, 135, 4, 11, 125, 4), (2, 135, 4, 10, 135, 4)),
    *((2, 135, 4, 11, 135, 4), (2, 135, 4, 10, 145, 4), (3, 135, 1, 13, 145, 1)),
]


@pytest.mark.parametrize("seed", range(5))
def test_join_does_not_depend_on_how_its_inputs_interleave(seed: int) -> None:
    net = Network("figure_10")
    x, y = (net.stream(name, schema="sid int, time int, pos int") for name in "xy")
    order = Order("time", slack=0)
    net.output("o", x.join(y, "left.pos = right.pos", left=order, right=order, within=10))
    reference, rng = Reference(net), Random(seed)
    arrivals = {"x": list(PLATOON_X), "y": list(PLATOON_Y)}
    while any(arrivals.values()):
        stream = rng.choice([name for name, rows in arrivals.items() if rows])
        reference.push(stream, arrivals[stream].pop(0))
    assert Counter(values(reference.collected("o"))) == Counter(MET)


def test_resampled_tuples_come_in_the_order_in_which_they_conclude() -> None:
    net = Network("figure_11")
    beats = net.stream("beats", schema="time int")
    reports = net.stream("reports", schema="sid int, time int, pos int")
    orders: dict[str, Any] = {
        "left": Order("time", slack=0),
        "right": Order("time", slack=0, by=("sid",)),
    }
    net.output("o", beats.resample(reports, **orders, within=10, pos="avg(pos)"))
    reference = Reference(net)
    reference.push("beats", [120])
    seen = []
    for row in [(1, 115, 4), (2, 118, 7), (2, 131, 9), (1, 125, 8), (1, 131, 9)]:
        reference.push("reports", row)
        seen.append(values(reference.collected("o")))
    assert seen == [[], [], [(2, 120, 7.0)], [(2, 120, 7.0)], [(2, 120, 7.0), (1, 120, 6.0)]]


SOLDIERS: Rows = [
    *((1, 1, 34), (1, 2, 38), (2, 1, 24), (3, 1, 35), (3, 2, 38), (3, 3, 18), (4, 1, 21)),
    *((5, 1, 20), (2, 2, 31), (4, 2, 36), (4, 3, 30), (5, 2, 31), (1, 3, 28), (2, 3, 41)),
    (5, 3, 31),
]


def test_query_1_counts_soldiers_across_the_border() -> None:
    net = Network("figure_13")
    across = net.stream("s", schema="sid int, time int, pos int").filter("pos >= 30")
    crowd = across.aggregate(Order("time", slack=1), Window(size=1), cnt="count(*)", name="crowd")
    net.output("o", crowd.filter("cnt >= 3"))
    out = run(net, {"s": SOLDIERS})
    assert values(out["crowd"]) == [(1, 2), (2, 5), (3, 3)]
    assert values(out["o"]) == [(2, 5), (3, 3)]


class AllAlike:
    """Whether a window has three tuples, all of one value."""

    returns = "boolean"

    def init(self) -> list[Any]:
        return []

    def incr(self, state: list[Any], value: Any) -> list[Any]:
        return [*state, value]

    def final(self, state: list[Any]) -> bool:
        return len(state) == 3 and len(set(state)) == 1


def test_streamlined_query_1_looks_at_every_three_tuples() -> None:
    net = Network("figure_15")
    across = net.stream("s", schema="sid int, time int, pos int").filter("pos >= 30")
    three = across.bsort(Order("time", slack=1)).aggregate(
        Order("tup#"),
        Window(size=3, advance=1),
        time="first(time)",
        over=Function(udf=AllAlike, args=("time",)),
        name="three",
    )
    net.output("o", three.filter("over"))
    out = run(net, {"s": SOLDIERS})
    assert values(out["three"])[:8] == [
        *((1, 1, False), (2, 1, False), (3, 2, True), (4, 2, True), (5, 2, True)),
        *((6, 2, False), (7, 2, False), (8, 3, True)),
    ]
    assert values(out["o"]) == [(3, 2, True), (4, 2, True), (5, 2, True), (8, 3, True)]


class CentreOfMass:
    """The mean, as a user would write it."""

    returns = "double"

    def init(self) -> tuple[int, int]:
        return 0, 0

    def incr(self, state: tuple[int, int], pos: int) -> tuple[int, int]:
        return state[0] + 1, state[1] + pos

    def final(self, state: tuple[int, int]) -> float:
        return state[1] / state[0]


def test_query_2_compares_centres_of_mass() -> None:
    net = Network("figure_17")
    reports = net.stream("s", schema="sid int, time int, pos int")
    com = Function(udf=CentreOfMass, args=("pos",))
    mass = reports.aggregate(Order("time", slack=3), Window(size=1, timeout=60), com=com, name="m")
    pair = mass.aggregate(
        Order("tup#"),
        Window(size=2, advance=1),
        time="last(time)",
        com="last(com)",
        diff="abs(last(com) - first(com)) >= 6",
        name="pair",
    )
    net.output("o", pair.filter("diff"))
    out = run(net, {"s": SOLDIERS})
    assert values(out["m"]) == [(1, 26.8), (2, 34.8), (3, 29.6)]
    assert values(out["pair"])[:2] == [(1, 2, 34.8, True), (2, 3, 29.6, False)]
    assert values(out["o"]) == [(1, 2, 34.8, True)]


# ── paper 3 ──


def band(net: Network) -> Any:
    sides = [net.stream(name, schema="ts int, x int", progress=Punctuated("ts")) for name in "lr"]
    return sides[0].join(sides[1], left=Order("ts"), right=Order("ts"), range=(2, 4), name="j")


def test_oop_join_purges_what_the_other_side_has_passed() -> None:
    net = Network("figure_4")
    band(net)
    reference = Reference(net)
    for ts in (1, 3, 5):
        reference.push("l", [ts, 0])
    assert reference.held("j") == 3
    reference.punctuate("r", 7)
    assert reference.held("j") == 2  # 1 + 4 < 7
    reference.push("l", [2, 0])
    assert reference.held("j") == 2  # processed on the fly: 2 + 4 < 7
    for ts in (6, 9):
        reference.push("r", [ts, 0])
    assert values(reference.collected("j")) == [(5, 0, 9, 0)]
    assert values(reference.collected("j.right_late")) == [(6, 0)]
    reference.punctuate("l", 11)
    assert reference.held("j") == 3  # of the right 9 stays: a left 11 may still meet it
    reference.punctuate("l", 12)
    assert reference.held("j") == 2  # 9 + 2 < 12
    reference.end()
    assert reference.held("j") == 0


def test_oop_join_punctuates_both_attributes() -> None:
    net = Network("figure_4")
    band(net)
    reference = Reference(net)
    reference.punctuate("l", 10)
    assert (reference.mark("j", "ts"), reference.mark("j", "right_ts")) == (None, None)
    reference.punctuate("r", 7)
    assert (reference.mark("j", "ts"), reference.mark("j", "right_ts")) == (3, 7)
    reference.punctuate("r", 30)
    assert (reference.mark("j", "ts"), reference.mark("j", "right_ts")) == (10, 8)
    assert reference.promises("j.left_late") == {}


def connections(net: Network) -> None:
    syn, ack = (
        net.stream(name, schema="ts int, ip string", progress=Punctuated("ts")) for name in "sa"
    )
    how: dict[str, Any] = {"left": Order("ts"), "right": Order("ts"), "within": 120}
    pairs = syn.join(ack, "left.ip = right.ip AND left.ts < right.ts", **how)
    named = pairs.filter("ip <> ''").map(s0="ts", s1="right_ts")
    order = Order("s1", by=("s0",))
    net.output("o", named.aggregate(order, Window(size=1), cnt="count(*)", name="count"))


def test_joint_punctuation_lets_a_group_out_long_before_the_individual() -> None:
    net = Network("q3")
    connections(net)
    reference = Reference(net)
    reference.push("s", [0, "a"])
    reference.push("s", [1, "b"])
    reference.push("a", [1, "a"])
    reference.push("a", [2, "b"])
    reference.punctuate("a", 2)
    assert reference.collected("o") == []
    reference.punctuate("s", 1)
    assert reference.collected("o") == [{"s1": 1, "s0": 0, "cnt": 1}]
    assert reference.mark("count", "s1") == -119  # 1 − 120: the individual punctuation
    reference.punctuate("a", 3)
    assert len(reference.collected("o")) == 1  # a SYN at 1 may still come
    reference.punctuate("s", 2)
    assert reference.collected("o")[1:] == [{"s1": 2, "s0": 1, "cnt": 1}]


def test_group_wise_punctuation_lets_a_group_out_early() -> None:
    net = Network("a_1_1")
    packets = net.stream(
        "p", schema="proto string, ts int", progress=Punctuated("ts", by=("proto",))
    )
    order = Order("ts", by=("proto",))
    net.output("o", packets.aggregate(order, Window(size=10), cnt="count(*)", name="count"))
    rows = [("tcp", 3), ("udp", 4), ("tcp", 5), punctuation(10, proto="tcp")]
    out = run(net, {"p": rows}, hold=True)
    assert values(out["o"]) == [(0, "tcp", 2)]
    assert out.reference.mark("count", "ts", ("tcp",)) == 10
    assert out.reference.mark("count", "ts", ("udp",)) is None
