"""Quality of service in a running engine, without Spark and with a clock that tests set."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import auroral as au
from auroral.cli.main import app
from auroral.engine import Engine
from auroral.engine.inspect.quality import MOST_VALUES
from auroral.engine.runtime.stepper import Stepper
from auroral.errors import NetworkError, UsageError
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow_models import flow_model
from auroral.shedding.drops import Drop
from auroral.storage import Change
from tests.conformance.sparkless import make_engine

TIGHT = {"latency": [[0, 1], [2, 1], [10, 0]]}
VALUED = {"value": {"on": "pos", "graph": [[0, 0], [100, 1]]}}


class Clock:
    """The time of arrivals and deliveries, in seconds; it stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = math.ceil(time.monotonic()) + 1.0

    def __call__(self) -> float:
        return self.now


def document(**more: Any) -> dict[str, Any]:
    return {
        "network": "roads",
        "streams": {"reports": {"schema": {"vid": "int", "pos": "int"}}},
        "boxes": {
            "far": {"box": "filter", "input": "reports", "where": "pos > 30"},
            "sorted": {"box": "bsort", "input": "far", "order": {"on": "vid", "slack": 1}},
        },
        "outputs": {"alerts": {"from": "far", "qos": TIGHT}, "all": {"from": "reports"}},
        **more,
    }


@contextmanager
def running(found: dict[str, Any], **options: Any) -> Iterator[tuple[Engine, Clock]]:
    with make_engine(au.Network.parse(found), **options) as engine:
        clock = Clock()
        engine._context.times._now_s = clock
        engine._context.quality._now_s = clock
        yield engine, clock


def rows(*positions: int) -> list[tuple[int, int]]:
    return list(enumerate(positions))


def test_delay_is_the_time_from_arrival_to_commit() -> None:
    with running(document()) as (engine, clock):
        engine.enqueue("reports", rows(40, 50, 10))
        clock.now += 2
        engine.enqueue("reports", rows(60))
        clock.now += 4
        engine.drain()
        found = engine.stats()["qos"]["alerts"]
        assert found["delivered"] == 3
        assert found["delay_s"] == pytest.approx((6 * 2 + 4) / 3, rel=0.2)
        assert not found["good_zone"]
        assert 0.5 <= found["latency"] < 1
        assert found["utility"] == found["latency"]
        assert found["loss"] == found["value"] == found["throughput"] == 1
        assert found["lost"]["delay"] > 0
        everything = engine.stats()["qos"]["all"]
        assert (everything["delivered"], everything["delay_s"]) == (4, 0.0)
        assert everything["good_zone"]
        assert engine._context.quality.outside() == 0.5
        assert engine.stats()["qos_outside"] == {"share": 0.5, "outputs": ["alerts"]}


def test_an_output_is_outside_its_good_zone_while_tuples_wait_for_too_long() -> None:
    with running(document()) as (engine, clock):
        engine.enqueue("reports", rows(40, 50))
        engine._loop._ingest.seal()
        clock.now += 1
        found = engine.stats()["qos"]["alerts"]
        assert (found["good_zone"], found["utility"]) == (True, 1)
        assert found["waiting_s"] == pytest.approx(1, abs=0.5)
        clock.now += 99
        assert engine.stats()["qos_outside"]["outputs"] == ["alerts"]
        assert engine._context.quality.outside() == 0.5
        assert [(n, good) for n, _, good in engine._context.quality.doing()] == [("alerts", False)]
        found = engine.stats()["qos"]["alerts"]
        assert (found["utility"], found["now"]["latency"], found["delay_s"]) == (0, 0, None)
        engine.drain()
        engine.enqueue("reports", rows(60))
        engine.drain()
        found = engine.stats()["qos"]["alerts"]
        assert (found["good_zone"], found["waiting_s"], found["now"]["latency"]) == (True, 0, 1)


def test_tuples_that_come_while_spark_starts_are_seen_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = threading.Event()
    monkeypatch.setattr(Stepper, "warm_up", lambda _stepper: started.wait(60))
    try:
        with running(document(), background=True) as (engine, clock):
            engine.enqueue("reports", rows(40, 50))
            clock.now += 3
            found = engine.stats()
            assert (found["boxes"]["far"]["queued"], found["streams"]["reports"]["queued"]) == (
                2,
                2,
            )
            assert found["qos"]["alerts"]["waiting_s"] == pytest.approx(3)
            assert not found["qos"]["alerts"]["good_zone"]
            started.set()
            engine.drain()
            assert engine.stats()["qos"]["alerts"]["waiting_s"] == 0
    finally:
        started.set()


def test_what_waits_during_a_pause_or_for_a_halted_box_is_not_late() -> None:
    with running(document()) as (engine, clock):
        engine.enqueue("reports", rows(40, 50))
        engine._loop._ingest.seal()
        engine.pause()
        clock.now += 100
        assert engine.stats()["qos_outside"]["outputs"] == []
        engine.resume()
        clock.now += 3
        assert engine.stats()["qos_outside"]["outputs"] == ["alerts"]
        stepper = engine._loop.execution.stepper
        for superbox in engine._loop.execution.superboxes:
            stepper.halted[superbox.name] = au.RunError("STEP_TIMEOUT", "it takes too long")
        assert engine.stats()["qos_outside"]["outputs"] == []
        stepper.halted.clear()


def test_tuples_in_open_windows_do_not_wait() -> None:
    found = document(outputs={"late": {"from": "sorted", "qos": TIGHT}})
    with running(found) as (engine, clock):
        engine.enqueue("reports", rows(40))
        engine.drain()
        clock.now += 100
        assert engine.stats()["qos"]["late"]["good_zone"]


def test_each_train_of_a_stream_is_counted_once() -> None:
    with running(document(), train=3) as (engine, _clock):
        engine.enqueue("reports", rows(*range(100)))
        engine.drain()
        found = engine.stats()["qos"]
        assert found["all"]["delivered"] == 100
        assert found["alerts"]["delivered"] == 69


def test_boxes_with_state_are_told_of_too() -> None:
    found = document(outputs={"late": {"from": "sorted", "qos": TIGHT}})
    with running(found) as (engine, clock):
        engine.enqueue("reports", rows(40, 50, 60))
        clock.now += 10
        engine.drain()
        told = engine.stats()["qos"]["late"]
        assert (told["delivered"], told["latency"]) == (2, 0.0)
        engine.finish()
        told = engine.stats()["qos"]["late"]
        assert (told["delivered"], told["now"]["latency"]) == (3, 1.0)  # the end came just now


def test_values_are_looked_at_if_there_is_a_graph_for_them() -> None:
    outputs = {"alerts": {"from": "far", "qos": VALUED}, "all": {"from": "reports", "qos": VALUED}}
    with running(document(outputs=outputs)) as (engine, clock):
        engine.enqueue("reports", [*rows(50, 100), (7, None)])
        engine.drain()
        found = engine.stats()["qos"]
        assert found["alerts"]["value"] == found["alerts"]["utility"] == 0.75
        assert found["all"]["value"] == 0.75
        counts = engine._context.quality.monitor.value_counts("alerts", clock.now)
        assert counts is not None
        assert sum(counts[1]) == 2


def test_so_many_values_are_looked_at_in_a_second() -> None:
    outputs = {"alerts": {"from": "far", "qos": VALUED}}
    with running(document(outputs=outputs)) as (engine, clock):
        for _ in range(2):
            engine.enqueue("reports", rows(*([40] * (MOST_VALUES - 1))))
            engine.drain()
        counts = engine._context.quality.monitor.value_counts("alerts", clock.now)
        assert counts is not None
        assert MOST_VALUES - 1 <= sum(counts[1]) <= MOST_VALUES
        clock.now += 1
        engine.enqueue("reports", rows(*([40] * 100)))
        engine.drain()
        counts = engine._context.quality.monitor.value_counts("alerts", clock.now)
        assert counts is not None
        assert sum(counts[1]) >= MOST_VALUES - 1 + 100


def test_queries_that_share_an_eddy_and_those_with_boxes_of_their_own() -> None:
    found = document(
        queries={"near": "SELECT vid, pos FROM reports WHERE pos < 50"},
        outputs={"n": {"from": "near", "qos": {**TIGHT, **VALUED}}, "alerts": {"from": "far"}},
    )
    with running(found) as (engine, clock):
        engine.enqueue("reports", rows(10, 20, 60))
        clock.now += 6
        engine.drain()
        told = engine.stats()["qos"]["n"]
        assert told["delivered"] == engine.dequeue("n").num_rows == 2
        assert told["latency"] == 0.5
        assert told["value"] == pytest.approx(0.15)
        flow = engine._context.quality.flow_outputs()
        model = flow_model(
            engine._loop.execution.checked, {}, flow, engine._loop.execution.superboxes
        )
        assert {name for box in model.boxes for name in model.outputs_of(box)} == {"n", "alerts"}


def test_results_of_shared_queries_are_counted_exactly(tmp_path: Path) -> None:
    """Also when a step tells the sum of all before, and after a restart."""
    found = document(
        queries={
            "near": "SELECT vid, pos FROM reports WHERE pos < 50",
            "mean": "SELECT vid, avg(pos) AS m FROM reports [ROWS 3, SLIDE 3] GROUP BY vid",
            "pairs": "SELECT a.vid FROM reports [ROWS 4] a, far [ROWS 4] b WHERE a.vid = b.vid",
            "each": {
                "sql": "SELECT pos FROM reports WHERE pos > :least",
                "values": [{"rule": 1, "least": 10}, {"rule": 2, "least": 40}],
                "key": "rule",
            },
        },
        outputs={
            "n": {"from": "near"},
            "m": {"from": "mean", "qos": {"value": {"on": "m", "graph": [[0, 0], [100, 1]]}}},
            "p": {"from": "pairs"},
            "e": {"from": "each", "qos": VALUED},
        },
    )
    taken = dict.fromkeys(found["outputs"], 0)
    for _ in range(2):
        with running(found, state=tmp_path, durability="process") as (engine, _clock):
            for number in range(70):
                engine.enqueue("reports", [(number % 2, number), (1, 45)])
                engine.drain()
            told = engine.stats()["qos"]
            taken = {name: n + engine.dequeue(name).num_rows for name, n in taken.items()}
            assert {name: told[name]["delivered"] for name in taken} == taken
            assert min(taken.values()) > 0
            assert 0 < told["m"]["value"] < 1
            assert 0 < told["e"]["value"] < 1


def test_qos_can_be_changed_while_running() -> None:
    with running(document()) as (engine, clock):
        engine.enqueue("reports", rows(40))
        clock.now += 6
        engine.drain()
        assert engine.stats()["qos"]["alerts"]["utility"] == 0.5
        engine.set_qos("alerts", {"latency": [[0, 1], [20, 1], [30, 0]]})
        engine.enqueue("reports", rows(40))
        clock.now += 6
        engine.drain()
        assert engine.stats()["qos"]["alerts"]["utility"] == 1.0
        assert engine.describe("alerts")["quality"]["qos"]["latency"][1] == [20, 1]
        assert engine.describe("alerts")["quality"]["history"][-1]["utility"] == 1.0
        engine.set_qos("alerts", None)
        assert engine.describe("alerts")["quality"]["qos"] is None
        assert [entry["event"] for entry in engine.story("alerts")].count("changed") == 2


def test_qos_that_cannot_be_set() -> None:
    with running(document()) as (engine, _clock):
        with pytest.raises(UsageError, match=r"UNKNOWN_OUTPUT.*alerts, all"):
            engine.set_qos("alarms", None)
        with pytest.raises(NetworkError, match=r"BAD_QOS.*falls"):
            engine.set_qos("alerts", {"latency": [[0, 0], [1, 1]]})
        with pytest.raises(NetworkError, match=r"UNKNOWN_FIELD.*speed"):
            engine.set_qos("alerts", {"value": {"on": "speed", "graph": [[0, 0], [1, 1]]}})
        with pytest.raises(UsageError, match="BAD_CALL"):
            engine.set_qos("alerts", 5)  # type: ignore[arg-type]
        assert engine._context.quality.outputs["alerts"] == au.QoS.model_validate(TIGHT)


LOOSE = {"latency": [[0, 1], [20, 1], [30, 0]]}
OTHER = {"latency": [[0, 1], [7, 1], [9, 0]]}


def holds(engine: Engine) -> Any:
    qos = engine._context.quality.outputs["alerts"]
    return None if qos is None else qos.document()


def test_what_was_set_survives_until_the_file_says_something_else(tmp_path: Path) -> None:
    with running(document(), state=tmp_path) as (engine, _clock):
        engine.set_qos("alerts", LOOSE)
    with running(document(), state=tmp_path) as (engine, _clock):
        assert holds(engine) == LOOSE
        engine.set_qos("alerts", None)
    with running(document(), state=tmp_path) as (engine, _clock):
        assert holds(engine) is None
    outputs = {"alerts": {"from": "far", "qos": OTHER}, "all": {"from": "reports"}}
    for _ in range(2):
        with running(document(outputs=outputs), state=tmp_path) as (engine, _clock):
            assert holds(engine) == OTHER
    with running(document(), state=tmp_path) as (engine, _clock):
        assert holds(engine) == TIGHT


def test_what_modify_declares_takes_the_place_of_what_was_set(tmp_path: Path) -> None:
    with running(document(), state=tmp_path) as (engine, _clock):
        engine.set_qos("alerts", LOOSE)
        engine.modify(remove=["outputs.all"])
        assert holds(engine) == LOOSE
        changed = {"outputs": {"alerts": {"from": "far", "qos": OTHER}}}
        engine.modify(add=changed, remove=["outputs.alerts"])
        assert holds(engine) == OTHER
        assert set(engine.stats()["qos"]) == {"alerts"}
    with running(document(), state=tmp_path) as (engine, _clock):
        assert holds(engine) == OTHER


def test_views_may_have_graphs_as_well() -> None:
    found = document(views={"recent": {"from": "far", "keep": "all", "qos": TIGHT}})
    with running(found) as (engine, clock):
        engine.enqueue("reports", rows(40))
        clock.now += 6
        engine.drain()
        assert engine.stats()["qos"]["recent"]["utility"] == 0.5
        engine.set_qos("recent", LOOSE)
        assert engine._context.quality.outputs["recent"] is not None


def test_views_tell_what_they_lost_and_why_their_boxes_ran() -> None:
    graphs = {"loss": [[0, 0], [1, 1]]}
    views = {"recent": {"from": "far", "keep": "all", "qos": graphs}}
    with running(document(views=views, outputs={"all": {"from": "reports"}})) as (engine, _clock):
        engine.enqueue("reports", rows(*[40] * 100))
        engine.drain()
        engine._context.shedding.set([Drop("far", "reports", 1.0, 3, ("recent",))], "a test")
        engine.enqueue("reports", rows(*[40] * 100))
        engine.drain()
        found = engine.stats()["qos"]["recent"]
        assert (found["delivered"], found["shed"], found["loss"]) == (100, 100, 0.5)
        assert found["shed_by"] == {"random": 100}
        assert {entry["event"] for entry in engine.story("recent")} == {"ran", "shed"}


def test_what_was_shed_lowers_the_share_delivered() -> None:
    graphs = {"loss": [[0, 0], [1, 1]]}
    outputs = {"alerts": {"from": "far", "qos": graphs}}
    with running(document(outputs=outputs)) as (engine, clock):
        engine.enqueue("reports", rows(40, 40, 40))
        engine.drain()
        engine._context.quality.monitor.record("alerts", clock.now, shed={"random": 1})
        found = engine.stats()["qos"]["alerts"]
        assert (found["shed"], found["delivered"], found["loss"]) == (1, 3, 0.75)


def test_streams_tell_how_fast_tuples_arrive() -> None:
    with running(document()) as (engine, _clock):
        assert engine.stats()["streams"]["reports"]["rate"] == 0.0
        engine.enqueue("reports", rows(*range(500)))
        assert engine.stats()["streams"]["reports"]["rate"] > 10


def slow(tmp_path: Path) -> None:
    """A state directory in which the box `far` was measured to need half a second a call."""
    with running(document(), state=tmp_path) as (engine, _clock):
        cost = BoxCost()
        for tuples in (100, 200, 400):
            cost = cost.after(tuples, tuples, 0.5 + tuples * 1e-4)
        engine._store.commit(Change(costs={"far": cost}))


@pytest.mark.parametrize(("good_s", "warned"), [(0.25, True), (0.75, False)])
def test_graphs_that_ask_for_more_than_was_measured(
    tmp_path: Path, good_s: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    slow(tmp_path / "state")
    assert not caplog.messages
    quick = {"latency": [[0, 1], [good_s, 1], [9, 0]]}
    outputs = {"alerts": {"from": "far", "qos": quick}, "all": {"from": "reports", "qos": quick}}
    with running(document(outputs=outputs), state=tmp_path / "state"):
        assert [("INFEASIBLE_QOS" in one, "alerts" in one) for one in caplog.messages] == (
            [(True, True)] if warned else []
        )


def test_graphs_that_are_set_are_compared_with_what_was_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow(tmp_path / "state")
    outputs: dict[str, Any] = {"alerts": {"from": "far"}}
    with running(document(outputs=outputs), state=tmp_path / "state") as (engine, _clock):
        assert "infeasible" not in engine.stats()["qos"]["alerts"]
        engine.set_qos("alerts", {"latency": [[0, 1], [0.25, 1], [9, 0]]})
        assert ["INFEASIBLE_QOS" in one for one in caplog.messages] == [True]
        assert "ends at 0.25 s" in engine.stats()["qos"]["alerts"]["infeasible"]
        engine.set_qos("alerts", {"latency": [[0, 1], [2, 1], [9, 0]]})
        assert len(caplog.messages) == 1
        assert "infeasible" not in engine.stats()["qos"]["alerts"]
        more = {"from": "far", "qos": {"latency": [[0, 1], [0.125, 1], [9, 0]]}}
        engine.modify(add={"outputs": {"sooner": more}})
        assert ["sooner" in one for one in caplog.messages] == [False, True]
        assert "ends at 0.125 s" in engine.stats()["qos"]["sooner"]["infeasible"]


@pytest.mark.parametrize(("good_s", "warned"), [(0, True), (0.001, True), (0.5, False)])
def test_a_deadline_that_no_call_can_meet_is_told_before_anything_was_measured(
    tmp_path: Path, good_s: float, warned: bool
) -> None:
    points = [[0, 1], *([[good_s, 1]] if good_s else []), [9, 0]]
    qos = {"latency": points}
    outputs = {"alerts": {"from": "far", "qos": qos}, "all": {"from": "reports"}}
    views = {"recent": {"from": "far", "keep": "all", "qos": qos}}
    file = tmp_path / "roads.json"
    file.write_text(json.dumps(document(outputs=outputs, views=views)))
    said = CliRunner().invoke(app, ["check", str(file)]).output
    for name in ("alerts", "recent"):
        told = f"output {name}: the good zone of its latency graph ends at {good_s:g} s, but a"
        assert (told in said) == warned


def test_check_warns_by_what_was_measured_in_a_state_directory(tmp_path: Path) -> None:
    slow(tmp_path / "state")
    outputs = {"alerts": {"from": "far", "qos": {"latency": [[0, 1], [0.25, 1], [9, 0]]}}}
    file = tmp_path / "roads.json"
    file.write_text(json.dumps(document(outputs=outputs)))
    runner = CliRunner()
    without = runner.invoke(app, ["check", str(file)])
    assert (without.exit_code, without.stderr) == (0, "")
    found = runner.invoke(app, ["check", str(file), "--state", str(tmp_path / "state")])
    assert found.exit_code == 0
    assert "warning: output alerts: the good zone of its latency graph ends at 0.25 s" in (
        found.stderr
    )
