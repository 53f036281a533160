"""Queries that run as boxes: which are registered, which run, and which failed."""

from __future__ import annotations

import json

from auroral.engine.lifecycle.standalone import FAILED, StandaloneQueries, StandaloneQuery
from auroral.network.queries import Query
from auroral.network.types import Schema


def standalone(name: str, since: int) -> StandaloneQuery:
    late = {"late": (f"{name}#1.late", Schema.parse("x int"))}
    return StandaloneQuery(
        name, Query("SELECT 1"), f"{name}#2", Schema.parse("n int"), late, since=since
    )


def test_boxes_run_from_the_moment_of_their_query_up_to_its_end() -> None:
    held = StandaloneQueries({})
    held.add(standalone("q", 5))
    assert list(held.registered) == ["q"]
    assert held.running.queries == {}, "it is registered, its boxes are to come"
    held.run(5)
    assert list(held.running.queries) == ["q"]
    held.remove("q", 9)
    assert held.registered == {}
    assert list(held.running.queries) == ["q"], "until all before is processed"
    assert [query.name for query in held.ending(9)] == ["q"]
    held.run(9)
    assert held.running.queries == {}


def test_another_query_under_the_same_name_is_not_the_same() -> None:
    held = StandaloneQueries({})
    held.add(standalone("q", 1))
    held.run(1)
    before = held.running
    held.remove("q", 4)
    held.add(standalone("q", 4))
    after = held.at(4)
    assert before.is_same(before, "q#1")
    assert not after.is_same(before, "q#1")
    assert after.began("q#1") == 4
    assert after.began("plain") == 0


def test_a_query_that_failed_stays_so_until_another_comes() -> None:
    held = StandaloneQueries({})
    held.add(standalone("q", 1))
    held.add(standalone("p", 1))
    held.run(1)
    change = held.fail({"q": "it broke"})
    assert held.why_stopped("q") == "it broke"
    assert held.why_stopped("p") is None
    again = StandaloneQueries(json.loads(change.meta[FAILED]))
    again.add(standalone("q", 1))
    again.restore(1)
    assert again.why_stopped("q") == "it broke", "a restart knows it"
    held.remove("q", 3)
    held.add(standalone("q", 3))
    held.run(3)
    assert held.why_stopped("q") is None


def test_arcs_of_boxes_say_whose_they_are() -> None:
    held = StandaloneQueries({})
    held.add(standalone("q", 1))
    held.run(1)
    running = held.running
    assert [running.owner(arc) for arc in ("q#2", "q#1.late", "q", "other#1")] == [
        "q",
        "q",
        "q",
        "",
    ]
    assert [running.source(arc) for arc in ("q#2", "q#1.late", "s")] == ["q", "q.late", "s"]


def test_late_tuples_have_a_view_of_their_own() -> None:
    query = standalone("q", 3)
    view = query.late_view("late")
    assert view is not None
    assert (view.log, view.schema.names, view.since) == ("q#1.late", ["x"], 3)
    assert query.view().log == "q#2"
    assert query.late_view("left_late") is None
