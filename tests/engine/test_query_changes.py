"""Changes of queries made by sinks while others are being made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auroral as au
import auroral.engine.starting
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless

from .market import batch, numbers, ticks


@pytest.mark.parametrize("standalone", [False, True])
def test_a_sink_that_gets_the_rest_may_change_queries(
    standalone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It enqueues first, so that its own change has a later moment."""
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    net.query("going", "SELECT n FROM ticks")
    with sparkless.make_engine(net) as engine:
        done: list[int] = []

        def change(_delivery: Delivery) -> None:
            if not done:
                done.append(1)
                engine.enqueue("ticks", batch(100, 110))
                text = (
                    "SELECT count(*) AS n FROM ticks [ROWS 1]"
                    if standalone
                    else "SELECT n FROM ticks"
                )
                engine.modify(add={"inner": text})

        engine.bind_sink("going", change)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"], add={"outer": "SELECT n FROM ticks WHERE n >= 0"})
        engine.drain()
        assert engine.list_entities()["queries"] == ["all", "outer", "inner"]
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert numbers(engine.dequeue("all")) == [*range(10), *range(100, 110), *range(10, 20)]
        assert engine.dequeue("inner").num_rows == 10
        assert numbers(engine.dequeue("outer"))[-10:] == list(range(10, 20))
        assert engine.stats()["queries"]["all"]["matches"] == 30
        with pytest.raises(au.UsageError, match="UNKNOWN_OUTPUT"):
            engine.dequeue("going")


@pytest.mark.parametrize(
    "given",
    [
        {"remove": [5]},
        {"remove": 5},
        {"add": ["x"]},
        {"add": {5: "SELECT n FROM ticks"}},
        {"add": {"x": None}},
        {"add": {"x": 5}},
    ],
)
def test_what_is_no_name_is_refused(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    with sparkless.make_engine(net) as engine:
        with pytest.raises(au.UsageError, match="BAD_CALL"):
            engine.modify(**given)
        engine.modify(remove=("all",))
        assert engine.list_entities()["queries"] == []


@pytest.mark.parametrize("again", [False, True])
def test_numbers_begin_when_somebody_reads_them(
    again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    net.box("number", "numbered", input="ticks", **{"as": "at"})
    text = "SELECT at, count(*) AS c FROM numbered [RANGE 3, WA at]"
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
        engine.modify(add={"threes": text})
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        found = [tuple(row.values()) for row in engine.dequeue("threes").to_pylist()]
        assert found == [(0, 3), (3, 3), (6, 3)]
        if again:
            engine.modify(remove=["threes"])
            engine.enqueue("ticks", batch(20, 30))
            engine.drain()
            engine.modify(add={"threes": text})
            engine.enqueue("ticks", batch(30, 40))
            engine.drain()
            assert engine.dequeue("threes")["c"].to_pylist()[1:3] == [3, 3]


@pytest.mark.parametrize("name", ["eddy", "matches", "clock", "progress", "results", "output"])
def test_a_query_may_have_any_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes nothing with it that is shared when it goes."""
    net = ticks()
    pairs = "SELECT a.n FROM ticks [ROWS 5] AS a, ticks [ROWS 5] AS b WHERE a.sym = b.sym"
    net.query("pairs", pairs)
    net.query("unread", "SELECT n FROM ticks")
    with sparkless.make_engine(net) as engine:
        engine.modify(add={name: "SELECT count(*) AS c FROM ticks [ROWS 2]"})
        engine.enqueue("ticks", [{"n": 1, "sym": "A"}, {"n": 2, "sym": "A"}])
        engine.drain()
        assert engine.dequeue("pairs").num_rows == 4
        assert engine.dequeue(name)["c"].to_pylist() == [2]
        engine.modify(remove=[name])
        engine.enqueue("ticks", [{"n": 3, "sym": "A"}])
        engine.drain()
        assert engine.dequeue("pairs").num_rows == 5
        assert numbers(engine.dequeue("unread")) == [1, 2, 3]


def test_what_is_unread_of_a_query_in_anothers_place_stays_when_boxes_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = ticks()
    counts = "SELECT count(*) AS c FROM ticks [ROWS 2]"
    net.query("pairs", counts)
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 4))
        engine.drain()
        engine.modify(remove=["pairs"], add={"pairs": counts})
        engine.enqueue("ticks", batch(4, 8))
        engine.drain()
        engine.modify(add={"other": counts})
        engine.enqueue("ticks", batch(8, 10))
        engine.drain()
        assert engine.dequeue("pairs")["c"].to_pylist() == [2, 2, 2]
        assert engine.stats()["outputs"]["pairs"]["out"] == 3
        engine.modify(remove=["pairs"], add={"pairs": counts})
        assert engine.stats()["outputs"]["pairs"]["out"] == 0


def test_a_join_keeps_its_tuples_when_others_read_through_boxes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then tasks do not read the log themselves any more; state stays in the buckets it has."""
    monkeypatch.setattr(auroral.engine.starting, "default_buckets", lambda _cores: 3)
    net = ticks()
    net.box("filter", "low", input="ticks", where="n < 1000")
    net.query("near", "SELECT t.n FROM ticks [ROWS 9] AS t, news [ROWS 9] AS w WHERE t.sym = w.sym")
    low = "SELECT t.n FROM low [ROWS 9] AS t, news [ROWS 9] AS w WHERE t.sym = w.sym"
    with sparkless.make_engine(net) as engine:
        engine.enqueue("news", [{"sym": sym} for sym in "ABC"])
        engine.drain()
        for start, change in enumerate([{}, {"add": {"below": low}}, {"remove": ["below"]}, {}]):
            engine.modify(**change)  # type: ignore[arg-type]
            engine.enqueue("ticks", batch(3 * start, 3 * start + 3))
            engine.drain()
            assert sorted(numbers(engine.dequeue("near"))) == [3 * start + n for n in range(3)]


def test_a_query_that_comes_back_does_not_cut_what_another_wrote_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "found.jsonl"
    with sparkless.make_engine(ticks(), state=tmp_path / "state") as engine:
        for name, start in (("one", 0), ("other", 10), ("one", 20)):
            engine.modify(add={name: "SELECT n FROM ticks"})
            engine.bind_sink(name, au.JsonlSink(file))
            engine.enqueue("ticks", batch(start, start + (5 if start == 0 else 3)))
            engine.drain()
            engine.modify(remove=[name])
    found = [json.loads(line)["n"] for line in file.read_text().splitlines()]
    assert found == [20, 21, 22], "each begins the file anew"
