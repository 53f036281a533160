"""What bsort and dedup mean, by tables one can check in one's head."""

from __future__ import annotations

import math
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Ordered, Punctuated
from auroral.reference import Reference
from auroral.testing import punctuation, run


def values(rows: list[dict[str, Any]]) -> list[Any]:
    return [tuple(row.values()) for row in rows]


def sorting(order: Order, *, schema: str = "t int, x string", progress: Any = None) -> Network:
    net = Network("n")
    net.output("o", net.stream("s", schema=schema, progress=progress).bsort(order, name="b"))
    return net


@pytest.mark.parametrize(
    ("slack", "given", "left"),
    [
        (0, [3, 1, 2], [3, 1, 2]),
        (1, [3, 1, 2, 9], [1, 2, 3]),
        (1, [3, 2, 1, 9], [2, 1, 3]),
        (3, [3, 2, 1], []),
    ],
)
def test_the_least_of_slack_plus_one_leaves(slack: int, given: list[int], left: list[int]) -> None:
    rows = [(t, None) for t in given]
    out = run(sorting(Order("t", slack=slack)), {"s": rows}, hold=True)
    assert [row["t"] for row in out["o"]] == left
    assert out.reference.held("b") == len(given) - len(left)


def test_equal_ones_leave_in_order_of_arrival() -> None:
    rows = [(2, "a"), (2, "b"), (1, "c"), (2, "d")]
    assert values(run(sorting(Order("t", slack=2)), {"s": rows})["o"]) == [
        *((1, "c"), (2, "a"), (2, "b"), (2, "d"))
    ]


def test_each_group_has_a_buffer() -> None:
    rows = [(5, "a"), (1, "b"), (4, "a"), (0, "b")]
    reference = Reference(sorting(Order("t", slack=1, by=("x",))))
    for row in rows:
        reference.push("s", row)
    assert values(reference.collected("o")) == [(4, "a"), (0, "b")]
    reference.end()
    assert values(reference.collected("o"))[2:] == [(1, "b"), (5, "a")]


def test_with_slack_nothing_is_lost_null_first_and_nan_last() -> None:
    rows = [(math.nan,), (math.inf,), (None,), (-0.0,), (0.0,), (-math.inf,)]
    out = run(sorting(Order("t", slack=9), schema="t double"), {"s": rows})
    shown = [None, -math.inf, -0.0, 0.0, math.inf, math.nan]
    assert repr([row["t"] for row in out["o"]]) == repr(shown)
    assert out.reference.late == {}


def test_by_punctuation_what_the_mark_has_passed_leaves_in_order() -> None:
    reference = Reference(sorting(Order("t"), progress=Punctuated("t")))
    for row in [(5, "a"), (3, "b"), (4, "c"), (3, "d"), (None, "e")]:
        reference.push("s", row)
    reference.punctuate("s", 4)
    assert values(reference.collected("o")) == [(3, "b"), (3, "d")]
    reference.push("s", (3, "f"))
    reference.push("s", (4, "g"))
    assert reference.held("b") == 3
    reference.end()
    assert values(reference.collected("o"))[2:] == [(4, "c"), (4, "g"), (5, "a")]
    assert values(reference.collected("b.late")) == [(None, "e"), (3, "f")]
    assert reference.late == {("b", "null"): 1, ("b", "late"): 1}


def test_sorting_keeps_a_tuple_as_old_as_it_was() -> None:
    reference = Reference(sorting(Order("t", slack=1)))
    for time, t in ((1, 9), (2, 3), (3, 4)):
        reference.push("s", (t, None), at=time)
    assert [made.entered_us for made in reference.tuples("o")] == [2_000_000, 3_000_000]


@pytest.mark.parametrize(
    ("order", "promised"),
    [(Order("t"), {"t": 7}), (Order("t", slack=1), {}), (Order("u"), {})],
)
def test_only_the_promise_of_the_order_itself_still_holds(
    order: Order, promised: dict[str, int]
) -> None:
    reference = Reference(sorting(order, schema="t int, u int", progress=Ordered("t")))
    reference.push("s", (7, 1))
    found = {name: promise.of(()) for name, promise in reference.promises("b").items()}
    assert found == promised


def test_a_sort_that_waits_for_all_groups_promises_their_least() -> None:
    progress = Punctuated("t", by=("x",), heartbeat=100)
    for by, expected in ((("x",), 9), ((), -80)):
        net = sorting(Order("t", by=by), progress=progress)
        reference = Reference(net)
        reference.push("s", (5, "a"), at=20)
        reference.punctuate("s", 9, ("a",))
        assert reference.mark("b", "t", ("a",)) == expected
        assert len(reference.collected("o")) == (1 if by else 0)


# ── dedup ──


def dedup(order: Order, *, progress: Any = None) -> Network:
    net = Network("n")
    s = net.stream("s", schema="k double, t int, g string", progress=progress)
    net.output("o", s.dedup("k", order=order, name="d"))
    return net


def test_the_first_of_tuples_alike_passes_until_the_mark_has_passed_it() -> None:
    rows: list[Any] = [(1, 5, "a"), (1, 6, "b"), (2, 7, "c"), (1, 9, "d"), (1, 4, "e")]
    rows += [punctuation(6), (1, 8, "f"), (2, 8, "g"), (3, 5, "h"), (1, 8, "i")]
    out = run(dedup(Order("t"), progress=Punctuated("t")), {"s": rows}, hold=True)
    assert "".join(row["g"] for row in out["o"]) == "acf"
    assert [row["g"] for row in out["d.late"]] == ["h"]
    assert out.reference.late == {("d", "late"): 1, ("d", "duplicate"): 5}
    assert out.reference.held("d") == 2
    assert out.reference.mark("d", "t") == 6


def test_with_slack_what_the_threshold_has_passed_is_forgotten() -> None:
    rows = [(1, 5, "a"), (2, 9, "b"), (1, 6, "c"), (3, 8, "d"), (1, 8, "e"), (1, 7, "f")]
    out = run(dedup(Order("t", slack=1)), {"s": rows}, hold=True)
    # After 9 and 8 the threshold is 8: the key that passed at 5 is forgotten.
    assert "".join(row["g"] for row in out["o"]) == "abde"
    assert [row["g"] for row in out["d.late"]] == ["f"]


def test_keys_are_alike_as_groups_are() -> None:
    keys = [math.nan, None, -0.0, math.nan, 0.0, None]
    rows = [(k, 1, str(at)) for at, k in enumerate(keys)]
    out = run(dedup(Order("t")), {"s": rows})
    assert "".join(row["g"] for row in out["o"]) == "012"


def test_a_key_is_remembered_by_the_group_it_passed_in() -> None:
    rows = [(1, 5, "a"), (2, 9, "b"), (1, 3, "b"), (3, 7, "a"), (1, 3, "c")]
    out = run(dedup(Order("t", slack=0, by=("g",))), {"s": rows}, hold=True)
    assert [(row["k"], row["g"]) for row in out["o"]] == [(1, "a"), (2, "b"), (3, "a"), (1, "c")]
    assert [row["t"] for row in out["d.late"]] == [3]


def test_dedup_passes_what_its_input_promises() -> None:
    out = run(dedup(Order("t", slack=0), progress=Delayed("t", 2)), {"s": [(1, 5, "")]}, hold=True)
    assert out.reference.mark("d", "t") == 3
    assert out.reference.promises("d.late") == {}
