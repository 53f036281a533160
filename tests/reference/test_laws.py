"""What holds whatever arrives: the papers' identities, and that promises are kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from auroral import Delayed, Network, Order, Punctuated, Window
from auroral.boxes import Union
from auroral.reference import Reference
from auroral.reference.progress.marks import END, group_key, number
from auroral.testing import run

TIMES = st.integers(-4, 25)
ROWS = st.lists(st.tuples(TIMES, st.sampled_from(["a", "b", None])), max_size=25)
BY: st.SearchStrategy[tuple[str, ...]] = st.sampled_from([(), ("g",)])
SLACKS = st.integers(0, 4)
RANGES = st.tuples(st.integers(-5, 5), st.integers(-5, 5)).filter(lambda band: sum(band) >= 0)
WINDOWS = st.builds(
    Window, size=st.integers(1, 9), advance=st.none() | st.integers(1, 12) | st.just("t % 5 = 0")
)


def frozen(rows: list[dict[str, Any]]) -> list[Any]:
    """Rows that compare whatever the order of the tuples in a window."""
    return [
        tuple(tuple(sorted(v)) if isinstance(v, list) else v for v in row.values()) for row in rows
    ]


# ── paper 1's identities ──


@settings(max_examples=50)
@given(ROWS, BY, SLACKS, WINDOWS)
def test_an_aggregate_with_slack_is_one_without_over_a_bsort(
    rows: list[Any], by: tuple[str, ...], slack: int, window: Window
) -> None:
    net = Network("identity")
    s = net.stream("s", schema="t int, g string")
    compute = {"all": "collect_list(t)", "n": "count(*)"}
    slackly, strictly = Order("t", slack=slack, by=by), Order("t", slack=0, by=by)
    net.output("one", s.aggregate(slackly, window, **compute, name="slackly"))
    sorted_ = s.bsort(slackly)
    net.output("other", sorted_.aggregate(strictly, window, **compute, name="strictly"))
    for hold in (False, True):
        out = run(net, {"s": rows}, hold=hold)
        assert frozen(out["one"]) == frozen(out["other"])
    assert Counter(frozen(out["slackly.late"])) == Counter(frozen(out["strictly.late"]))


@settings(max_examples=50)
@given(ROWS, ROWS, BY, SLACKS, SLACKS, st.integers(0, 5))
def test_a_join_with_slack_is_one_without_over_bsorts(
    left: list[Any], right: list[Any], by: tuple[str, ...], n: int, m: int, within: int
) -> None:
    net = Network("identity")
    one, other = (net.stream(name, schema="t int, g string") for name in "lr")
    slacks, strict = [Order("t", slack=k, by=by) for k in (n, m)], Order("t", slack=0, by=by)
    how: dict[str, Any] = {"on": "left.g <=> right.g", "within": within}
    net.output("o1", one.join(other, **how, left=slacks[0], right=slacks[1]))
    sorts = [arc.bsort(order) for arc, order in zip((one, other), slacks, strict=True)]
    net.output("o2", sorts[0].join(sorts[1], **how, left=strict, right=strict))
    out = run(net, {"l": left, "r": right})
    assert Counter(frozen(out["o1"])) == Counter(frozen(out["o2"]))


@settings(max_examples=50)
@given(ROWS, ROWS, RANGES, SLACKS)
def test_a_join_is_what_its_definition_says(
    left: list[Any], right: list[Any], band: tuple[int, int], slack: int
) -> None:
    net = Network("definition")
    one, other = (net.stream(name, schema="t int, g string") for name in "lr")
    order = Order("t", slack=slack)
    net.output("o", one.join(other, left=order, right=order, range=band))

    def taken(rows: list[Any]) -> list[Any]:
        above = [sum(u[0] > t[0] for u in rows[:at]) for at, t in enumerate(rows)]
        return [t for t, more in zip(rows, above, strict=True) if more <= slack]

    pairs = [
        (*t, *u)
        for t in taken(left)
        for u in taken(right)
        if t[0] - band[0] <= u[0] <= t[0] + band[1]
    ]
    assert Counter(frozen(run(net, {"l": left, "r": right})["o"])) == Counter(pairs)


# ── progress ──

EVENT = st.tuples(
    st.sampled_from(["l", "r"]), st.booleans(), st.integers(0, 20), st.sampled_from(["a", "b"])
)


def boxes(net: Network, by: tuple[str, ...], progress: Any, band: Any, kind: str) -> None:
    """Boxes over times of a kind: whole numbers, or tenths as doubles."""

    def length(number: int) -> Any:
        return number if kind == "int" else number / 10

    schema = f"t {kind}, g string"
    left, right = (net.stream(name, schema=schema, progress=progress) for name in "lr")
    order = Order("t", by=by)
    tumbling = Window(size=length(4))
    sliding = Window(size=length(5), advance=length(3), timeout=10)
    counts = left.aggregate(order, tumbling, n="count(*)", name="tumbling")
    counts.aggregate(order, Window(size=length(8)), n="sum(n)", name="again")
    left.aggregate(order, sliding, n="count(*)", name="sliding")
    left.aggregate(order, tumbling, late="revise", history=length(3), n="count(*)", name="revising")
    left.bsort(order, name="sorted")
    left.union(right).dedup("g", order=order, name="deduped")
    reach = (length(band[0]), length(band[1]))
    pairs = left.join(right, left=order, right=order, range=reach, name="joined")
    per = Order("right_t", by=("t",))
    pairs.aggregate(per, tumbling, n="count(*)", name="jointly")
    near = length(2)
    left.resample(right, left=order, right=order, within=near, n="count(*)", name="resampled")
    left.wait_for(right, "held.g = signal.g", timeout=3, name="waited")


def require_kept(reference: Reference, arc: str, before: Any, seen: int) -> None:
    """Nothing came below what was promised before."""
    schema = reference.checked.arcs[arc].schema
    for row in reference.collected(arc)[seen:]:
        for attribute, promise in before.items():
            mark = promise.of(group_key(tuple(row[name] for name in promise.by)))
            value = number(row[attribute], schema.field(attribute).type)
            assert mark is None or value >= mark, (arc, attribute, row, mark)


def require_no_less(arc: str, before: Any, after: Any) -> None:
    for attribute, promise in before.items():
        for group, mark in [*promise.marks.items(), (("new",), promise.others)]:
            later = after[attribute].of(group)
            assert mark is None or later >= mark, (arc, attribute, group)


@pytest.mark.parametrize("kind", ["int", "double"])
@settings(max_examples=40)
@given(
    st.lists(EVENT, max_size=30),
    BY,
    st.sampled_from([Delayed("t", 3), Punctuated("t"), Delayed("t", 1, by=("g",), heartbeat=9)]),
    RANGES,
)
# Doubles: 1.7 + 0.5 is 2.2, but 2.2 - 0.5 is above 1.7.
@example(
    [("l", False, 17, "a"), ("l", True, 20, "a"), ("r", True, 22, "a"), ("r", False, 22, "a")],
    (),
    Punctuated("t"),
    (5, 5),
)
def test_promises_never_go_back_and_are_kept(
    kind: str, events: list[Any], by: tuple[str, ...], progress: Any, band: tuple[int, int]
) -> None:
    net = Network("laws")
    boxes(net, by, progress, band, kind)
    reference = Reference(net)
    # A tuple below its stream's mark goes through boxes that keep no state as it is.
    arcs = [name for name, box in net.boxes.items() if not isinstance(box, Union)]
    if not set(progress.by) <= set(by):
        arcs.remove("deduped")  # it takes what is above the least mark, and passes all of them on
    for time, (stream, tells, at, g) in enumerate(events):
        t = at if kind == "int" else at / 10
        before = reference.promised()
        seen = {arc: len(reference.collected(arc)) for arc in arcs}
        if tells:
            reference.punctuate(stream, t, (g,) if progress.by else (), at=time)
        else:
            reference.push(stream, (t, g), at=time)
        after = reference.promised()
        for arc in arcs:
            require_kept(reference, arc, before[arc], seen[arc])
            require_no_less(arc, before[arc], after[arc])
    seen = {arc: len(reference.collected(arc)) for arc in arcs}
    before = reference.promised()
    reference.end()
    for arc in arcs:
        require_kept(reference, arc, before[arc], seen[arc])
        assert all(p.least() == END for p in reference.promises(arc).values())
        assert reference.held(arc) == 0


@settings(max_examples=50)
@given(st.lists(st.tuples(TIMES, st.integers(0, 3)), max_size=25), WINDOWS)
def test_disorder_within_the_delay_gives_the_same_windows(rows: list[Any], window: Window) -> None:
    net = Network("disorder")
    s = net.stream("s", schema="t int", progress=Delayed("t", 3))
    net.output("o", s.aggregate(Order("t"), window, all="collect_list(t)", name="w"))
    in_order = sorted(t for t, _ in rows)
    # Each tuple arrives as if it had been under way for up to as long as the delay.
    delayed = [t for t, late in sorted(rows, key=lambda row: row[0] + row[1])]
    one, other = (run(net, {"s": [(t,) for t in ts]}) for ts in (in_order, delayed))
    assert Counter(frozen(one["o"])) == Counter(frozen(other["o"]))
    assert one["w.late"] == other["w.late"] == []
