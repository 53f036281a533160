"""Where sinks go on: the same target, another one, one that failed, one of a removed query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from auroral.engine.lifecycle.pending import PendingDeliveries
from auroral.engine.sinks.positions import SinkPositions, Start, target_of
from auroral.errors import StateError
from auroral.io.sinks.callback import CallbackSink
from auroral.storage import Change, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.close()


def positions(store: Store) -> SinkPositions:
    return SinkPositions(store, PendingDeliveries(store))


def write(store: Store, held: SinkPositions, target: str, at: int | None, **more: object) -> None:
    """Let the sink of `out` have come so far."""
    store.commit(Change(sinks={"out": {**held.record("out", target, at), **more}}))


def test_a_sink_begins_with_nothing_and_goes_on_where_it_was(store: Store) -> None:
    held = positions(store)
    assert held.start("out", "a.csv", instead=False) == Start(None)
    assert held.now("out") is None
    assert held.outputs() == set()
    write(store, held, "a.csv", 7)
    assert held.start("out", "a.csv", instead=False) == Start(7, {})
    assert held.now("out") == 7
    assert positions(store).outputs() == {"out"}


def test_another_file_is_refused_unless_the_first_was_empty_or_failed(store: Store) -> None:
    held = positions(store)
    begun = held.begun("out", "a.csv", Start(None))
    assert begun["empty"]
    store.commit(Change(sinks={"out": begun}))
    assert held.start("out", "b.csv", instead=False) == Start(None, {})
    write(store, held, "a.csv", 7)
    with pytest.raises(StateError, match=r"SINK_CHANGED.*out to a\.csv, not to b\.csv"):
        held.start("out", "b.csv", instead=False)
    assert held.start("out", "b.csv", instead=True) == Start(None, {"a.csv": 7})


def test_who_comes_back_goes_on_behind_what_others_wrote_meanwhile(store: Store) -> None:
    held = positions(store)
    write(store, held, "a.csv", 7)
    start = held.start("out", "b.csv", instead=True)
    store.commit(Change(sinks={"out": held.begun("out", "b.csv", start)}))
    write(store, held, "b.csv", 3)
    again = positions(store)
    assert again.start("out", "a.csv", instead=False) == Start(7, {"b.csv": 3})
    assert again.start("out", "b.csv", instead=False) == Start(3, {"a.csv": 7})


@pytest.mark.parametrize("flag", ["closed", "ends"])
def test_sinks_of_removed_queries_are_not_expected_again(store: Store, flag: str) -> None:
    held = positions(store)
    write(store, held, "a.csv", 7, **{flag: True})
    assert held.outputs() == set()
    if flag == "closed":
        assert held.start("out", "b.csv", instead=False) == Start(None)


def test_a_target_is_a_file_or_a_kind() -> None:
    assert target_of(CallbackSink(print)) == "CallbackSink"
