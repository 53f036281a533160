"""Locks are taken in one order, and a thread that takes them in another is told at once."""

from __future__ import annotations

import threading

import pytest

from auroral.engine.locks import (
    CHECK_ORDER,
    EngineLocks,
    LockOrderError,
    LockRank,
    OrderedLock,
    ReentrantLock,
)
from tests.conformance import sparkless

from .market import all_ticks, in_thread


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> EngineLocks:
    monkeypatch.setenv(CHECK_ORDER, "1")
    return EngineLocks()


def test_every_order_but_one_is_refused(locks: EngineLocks) -> None:
    ordered: list[ReentrantLock] = [
        locks.round,
        locks.changes,
        locks.queries,
        locks.ingest,
        locks.store,
    ]
    for place, outer in enumerate(ordered):
        for other, inner in enumerate(ordered):
            with outer:
                if other >= place:
                    with inner, outer:  # what is held may be taken again
                        pass
                else:
                    with pytest.raises(LockOrderError), inner:
                        pass


def test_results_are_taken_from_one_log_at_a_time_before_the_queries(locks: EngineLocks) -> None:
    with locks.changes, locks.reading("a"), locks.queries:
        pass
    with locks.queries, pytest.raises(LockOrderError), locks.reading("a"):
        pass
    with (
        locks.reading("a"),
        pytest.raises(LockOrderError, match="READING is taken while READING"),
        locks.reading("b"),
    ):
        pass


def test_a_lock_that_is_not_waited_for_may_be_tried_in_any_order(locks: EngineLocks) -> None:
    with locks.changes:
        assert locks.round.acquire(blocking=False)
        with locks.queries:
            pass
        locks.round.release()
    with locks.round:  # nothing is left over
        pass


def test_engines_have_orders_of_their_own(locks: EngineLocks) -> None:
    other = EngineLocks()
    with locks.store, other.round:
        pass


def test_threads_exclude_each_other(locks: EngineLocks) -> None:
    tried = []

    def attempt() -> None:
        tried.append(locks.store.acquire(blocking=False))

    with locks.store:
        in_thread(attempt).join()
    assert tried == [False]


def test_without_the_check_locks_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHECK_ORDER)
    assert isinstance(EngineLocks().store, type(threading.RLock()))


def test_the_engines_of_tests_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with sparkless.make_engine(all_ticks()) as engine:
        held = [
            engine._locks.network,
            engine._loop._busy,
            engine._changing.lock,
            engine._queries.lock,
            engine._ingest._lock,
            engine._store.lock,
        ]
        ranks = [lock.rank for lock in held if isinstance(lock, OrderedLock)]
        assert ranks == [rank for rank in LockRank if rank is not LockRank.READING]
