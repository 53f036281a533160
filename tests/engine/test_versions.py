"""Epochs, and versions of eddies: what holds at which moment, and what is planned."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from auroral.eddy.registered import NEVER
from auroral.eddy.version import Version
from auroral.engine.lifecycle.epochs import RUNNING, DeclaredNetwork, EpochSchedule
from auroral.engine.queries.eddy_versions import EddyVersions
from auroral.ids import EddyId
from auroral.network.network import Network
from auroral.storage import Change

DECLARED = DeclaredNetwork(Network("n"))


class IndexDouble:
    """Stands where the index of queries would: versions say only when they begin."""

    def __init__(self) -> None:
        self.swept: list[list[int]] = []

    def version(self, _arcs: Sequence[str], moment: int) -> Version:
        return Version(moment, queries=moment)

    def sweep(self, versions: Iterator[Version]) -> None:
        self.swept.append(sorted(version.start for version in versions))


def schedule(*changes: Change) -> EpochSchedule:
    """What a start finds after some changes were committed."""
    meta: dict[str, str] = {}
    for change in changes:
        meta |= change.meta
    return EpochSchedule(meta.get, DECLARED)


def versions(epochs: EpochSchedule, index: IndexDouble) -> EddyVersions:
    return EddyVersions(epochs, index, threading.RLock())  # type: ignore[arg-type]


def entry(*arcs: str) -> Any:
    return SimpleNamespace(arcs=arcs)


def test_an_epoch_is_planned_and_then_entered() -> None:
    epochs = schedule()
    assert (epochs.next_start, epochs.later_start) == (None, NEVER)
    planned = epochs.plan(5, [("A",)])
    assert (epochs.next_start, epochs.current.flows, epochs.next.flows) == (5, [], [("A",)])
    assert schedule(planned).next_start == 5, "a restart knows it"
    entered = epochs.enter()
    current = epochs.current
    assert (epochs.next_start, current.flows, current.start) == (None, [("A",)], 5)
    assert epochs.generation == 1
    again = schedule(planned, entered)
    assert (again.current.flows, again.current.start, again.next_start) == ([("A",)], 5, None)


def test_queries_are_served_by_an_eddy_of_all_their_arcs() -> None:
    epochs = schedule()
    held = versions(epochs, IndexDouble())
    assert held.serves([])
    assert not held.serves([entry("A")])
    epochs.plan(5, [("A",), ("B", "C")])
    assert held.serves([entry("A"), entry("C", "B")])
    assert not held.serves([entry("A", "B")])


def test_a_version_holds_until_the_next_one_begins() -> None:
    epochs, index = schedule(), IndexDouble()
    held = versions(epochs, index)
    epochs.plan(1, [("A",), ("B",)])
    held.follow()
    held.add_version({"A", "B"}, 1)
    epochs.enter()
    held.enter(1)
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
    assert index.swept[-1] == [1, 9], "of B the first still holds"


def test_changes_while_others_are_planned_keep_their_order() -> None:
    epochs = schedule()
    held = versions(epochs, IndexDouble())
    epochs.plan(2, [("A",)])
    held.follow()
    held.add_version({"A"}, 2)
    noted = epochs.plan(6, [("A", "B")])
    held.follow()
    held.add_version({"A", "B"}, 6)
    assert epochs.later_start == 6
    assert [epoch.start for epoch in schedule(noted).planned] == [2, 6], "a restart knows them"
    epochs.enter()
    held.enter(2)
    assert (epochs.current.flows, epochs.next_start, epochs.next.flows) == (
        [("A",)],
        6,
        [("A", "B")],
    )
    epochs.enter()
    held.enter(6)
    assert (epochs.current.flows, epochs.next_start) == ([("A", "B")], None)
    assert held.boundary(str(EddyId(("A", "B"))), 0) == 6


def test_a_second_change_at_one_moment_replaces_the_first() -> None:
    epochs = schedule()
    epochs.plan(3, [("A",)])
    epochs.plan(3, [("A",), ("C",)])
    assert [epoch.start for epoch in epochs.planned] == [3]
    assert epochs.next.flows == [("A",), ("C",)]


def test_another_network_comes_with_an_epoch_and_survives_a_restart() -> None:
    epochs, other = schedule(), DeclaredNetwork(Network("other"))
    planned = epochs.plan_network(3, other, {"network": {"network": "other"}}, ["b"])
    more = epochs.plan(6, [("A",)])
    assert [epoch.declared is other for epoch in epochs.all] == [False, True, True]
    again = EpochSchedule({**planned.meta, **more.meta}.get, DECLARED, lambda _document: other)
    assert [epoch.declared is other for epoch in again.all] == [False, True, True]
    assert again.next.drained == ("b",)
    entered = epochs.enter()
    assert json.loads(entered.meta[RUNNING]) == {"network": {"network": "other"}}
    assert epochs.current.declared is other
