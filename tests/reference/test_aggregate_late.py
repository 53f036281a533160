"""Timeouts and revisions, by tables one can check in one's head."""

from __future__ import annotations

from typing import Any

from auroral import Order, Punctuated, Window
from auroral.testing import Results, punctuation

from .windowing import at, counted, shown, values

# ── timeouts ──


def test_a_window_times_out_once_the_clock_exceeds_its_first_tuple() -> None:
    rows = [at(0, 1), at(4, 2), at(5, 3), at(5.5, 4), at(6, 12), at(7, 5), at(8, 25)]
    out = counted(Order("t", slack=0), Window(size=10, timeout=5), rows, hold=True)
    # The clock reaches 5 without exceeding it; at 5.5 the window closes before the tuple.
    assert shown(out) == ([(0, [1, 2, 3]), (10, [12])], [4, 5], {"late": 2})


def test_a_tuple_is_late_if_all_its_windows_are_closed_one_way_or_the_other() -> None:
    rows = [at(0, 1), at(3, 6), at(6, 7), at(6, 2)]
    window = Window(size=10, advance=5, timeout=5)
    out = counted(Order("t"), window, rows, progress=Punctuated("t"))
    assert values(out["o"]) == [(-5, [1]), (0, [1, 6]), (5, [6, 7])]
    assert shown(out)[1] == [2]


def test_no_time_passes_without_arrival_times() -> None:
    window = Window(size=10, timeout=0.001)
    assert values(counted(Order("t", slack=0), window, [1, 2, 3], hold=True)["o"]) == []


def test_windows_of_a_predicate_and_of_tuples_time_out_too() -> None:
    rows = [at(0, 10), at(2, 11), at(6, 12), at(7, 20), at(7, 21)]
    opened = Window(advance="t % 10 = 0", timeout=5)
    out = counted(Order("t", slack=0), opened, rows, hold=True)
    assert shown(out) == ([(10, [10, 11])], [12], {"late": 1})
    out = counted(Order("tup#"), Window(size=4, timeout=5), rows, hold=True)
    assert shown(out) == ([(1, [10, 11])], [12, 20], {"late": 2})


# ── revisions ──


def revised(rows: list[Any], **how: Any) -> Results:
    given = {"order": Order("t"), "window": Window(size=10), "progress": Punctuated("t")} | how
    return counted(
        given.pop("order"), given.pop("window"), rows, late="revise", history=10, **given
    )


def test_late_tuples_revise_closed_windows() -> None:
    out = revised([1, punctuation(12), 3, 15, punctuation(19), 4, punctuation(20), 5], hold=True)
    assert values(out["o"]) == [
        *((0, [1], False), (0, [1, 3], True), (0, [1, 3, 4], True), (10, [15], False)),
    ]
    assert shown(out)[1:] == ([5], {"late": 1})


def test_a_window_that_had_no_tuple_is_revised_too() -> None:
    out = revised([punctuation(12), 3, 4], hold=True)
    assert values(out["o"]) == [(0, [3], True), (0, [3, 4], True)]


def test_a_tuple_counts_in_open_windows_and_revises_closed_ones() -> None:
    out = revised([7, punctuation(12), 8], window=Window(size=10, advance=5), hold=True)
    assert values(out["o"]) == [(0, [7], False), (0, [7, 8], True)]
    out = revised([7, punctuation(12), 8], window=Window(size=10, advance=5))
    assert values(out["o"])[2:] == [(5, [7, 8], False)]


def test_windows_timed_out_are_revised_likewise() -> None:
    rows = [at(0, 1), at(9, 2), at(9, 3)]
    out = revised(rows, window=Window(size=10, timeout=5), hold=True)
    assert values(out["o"]) == [(0, [1], False), (0, [1, 2], True), (0, [1, 2, 3], True)]


def test_with_slack_late_tuples_revise_what_the_threshold_left_behind() -> None:
    out = revised([1, 12, 3, 14, 13, 22, 2], order=Order("t", slack=0), progress=None, hold=True)
    assert values(out["o"]) == [(0, [1], False), (0, [1, 3], True), (10, [12, 14], False)]
    assert shown(out)[1:] == ([13, 2], {"late": 2})
