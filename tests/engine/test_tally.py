"""The tally: matches, errors and late tuples by query, exactly once, across restarts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auroral.eddy.report import Report
from auroral.engine.queries import tally as tally_module
from auroral.engine.queries.tally import MatchTally
from auroral.storage import Change, Store

Counted = list[dict[int, int]]
COUNTED = st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 5), max_size=3), max_size=150)


def report(matches: dict[int, int]) -> Report:
    made = Report()
    if matches:
        ids, counts = zip(*sorted(matches.items()), strict=True)
        made.count((np.array(ids, np.int32), np.array(counts, np.int64)))
    return made


def step(tally: MatchTally, store: Store, made: Report, *, commits: bool = True) -> None:
    change = Change()
    tally.enter(change, made)
    if commits:
        store.commit(change)
        tally.committed()


def of(tally: MatchTally, ids: range = range(12)) -> list[int]:
    return [int(n) for n in tally.matches(np.array(ids, np.int32))]


@given(COUNTED)
def test_what_was_committed_is_there_after_a_restart(steps: Counted) -> None:
    """Also when many steps were folded into one row of the manifest."""
    store = Store(None)
    try:
        tally = MatchTally(store)
        for matches in steps:
            step(tally, store, report(matches))
        expected = [sum(matches.get(n, 0) for matches in steps) for n in range(12)]
        assert of(tally) == of(MatchTally(store)) == expected
        assert [tally.of_one(n) for n in range(12)] == expected
        rows = list(store.manifest.tallies())
        assert len(rows) <= tally_module._FOLD_EVERY
    finally:
        store.close()


def test_a_step_that_was_not_committed_does_not_count(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = MatchTally(store)
    step(tally, store, report({3: 2}))
    step(tally, store, report({3: 5}), commits=False)
    assert of(tally)[3] == 2
    step(tally, store, report({4: 1}))
    assert of(tally)[3:5] == of(MatchTally(store))[3:5] == [2, 1]
    store.close()


def test_errors_and_late_tuples_are_kept_by_reason_and_forgotten_by_query(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = MatchTally(store)
    made = report({1: 1, 2: 1, 5: 1})
    made.fail(2, 3, "negative")
    made.leave(2, "late", 4)
    made.leave(5, "null", 1)
    step(tally, store, made)
    step(tally, store, made)
    for each in (tally, MatchTally(store)):
        assert each.failed == {2: 6}
        assert each.late == {2: {"late": 8}, 5: {"null": 2}}
    assert tally.errors(2) == (6, "negative")
    assert tally.errors(1) == (0, None)
    counters = tally.forget([(2, 2), (7, 1)])
    assert sorted(counters) == [("query errors", "2"), ("query late", "2")]
    assert of(tally)[:6] == [0, 2, 0, 0, 0, 2]
    assert tally.failed == {}
    assert tally.late == {5: {"null": 2}}
    store.close()
