"""The load shedder in an engine: it begins, raises, ends, and stays away where nobody asked."""

from __future__ import annotations

from typing import Any

import pytest

from auroral import Network, Order, QoS, Window
from auroral.engine import Engine
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.shedding import shedder
from auroral.engine.shedding.shedder import PERIOD_S, LoadShedder
from auroral.errors import RunError
from auroral.network.declarations import EngineOptions
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.shedding import control
from auroral.shedding.planning import _Planner
from tests.conformance.sparkless import make_engine

LOSS = QoS(loss=[(1, 1), (0.5, 0.8), (0, 0)])
VALUE = QoS(loss=[(1, 1), (0, 0)], value={"on": "v", "graph": [(0, 0), (100, 1)]})
COST = BoxCost().after(1000, 1000, 1.0)
"""A millisecond for each tuple."""


class Periods:
    """An engine that is fed a period at a time, by a clock of its own."""

    def __init__(self, engine: Engine, *, live: bool = True, cost: BoxCost = COST):
        context = engine._context
        self.engine, self.now_s = engine, 0.0
        self.times = ArrivalTimes(now_s=lambda: self.now_s)
        self.shedder = LoadShedder(
            context.store,
            context.shedding,
            context.quality,
            self.times,
            context.decisions,
            workers=4,  # of which one superbox can use one
            now_s=lambda: self.now_s,
        )
        self.live = live
        self.cost = cost

    def __call__(self, rows: int, *, capacity: int = 400) -> Any:
        """A period in which so many tuples arrive, and at most `capacity` are processed."""
        engine, execution = self.engine, self.engine._loop.execution
        engine.enqueue("s", [(n, float(n % 100)) for n in range(rows)])
        engine._ingest.seal()
        self.times.arrived(engine._ingest.next_moment)
        self._work(capacity)
        with engine._store.lock:
            engine._store.costs = dict.fromkeys(execution.checked.network.boxes, self.cost)
        self.now_s += PERIOD_S
        starting = execution.stepper.starting
        self.shedder.tick(
            execution.checked, execution.superboxes, {}, live=self.live, starting=starting
        )
        return engine.stats()["shedding"]

    def drain(self) -> None:
        """Process all that waits."""
        self.engine._loop.execution.stepper.train = DEFAULT_TRAIN
        self.engine.drain()

    def _work(self, capacity: int) -> None:
        """Process as many tuples as fit; those that are dropped cost nothing."""
        loop, tally = self.engine._loop, self.engine._context.shedding.tally
        loop.execution.stepper.train = max(capacity // 8, 1)
        most = sum(tally._processed.values()) + capacity
        while sum(tally._processed.values()) < most and loop.work():
            pass


def network(qos: QoS | None = LOSS, **options: Any) -> Network:
    net = Network("busy")
    net.engine = EngineOptions(**options)
    passed = net.stream("s", schema="n int, v double").filter("n >= 0", name="passed")
    net.output("o", passed, qos=qos)
    return net


def test_an_overload_is_shed_and_when_it_ends_nothing_is() -> None:
    with make_engine(network()) as engine:
        period = Periods(engine)
        assert period(200)["drops"] == []
        for _ in range(8):
            found = period(800)
        (place,) = found["drops"]
        assert (place["superbox"], place["arc"]) == ("passed", "s")
        (drop,) = place["boxes"]
        assert 0.4 < drop["rate"] < 0.8
        assert drop["reason"] == "random"
        assert found["load"] == pytest.approx(2.5, rel=0.1)  # of what the headroom leaves
        before = engine.stats()["streams"]["s"]["in"]
        found = period(800)
        assert engine.stats()["streams"]["s"]["in"] == before + 800
        told = [entry["why"] for entry in engine.story("o") if entry["event"] == "shed"]
        assert "of the tuples of s are dropped" in told[-1]
        assert "times the capacity arrives" in told[-1]
        for _ in range(10):
            found = period(100)
        assert found["drops"] == []
        period.drain()
        total = engine.stats()["qos"]["o"]
        assert total["shed"] > 0
        assert total["shed_by"] == {"random": total["shed"]}
        assert total["delivered"] + total["shed"] == engine.stats()["streams"]["s"]["in"]


def test_tuples_that_are_processed_at_once_are_not_dropped_however_dear_they_seem() -> None:
    with make_engine(network()) as engine:
        period = Periods(engine, cost=BoxCost().after(1000, 1000, 10.0))
        for _ in range(10):
            found = period(800, capacity=100_000)
        assert found["load"] > 10
        assert (found["drops"], found["dropped"]) == ([], 0)


def test_nothing_is_shed_before_first_calls_and_what_waits_since_then_is_worked_off() -> None:
    with make_engine(network()) as engine:
        period = Periods(engine)
        for _ in range(20):  # Spark compiles
            found = period(100, capacity=0)
            assert (found["drops"], found["load"]) == ([], 0.0)
        for _ in range(40):
            found = period(300)
        assert (found["drops"], found["dropped"]) == ([], 0)
        assert engine.stats()["qos"]["o"]["delivered"] == 40 * 300 + 20 * 100


def test_new_superboxes_have_first_calls_and_those_that_stay_have_had_them() -> None:
    with make_engine(network(superbox="box")) as engine:
        period = Periods(engine)
        for _ in range(6):
            period(100)
        stepper = engine._loop.execution.stepper
        assert not stepper.starting
        added = {"box": "filter", "input": "s", "where": "v > 3"}
        engine.modify(add={"high": added, "outputs": {"p": {"from": "high"}}})
        period(100, capacity=0)
        assert engine._loop.execution.stepper is not stepper
        assert engine._loop.execution.stepper.starting == {"high"}
        for _ in range(3):
            period(100)
        assert not engine._loop.execution.stepper.starting


def test_boxes_of_tables_have_no_first_calls_that_shedding_waits_for() -> None:
    net = Network("busy")
    stream = net.stream("s", schema="n int, v double")
    net.output("o", stream.filter("n >= 0", name="passed"), qos=LOSS)
    net.table("totals", "n int, many bigint", key=["n"])
    net.output("p", stream.latch(by=["n"], table="totals", many="count(*)"))
    with make_engine(net) as engine:
        period = Periods(engine)
        for _ in range(6):
            period(100)
        stepper = engine._loop.execution.stepper
        assert any(step.superbox.tables for step in stepper._steps.values())
        assert not stepper.starting
        found = [period(2_000) for _ in range(10)]
        assert found[-1]["drops"]


@pytest.mark.parametrize(
    ("net", "live"),
    [
        (network(qos=None), True),
        (network(qos=QoS(latency=[(0, 1), (2, 1), (10, 0)])), True),
        (network(shedding="off"), True),
        (network(), False),
    ],
    ids=["no graph", "no loss graph", "off", "files can wait"],
)
def test_nothing_is_shed_where_nobody_asked(net: Network, live: bool) -> None:
    with make_engine(net) as engine:
        period = Periods(engine, live=live)
        for _ in range(8):
            found = period(2000)
        assert (found["drops"], found["dropped"], found["load"]) == ([], 0, None)


@pytest.mark.parametrize("mode", ["random", "admission"])
def test_a_network_that_says_how_sheds_without_graphs(mode: str) -> None:
    with make_engine(network(qos=None, shedding=mode)) as engine:
        period = Periods(engine, live=False)
        for _ in range(8):
            found = period(2000)
        (place,) = found["drops"]
        assert place["boxes"][0]["reason"] == mode
        assert list(found["arcs"]["s"]) == [mode]
        assert list(engine.stats()["qos"]["o"]["shed_by"]) == [mode]


@pytest.mark.parametrize(
    "worth",
    ["v * 2", "v * v / 50", "CASE WHEN v < 60 THEN v * 3 / 2 ELSE 2 * v - 20 END"],
    ids=["by its inverse", "by trial", "by trial of cases"],
)
def test_the_least_valuable_tuples_are_dropped_first(worth: str) -> None:
    net = Network("worthy")
    scaled = net.stream("s", schema="n int, v double").map(name="scaled", keep=("n",), worth=worth)
    busy = scaled.filter("n >= 0", name="busy")
    net.output("o", busy, qos=QoS(value={"on": "worth", "graph": [(0, 0), (200, 1)]}))
    with make_engine(net) as engine:
        period = Periods(engine)
        for _ in range(4):
            period(150)  # which values there are
        for _ in range(8):
            found = period(800)
        ((drop, *_),) = [place["boxes"] for place in found["drops"]]
        assert drop["reason"] == "semantic"
        assert drop["interval"]["field"] == "v"
        assert not drop["interval"]["low"]  # none, or the least value of the sample
        period.drain()
        engine.dequeue("o")
        period(800, capacity=100_000)
        kept = engine.dequeue("o")["worth"].to_pylist()
        assert sum(value < 45 for value in kept) <= 0.05 * len(kept)  # a sample has gaps
        assert max(kept) > 170


def test_an_output_without_graphs_loses_nothing_to_one_that_may() -> None:
    """They share a stream, and run apart, so that tuples can be dropped for one of them."""
    net = Network("both")
    s = net.stream("s", schema="n int, v double")
    net.output("whole", s.filter("n >= 0", name="kept"))
    net.output("o", s.filter("n >= 0", name="passed"), qos=LOSS)
    with make_engine(net) as engine:
        period = Periods(engine)
        for _ in range(8):
            found = period(1200)
        (place,) = found["drops"]
        assert (place["superbox"], place["arc"]) == ("passed", "s")
        period.drain()
        came, dropped = engine.stats()["streams"]["s"]["in"], engine.stats()["shedding"]["dropped"]
        assert dropped > 0
        assert engine.dequeue("whole").num_rows == came
        assert engine.dequeue("o").num_rows == came - dropped


def test_graphs_that_are_taken_away_end_shedding() -> None:
    with make_engine(network()) as engine:
        period = Periods(engine)
        for _ in range(8):
            assert period(2000)["mode"] == "auto"
        assert engine.stats()["shedding"]["drops"]
        engine.set_qos("o", None)
        assert period(2000)["drops"] == []


def test_outputs_that_the_scheduler_does_not_serve_are_left_alone() -> None:
    net = Network("neglected")
    stream = net.stream("s", schema="n int, v double")
    cheap = QoS(loss=[(1, 1), (0, 0.9)])  # whose tuples would be dropped first
    net.output("o", stream.filter("n >= 0", name="passed"), qos=LOSS)
    net.output("p", stream.filter("n >= 1", name="left"), qos=cheap)
    with make_engine(net) as engine:
        period = Periods(engine)
        for _ in range(3):
            period(50)
        stepper = engine._loop.execution.stepper
        stepper.halted["left"] = RunError("STEP_TIMEOUT", "it takes too long")
        for _ in range(20):
            found = period(800)
        assert {place["superbox"] for place in found["drops"]} == {"passed"}
        assert found["load"] < 10
        stepper.halted.clear()
        for _ in range(20):
            found = period(800)
        assert "left" in {place["superbox"] for place in found["drops"]}


def test_what_waits_is_shed_too() -> None:
    """Drop boxes apply to the trains that are formed, whenever their tuples came."""
    with make_engine(network()) as engine:
        period = Periods(engine)
        while not period(1200)["drops"]:
            pass
        waits = engine._loop.execution.stepper.waiting_tuples("passed").rows
        assert waits > 1500
        period.drain()
        found = engine.stats()["shedding"]
        assert found["dropped"] > 0.5 * waits
        came = engine.stats()["streams"]["s"]["in"]
        assert engine.dequeue("o").num_rows == came - found["dropped"]


def test_plans_are_there_when_an_overload_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shedder, "_PAUSE", 0.0)
    with make_engine(network()) as engine:
        period = Periods(engine)
        for _ in range(40):
            assert period(200)["drops"] == []
        monkeypatch.setattr(control, "plan_table", None)
        monkeypatch.setattr(_Planner, "plan", None)
        for _ in range(8):
            found = period(800)
        assert found["drops"]


def test_nothing_is_dropped_once_shedding_is_off() -> None:
    with make_engine(network()) as engine:
        period = Periods(engine)
        for _ in range(8):
            found = period(1200)
        assert found["drops"]
        period.drain()
        dropped = engine.stats()["shedding"]["dropped"]
        engine._loop._shedder = period.shedder
        engine.modify(network=network(shedding="off"))
        engine.enqueue("s", [(n, 0.0) for n in range(1000)])
        engine.drain()  # no period ends meanwhile
        assert engine.stats()["shedding"]["dropped"] == dropped
        assert engine.stats()["shedding"]["drops"] == []


def test_boxes_that_come_or_go_do_not_end_shedding() -> None:
    with make_engine(network()) as engine:
        period = Periods(engine)
        for _ in range(8):
            before = period(1200)
        rate = before["drops"][0]["boxes"][0]["rate"]
        added = {"box": "filter", "input": "s", "where": "v > 200"}
        engine.modify(add={"high": added, "outputs": {"p": {"from": "high"}}})
        assert len(engine._loop.execution.superboxes) == 2, "two can run at a time"
        for _ in range(3):
            (place,) = period(1200)["drops"]
            assert place["boxes"][0]["rate"] >= rate
        engine.modify(remove=["outputs.p", "high"])
        for _ in range(3):
            assert period(1200)["drops"]
        told = [entry["why"] for entry in engine.story("o") if entry["event"] == "shed"]
        assert not any("measured anew" in why for why in told)


def test_a_network_may_change_while_it_sheds() -> None:
    net = network()
    with make_engine(net) as engine:
        period = Periods(engine)
        for _ in range(8):
            period(2000)
        assert engine.stats()["shedding"]["drops"]
        engine.modify(
            add={
                "sums": net.streams
                and {
                    "box": "aggregate",
                    "input": "s",
                    "order": Order("n").model_dump(exclude_none=True),
                    "window": Window(size=10).model_dump(exclude_none=True),
                    "compute": {"c": "count(*)"},
                },
                "outputs": {"p": {"from": "sums", "qos": {"loss": [[1, 1], [0, 0]]}}},
            }
        )
        for _ in range(8):
            found = period(3000)
        places = {(place["superbox"], place["arc"]) for place in found["drops"]}
        assert ("passed", "s") in places
