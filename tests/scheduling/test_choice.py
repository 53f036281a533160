"""What `auto` chooses, and the reasons it gives."""

from __future__ import annotations

import pytest

from auroral import Network, NetworkError
from auroral.network.declarations import EngineOptions, TrainOptions
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies import SchedulerSettings, choose, make_scheduler
from auroral.scheduling.policies.choice import BUCKETED_FROM
from tests.scheduling.networks import LOOSE, TIGHT, chains, filled, sample_tree


def test_without_latency_graphs_all_take_turns_and_boxes_are_fused() -> None:
    only_loss = QoS(loss=[(0, 0), (1, 1)])
    found = choose(SchedulerSettings(), chains([None, only_loss], 2, cost_s=0.1, call_s=0.0))
    assert (found.scheduler, found.superbox, found.traversal) == ("rr", "fuse", "mc")
    assert found.reasons == (
        "scheduler rr: no output has a latency graph",
        "superbox fuse: no output has a latency graph, so as few calls as possible",
        "traversal mc: fused boxes run in flow order",
    )


def test_latency_graphs_choose_qos_and_many_boxes_buckets() -> None:
    few = choose(SchedulerSettings(), chains([None, LOOSE], 2))
    assert few.scheduler == "qos"
    assert few.reasons[0] == "scheduler qos: 1 of 2 outputs have a latency graph"
    many = choose(SchedulerSettings(), chains([TIGHT] * (BUCKETED_FROM // 2), 2))
    assert many.scheduler == "qos-bucketed"
    assert many.reasons[0].endswith("and there are 300 boxes")


@pytest.mark.parametrize(
    ("cost_s", "call_s", "superbox"),
    [
        (0.0, 0.0, "fuse"),
        (0.001, 0.03, "fuse"),
        (0.0, 0.03, "fuse"),
        (0.001, 0.002, "application"),
        (0.001, 0.0, "application"),
    ],
)
def test_dear_calls_fuse_boxes(cost_s: float, call_s: float, superbox: str) -> None:
    found = choose(SchedulerSettings(), chains([LOOSE], 3, cost_s=cost_s, call_s=call_s))
    assert found.superbox == superbox


def test_reasons_say_how_dear_calls_are() -> None:
    dear = choose(SchedulerSettings(), chains([LOOSE], 3, cost_s=1e-6, call_s=0.03))
    assert "superbox fuse: a call costs as much as 30,000 tuples" in dear.reasons
    cheap = choose(SchedulerSettings(), chains([LOOSE], 3, cost_s=0.001, call_s=0.0015))
    assert "superbox application: a call costs as much as 1.5 tuples" in cheap.reasons


@pytest.mark.parametrize(("p", "traversal"), [(0.21, "mc"), (0.23, "ml")])
def test_the_traversal_is_that_of_the_crossover(p: float, traversal: str) -> None:
    settings = SchedulerSettings(superbox="application")
    found = choose(settings, sample_tree(p=p, o=1.0))
    assert found.traversal == traversal
    assert "on average" in found.reasons[-1]


def test_results_that_come_with_the_end_of_a_call_move_the_crossover() -> None:
    """15p + 6o against 7.17p + 7.17o: at p/o 0.15."""
    settings = SchedulerSettings(superbox="application", results_at_end=True)
    assert choose(settings, sample_tree(p=0.14, o=1.0)).traversal == "mc"
    assert choose(settings, sample_tree(p=0.16, o=1.0)).traversal == "ml"


def test_what_is_declared_stays() -> None:
    declared = SchedulerSettings("fifo", "spanner", "mm", train=5, memory_bytes=7)
    assert choose(declared, chains([TIGHT], 3)) == declared
    assert choose(declared, chains([TIGHT], 3)).reasons == ()
    per_box = choose(SchedulerSettings("thread-per-box", "application"), chains([TIGHT], 3))
    assert per_box.superbox == "box"


def test_an_empty_network_has_settings_too() -> None:
    assert choose(SchedulerSettings(), FlowModel({})).is_chosen


def test_a_scheduler_chooses_anew_for_each_network() -> None:
    scheduler = make_scheduler(SchedulerSettings())
    scheduler.serve(chains([None], 2))
    names = [scheduler.settings.scheduler]
    model = chains([LOOSE, TIGHT], 1, cost_s=0.0)
    scheduler.serve(model)
    names.append(scheduler.settings.scheduler)
    assert names == ["rr", "qos"]
    table = filled(model, {"a0.0": (1, 0.0), "a1.0": (1, 0.0)})
    (plan,) = scheduler.decide(table, 0.5, 1)
    assert plan.application == "out 1"


def test_settings_are_those_of_the_engine() -> None:
    options = EngineOptions(
        scheduler="fifo", superbox="box", traversal="ml", train=9, memory="2 MB"
    )
    found = SchedulerSettings.of(options)
    assert (found.scheduler, found.superbox, found.traversal) == ("fifo", "box", "ml")
    assert (found.train, found.memory_bytes) == (9, options.memory_bytes)


def test_bounds_of_trains_and_plans_are_those_of_the_engine() -> None:
    text = {"tuples": 500, "spread": "2 s", "cost": 0.5, "memory": "4 MB"}
    options = EngineOptions.model_validate({"train": text, "spanner": 3})
    found = SchedulerSettings.of(options)
    assert (found.train, found.train_spread_s, found.train_cost_s) == (500, 2.0, 0.5)
    assert (found.train_bytes, found.spanner_boxes) == (4 << 20, 3)
    assert SchedulerSettings.of(EngineOptions(train=TrainOptions(cost="20 ms"))).train == "auto"


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ({"train": {}}, "expected tuples, spread, cost or memory"),
        ({"train": {"tuples": 0}}, "train"),
        ({"train": {"spread": "soon"}}, "train.spread"),
        ({"train": {"cost": "0 s"}}, "train.cost"),
        ({"train": {"memory": "much"}}, "train.memory"),
        ({"train": {"seconds": 3}}, "seconds"),
        ({"spanner": 0}, "spanner"),
    ],
)
def test_bounds_that_cannot_be_are_refused_in_words(engine: dict[str, object], told: str) -> None:
    with pytest.raises(NetworkError, match=told):
        Network.parse({"network": "n", "engine": engine})
