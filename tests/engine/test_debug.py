"""Pausing, stepping, breakpoints, and what they leave alone."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

import auroral as au
from auroral.engine.debug.pausing import LASTING, held_superboxes, served_applications
from auroral.errors import NetworkError, UsageError
from auroral.scheduling.superboxes import Superbox
from tests.conformance.sparkless import make_engine


def network() -> au.Network:
    """Soldiers that are across, doubled for `all`, and counted by twos for `alerts`."""
    net = au.Network("soldiers")
    reports = net.stream("reports", "sid int, time bigint, pos int", progress=au.Ordered("time"))
    across = reports.filter("pos >= 30", name="across")
    order, window = au.Order("time"), au.Window(size=2)
    crowd = across.aggregate(order=order, window=window, cnt="count(*)", name="crowd")
    net.output("alerts", crowd.filter("cnt >= 2", name="enough"))
    net.output("all", across.map(keep=["sid"], double="pos * 2", name="doubled"))
    return net


ROWS = [(1, 1, 35), (2, 1, 40), (3, 2, 20), (4, 5, 60)]


def rows(engine: au.Engine, output: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(output).to_pylist()]


def code(call: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(au.AuroralError) as caught:
        call(*args, **options)
    return caught.value.code


# ── pausing ──


def test_a_superbox_is_held_if_all_that_it_serves_is_paused() -> None:
    near = Superbox("near", ("s",), ("near",), ("near",))
    table = Superbox("write", ("near",), ("write",), (), tables=("t",))
    crowd = Superbox("crowd", ("near",), ("crowd",), ("crowd",), "crowd")
    served = served_applications([near, table, crowd], [("a", "crowd"), ("b", "near")])
    assert served == {"near": {"a", "b", LASTING}, "write": {LASTING}, "crowd": {"a"}}
    assert held_superboxes(served, ["a"], everything=False) == {"crowd"}
    assert held_superboxes(served, ["a", "b"], everything=False) == {"crowd"}
    assert held_superboxes(served, [], everything=True) == {"near", "write", "crowd"}


@pytest.mark.parametrize("background", [False, True])
def test_nothing_runs_while_everything_is_paused(background: bool) -> None:
    with make_engine(network(), background=background) as engine:
        state = engine.pause()
        assert (state["paused"], state["applications"]) == (True, ["alerts", "all"])
        engine.enqueue("reports", ROWS)
        assert code(engine.drain) == "PAUSED"
        assert rows(engine, "all") == []
        assert engine.stats()["streams"]["reports"]["queued"] == 4
        assert not engine.resume()["paused"]
        engine.drain()
        assert rows(engine, "all") == [(1, 70), (2, 80), (4, 120)]
        assert rows(engine, "alerts") == [(0, 2)]


@pytest.mark.parametrize("background", [False, True])
def test_one_application_is_paused_and_the_other_goes_on(background: bool) -> None:
    with make_engine(network(), background=background) as engine:
        assert engine.pause("alerts")["applications"] == ["alerts"]
        engine.enqueue("reports", ROWS)
        assert code(engine.drain) == "PAUSED"
        assert rows(engine, "all") == [(1, 70), (2, 80), (4, 120)]
        assert rows(engine, "alerts") == []
        assert engine.stats()["arcs"]["across"]["queued"] == 3
        engine.resume("alerts")
        engine.drain()
        assert rows(engine, "alerts") == [(0, 2)]


def test_drain_returns_if_nothing_waits() -> None:
    with make_engine(network()) as engine:
        engine.enqueue("reports", ROWS)
        engine.drain()
        engine.pause()
        engine.drain()


def test_unknown_applications_and_wrong_calls_are_refused() -> None:
    with make_engine(network()) as engine:
        assert code(engine.pause, "alert") == "UNKNOWN_OUTPUT"
        assert code(engine.step) == "NOT_PAUSED"
        engine.pause()
        assert code(engine.step, "trains") == "BAD_CALL"
        assert code(engine.step, "train", count=0) == "BAD_CALL"
        assert code(engine.remove_breakpoint, "b7") == "UNKNOWN_BREAKPOINT"


@pytest.mark.parametrize("background", [False, True])
def test_a_change_is_refused_if_tuples_wait_for_paused_boxes(background: bool) -> None:
    with make_engine(network(), background=background) as engine:
        engine.pause()
        added = {"outputs": {"more": {"from": "across"}}}
        assert engine.modify(add=added)["added"] == ["outputs.more"], "nothing waits"
        engine.enqueue("reports", ROWS)
        gone = ["outputs.more"]
        assert engine.preview_change(remove=gone)["removed"] == gone
        assert code(engine.modify, remove=gone) == "PAUSED"
        engine.modify(add={"q": "SELECT sid FROM reports WHERE pos > 50"})  # waits for nobody
        engine.enqueue("reports", [(9, 9, 90)])
        engine.resume()
        engine.drain()
        assert rows(engine, "q") == [(9,)]
        assert len(rows(engine, "more")) == 4


def test_a_restart_is_not_paused(tmp_path: Any) -> None:
    with make_engine(network(), state=tmp_path) as engine:
        engine.pause()
        engine.enqueue("reports", ROWS)
    with make_engine(network(), state=tmp_path) as engine:
        assert not engine.debug_state()["paused"]
        engine.drain()
        assert rows(engine, "alerts") == [(0, 2)]


def test_a_pause_is_no_delay_of_results() -> None:
    quality = [(0, 1), (1, 1), (2, 0)]
    net = network()
    net.outputs["all"] = net.outputs["all"].model_copy(update={"qos": au.QoS(latency=quality)})
    now = [100.0]
    with make_engine(net) as engine:
        engine._context.quality._now_s = lambda: now[0]
        engine._context.times._now_s = lambda: now[0]
        engine.enqueue("reports", ROWS)
        now[0] = 100.25
        engine.pause()
        now[0] = 190.0
        engine.resume()
        now[0] = 190.5
        engine.drain()
        assert engine.stats()["qos"]["all"]["latency"] == pytest.approx(1.0)
        assert engine._context.quality.monitor.delay_s("all", now[0]) == pytest.approx(0.75)


# ── stepping ──


@pytest.mark.parametrize("background", [False, True])
def test_a_step_takes_one_tuple_through_all_boxes(background: bool) -> None:
    with make_engine(network(), background=background) as engine:
        engine.pause()
        engine.enqueue("reports", ROWS)
        trace = engine.step("tuple")
        assert [entry["box"] for entry in trace] == ["across", "doubled", "crowd", "enough"]
        across, doubled, crowd, enough = trace
        first = {"sid": 1, "time": 1, "pos": 35}
        assert across["in"] == {"reports": [first]}
        assert across["out"] == {"across": [first], "across.rest": []}
        assert doubled["out"] == {"doubled": [{"sid": 1, "double": 70}]}
        assert (crowd["in"], crowd["out"], crowd["held"]) == ({"across": [first]}, {}, 1)
        assert enough["in"] == {"crowd": []}
        assert across["superbox"] == doubled["superbox"] != crowd["superbox"]
        assert rows(engine, "all") == [(1, 70)]
        trace = engine.step("tuple", count=9)
        assert [e["step"] for e in trace if e["box"] == "across"] == [0, 1, 2]
        assert [e["out"] for e in trace if e["box"] == "across"][1]["across.rest"] != []
        assert rows(engine, "alerts") == [(0, 2)]
        assert engine.step("tuple") == []
        json.dumps(trace)


@pytest.mark.parametrize("background", [False, True])
def test_a_step_takes_one_train_and_the_results_go_first(background: bool) -> None:
    with make_engine(network(), background=background) as engine:
        engine.pause()
        engine.enqueue("reports", ROWS)
        boxes = [[entry["box"] for entry in engine.step()] for _ in range(4)]
        assert boxes == [["across", "doubled"], ["crowd"], ["enough"], []]
        assert rows(engine, "alerts") == [(0, 2)]


def test_a_trace_shows_some_tuples_and_counts_the_rest() -> None:
    with make_engine(network()) as engine:
        engine.pause()
        engine.enqueue("reports", [(n, n, 50) for n in range(250)])
        across, doubled = engine.step()
        assert len(across["in"]["reports"]) == len(doubled["out"]["doubled"]) == 100
        assert across["truncated"] == {"reports": 150, "across": 150}
        assert engine.debug_state()["trace"] == [across, doubled]


def test_a_trace_shows_what_a_box_keeps_after_the_step() -> None:
    net = au.Network("plant")
    order = au.Order("at", by=["machine"])
    readings = net.stream(
        "readings", "at timestamp, machine string, bar int", progress=au.Ordered("at")
    )
    pieces = net.stream("pieces", "machine string, at timestamp", progress=au.Ordered("at"))
    net.output(
        "sums", readings.aggregate(order=order, window=au.Window(size="1 minute"), n="sum(bar)")
    )
    pairs = readings.join(
        pieces,
        on="left.machine = right.machine",
        left=order,
        right=order,
        within="1 minute",
        name="pairs",
    )
    net.output("pairs", pairs)
    first = dt.datetime(2026, 1, 1, 8, tzinfo=dt.UTC)
    with make_engine(net) as engine:
        engine.pause()
        engine.enqueue("readings", [(first, "press", n) for n in range(60)])
        engine.enqueue("pieces", [("lathe", first)])
        trace = [entry for _ in range(9) for entry in engine.step()]
        window = {"start": first, "machine": "press", "closed": None}
        (windows,) = [e["kept"]["windows"] for e in trace if e["box"] == "aggregate_1"]
        assert windows["total"] == 1
        assert {key: windows["rows"][0][key] for key in window} == window
        kept = [entry["kept"] for entry in trace if entry["box"] == "pairs"][-1]
        assert kept["right"] == {"rows": [{"machine": "lathe", "at": first}], "total": 1}
        assert (kept["left"]["total"], len(kept["left"]["rows"])) == (60, 50)
        assert {"machine": "press", "bar": 0, "at": first} in kept["left"]["rows"]


def test_one_application_is_stepped() -> None:
    with make_engine(network()) as engine:
        engine.pause()
        engine.enqueue("reports", ROWS)
        engine.step(application="all")
        assert engine.step(application="all") == []
        assert [entry["box"] for entry in engine.step(application="alerts")] == ["crowd"]


# ── breakpoints ──


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("arc", ["across", "doubled", "reports", "all"])
def test_a_breakpoint_stops_before_the_tuple(arc: str, background: bool) -> None:
    condition = "pos > 38" if arc in ("across", "reports") else "double > 76"
    with make_engine(network(), background=background) as engine:
        id = engine.set_breakpoint(arc, condition)
        engine.enqueue("reports", ROWS)
        seen = []
        for _ in range(2):
            assert code(engine.drain) == "PAUSED"
            hit = engine.debug_state()["hit"]
            assert (hit["breakpoint"], hit["arc"]) == (id, arc)
            seen.append((hit["moment"], hit["tuple"]["sid"], rows(engine, "all")))
            engine.resume()
        engine.drain()
        assert seen == [(1, 2, [(1, 70)]), (3, 4, [(2, 80)])]
        assert rows(engine, "all") == [(4, 120)]
        assert engine.debug_state()["breakpoints"][0]["hits"] == 2
        assert engine.debug_state()["hit"] is None


@pytest.mark.parametrize("background", [False, True])
def test_a_breakpoint_on_what_a_window_gives(background: bool) -> None:
    with make_engine(network(), background=background) as engine:
        engine.set_breakpoint("crowd", "cnt = 2")
        engine.enqueue("reports", ROWS)
        assert code(engine.drain) == "PAUSED"
        assert engine.debug_state()["hit"]["tuple"] == {"time": 0, "cnt": 2}
        assert rows(engine, "alerts") == []
        engine.resume()
        engine.drain()
        assert rows(engine, "alerts") == [(0, 2)]


def test_a_breakpoint_on_what_nothing_reads_stops_after_the_step() -> None:
    net = network()
    net.output("counts", "crowd")
    del net.outputs["alerts"], net.boxes["enough"]
    with make_engine(net) as engine:
        engine.set_breakpoint("counts")
        engine.enqueue("reports", ROWS)
        engine.drain()
        assert engine.debug_state()["hit"]["tuple"] == {"time": 0, "cnt": 2}


def test_a_breakpoint_rests_while_its_condition_does_not_fit_the_network() -> None:
    with make_engine(network()) as engine:
        engine.set_breakpoint("doubled", "upper(string(double)) > '0'")
        doubled = engine.network.document()["boxes"]["doubled"]
        other = {**doubled, "compute": {"half": "pos / 2"}}
        engine.modify(add={"doubled": other}, remove=["doubled"])
        engine.enqueue("reports", ROWS)
        engine.drain()
        assert len(rows(engine, "all")) == 3
        engine.modify(add={"doubled": doubled}, remove=["doubled"])
        engine.enqueue("reports", [(5, 6, 50)])
        assert code(engine.drain) == "PAUSED"
        assert engine.debug_state()["hit"]["tuple"] == {"sid": 5, "double": 100}


def test_a_breakpoint_on_a_shared_query() -> None:
    with make_engine(network()) as engine:
        engine.modify(add={"far": "SELECT sid FROM reports WHERE pos > 50"})
        engine.set_breakpoint("far", "sid = 4")
        engine.enqueue("reports", ROWS)
        engine.wait(0)
        assert engine.debug_state()["hit"]["tuple"] == {"sid": 4}
        engine.resume()
        engine.drain()
        assert rows(engine, "far") == [(4,)]


def test_breakpoints_are_checked_switched_and_removed() -> None:
    with make_engine(network()) as engine:
        with pytest.raises(NetworkError, match="there is no field speed"):
            engine.set_breakpoint("across", "speed > 3")
        assert code(engine.set_breakpoint, "across", "pos + 1") == "TYPE_MISMATCH"
        assert code(engine.set_breakpoint, "acros") == "UNKNOWN_ENTITY"
        assert code(engine.set_breakpoint, "crowd.late") == "ARC_NOT_WRITTEN"
        id = engine.set_breakpoint("reports", enabled=False)
        other = engine.set_breakpoint("across.rest")
        engine.enqueue("reports", ROWS[:1])
        engine.drain()
        engine.enable_breakpoint(id, True)
        engine.enqueue("reports", ROWS[1:])
        assert code(engine.drain) == "PAUSED"
        engine.remove_breakpoint(id)
        engine.resume()
        assert code(engine.drain) == "PAUSED"
        assert engine.debug_state()["hit"]["tuple"]["pos"] == 20
        engine.remove_breakpoint(other)
        engine.resume()
        engine.drain()
        assert not engine._parts.watch.active, "nobody debugs, nothing is asked"


def test_a_sink_cannot_step() -> None:
    told: list[str] = []
    net = network()
    with make_engine(net) as engine:
        engine.bind_sink("all", lambda _: told.append(code(engine.step)))
        engine.enqueue("reports", ROWS)
        engine.drain()
    assert told[0] == "NOT_HERE"


def test_a_hand_made_tuple_has_a_moment() -> None:
    with make_engine(network()) as engine:
        engine.enqueue("reports", ROWS)
        assert engine.send("reports", {"sid": 7, "time": 9, "pos": 31}) == {"moment": 4}
        with pytest.raises(UsageError, match="BAD_ROW"):
            engine.send("reports", {"sid": "seven"})
        assert engine.stats()["dead"] == 0
