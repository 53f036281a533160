"""Versions of eddies: what holds at which moment, and which eddies are to come."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auroral.eddy.registered import NEVER
from auroral.eddy.version import Version
from auroral.engine.lifecycle.epochs import EddyEpochs
from auroral.ids import EddyId
from auroral.storage import Change, Store


class Book:
    """Stands where the book of queries would: says which arcs belong together."""

    def __init__(self) -> None:
        self.together: list[tuple[str, ...]] = []
        self.swept: list[list[int]] = []

    def flows(self) -> list[tuple[str, ...]]:
        return list(self.together)

    def version(self, _arcs: Sequence[str], moment: int) -> Version:
        return Version(moment, queries=moment)

    def sweep(self, versions: Iterator[Version]) -> None:
        self.swept.append(sorted(version.start for version in versions))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.close()


def versions(store: Store, query_index: Book) -> EddyEpochs:
    return EddyEpochs(store, query_index, threading.RLock())  # type: ignore[arg-type]


def entry(*arcs: str) -> Any:
    return SimpleNamespace(arcs=arcs)


def test_the_first_query_over_an_arc_needs_an_eddy_that_comes_at_its_moment(store: Store) -> None:
    query_index = Book()
    held = versions(store, query_index)
    assert (held.next_epoch, held.later_epoch) == (None, NEVER)
    query_index.together = [("A",)]
    assert held.plan_epoch([entry("A")], 5)
    held.add_version({"A"}, 5)
    assert (held.next_epoch, held.flows, held.next_flows) == (5, [], [("A",)])
    held.enter_epoch({}, {})
    assert (held.next_epoch, held.flows, held.epoch_start, held.generation) == (
        None,
        [("A",)],
        5,
        1,
    )
    assert held.plan_epoch([entry("A")], 7) == {}, "it is served"
    again = versions(store, query_index)
    assert (again.flows, again.epoch_start) == ([("A",)], 5)


def test_a_version_holds_until_the_next_one_begins(store: Store) -> None:
    query_index = Book()
    query_index.together = [("A",), ("B",)]
    held = versions(store, query_index)
    held.plan_epoch([entry("A"), entry("B")], 1)
    held.add_version({"A", "B"}, 1)
    held.enter_epoch({}, {})
    held.add_version({"A"}, 4)
    held.add_version({"A"}, 4)
    held.add_version({"A"}, 9)
    a, b = str(EddyId(("A",))), str(EddyId(("B",)))
    assert [held.boundary(a, moment) for moment in (0, 1, 4, 8, 9)] == [1, 4, 9, 9, None]
    assert held.boundary(b, 1) is None
    assert held.at(a, 3).start == 1
    assert held.at(a, 4).start == held.at(a, 8).start == 4
    assert held.count(a) == 9
    held.forget_before(20)
    assert held.at(a, 20).start == 9
    assert query_index.swept[-1] == [1, 9], "of B the first still holds"


def test_changes_while_others_are_to_come_keep_their_order(store: Store) -> None:
    query_index = Book()
    query_index.together = [("A",)]
    held = versions(store, query_index)
    held.plan_epoch([entry("A")], 2)
    held.add_version({"A"}, 2)
    query_index.together = [("A", "B")]
    noted = held.plan_epoch([entry("A", "B")], 6)
    held.add_version({"A", "B"}, 6)
    assert held.starts == [2, 6]
    assert held.later_epoch == 6
    store.commit(Change(meta=noted))
    assert versions(store, query_index).starts == [2, 6], "a restart knows them"
    held.enter_epoch({}, {})
    assert (held.flows, held.next_epoch, held.next_flows) == ([("A",)], 6, [("A", "B")])
    held.enter_epoch({}, {})
    assert (held.flows, held.next_epoch) == ([("A", "B")], None)
    assert held.boundary(str(EddyId(("A", "B"))), 0) == 6


def test_a_second_change_at_one_moment_replaces_the_first(store: Store) -> None:
    query_index = Book()
    query_index.together = [("A",)]
    held = versions(store, query_index)
    held.plan_epoch([entry("A")], 3)
    query_index.together = [("A",), ("C",)]
    held.plan_epoch([entry("C")], 3)
    assert held.starts == [3]
    assert held.next_flows == [("A",), ("C",)]


def test_boxes_that_come_or_go_form_eddies_anew(store: Store) -> None:
    """Those that have nothing to do any more go with that."""
    query_index = Book()
    held = versions(store, query_index)
    assert held.plan_epoch([], 4) == {}
    assert held.plan_epoch([], 4, anew=True)
    assert held.starts == [4]
