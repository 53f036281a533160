"""Expressions that keep order: what they make of marks, and that data keep to it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from auroral.errors import AuroralError
from auroral.network.types import Schema
from auroral.progress.lowwater import GroupedLowWater, LowWater, as_values
from auroral.progress.monotone import derived
from auroral.progress.propagation import Promises
from auroral.progress.values import to_mark
from auroral.reference.progress import derived as naive
from auroral.reference.progress.marks import JointMark, Promise
from auroral.sql.expressions import monotone
from auroral.sql.expressions.expression import analyze, evaluator
from auroral.sql.expressions.monotone import order_kept

SCHEMA = Schema.parse(
    "y tinyint, i int, b bigint, f float, d double, c decimal(10,2), e date, t timestamp,"
    " n timestamp_ntz"
)
DAY = 86_400_000_000


def mark(text: str, *steps: Any, field: str | None = None) -> list[Any] | None:
    """The marks of an expression after marks of the one field that it reads."""
    how = order_kept(text, SCHEMA)
    if how is None:
        return None
    name = field or analyze(text, SCHEMA).fields[0]
    found = derived({name: LowWater.of(list(enumerate(steps)))}, {"made": how})
    return [value for _, value in found["made"].steps()] if "made" in found else None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("i + 5", 10, 15),
        ("5 + i", 10, 15),
        ("i - 5", 10, 5),
        ("i * 2", 10, 20),
        ("2 * i", -10, -20),
        ("i div 60", 119, 1),
        ("i div 60", -61, -1),
        ("i / 60", 90, 1.5),
        ("floor(i / 60) * 60", 119, 60),
        ("floor(d)", -0.5, -1),
        ("ceil(d)", 0.5, 1),
        ("round(d)", 2.5, 3.0),
        ("round(i, -1)", 15, 20),
        ("bround(i, -1)", 25, 20),
        ("cast(i as bigint)", 7, 7),
        ("bigint(y)", 7, 7),
        ("cast(i as double)", 7, 7.0),
        ("cast(d as int)", -1.5, -1),
        ("cast(c as int)", 199, 1),
        ("c + 1", 150, 250),
        ("c * 2", 150, 300),
        ("i + 0.5", 1, 15),
        ("date_trunc('minute', t)", 61_000_000, 60_000_000),
        ("date_trunc('MONTH', t)", 32 * DAY, 31 * DAY),
        ("t + INTERVAL 5 SECONDS", 1, 5_000_001),
        ("INTERVAL 5 SECONDS + t", 1, 5_000_001),
        ("t - INTERVAL '1' DAY", 0, -DAY),
        ("n + INTERVAL 2 HOURS", 0, 2 * 3600 * 1_000_000),
        ("e + 3", 4, 7),
        ("date_add(e, 3)", 4, 7),
        ("add_months(e, 1)", 30, 58),
        ("e + INTERVAL 1 MONTH", 30, 58),
        ("cast(t as date)", DAY + 1, 1),
        ("to_date(t)", DAY - 1, 0),
        ("cast(e as timestamp)", 2, 2 * DAY),
        ("cast(t as bigint)", -1, -1),
        ("unix_timestamp(t)", -1, 0),
        ("unix_seconds(t)", -1, -1),
        ("unix_millis(t)", 1_999, 1),
        ("timestamp_millis(b)", 5, 5_000),
        ("cast(b as timestamp)", 5, 5_000_000),
        ("cast(t as double)", 1_500_000, 1.5),
        ("year(t)", 366 * DAY, 1971),
        ("trunc(e, 'month')", 45, 31),
        ("date_trunc('hour', t + INTERVAL 30 MINUTES)", 45 * 60 * 1_000_000, 3600 * 1_000_000),
        ("least(i + 1, i * 2)", 10, 11),
        ("greatest(i + 1, i * 2)", 10, 11),
    ],
)
def test_a_mark_goes_through(text: str, before: Any, after: Any) -> None:
    assert mark(text, before) == [after]


@pytest.mark.parametrize(
    "text",
    [
        "-i",
        "5 - i",
        "i * -2",
        "i * 0",
        "i / -1",
        "60 div i",
        "i % 60",
        "abs(i)",
        "i * i",
        "i + b",
        "i + NULL",
        "i - i",
        "t + INTERVAL 1 MONTH",
        "month(t)",
        "cast(i as string)",
        "cast(cast(i as string) as int)",
        "coalesce(i, 0)",
        "if(i > 3, i, 0)",
        "d + double('Infinity')",
        "least(i, -i)",
    ],
)
def test_a_mark_does_not_go_through(text: str) -> None:
    assert mark(text, 10) is None


def test_at_the_ends_of_a_type_marks_stay_where_data_wrap_round() -> None:
    top = 2**31 - 1
    assert mark("i + 5", top - 6, top - 5, top - 4, top) == [top - 1, top]
    assert mark("i * 2", -(2**31), 0, 2**30 - 1, 2**30) == [-(2**31), 0, top - 1, top]
    assert mark("cast(b as int)", top, 2**40) == [top]
    assert mark("i - 5", -(2**31)) == [-(2**31)]
    assert mark("b - 5", -(2**63), 2**63 - 1) == [-(2**63), 2**63 - 6]


def test_a_mark_between_values_is_as_good_as_the_next_value() -> None:
    assert mark("i * 2", 4.5) == [10]
    assert mark("y * 1", -(10**6), 4.5, math.inf) == [-128, 5, 127]


def test_greatest_of_a_pair_promises_what_either_side_has_reached() -> None:
    marks = {"i": LowWater.of([(1, 3)]), "b": LowWater.of([(1, 2)])}
    jointly = Promises(
        marks,
        {("i", "b"): (LowWater.of([(1, 8)]), LowWater.of([(1, 9)]))},
    )
    greatest, lowest = order_kept("greatest(i, b)", SCHEMA), order_kept("least(i, b)", SCHEMA)
    assert greatest is not None
    assert lowest is not None
    assert derived(marks, {"m": greatest})["m"].steps() == [(1, 2)]  # type: ignore[union-attr]
    assert derived(jointly, {"m": greatest})["m"].steps() == [(1, 8)]  # type: ignore[union-attr]
    assert derived(jointly, {"m": lowest})["m"].steps() == [(1, 2)]  # type: ignore[union-attr]
    # Beside something else of which nothing is known, both are there still.
    more = order_kept("greatest(i, b, 7 - i)", SCHEMA)
    assert more is not None
    assert derived(jointly, {"m": more})["m"].steps() == [(1, 8)]  # type: ignore[union-attr]
    assert "m" not in derived(marks, {"m": more})


def test_a_pair_of_computed_fields_has_a_joint_mark() -> None:
    pair = Promises({}, {("i", "b"): (LowWater.of([(1, 60)]), LowWater.of([(1, 9)]))})
    minute, later = order_kept("i div 60", SCHEMA), order_kept("b + 1", SCHEMA)
    assert minute is not None
    assert later is not None
    made = derived(pair, {"minute": minute, "later": later})
    assert isinstance(made, Promises)
    own, other = made.joint["minute", "later"]
    assert (own.steps(), other.steps()) == ([(1, 1)], [(1, 10)])


def test_groups_keep_marks_of_their_own_if_their_fields_stay() -> None:
    grouped = GroupedLowWater(("y",), {(1,): LowWater.of([(1, 60)])}, LowWater.of([(1, 0)]))
    minute, copied = order_kept("i div 60", SCHEMA), order_kept("y", SCHEMA)
    assert minute is not None
    assert copied is not None
    found = derived({"i": grouped}, {"minute": minute, "g": copied})["minute"]
    assert isinstance(found, GroupedLowWater)
    assert (found.by, found.of((1,)).steps(), found.others.steps()) == (("g",), [(1, 1)], [(1, 0)])
    assert "minute" not in derived({"i": grouped}, {"minute": minute})


# ── random expressions over random data ──

EPOCH = datetime(1970, 1, 1)
DATA: dict[str, st.SearchStrategy[Any]] = {
    "y": st.integers(-100, 100),
    "i": st.integers(-(10**5), 10**5),
    "b": st.integers(-(10**5), 10**5),
    "f": st.floats(-1e4, 1e4, width=32),
    "d": st.floats(-1e6, 1e6),
    "c": st.integers(-(10**8), 10**8).map(lambda n: Decimal(n) / 100),
    "e": st.integers(-2000, 40000).map(lambda n: date(1970, 1, 1) + timedelta(days=n)),
    "t": st.integers(-(10**12), 3 * 10**15).map(
        lambda n: EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=n)
    ),
    "n": st.integers(-(10**12), 3 * 10**15).map(lambda n: EPOCH + timedelta(microseconds=n)),
}
STEPS = (
    "{} + 5",
    "7 + {}",
    "{} - 3",
    "{} * 2",
    "1.5 * {}",
    "{} / 7",
    "{} div 60",
    "{} + 2.25D",
    "floor({})",
    "ceil({})",
    "round({})",
    "round({}, 1)",
    "bround({}, -1)",
    "cast({} as bigint)",
    "cast({} as int)",
    "cast({} as double)",
    "cast({} as float)",
    "cast({} as decimal(20, 3))",
    "cast({} as date)",
    "cast({} as timestamp)",
    "date_trunc('minute', {})",
    "date_trunc('week', {})",
    "{} + INTERVAL 90 SECONDS",
    "{} - INTERVAL 1 DAY",
    "{} + INTERVAL 1 MONTH",
    "unix_timestamp({})",
    "unix_seconds({})",
    "unix_date({})",
    "add_months({}, 1)",
    "last_day({})",
    "trunc({}, 'year')",
    "year({})",
    "positive({})",
    "greatest({0}, {0})",
    "least({0}, {0})",
)


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, str]:
    """A field, and functions of it that Spark has."""
    field = draw(st.sampled_from(list(DATA)))
    text = field
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)):
        longer = step.format(f"({text})")
        try:
            type = analyze(longer, SCHEMA).type
        except AuroralError:
            continue
        if type.is_orderable:
            text = longer
    assume(text != field)
    return field, text


def _marks(values: list[Any], field: str) -> list[Any]:
    scale = SCHEMA.field(field).type.scale
    return sorted({to_mark(value, scale) for value in values})


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(expressions(), st.data())
def test_nothing_comes_below_the_mark_of_an_expression(
    expression: tuple[str, str], data: st.DataObject
) -> None:
    field, text = expression
    how = order_kept(text, SCHEMA)
    if how is None:
        # Months are not kept of timestamps, `div` not of decimals; a date is no number.
        row = dict.fromkeys(SCHEMA.names) | {field: data.draw(DATA[field])}
        assert "1 MONTH" in text or "div" in text or evaluator(text, SCHEMA)(row) is None
        return
    values = data.draw(st.lists(DATA[field], min_size=2, max_size=12))
    marks = _marks(values, field)
    steps = list(enumerate(marks))
    run, scale = evaluator(text, SCHEMA), analyze(text, SCHEMA).type.scale
    found = derived({field: LowWater.of(steps)}, {"made": how})["made"]
    assert isinstance(found, LowWater)
    for value in values:
        made = run(dict.fromkeys(SCHEMA.names) | {field: value})
        when = marks.index(to_mark(value, SCHEMA.field(field).type.scale))
        promised = found.at(when)
        assert promised is not None
        if made is not None:
            # Not below, and equal: nothing is promised too little.
            assert to_mark(made, scale) == promised


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(expressions(), st.lists(st.integers(-(2**62), 2**62) | st.integers(-99, 99), max_size=9))
def test_the_reference_promises_the_same(expression: tuple[str, str], given: list[int]) -> None:
    field, text = expression
    type = SCHEMA.field(field).type
    low, high = monotone.limits(type)
    if not type.is_integral and math.isfinite(low):
        given = [min(max(value, low), high) for value in given]
    values: list[Any] = sorted(set(given))
    if math.isinf(low):
        values = [float(value) for value in values]
    how, chain = order_kept(text, SCHEMA), naive.order_kept(text, SCHEMA)
    assert (how is None) == (chain is None)
    if how is None or chain is None:
        return
    for value in values:
        found = derived({field: LowWater.of([(0, value)])}, {"made": how})["made"]
        assert isinstance(found, LowWater)
        promise = chain.promise({field: Promise((), {(): value})})
        assert promise is not None
        assert found.latest == promise.least()


def test_the_reference_promises_the_same_of_pairs() -> None:
    for own, other in [(8, 9), (9, 8), (None, 3)]:
        promises = {
            "i": Promise((), {(): 3}, joint=(JointMark("b", own, other),)),
            "b": Promise((), {(): 2}, joint=(JointMark("i", other, own),)),
        }
        chain = naive.order_kept("greatest(i, b * 2) + 1", SCHEMA)
        assert chain is not None
        found = chain.promise(promises)
        assert found is not None
        twice = 2 * other
        assert found.least() == 1 + max(3, 4, 0 if own is None else min(own, twice))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(expressions(), st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=20))
def test_arrays_of_marks_give_what_values_give(
    expression: tuple[str, str], given: list[int]
) -> None:
    field, text = expression
    low, high = monotone.limits(SCHEMA.field(field).type)
    values = sorted({min(max(value, low), high) for value in given})
    how = order_kept(text, SCHEMA)
    if how is None:
        return
    steps = LowWater(np.arange(len(values)), as_values(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monotone, "vectorised", lambda *_: None)
        order_kept.cache_clear()
        slow = order_kept(text, SCHEMA)
        order_kept.cache_clear()
    assert slow is not None
    one, other = (derived({field: steps}, {"m": made})["m"] for made in (how, slow))
    assert one == other
