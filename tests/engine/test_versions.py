"""Versions of eddies: what holds at which moment, and which eddies are to come."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auroral.eddy.entry import NEVER
from auroral.eddy.version import Version
from auroral.engine.versions import Versions, arcs_of, eddy_name
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


def versions(store: Store, book: Book) -> Versions:
    return Versions(store, book, threading.RLock())  # type: ignore[arg-type]


def entry(*arcs: str) -> Any:
    return SimpleNamespace(arcs=arcs)


def test_names_of_eddies_say_which_arcs_they_serve() -> None:
    assert arcs_of(eddy_name(("news", "ticks"))) == ("news", "ticks")


def test_the_first_query_over_an_arc_needs_an_eddy_that_comes_at_its_moment(store: Store) -> None:
    book = Book()
    held = versions(store, book)
    assert (held.coming, held.after_that) == (None, NEVER)
    book.together = [("A",)]
    assert held.connect([entry("A")], 5)
    held.renew({"A"}, 5)
    assert (held.coming, held.flows, held.next_flows) == (5, [], [("A",)])
    held.come({}, {})
    assert (held.coming, held.flows, held.settled, held.turn) == (None, [("A",)], 5, 1)
    assert held.connect([entry("A")], 7) == {}, "it is served"
    again = versions(store, book)
    assert (again.flows, again.settled) == ([("A",)], 5)


def test_a_version_holds_until_the_next_one_begins(store: Store) -> None:
    book = Book()
    book.together = [("A",), ("B",)]
    held = versions(store, book)
    held.connect([entry("A"), entry("B")], 1)
    held.renew({"A", "B"}, 1)
    held.come({}, {})
    held.renew({"A"}, 4)
    held.renew({"A"}, 4)
    held.renew({"A"}, 9)
    a, b = eddy_name("A"), eddy_name("B")
    assert [held.boundary(a, moment) for moment in (0, 1, 4, 8, 9)] == [1, 4, 9, 9, None]
    assert held.boundary(b, 1) is None
    assert held.at(a, 3).start == 1
    assert held.at(a, 4).start == held.at(a, 8).start == 4
    assert held.count(a) == 9
    held.forget_before(20)
    assert held.at(a, 20).start == 9
    assert book.swept[-1] == [1, 9], "of B the first still holds"


def test_changes_while_others_are_to_come_keep_their_order(store: Store) -> None:
    book = Book()
    book.together = [("A",)]
    held = versions(store, book)
    held.connect([entry("A")], 2)
    held.renew({"A"}, 2)
    book.together = [("A", "B")]
    noted = held.connect([entry("A", "B")], 6)
    held.renew({"A", "B"}, 6)
    assert held.starts == [2, 6]
    assert held.after_that == 6
    store.commit(Change(meta=noted))
    assert versions(store, book).starts == [2, 6], "a restart knows them"
    held.come({}, {})
    assert (held.flows, held.coming, held.next_flows) == ([("A",)], 6, [("A", "B")])
    held.come({}, {})
    assert (held.flows, held.coming) == ([("A", "B")], None)
    assert held.boundary(eddy_name(("A", "B")), 0) == 6


def test_a_second_change_at_one_moment_replaces_the_first(store: Store) -> None:
    book = Book()
    book.together = [("A",)]
    held = versions(store, book)
    held.connect([entry("A")], 3)
    book.together = [("A",), ("C",)]
    held.connect([entry("C")], 3)
    assert held.starts == [3]
    assert held.next_flows == [("A",), ("C",)]


def test_boxes_that_come_or_go_form_eddies_anew(store: Store) -> None:
    """Those that have nothing to do any more go with that."""
    book = Book()
    held = versions(store, book)
    assert held.connect([], 4) == {}
    assert held.connect([], 4, anew=True)
    assert held.starts == [4]
