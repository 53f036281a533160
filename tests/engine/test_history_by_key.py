"""Attached queries that begin with a filter on the key read little, and give the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auroral as au
from auroral.engine import Engine
from auroral.history import KeptMoments
from auroral.history.tiers import RunTiers
from auroral.ids import HistoryIndexId
from tests.conformance.sparkless import make_engine

QUERIES: dict[str, Any] = {
    "one": "SELECT t, pos FROM recent WHERE sid = 1",
    "some": "SELECT t FROM recent WHERE sid IN (0, 2) AND pos > 31",
    "none": "SELECT t FROM recent WHERE sid = 77",
    "times": "SELECT sid, t FROM recent WHERE t BETWEEN 5 AND 9",
    "sums": lambda arc: arc.filter("sid = 2").aggregate(
        order=au.Order("t"), window=au.Window(size=4), total="sum(pos)"
    ),
    "two": lambda arc: arc.network.union(arc.filter("sid = 1"), arc.filter("sid = 2")),
    "rest": lambda arc: arc.filter("sid = 1").rest,
    "all": "SELECT t FROM recent WHERE pos > 30",
}


@pytest.fixture(autouse=True)
def lookups_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auroral.history.access.PIECE_BYTES", 0)
    monkeypatch.setattr("auroral.history.access.SORT_FACTOR", 0.01)


def network(key: str | None, keep: Any = "all") -> au.Network:
    net = au.Network("border")
    reports = net.stream("reports", "sid int, t bigint, pos int", progress=au.Ordered("t"))
    net.output("all", reports.filter("pos >= 30", name="across"))
    net.connection_point("recent", "across", keep=keep, key=key)
    return net


def feed(engine: Engine, times: range) -> None:
    rows = [{"sid": t % 3, "t": t, "pos": 30 + t % 5 if t % 4 else 0} for t in times]
    engine.enqueue("reports", rows)
    engine.drain()


def organise(engine: Engine) -> None:
    """What the thread of the engine does in the background."""
    point = engine._history.points["recent"]
    assert point.keyed is not None
    point.keyed._tiers = RunTiers(first_rows=4, fan_in=2)
    point.keyed._group_rows = 2
    complete = engine._loop.execution.stepper.emitted_before(point.arc)
    while point.keyed.work(KeptMoments(point.oldest, complete)):
        pass


def rows(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(name).to_pylist()]


def test_a_filter_on_the_key_is_a_lookup() -> None:
    with make_engine(network("sid")) as engine:
        for start in range(0, 60, 10):
            feed(engine, range(start, start + 10))
        organise(engine)
        engine.attach("recent", QUERIES["one"], name="hot")
        engine.drain()
        expected = [(t, 30 + t % 5) for t in range(60) if t % 3 == 1 and t % 4]
        assert rows(engine, "hot") == expected
        by_key = engine.stats()["connection_points"]["recent"]["by_key"]
        assert by_key["key"] == "sid"
        assert by_key["runs"] >= 1
        assert by_key["lookups"] >= 1
        assert 0 < by_key["rows_read"] < by_key["rows_kept"]
        assert "a lookup reads" in engine.stats()["attachments"]["hot"]["history"]
        feed(engine, range(60, 66))
        assert rows(engine, "hot") == [(61, 31)]


def test_the_progressing_attribute_needs_no_runs() -> None:
    with make_engine(network(None)) as engine:
        for start in range(0, 60, 10):
            feed(engine, range(start, start + 10))
        engine.attach("recent", QUERIES["times"], name="hot")
        engine.drain()
        assert rows(engine, "hot") == [(t % 3, t) for t in (5, 6, 7, 9)]
        by_key = engine.stats()["connection_points"]["recent"]["by_key"]
        assert (by_key["key"], by_key["runs"]) == ("t", 0)
        assert by_key["rows_read"] < by_key["rows_kept"] / 2


def test_runs_are_made_in_the_background_and_go_with_their_key(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def logs(engine: Engine) -> list[HistoryIndexId]:
        found = (HistoryIndexId.parse(log) for log in engine._store.names()[0])
        return [id for id in found if id is not None]

    with make_engine(network("sid"), state=state, background=True) as engine:
        point = engine._history.points["recent"]
        assert point.keyed is not None
        point.keyed._tiers = RunTiers(first_rows=4)
        feed(engine, range(40))
        engine._indexing.maintenance.wake()
        assert engine._indexing.maintenance.settle(60)
        assert [id.key for id in logs(engine)] == ["sid"]
        assert engine.stats()["connection_points"]["recent"]["by_key"]["indexed_rows"] == 30
    with make_engine(network("sid"), state=state) as engine:
        assert engine.stats()["connection_points"]["recent"]["by_key"]["indexed_rows"] == 30
        engine._history.points.clear()
        engine._indexing.maintenance.work()
        assert not logs(engine)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_the_rows_are_the_same_with_and_without_a_key(data: st.DataObject) -> None:
    """Whatever is indexed, expires, or is taken up again by another process."""
    keep = data.draw(st.sampled_from(["all", {"rows": 12}, "20 s"]))
    actions = data.draw(
        st.lists(
            st.sampled_from(["feed", "feed", "index", "restart", *("attach",) * 3]),
            min_size=4,
            max_size=10,
        )
    )
    texts = sorted(name for name in QUERIES)
    chosen = iter(data.draw(st.lists(st.sampled_from(texts), min_size=10, max_size=10)))
    lengths = iter(data.draw(st.lists(st.integers(1, 25), min_size=10, max_size=10)))
    plan = [(action, next(lengths), next(chosen)) for action in actions]
    train = data.draw(st.sampled_from([3, 1_000_000]))
    results = []
    for key in ("sid", None):
        with tempfile.TemporaryDirectory() as place:
            results.append(dict(_run(plan, network(key, keep), Path(place), train, key)))
    assert results[0] == results[1]


def _run(
    plan: list[tuple[str, int, str]], net: au.Network, state: Path, train: int, key: str | None
) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    at = 0
    attached: list[str] = []
    for action, length, query in [*plan, ("end", 0, "")]:
        with make_engine(net, state=state, train=train) as engine:
            if action == "feed":
                feed(engine, range(at, at + length))
                at += length
            elif action == "index" and key is not None:
                organise(engine)
            elif action == "attach":
                attached.append(f"{query}_{len(attached)}")
                engine.attach("recent", QUERIES[query], name=attached[-1])
            if action == "end":
                engine.drain()
                for name in attached:
                    yield name, rows(engine, name)
