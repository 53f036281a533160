"""Which box runs when, with how many tuples and with which others never changes a result."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

import auroral as au
import auroral.engine.topology.deciding as deciding
import auroral.storage.store as store
from auroral import Network
from auroral.engine import parts
from auroral.engine.ingest import ingest
from auroral.engine.runtime.queue_memory import QueueMemory
from auroral.network import declarations, endpoints
from auroral.network.declarations import SchedulerName, SuperboxMode, TrainOptions, TraversalName
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.residency import ResidencyMoves, ResidencyPlanner, WaitingQueue

from . import sparkless
from .events import Events
from .networks import way
from .running import MakeEngine, Run
from .stateful import stateful_network
from .test_stateful import TABLES, needs_spark, set_out


def options(rng: Random) -> au.EngineOptions:
    """Any scheduler with any superboxes."""
    return au.EngineOptions(
        scheduler=rng.choice(get_args(SchedulerName)),
        superbox=rng.choice(get_args(SuperboxMode)),
        traversal=rng.choice(get_args(TraversalName)),
        spanner=rng.randint(1, 4),
        train=rng.choice(["auto", rng.randint(1, 20), bounds(rng)]),
        memory=rng.choice([1, 100, 300, 1_000, "1 GB"]),
    )


def bounds(rng: Random) -> TrainOptions:
    """Any bounds of trains."""
    found: dict[str, Any] = {
        "tuples": rng.randint(1, 20),
        "spread": rng.choice([1e-6, "1 ms", "1 min"]),
        "cost": rng.choice([1e-6, "20 ms", 1.0]),
        "memory": rng.choice([1, 300, "1 MB"]),
    }
    keys = rng.sample(sorted(found), rng.randint(1, 4))
    return TrainOptions(**{key: found[key] for key in keys})


class RestlessPlanner(ResidencyPlanner):
    """Believes other priorities each time, so that segments come and go all the time."""

    def __init__(self, budget: int, rng: Random):
        super().__init__(budget, margin=0.0, least_stay_s=0.0, loads_per_s=1e6)
        self._rng = rng

    def plan(
        self, queues: Iterable[WaitingQueue], pinned: Collection[str], now_s: float
    ) -> ResidencyMoves:
        drawn = [replace(queue, priority=self._rng.random()) for queue in queues]
        return super().plan(drawn, pinned, now_s)


@pytest.fixture(autouse=True)
def any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow very little memory for queues."""
    restless = partial(RestlessPlanner, rng=Random("priorities"))
    monkeypatch.setattr(declarations, "LEAST_MEMORY_BYTES", 1)
    monkeypatch.setattr(endpoints, "require_room", lambda *_: None)
    monkeypatch.setattr(parts, "QueueMemory", partial(QueueMemory, planner=restless))
    monkeypatch.setattr(store, "_CACHE_BYTES", 0)


def with_worth(rng: Random, net: Network) -> Network:
    """The network with graphs for some of its outputs."""
    for name, output in net.outputs.items():
        if rng.random() < 0.7:
            until = rng.choice([0.001, 0.5, 10])
            graph = [(0, 1), (until, 1), (until * rng.choice([1.5, 20]), 0)]
            net.outputs[name] = output.model_copy(update={"qos": au.QoS(latency=graph)})
    return net


def random_costs(monkeypatch: pytest.MonkeyPatch, rng: Random) -> None:
    """Let the scheduler believe any costs."""
    real = deciding.superbox_model

    def drawn(*given: Any) -> FlowModel:
        model = real(*given)
        boxes = {
            name: replace(
                box, cost_s=10 ** rng.uniform(-7, -1), call_s=rng.choice([0.0, 0.02, 1.0])
            )
            for name, box in model.boxes.items()
        }
        return FlowModel(boxes, model.outputs)

    monkeypatch.setattr(deciding, "superbox_model", drawn)


def drawn_network(rng: Random, boxes: int) -> Network:
    drawn = (stateful_network(rng, boxes) for _ in count())
    net = next(net for net in drawn if not any(map(needs_spark, net.boxes.values())))
    net = with_worth(rng, net)
    net.engine = options(rng)
    return net


@pytest.mark.parametrize("crashing", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_any_schedule_gives_what_the_reference_gives(
    seed: int, crashing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"schedules {seed} {crashing}")
    net = drawn_network(rng, 6)
    random_costs(monkeypatch, rng)
    batches = Events(rng, net).script(30, drains=0.1)
    if rng.random() < 0.7:  # each batch is a segment, and many wait
        monkeypatch.setattr(ingest, "LARGE_ROWS", 1)
    chosen = way(rng, crashing=crashing)
    set_out(monkeypatch, chosen)
    Run(sparkless.make_engine, net, batches, chosen, TABLES).go(tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_any_schedule_gives_the_same_on_spark(
    make_engine: MakeEngine, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"schedules on Spark {seed}")
    net = drawn_network(rng, 5)
    batches = Events(rng, net).script(20, drains=0.1)
    chosen = way(rng, crashing=True)
    set_out(monkeypatch, chosen)
    Run(make_engine, net, batches, chosen, TABLES).go(tmp_path)


def three_outputs(superbox: SuperboxMode, soon: float | None = 1.0) -> Network:
    """Outputs with graphs and one without; no graphs at all if nothing is wanted `soon`."""
    net = Network("three")
    s = net.stream("s", "a int, b int")
    even = s.filter("a % 2 = 0", name="even")
    net.output("twice", even.map(c="b * 2", name="double"), qos=falling(soon) if soon else None)
    net.output("large", even.filter("b > 3", name="large"), qos=falling(10.0) if soon else None)
    net.output("sums", s.map(q="a + b", name="sum"))
    net.engine = au.EngineOptions(superbox=superbox)
    return net


def falling(until: float) -> au.QoS:
    return au.QoS(latency=[(0, 1), (until, 1), (2 * until, 0)])


@pytest.mark.parametrize(("before", "after"), [("box", "fuse"), ("fuse", "box"), ("auto", "fuse")])
def test_superboxes_may_be_others_after_a_restart(
    before: SuperboxMode, after: SuperboxMode, tmp_path: Path
) -> None:
    """Tuples that wait between boxes when an engine ends are not lost when the boxes are fused."""
    rows = [{"a": n, "b": n % 7} for n in range(40)]
    with sparkless.make_engine(three_outputs(before), state=tmp_path, train=3) as engine:
        engine.enqueue("s", rows[:30])
        engine._loop.work()
        engine._loop.work()
    with sparkless.make_engine(three_outputs(after), state=tmp_path) as engine:
        engine.enqueue("s", rows[30:])
        engine.drain()
        even = [row for row in rows if row["a"] % 2 == 0]
        assert engine.dequeue("twice")["c"].to_pylist() == [2 * row["b"] for row in even]
        assert engine.dequeue("large").to_pylist() == [row for row in even if row["b"] > 3]
        assert engine.dequeue("sums")["q"].to_pylist() == [row["a"] + row["b"] for row in rows]


def test_boxes_are_fused_anew_when_other_graphs_are_set(tmp_path: Path) -> None:
    """A change of the worth of outputs is a change of the network; a restart takes it up."""
    rows = [{"a": n, "b": n % 7} for n in range(40)]
    even = [row for row in rows if row["a"] % 2 == 0]
    together, apart = {"even double large sum"}, {"even", "double", "large", "sum"}

    def fused(engine: au.Engine) -> set[str]:
        return {" ".join(superbox.boxes) for superbox in engine._loop.execution.superboxes}

    with sparkless.make_engine(three_outputs("auto", soon=None), state=tmp_path, train=3) as engine:
        assert fused(engine) == together
        engine.enqueue("s", rows[:10])
        engine._loop.work()
        engine.set_qos("twice", falling(0.5))
        assert engine.network.outputs["twice"].qos == falling(0.5)
        engine.enqueue("s", rows[10:20])
        engine.drain()
        assert fused(engine) == apart
        generation = engine._loop.execution.generation
        engine.set_qos("twice", falling(0.7))  # of another worth than the others as before
        engine.enqueue("s", rows[20:25])
        engine._loop.work()
        assert engine._loop.execution.generation == generation
    with sparkless.make_engine(three_outputs("auto", soon=None), state=tmp_path) as engine:
        assert fused(engine) == apart
        assert engine.describe("twice")["quality"]["qos"] == falling(0.7).document()
        engine.set_qos("twice", None)
        engine.enqueue("s", rows[25:])
        engine.drain()
        assert fused(engine) == together
        assert engine.dequeue("twice")["c"].to_pylist() == [2 * row["b"] for row in even]
        assert engine.dequeue("large").to_pylist() == [row for row in even if row["b"] > 3]
        assert engine.dequeue("sums")["q"].to_pylist() == [row["a"] + row["b"] for row in rows]


def test_outputs_of_different_worth_run_apart() -> None:
    with sparkless.make_engine(three_outputs("auto")) as engine:
        found = {superbox.name: superbox.boxes for superbox in engine._loop.execution.superboxes}
    assert found == {"even": ("even",), "double": ("double",), "large": ("large",), "sum": ("sum",)}
    with sparkless.make_engine(three_outputs("auto", soon=10.0)) as engine:
        found = {superbox.name: superbox.boxes for superbox in engine._loop.execution.superboxes}
    assert found == {"even": ("even", "double", "large"), "sum": ("sum",)}
    with sparkless.make_engine(three_outputs("auto", soon=None)) as engine:
        found = {superbox.name: superbox.boxes for superbox in engine._loop.execution.superboxes}
    assert found == {"even": ("even", "double", "large", "sum")}


def test_a_tight_output_runs_before_one_without_graphs_that_reads_the_same_stream() -> None:
    net = Network("two")
    s = net.stream("s", "a int")
    net.output("plain", s.filter("a > 0", name="plain_box"))
    net.output("tight", s.filter("a > 1", name="tight_box"), qos=falling(0.5))
    ticks = count(1)
    with sparkless.make_engine(net, now_us=lambda: next(ticks)) as engine:
        engine.enqueue("s", [{"a": 1}, {"a": 2}])
        engine.drain()
        ran = {name: engine.story(f"{name}_box")[-1] for name in ("plain", "tight")}
        assert {one["event"] for one in ran.values()} == {"ran"}
        assert ran["tight"]["at_us"] < ran["plain"]["at_us"]
        assert engine.dequeue("plain").num_rows == 2
        assert engine.dequeue("tight").num_rows == 1


def test_the_tightest_output_runs_first_and_the_story_says_why() -> None:
    net = Network("two")
    for name, until in ("loose", 60.0), ("tight", 0.5):
        arc = net.stream(f"{name}_in", "a int").filter("a > 0", name=f"{name}_box")
        net.output(name, arc, qos=falling(until))
    ticks = count(1)
    with sparkless.make_engine(net, now_us=lambda: next(ticks)) as engine:
        for name in ("loose", "tight"):
            engine.enqueue(f"{name}_in", [{"a": 1}])
        engine.drain()
        ran = {name: engine.story(f"{name}_box")[-1] for name in ("loose", "tight")}
        assert {one["event"] for one in ran.values()} == {"ran"}
        assert ran["tight"]["at_us"] < ran["loose"]["at_us"]
        assert "tight" in ran["tight"]["why"]
        scheduling = engine.stats()["scheduler"]
        assert (scheduling["scheduler"], scheduling["plans"]) == ("qos", 2)


@pytest.mark.parametrize("soon", [None, 1.0], ids=["in turn", "decided"])
def test_boxes_stay_fused_whatever_calls_cost_and_the_reasons_say_how_much(
    soon: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = deciding.superbox_model

    def cheap(*given: Any) -> FlowModel:
        model = real(*given)
        boxes = {n: replace(box, cost_s=0.001, call_s=0.004) for n, box in model.boxes.items()}
        return FlowModel(boxes, model.outputs)

    monkeypatch.setattr(deciding, "superbox_model", cheap)
    with sparkless.make_engine(three_outputs("auto", soon=soon)) as engine:
        engine.enqueue("s", [{"a": n, "b": n} for n in range(10)])
        engine.drain()
        found = engine.stats()["scheduler"]
    assert found["superbox"] == "fuse"
    assert "superbox fuse: a call costs as much as 4.0 tuples" in found["reasons"]
    assert found["scheduler"] == ("qos" if soon else "rr")
