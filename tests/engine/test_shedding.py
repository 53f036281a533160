"""Drop boxes in a running engine: what they drop, count, record and say."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from auroral import Network, Order, Ordered, QoS, Window
from auroral.engine import Engine
from auroral.engine.shedding.places import objection
from auroral.shedding.choosing import chosen_moments, droppers
from auroral.shedding.drops import Drop, DropInterval
from auroral.testing import Collector
from tests.conformance.running import Crash
from tests.conformance.sparkless import make_engine


def control(engine: Engine) -> Any:
    return engine._context.shedding


def passing() -> Network:
    net = Network("passing")
    far = net.stream("s", schema="n int, v double").filter("n % 2 = 0", name="even")
    net.output("o", far)
    return net


def rows(count: int, first: int = 0) -> list[tuple[int, float]]:
    return [(n, float(n % 10)) for n in range(first, first + count)]


def test_dropped_tuples_are_counted_by_stream_reason_and_output() -> None:
    net = passing()
    with make_engine(net) as engine:
        engine.enqueue("s", rows(100))  # so that it is known how many tuples come out
        engine.drain()
        drop = Drop("even", "s", 1.0, 3, ("o",), DropInterval("v", None, 4.0), "semantic")
        control(engine).set([drop], "the machine is too slow")
        engine.enqueue("s", rows(100, 100))
        engine.drain()
        found = engine.stats()["shedding"]
        assert found["arcs"] == {"s": {"semantic": 40}}
        assert found["outputs"] == {"o": 20}
        assert engine.stats()["qos"]["o"]["shed"] == 20
        assert found["dropped"] == 40
        (place,) = found["drops"]
        assert (place["superbox"], place["arc"]) == ("even", "s")
        assert (place["dropped"], place["taken"]) == (40, 100)
        assert place["boxes"] == [
            {
                "rate": 1.0,
                "interval": {"field": "v", "low": None, "high": 4.0},
                "reason": "semantic",
                "outputs": ["o"],
            }
        ]
        assert place["since_us"] > 0
        assert engine.stats()["boxes"]["even"]["in"] == 160
        expected = [r for r in rows(200) if r[0] % 2 == 0 and (r[0] < 100 or r[1] >= 4)]
        assert [tuple(r.values()) for r in engine.dequeue("o").to_pylist()] == expected
        control(engine).set([], "the load has fallen")
        engine.enqueue("s", rows(10, 200))
        engine.drain()
        assert engine.dequeue("o").num_rows == 5
        assert engine.stats()["shedding"]["drops"] == []
        assert engine.stats()["shedding"]["dropped"] == 40


def test_the_story_of_streams_boxes_and_outputs_tells_of_drop_boxes() -> None:
    with make_engine(passing()) as engine:
        control(engine).set([Drop("even", "s", 0.25, 3, ("o",))], "twice the capacity arrives")
        control(engine).set([Drop("even", "s", 0.25, 3, ("o",))], "still so")
        all_values = Drop("even", "s", 1.0, 3, ("o",), DropInterval("v", None, None))
        control(engine).set([all_values], "ten times the capacity arrives")
        control(engine).set([], "all is well")
        told = [
            "25% of the tuples of s are dropped: twice the capacity arrives",
            "100% of the tuples of s with any v are dropped: ten times the capacity arrives",
            "all tuples of s are taken again: all is well",
        ]
        for name in ("s", "even", "o"):
            assert [e["why"] for e in engine.story(name) if e["event"] == "shed"] == told


def test_losses_add_up_although_each_is_less_than_a_tuple() -> None:
    with make_engine(passing(), train=1) as engine:
        engine.enqueue("s", rows(10))
        engine.drain()
        control(engine).set([Drop("even", "s", 1.0, 3, ("o",))], "a test")
        engine.enqueue("s", rows(11))  # each of which is half a tuple, or a little less
        engine.drain()
        assert engine.stats()["shedding"]["outputs"] == {"o": 5}


def test_windows_with_fewer_tuples_are_not_lost() -> None:
    net = Network("windows")
    s = net.stream("s", schema="n int", progress=Ordered("n"))
    windows = s.aggregate(Order("n"), Window(size=10), total="count(*)", name="tens")
    net.output("o", windows, qos=QoS(loss=[(0, 0), (1, 1)]))
    with make_engine(net) as engine:
        for first in range(0, 9000, 100):
            if first == 1000:
                control(engine).set([Drop("tens", "s", 0.9, 3, ("o",), reason="random")], "a test")
            engine.enqueue("s", [(n,) for n in range(first, first + 100)])
            engine.drain()
        found = engine.stats()
    dropped, lost = found["shedding"]["dropped"], found["qos"]["o"]["shed"]
    assert dropped == pytest.approx(7200, rel=0.1)
    assert dropped / 20 < lost < dropped / 9
    assert found["boxes"]["tens"]["selectivity"] > 0.2  # lately: windows of fewer tuples


def test_a_superbox_loses_what_others_get() -> None:
    net = Network("two")
    s = net.stream("s", schema="n int")
    net.output("sums", s.aggregate(Order("n"), Window(size=10), total="sum(n)", name="sums"))
    net.output("all", s.filter("n >= 0", name="every"))
    with make_engine(net) as engine:
        control(engine).set([Drop("sums", "s", 1.0, 3, ("sums",))], "a test")
        engine.enqueue("s", [(n,) for n in range(100)])
        engine.finish()
        assert engine.dequeue("sums").num_rows == 0
        assert engine.dequeue("all").num_rows == 100


def shared_queries() -> Network:
    net = Network("shared")
    net.stream("s", schema="n int, v double", progress=Ordered("n"))
    net.query("low", "SELECT n FROM s WHERE v < 5")
    net.query("high", "SELECT n, v FROM s WHERE v >= 4")
    net.query("sums", "SELECT sum(v) AS total FROM s [RANGE 20, SLIDE 10, WA n] WHERE v > 1")
    return net


@pytest.mark.parametrize("train", [7, 1000])
def test_shared_queries_see_what_was_kept(train: int) -> None:
    def taken(rows_given: list[tuple[int, float]], *drops: Drop) -> dict[str, Any]:
        with make_engine(shared_queries(), train=train) as engine:
            names = {s.name for s in engine._loop.execution.superboxes if "s" in s.sources}
            for name in names if drops else ():
                control(engine).set([replace(drop, superbox=name) for drop in drops], "a test")
            engine.enqueue("s", rows_given)
            engine.finish()
            assert bool(engine.stats()["shedding"]["dropped"]) is bool(drops)
            return {q: engine.dequeue(q).to_pylist() for q in ("low", "high", "sums")}

    given = rows(300)
    drops = Drop("", "s", 0.4, 3, ()), Drop("", "s", 1.0, 3, (), DropInterval("v", 7, 9))
    table = pa.table({"_seq": range(300), "v": [row[1] for row in given]})
    kept = [row for row, who in zip(given, droppers(table, drops), strict=True) if who < 0]
    assert taken(given, *drops) == taken(kept)


# ── restarts ──


@pytest.mark.parametrize("point", ["recorded", "computed", "written", "before-commit", "committed"])
def test_a_restart_drops_the_same(tmp_path: Path, point: str) -> None:
    net, sink = passing(), Collector()
    passed: list[str] = []

    def fault(name: str) -> None:
        passed.append(name)
        if name == point and "recorded" in passed:
            raise Crash(name)

    with (
        contextlib.suppress(Crash),
        make_engine(net, bind=[("o", sink)], state=tmp_path, fault=fault) as engine,
    ):
        control(engine).set([Drop("even", "s", 0.5, 3, ("o",))], "a test")
        engine.enqueue("s", rows(200))
        engine.drain()
    assert passed[-1] == point
    with make_engine(net, bind=[("o", sink)], state=tmp_path) as engine:
        control(engine).set([Drop("even", "s", 1.0, 9, ("o",))], "another test")
        engine.drain()
        kept = ~chosen_moments(np.arange(200), 0.5, 3)
        assert [r["n"] for r in sink.rows] == [n for n in range(200) if kept[n] and n % 2 == 0]
        found = engine.stats()["shedding"]
        assert found["arcs"] == {"s": {"random": int((~kept).sum())}}
        (row,) = control(engine).log.rows()
        assert (row.first, row.last, row.dropped, row.taken) == (0, 200, int((~kept).sum()), 200)


def test_what_was_shed_is_remembered_over_restarts(tmp_path: Path) -> None:
    with make_engine(passing(), state=tmp_path) as engine:
        control(engine).set([Drop("even", "s", 1.0, 3, ("o",))], "a test")
        engine.enqueue("s", rows(7))
        engine.drain()
        before = engine.stats()["shedding"]
    with make_engine(passing(), state=tmp_path) as engine:
        found = engine.stats()["shedding"]
        assert found == {**before, "drops": []}
        assert [(row.first, row.last) for row in control(engine).log.rows()] == [(0, 7)]


# ── where nothing is dropped ──


def test_tuples_that_are_numbered_are_not_dropped() -> None:
    net = Network("numbered")
    stream = net.stream("s", schema="v int")
    net.output("o", net.box("number", "numbers", input=stream, **{"as": "n"}))
    with make_engine(net) as engine:
        control(engine).set([Drop("numbers", "s", 1.0, 3, ("o",))], "a test")
        engine.enqueue("s", [(7,), (8,)])
        engine.drain()
        assert engine.dequeue("o").num_rows == 2
        assert engine.stats()["shedding"]["drops"] == []
        told = [one["why"] for one in engine.story("numbers")]
        assert any("numbers the tuples of s" in why for why in told)


def test_tuples_that_change_tables_are_not_dropped() -> None:
    net = Network("writing")
    kept = net.stream("s", schema="k int, v int").filter("v > 0", name="positive")
    net.table("last", schema="k int, v int", key="k")
    sql = "INSERT INTO last VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET v = :v"
    net.output("o", kept.update(sql, name="u", k="k"))
    with make_engine(net) as engine:
        execution = engine._loop.execution
        superbox = next(one for one in execution.superboxes if one.name == "positive")
        assert objection(execution.checked, superbox, "s") == "u changes a table by them"
        control(engine).set([Drop("positive", "s", 1.0, 3, ("o",))], "a test")
        engine.enqueue("s", [(1, 7), (2, 8)])
        engine.drain()
        assert engine.table("last").num_rows == 2


def test_drop_boxes_of_superboxes_that_are_no_more_are_removed() -> None:
    with make_engine(passing()) as engine:
        control(engine).set([Drop("even", "s", 1.0, 3, ("o",))], "a test")
        engine.modify(remove=["outputs.o", "even"])
        engine.enqueue("s", rows(3))
        engine.drain()
        assert engine.stats()["shedding"]["drops"] == []


# ── what results say ──


def test_results_say_which_share_of_their_input_was_dropped() -> None:
    with make_engine(passing()) as engine:
        engine.enqueue("s", rows(10))
        engine.drain()
        control(engine).set([Drop("even", "s", 0.5, 3, ("o",))], "a test")
        engine.enqueue("s", rows(200, 10))
        engine.drain()
        share = chosen_moments(np.arange(10, 210), 0.5, 3).mean()
        found = engine.dequeue("o", shed=True)
        assert found.column_names == ["n", "v", "_shed"]
        expected = [0.0 if n < 10 else share for n in found["n"].to_pylist()]
        assert found["_shed"].to_pylist() == pytest.approx(expected)
        assert 0.4 < expected[-1] < 0.6
        assert engine.dequeue("o", shed=True).column_names == ["n", "v", "_shed"]
        assert "_shed" not in engine.dequeue("o").column_names


def test_windows_say_what_was_dropped_since_the_window_before() -> None:
    net = Network("windows")
    s = net.stream("s", schema="n int", progress=Ordered("n"))
    net.output("sums", s.aggregate(Order("n"), Window(size=10), count="count(*)", name="sums"))
    with make_engine(net) as engine:
        engine.enqueue("s", [(n,) for n in range(20)])
        engine.drain()
        control(engine).set([Drop("sums", "s", 1.0, 3, ("sums",), DropInterval("n", 25, 30))], "")
        engine.enqueue("s", [(n,) for n in range(20, 30)])
        engine.drain()
        control(engine).set([], "")
        engine.enqueue("s", [(n,) for n in range(30, 41)])
        engine.drain()
        found = engine.dequeue("sums", shed=True).to_pylist()
    assert [(row["count"], row["_shed"]) for row in found] == [
        (10, 0.0),
        (10, pytest.approx(0.05)),  # one moment of ten of the stretch in which half is dropped
        (5, pytest.approx(0.45)),
        (10, 0.0),
    ]


def test_results_of_attached_queries_say_what_was_dropped_before_their_arc() -> None:
    net = Network("attached")
    even = net.stream("s", schema="n int").filter("n % 2 = 0", name="even")
    net.output("o", even)
    net.connection_point("p", even, keep={"rows": 10})
    with make_engine(net) as engine:
        engine.attach("p", "SELECT n FROM p WHERE n > 0", name="a")
        control(engine).set([Drop("even", "s", 1.0, 3, ("o",), DropInterval("n", 5, None))], "")
        engine.enqueue("s", [(n,) for n in range(10)])
        engine.drain()
        found = engine.dequeue("a", shed=True).to_pylist()
    assert found == [{"n": 2, "_shed": 0.5}, {"n": 4, "_shed": 0.5}]
