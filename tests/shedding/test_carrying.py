"""Intervals carried upstream: what is dropped there is what would have been dropped below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from auroral import Network, Order, Ordered, Window
from auroral.network.arc import Arc
from auroral.network.types import Schema
from auroral.reference.network import Reference
from auroral.shedding.carrying import interval_carrier, linear
from auroral.shedding.drops import DropInterval
from auroral.shedding.sites import ValueOnArc
from auroral.shedding.trial import TriedField, candidate_intervals, evaluator_on, trial, tried_field

Build = Callable[[Arc], Arc]

FIELDS = "k int, x int, y double"
STEPS: dict[str, Build] = {
    "filter by x": lambda arc: arc.filter("x > 2"),
    "filter by k": lambda arc: arc.filter("k <> 3"),
    "rest": lambda arc: arc.filter("k = 1").rest,
    "copy": lambda arc: arc.map(keep=("k", "x"), y="y"),
    "twice": lambda arc: arc.map(keep="*", x="x * 2 + 1"),
    "negative": lambda arc: arc.map(keep="*", x="5 - x"),
    "wide": lambda arc: arc.map(keep=("k", "y"), x="cast(x as bigint)"),
    "half": lambda arc: arc.map(keep="*", y="(y - 3) / 4"),
    "swap": lambda arc: arc.map(keep=("k",), x="x", y="-y * 0.5 + 1"),
    "sort": lambda arc: arc.bsort(order=Order("k", slack=2)),
    "dedup": lambda arc: arc.dedup("x", "y", order=Order("k")),
    "union": lambda arc: arc.filter("k > 4").union(arc.filter("k <= 4").map(keep="*", x="x")),
}


def rows_strategy() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    row = st.tuples(
        st.integers(0, 9),
        st.none() | st.integers(-20, 20),
        st.none() | st.integers(-40, 40).map(lambda n: n / 4),
    )
    return st.lists(row, max_size=30)


def results(network: Network, rows: Sequence[tuple[Any, ...]], output: str) -> list[Any]:
    reference = Reference(network)
    for row in rows:
        reference.push("reports", row)
    reference.end()
    return [tuple(row.values()) for row in reference.collected(output)]


def within(value: float | None, low: float | None, high: float | None) -> bool:
    return value is not None and (low is None or value >= low) and (high is None or value < high)


def carried(network: Network, field: str, arcs: set[str]) -> Mapping[str, ValueOnArc] | None:
    checked = network.check()
    arc = checked.network.outputs["out"].from_
    return interval_carrier(checked, {"out": (arc, field)})("out", arcs)


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(list(STEPS)), max_size=4),
    rows_strategy(),
    st.sampled_from(["x", "y"]),
    st.integers(-12, 12),
    st.integers(0, 12),
)
@example(["negative", "twice"], [(1, 3, 0.0), (2, 1, 1.0)], "x", -3, 4)
def test_a_tuple_is_dropped_upstream_if_its_image_would_be_in_the_interval(
    steps: list[str], rows: list[tuple[Any, ...]], field: str, low: int, width: int
) -> None:
    network = Network("drops")
    arc: Arc = network.stream("reports", FIELDS, progress=None)
    assume(not {"sort", "dedup"} <= {*steps})  # which of two alike is first depends on the rest
    for step in steps:
        arc = STEPS[step](arc)
    network.output("out", arc.filter("k < 100", name="last"))
    found = carried(network, field, {"reports"})
    assert found is not None
    interval = found["reports"].interval(low, low + width)
    at = ("k", "x", "y").index(interval.field)
    kept = [row for row in rows if not within(row[at], interval.low, interval.high)]
    names = network.check().schema_of("last").names
    place = names.index(field)
    expected = [
        row for row in results(network, rows, "out") if not within(row[place], low, low + width)
    ]
    assert sorted(results(network, kept, "out"), key=repr) == sorted(expected, key=repr)


def test_groups_of_windows_are_dropped_by_their_key() -> None:
    network = Network("windows")
    reports = network.stream("reports", "t int, pos int", progress=Ordered("t"))
    counts = reports.aggregate(
        name="counts", order=Order("t", by=("pos",)), window=Window(size=2), cnt="count(*)"
    )
    network.output("out", counts)
    found = carried(network, "pos", {"reports"})
    assert found is not None
    interval = found["reports"].interval(3, 6)
    rows = [(n // 5, n % 7) for n in range(60)]
    kept = [row for row in rows if not within(row[1], interval.low, interval.high)]
    expected = [row for row in results(network, rows, "out") if not 3 <= row[1] < 6]
    assert expected
    assert results(network, kept, "out") == expected
    assert carried(network, "cnt", {"reports"}) is None


def test_a_join_is_dropped_by_the_side_that_a_field_comes_from() -> None:
    network = Network("pairs")
    left = network.stream("reports", "t int, pos int", progress=Ordered("t"))
    right = network.stream("units", "t int, pos int", progress=Ordered("t"))
    pairs = left.join(right, name="pairs", left=Order("t"), right=Order("t"), within=1)
    network.output("out", pairs)
    arcs = {"reports", "units"}
    assert {**(carried(network, "pos", arcs) or {})}.keys() == {"reports"}
    found = carried(network, "right_pos", arcs)
    assert found is not None
    assert found["units"].interval(1, 2) == DropInterval("pos", 1, 2)


def test_a_field_without_an_inverse_is_dropped_behind_the_box_that_makes_it() -> None:
    network = Network("squares")
    arc = network.stream("reports", FIELDS).map(name="squared", keep=("k",), x="x * x")
    network.output("out", arc.filter("k > 1", name="some"))
    assert carried(network, "x", {"reports"}) is None
    assert {*(carried(network, "x", {"reports", "squared"}) or {})} == {"squared"}


def test_a_stream_on_two_ways_that_compute_different_values_is_left() -> None:
    network = Network("ways")
    reports = network.stream("reports", FIELDS)
    twice = reports.map(name="twice", keep=("k", "y"), x="x * 2").map(
        name="twice_again", keep=("k",), x="x"
    )
    once = reports.map(name="once", keep=("k",), x="x")
    network.output("out", twice.union(once, name="both"))
    assert carried(network, "x", {"reports"}) is None
    assert {*(carried(network, "x", {"reports", "both"}) or {})} == {"both"}


def test_filters_that_ask_for_the_value_are_told() -> None:
    network = Network("filters")
    network.output("out", network.stream("reports", FIELDS).filter("k > 1 AND X > 4", name="far"))
    for field, selective in (("x", True), ("y", False)):
        found = carried(network, field, {"reports"})
        assert found is not None
        assert found["reports"].selective == selective


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x", ("x", 1, 0)),
        ("3 - x", ("x", -1, 3)),
        ("2 * x + 3 * x", ("x", 5, 0)),
        ("x - x", None),
        ("y / 4 - 1.5", ("y", 0.25, -1.5)),
        ("cast(x as double) * 2", ("x", 2, 0)),
        ("cast(y as int)", None),
        ("4 / y", None),
        ("x / 0", None),
        ("x * NULL", None),
        ("x + k", None),
        ("abs(x)", None),
        ("k + true", None),
        ("s", None),
        ("not an expression (", None),
    ],
)
def test_linear_expressions(text: str, line: tuple[str, float, float] | None) -> None:
    assert linear(text, Schema.parse("k int, x int, y double, s string")) == line


# ── forward trial ──


def squared(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    return [float(row["x"]) ** 2 for row in rows if row["k"] != 3]


SAMPLE: list[dict[str, Any]] = [{"k": n % 5, "x": n % 40, "s": "a"} for n in range(400)]


def test_trial_finds_the_interval_that_a_box_without_inverse_needs() -> None:
    evaluate = evaluator_on(SAMPLE, squared, None, 400)
    found = trial(candidate_intervals(SAMPLE, ["k", "x"]), evaluate)
    assert found is not None
    assert found.field == "x"
    assert evaluate(found).hit == 1
    assert evaluate(found).harm == 0


def test_a_tried_field_gives_intervals_for_all_cells() -> None:
    field = tried_field(SAMPLE, ["k", "x"], squared, 0, 400)
    assert isinstance(field, TriedField)
    assert field.field == "x"
    interval = field.interval(100, 900)
    dropped = {row["x"] for row in SAMPLE if within(row["x"], interval.low, interval.high)}
    assert dropped == set(range(10, 30))
    nothing = field.interval(5000, 6000)
    assert nothing.low == nothing.high


def test_windows_can_be_tried_too() -> None:
    network = Network("windows")
    reports = network.stream("reports", "t int, pos int", progress=Ordered("t"))
    counts = reports.aggregate(
        name="counts", order=Order("t"), window=Window(size=10), far="max(pos) * max(pos)"
    )
    network.output("out", counts)
    rows = [{"t": n, "pos": n // 10 % 20} for n in range(400)]

    def run(sample: Sequence[Mapping[str, Any]]) -> list[float | None]:
        reference = Reference(network)
        for row in sample:
            reference.push("reports", row)
        reference.end()
        return [float(row["far"]) for row in reference.collected("out")]

    found = tried_field(rows, ["t", "pos"], run, 0, 100)
    assert found is not None
    assert found.field == "pos"
    interval = found.interval(0, 100)
    assert {n for n in range(20) if within(n, interval.low, interval.high)} == set(range(10))


def test_a_field_that_tells_nothing_is_not_found() -> None:
    def noise(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
        return [float(row["x"] * 7919 % 101) for row in rows]

    assert tried_field(SAMPLE, ["k"], noise, 0, 50) is None
    assert candidate_intervals([{"s": "a"}], ["s"]) == []


def test_trial_is_asked_if_backwards_does_not_reach_the_first_arc() -> None:
    network = Network("squares")
    arc = network.stream("reports", FIELDS).map(name="squared", keep=("k",), x="x * x")
    network.output("out", arc)
    asked: list[tuple[str, str]] = []

    def find(output: str, on: str) -> TriedField | None:
        asked.append((output, on))
        return tried_field(SAMPLE, ["x"], squared, 0, 400)

    carry = interval_carrier(network.check(), {"out": ("squared", "x")}, find)
    found = carry("out", {"reports"})
    assert asked == [("out", "reports")]
    assert found is not None
    assert found["reports"].field == "x"
