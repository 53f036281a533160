"""What windows mean, by tables one can check in one's head."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from auroral import Delayed, Order, Ordered, Punctuated, Window
from auroral.network.function import Function
from auroral.reference import Reference
from auroral.testing import punctuation

from .windowing import Rows, at, counted, shown, values, windowed

# ── where windows lie ──


@pytest.mark.parametrize(
    ("size", "advance", "expected"),
    [
        (10, None, [(-10, [-1]), (0, [0, 9]), (10, [10])]),
        (10, 5, [(-10, [-1]), (-5, [-1, 0]), (0, [0, 9]), (5, [9, 10]), (10, [10])]),
        (3, 10, [(0, [0]), (10, [10])]),
        (1, None, [(-1, [-1]), (0, [0]), (9, [9]), (10, [10])]),
    ],
)
def test_windows_start_at_multiples_of_advance(
    size: int, advance: int | None, expected: Rows
) -> None:
    out = counted(Order("t", slack=0), Window(size=size, advance=advance), [-1, 0, 9, 10])
    assert values(out["o"]) == expected


def test_a_tuple_between_windows_is_outside_not_late() -> None:
    out = counted(Order("t"), Window(size=3, advance=10), [1, 5, 12, 18])
    assert shown(out) == ([(0, [1]), (10, [12])], [], {"outside": 2})


DAY = datetime(2024, 1, 1, tzinfo=UTC)
WEEKS = [date(1969, 12, 25), date(1970, 1, 8)]
HALVES = [Decimal("-0.50"), Decimal("1.00")]


@pytest.mark.parametrize(
    ("type", "size", "given", "starts"),
    [
        ("timestamp", "1 day", [DAY.replace(hour=5)], [DAY]),
        ("timestamp_ntz", "1 h", [datetime(1969, 12, 31, 23, 30)], [datetime(1969, 12, 31, 23)]),
        ("date", "7 days", [date(1970, 1, 9), date(1969, 12, 31)], WEEKS),
        ("decimal(8,2)", 0.5, [Decimal("1.23"), Decimal("-0.01")], HALVES),
        ("double", 0.1, [0.3, 0.7, -0.05], [-0.1, 0.2, 0.6000000000000001]),
        ("float", 0.5, [0.75], [0.5]),
        ("tinyint", 100, [-128, 127], [None, 100]),
    ],
)
def test_starts_are_values_of_the_field(
    type: str, size: Any, given: list[Any], starts: list[Any]
) -> None:
    order, window = Order("t"), Window(size=size)
    out = counted(order, window, given, schema=f"t {type}")
    assert [row["t"] for row in out["o"]] == starts
    assert [row.__class__ for row in starts] == [row["t"].__class__ for row in out["o"]]


# ── slack ──


@pytest.mark.parametrize(
    ("slack", "given", "windows", "late"),
    [
        (0, [1, 12, 9], [(0, [1])], [9]),
        (1, [1, 12, 9], [], []),
        (1, [1, 12, 9, 13], [(0, [1, 9])], []),
        (1, [1, 12, 13, 9], [(0, [1])], [9]),
        (1, [1, 10, 10, 9], [(0, [1])], [9]),
        (2, [1, 12, 13, 9], [], []),
        (0, [5, 5, 5], [], []),
        (0, [15, 12, 20], [(10, [15])], [12]),  # late though its window is open
        (2, [25, 3, 14, 30, 30, 30], [(0, [3]), (10, [14]), (20, [25])], []),
    ],
)
def test_a_window_closes_when_slack_plus_one_tuples_have_reached_its_end(
    slack: int, given: list[int], windows: Rows, late: list[int]
) -> None:
    out = counted(Order("t", slack=slack), Window(size=10), given, hold=True)
    assert shown(out) == (windows, late, {"late": len(late)} if late else {})


def test_each_group_has_its_own_slack_and_windows() -> None:
    rows = [("b", 1), ("a", 12), (None, 3), ("a", 5), ("b", 11), (None, 14)]
    order = Order("t", slack=0, by=("g",))
    out = counted(order, Window(size=10), rows, schema="g string, t int")
    assert values(out["o"]) == [
        *((0, "b", [1]), (0, None, [3])),
        *((10, None, [14]), (10, "a", [12]), (10, "b", [11])),
    ]
    assert values(out["w.late"]) == [("a", 5)]


def test_groups_are_those_of_spark() -> None:
    rows = [(1, math.nan), (2, -0.0), (3, math.nan), (4, 0.0), (5, None), (6, math.inf)]
    order = Order("t", slack=0, by=("g",))
    out = counted(order, Window(size=10), rows, schema="t int, g double")
    assert repr(values(out["o"])) == repr(
        [(0, None, [5]), (0, 0.0, [2, 4]), (0, math.inf, [6]), (0, math.nan, [1, 3])]
    )


def test_what_has_no_place_in_the_order_is_late() -> None:
    rows = [1.0, None, math.nan, math.inf, -math.inf, 2.0]
    out = counted(Order("t", slack=0), Window(size=10), rows, schema="t double")
    assert values(out["o"]) == [(0.0, [1.0, 2.0])]
    assert out.reference.late == {("w", "null"): 1, ("w", "nan"): 3}
    assert len(out["w.late"]) == 4


# ── punctuation ──


def test_windows_close_when_the_mark_reaches_their_end() -> None:
    net = windowed(Order("t"), Window(size=10), progress=Delayed("t", 3))
    reference = Reference(net)
    seen = []
    for t in (1, 12, 9, 13, 8, 12, 23):
        reference.push("s", [t])
        seen.append(values(reference.collected("o")))
    closed = [(0, [1, 9])]
    assert seen == [[], [], [], closed, closed, closed, [*closed, (10, [12, 13, 12])]]
    assert reference.collected("w.late") == [{"t": 8}]


def test_a_tuple_counts_in_those_of_its_windows_that_are_open() -> None:
    rows = [7, punctuation(12), 8, 4]
    out = counted(
        Order("t"), Window(size=10, advance=5), rows, schema="t int", progress=Punctuated("t")
    )
    assert shown(out) == ([(0, [7]), (5, [7, 8])], [4], {"late": 1})


def test_a_tuple_does_not_see_its_own_mark() -> None:
    out = counted(Order("t"), Window(size=1), [5, 5, 4, 7], progress=Ordered("t"), hold=True)
    assert shown(out) == ([(5, [5, 5])], [4], {"late": 1})


def test_without_any_promise_windows_close_at_the_end() -> None:
    given = [12, 3, 25]
    assert values(counted(Order("t"), Window(size=10), given, hold=True)["o"]) == []
    out = counted(Order("t"), Window(size=10), given)
    assert values(out["o"]) == [(0, [3]), (10, [12]), (20, [25])]


def test_a_mark_by_groups_the_box_does_not_tell_apart_counts_as_its_least() -> None:
    schema, progress = "g string, t int", Punctuated("t", by=("g",), heartbeat=10)
    rows = [
        at(0, 1, g="a"),
        punctuation(30, g="a", at=1),
        at(2, 2, g="b"),
        at(25, 35, g="a"),
    ]
    out = counted(Order("t"), Window(size=10), rows, schema=schema, progress=progress, hold=True)
    assert values(out["o"]) == [(0, [1, 2])]  # 25 − 10 holds of groups never seen as well


# ── tuple numbers ──


@pytest.mark.parametrize(
    ("size", "advance", "expected"),
    [
        (2, None, [(1, [7, 3]), (3, [9, 1])]),
        (2, 1, [(1, [7, 3]), (2, [3, 9]), (3, [9, 1]), (4, [1, 2])]),
        (1, 2, [(1, [7]), (3, [9]), (5, [2])]),
    ],
)
def test_windows_of_tuples_close_when_they_are_full(
    size: int, advance: int | None, expected: Rows
) -> None:
    window = Window(size=size, advance=advance)
    out = counted(Order("tup#"), window, [7, 3, 9, 1, 2], hold=True)
    assert values(out["o"]) == expected
    assert values(counted(Order("tup#"), window, [7, 3])["o"])[0][0] == 1


def test_tuples_are_numbered_per_group() -> None:
    rows = [("a", 1), ("b", 2), ("a", 3), ("a", 4)]
    out = counted(Order("tup#", by=("g",)), Window(size=2), rows, schema="g string, t int")
    assert values(out["o"]) == [(1, "a", [1, 3]), (1, "b", [2]), (3, "a", [4])]


# ── align ──


@pytest.mark.parametrize(
    ("slack", "given", "expected"),
    [
        (0, [7, 12, 16, 17], [(7, [7, 12, 16])]),
        (1, [7, 4, 12, 13, 14, 15], [(4, [7, 4, 12, 13])]),
        (1, [7, 3, 5, 13, 14], [(3, [7, 3, 5])]),
        (3, [7, 4], []),
    ],
)
def test_aligned_windows_start_at_the_first_tuple_in_sorted_order(
    slack: int, given: list[int], expected: Rows
) -> None:
    window = Window(size=10, align="first")
    assert values(counted(Order("t", slack=slack), window, given, hold=True)["o"]) == expected


def test_aligned_windows_start_somewhere_at_the_end_at_last() -> None:
    window = Window(size=2, advance=5, align="first")
    out = counted(Order("t", slack=5), window, [7, 4, 9, 6])
    assert shown(out) == ([(4, [4]), (9, [9])], [], {"outside": 2})


# ── predicates ──


@pytest.mark.parametrize(
    ("order", "size", "given", "windows", "reasons"),
    [
        (Order("t", slack=0), None, [1, 10, 12, 20, 25], [(10, [10, 12])], {"outside": 1}),
        (Order("t", slack=1), None, [10, 12, 11, 20, 30, 31], [(10, [10, 11, 12]), (20, [20])], {}),
        (Order("t", slack=0), None, [10, 9, 20], [(10, [10])], {"late": 1}),
        (Order("t", slack=0), 5, [10, 12, 15, 16, 20], [(10, [10, 12])], {"outside": 2}),
        (Order("tup#"), None, [10, 3, 20, 4], [(1, [10, 3])], {}),
        (Order("tup#"), 2, [10, 3, 4, 20], [(1, [10, 3])], {"outside": 1}),
        (Order("t", slack=0), None, [10, 10, 11, 20], [(10, [10]), (10, [10, 11])], {}),
    ],
)
def test_a_predicate_opens_windows(
    order: Order, size: int | None, given: list[int], windows: Rows, reasons: dict[str, int]
) -> None:
    out = counted(order, Window(size=size, advance="t % 10 = 0"), given, hold=True)
    assert (values(out["o"]), shown(out)[2]) == (windows, reasons)


def test_by_punctuation_tuples_are_taken_in_order_once_the_mark_has_passed_them() -> None:
    net = windowed(Order("t"), Window(advance="t % 10 = 0", size=8), progress=Punctuated("t"))
    reference = Reference(net)
    for t in (20, 12, 10, 11, 25, 19):
        reference.push("s", [t])
    assert reference.held("w") == 6
    reference.punctuate("s", 12)
    assert (values(reference.collected("o")), reference.held("w")) == ([], 5)
    reference.punctuate("s", 18)
    assert values(reference.collected("o")) == [(10, [10, 11, 12])]
    reference.push("s", [17])
    reference.end()
    assert values(reference.collected("o"))[1:] == [(20, [20, 25])]
    assert reference.late == {("w", "late"): 1, ("w", "outside"): 1}
    assert reference.promises("w") == {}


# ── functions ──


def test_functions_see_tuples_in_order_of_arrival() -> None:
    rows = [(3, 0.1), (1, 0.2), (2, 0.3)]
    compute: dict[str, Any] = {"f": "first(x)", "l": "last(x)", "s": "sum(x)"}
    out = counted(Order("t"), Window(size=10), rows, schema="t int, x double", **compute)
    assert values(out["o"]) == [(0, [3, 1, 2], 0.1, 0.3, 0.1 + 0.2 + 0.3)]


class Picky:
    """Fails on a seven."""

    returns = "int"

    def init(self) -> int:
        return 0

    def incr(self, state: int, t: int) -> int:
        if t == 7:
            raise ValueError("seven")
        return state + t

    def final(self, state: int) -> int:
        return state


def test_a_window_whose_function_fails_is_a_dead_letter() -> None:
    picky = Function(udf=Picky, args=("t",))
    out = counted(Order("t"), Window(size=5), [1, 7, 2, 11], picky=picky)
    assert values(out["o"]) == [(0, [1, 2], 3), (10, [11], 11)]
    assert [(d.source, d.reason, d.row) for d in out.dead_letters] == [
        ("w", "ValueError: seven", '{"t": 5}')
    ]


def test_what_is_made_is_as_old_as_the_oldest_it_was_made_of() -> None:
    net = windowed(Order("t", slack=0), Window(size=10))
    reference = Reference(net)
    for time, t in ((5, 3), (6, 1), (6, 4), (7, 12)):
        reference.push("s", [t], at=time)
    (made,) = reference.tuples("o")
    assert made.row == {"t": 0, "all": [3, 4]}
    assert (made.entered_us, made.moment) == (5_000_000, reference.tuples("s")[-1].moment)


# ── state ──


def test_it_holds_open_windows() -> None:
    net = windowed(Order("t"), Window(size=10, advance=5), progress=Delayed("t", 3))
    reference, held = Reference(net), []
    for t in (1, 2, 7, 12, 40):
        reference.push("s", [t])
        held.append(reference.held("w"))
    assert held == [2, 2, 3, 3, 2]
    reference.end()
    assert reference.held("w") == 0
