"""Stories in an engine: who ran and waited is told of boxes, outputs and queries, by turns too."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.scheduling.trains import FIRST_TRAINS
from tests.conformance import sparkless

COUNTS = "SELECT count(*) AS c FROM s [ROWS 2]"


def network(qos: au.QoS | None = None, **options: Any) -> au.Network:
    """An output and two queries, of which one is shared, under names that are no box's."""
    net = au.Network("named")
    s = net.stream("s", "n int")
    net.output("alerts", s.filter("n > 0", name="positive"), qos=qos)
    net.query("hot", COUNTS)
    net.query("shared", "SELECT n FROM s WHERE n > 1")
    net.engine = au.EngineOptions(**options)
    return net


def drain(engine: Engine, rounds: int = 1) -> None:
    """Process some tuples in each of some rounds."""
    for _ in range(rounds):
        engine.enqueue("s", [{"n": n} for n in range(5)])
        engine.drain()


def told(engine: Engine, name: str, event: str) -> list[tuple[str, int]]:
    found = [entry for entry in engine.story(name) if entry["event"] == event]
    return [(entry["why"], entry["count"]) for entry in found]


@pytest.mark.parametrize("options", [{}, {"scheduler": "rr"}], ids=["auto", "rr"])
def test_who_takes_turns_is_told_once_for_many_steps(options: dict[str, Any]) -> None:
    with sparkless.make_engine(network(**options)) as engine:
        drain(engine, rounds=3)
        for name in ("positive", "alerts", "hot#1", "hot", "shared"):
            assert set(told(engine, name, "ran")) == {("in turn", 3)}, name


def test_boxes_with_threads_are_told_too() -> None:
    with sparkless.make_engine(network(scheduler="thread-per-box")) as engine:
        drain(engine)
        assert told(engine, "alerts", "ran") == [("in a thread of its own", 1)]


def test_what_a_scheduler_decides_is_told_of_outputs_and_queries() -> None:
    graphs = au.QoS(latency=[(0, 1), (5, 1), (9, 0)])
    with sparkless.make_engine(network(graphs)) as engine:
        drain(engine)
        for name in ("positive", "alerts", "hot#1", "hot", "shared"):
            assert "until waiting costs utility" in told(engine, name, "ran")[-1][0], name
        assert told(engine, "alerts", "ran")[0][0].startswith("alerts: ")


def test_first_trains_are_short_where_latency_counts() -> None:
    """Nobody knows yet that a box is slow: it must not take all that waits at once."""
    graphs = au.QoS(latency=[(0, 1), (5, 1), (9, 0)])
    rows = [{"n": n} for n in range(3 * FIRST_TRAINS)]
    for qos, calls in (graphs, 3), (None, 1):
        with sparkless.make_engine(network(qos)) as engine:
            engine.enqueue("s", rows)
            engine.drain()
            assert engine.stats()["boxes"]["positive"]["calls"] == calls
            assert engine.dequeue("alerts").num_rows == len(rows) - 1


def test_who_waits_for_the_turns_of_others_says_how_long_and_for_whom() -> None:
    with sparkless.make_engine(network()) as engine:
        ticks = count()
        engine._context.times._now_s = lambda: next(ticks) / 2  # half a second at each look
        drain(engine)
        order = [s.name for s in engine._loop.execution.superboxes]
        first, last = order[0], order[-1]
        assert told(engine, first, "waited") == []
        ((why, _),) = told(engine, last, "waited")
        how_long, whom = why.removeprefix("waited ").split(" s: it was the turn of ")
        assert float(how_long) > 0.4
        assert whom == order[-2]


def test_who_only_waits_for_its_own_steps_has_not_waited() -> None:
    net = au.Network("alone")
    net.output("o", net.stream("s", "n int").filter("n > 0", name="positive"))
    with sparkless.make_engine(net, train=1) as engine:
        ticks = count()
        engine._context.times._now_s = lambda: next(ticks) / 2
        drain(engine)
        assert told(engine, "o", "ran") == [("in turn", 5)]
        assert told(engine, "o", "waited") == []
