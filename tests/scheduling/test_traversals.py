"""Traversals of superboxes: the worked examples of [2 §4.1.2], to the digit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.traversals import (
    SuperboxTree,
    Traversal,
    TraversalRun,
    mem_rr,
    o_sel,
    output_cost,
    run_traversal,
    traverse,
)
from tests.scheduling.networks import flow_models, sample_tree

SELECTIVE = {
    "b1": (0.9, 2.0),
    "b2": (0.4, 2.0),
    "b3": (0.5, 1.0),
    "b4": (1.0, 2.0),
    "b5": (0.4, 3.0),
    "b6": (0.6, 1.0),
}
BOXES = ("b1", "b2", "b3", "b4", "b5", "b6")


def order(model: FlowModel, how: Traversal) -> str:
    tree = SuperboxTree(model, "b1")
    return " ".join(traverse(tree, tree.boxes, how))


def run(calls: str, *, p: float, o: float) -> TraversalRun:
    """The run of an order over one tuple per queue."""
    tree = SuperboxTree(sample_tree(p=p, o=o), "b1")
    return run_traversal(tree, calls.split(), dict.fromkeys(tree.boxes, 1))


def test_the_sample_tree_is_that_of_the_paper() -> None:
    tree = SuperboxTree(sample_tree(), "b1")
    assert tree.downstream["b3"] == ("b3", "b2", "b1")
    assert tree.downstream["b1"] == ("b1",)


def test_min_cost_calls_each_box_once() -> None:
    calls = order(sample_tree(), "mc")
    assert calls == "b4 b5 b3 b2 b6 b1"
    tuples, overhead = run(calls, p=1, o=0), run(calls, p=0, o=1)
    assert tuples.calls == 6
    assert (tuples.total_s, overhead.total_s) == (15, 6)
    assert (tuples.mean_latency_s, overhead.mean_latency_s) == (12.5, 6)


def test_min_latency_brings_the_nearest_tuples_to_the_output_first() -> None:
    calls = order(sample_tree(), "ml")
    assert calls == "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1"
    tuples, overhead = run(calls, p=1, o=0), run(calls, p=0, o=1)
    assert tuples.calls == 15
    assert (tuples.total_s, overhead.total_s) == (15, 15)
    assert round(tuples.mean_latency_s, 2) == 7.17
    assert round(overhead.mean_latency_s, 2) == 7.17


def test_the_traversals_cross_over_where_tuples_cost_0_22_of_a_call() -> None:
    cost, latency = order(sample_tree(), "mc"), order(sample_tree(), "ml")
    by_p = run(cost, p=1, o=0).mean_latency_s - run(latency, p=1, o=0).mean_latency_s
    by_o = run(latency, p=0, o=1).mean_latency_s - run(cost, p=0, o=1).mean_latency_s
    assert round(by_o / by_p, 2) == 0.22
    for p, is_ml_better in ((0.21, False), (0.23, True)):
        found = run(latency, p=p, o=1).mean_latency_s < run(cost, p=p, o=1).mean_latency_s
        assert found == is_ml_better


def test_output_costs_are_sums_over_the_boxes_downstream() -> None:
    tree = SuperboxTree(sample_tree(SELECTIVE), "b1")
    assert o_sel(tree, "b3") == pytest.approx(0.5 * 0.4 * 0.9)
    assert output_cost(tree, "b1") == pytest.approx(2 / 0.9)
    assert output_cost(tree, "b3") == pytest.approx(2 / 0.9 + 2 / 0.36 + 1 / 0.18)


def test_min_memory_frees_most_memory_per_second() -> None:
    model = sample_tree(SELECTIVE)
    rates = [round(mem_rr(model.boxes[name]), 6) for name in BOXES]
    assert rates == [0.05, 0.3, 0.5, 0, 0.2, 0.4]
    assert order(model, "mm") == "b3 b6 b2 b5 b3 b2 b1 b4 b2 b1"


def test_memory_over_a_run_is_about_that_of_the_paper() -> None:
    """Printed: approximately 36, 39 and 40 tuples for MM, MC and ML.

    The paper does not say how many tuples wait. With ten for each box, and results counted, MM and
    ML are as printed. MC has 40.5 in the printed order, and 38.3 if b5 comes before b4, which
    is a post order as well.
    """
    tree = SuperboxTree(sample_tree(SELECTIVE), "b1")
    ten = dict.fromkeys(tree.boxes, 10)

    def memory(calls: list[str]) -> float:
        return run_traversal(tree, calls, ten).mean_memory_bytes

    found = {how: memory(traverse(tree, tree.boxes, how)) for how in ("mm", "mc", "ml")}
    assert {how: round(tuples, 2) for how, tuples in found.items()} == {
        "mm": 36.05,
        "mc": 40.45,
        "ml": 40.07,
    }
    other = memory(["b5", "b3", "b4", "b2", "b6", "b1"])
    assert round(other, 2) == 38.29
    assert other < 39 < found["mc"]


def test_boxes_that_run_are_left_out_with_what_only_they_feed() -> None:
    tree = SuperboxTree(sample_tree(), "b1")
    assert traverse(tree, ["b5", "b4"], "mc", excluded={"b3"}) == ["b4", "b5", "b2", "b1"]
    assert traverse(tree, ["b5"], "mc", excluded={"b3"}) == ["b5"]
    assert traverse(tree, ["b5", "b6"], "ml", excluded={"b3"}) == ["b6", "b1", "b5"]
    assert traverse(tree, ["b5", "b6"], "mm", excluded={"b3"}) == ["b6", "b1", "b5"]


def test_boxes_that_let_nothing_through_feed_nobody() -> None:
    tree = SuperboxTree(sample_tree({"b3": (0.0, 1.0)}), "b1")
    assert traverse(tree, ["b5"], "mc") == ["b5", "b3"]


def test_where_ways_meet_again_a_box_is_called_after_both() -> None:
    model = FlowModel(
        {
            "split": FlowBox("split", ("s",), {"split": 0.5, "split.rest": 0.5}, 1),
            "left": FlowBox("left", ("split",), {"left": 1.0}, 1),
            "right": FlowBox("right", ("split.rest",), {"right": 1.0}, 1),
            "both": FlowBox("both", ("left", "right"), {"both": 1.0}, 1),
        },
        {"out": FlowOutput("out", "both")},
    )
    tree = SuperboxTree(model, "both")
    calls = ["split", "left", "right", "both"]
    assert traverse(tree, ["split"], "mc") == calls
    assert traverse(tree, ["split"], "ml") == calls
    assert traverse(tree, ["split"], "mm")[-1] == "both"
    assert o_sel(tree, "split") == 1.0
    found = run_traversal(tree, calls, {"split": 4})
    assert (found.total_s, found.mean_latency_s) == (4 + 2 + 2 + 4, 8 + 2.5)


def test_results_of_a_spark_job_are_there_when_it_ends() -> None:
    tree = SuperboxTree(sample_tree(p=1, o=1), "b1")
    found = run_traversal(tree, ["b1"], {"b1": 3}, results_at_end=True)
    assert found.mean_latency_s == found.total_s == 4


@pytest.mark.law
@given(flow_models(), st.sampled_from(["mc", "ml", "mm"]), st.data())
def test_a_traversal_processes_all_that_waits(
    model: FlowModel, how: Traversal, data: st.DataObject
) -> None:
    root = data.draw(st.sampled_from(list(model.boxes)))
    tree = SuperboxTree(model, root)
    queued = data.draw(st.lists(st.sampled_from(tree.boxes), unique=True))
    left = dict.fromkeys(tree.boxes, 0.0) | dict.fromkeys(queued, 1.0)
    for name in traverse(tree, queued, how):
        count, left[name] = left[name], 0.0
        for reader, share in tree.fed[name]:
            left[reader] += count * share
    assert not any(left.values())
    assert how != "mc" or len(traverse(tree, queued, how)) <= len(tree.boxes)


def test_min_memory_does_not_follow_every_way_through_many_diamonds() -> None:
    boxes: dict[str, FlowBox] = {}
    before = "s"
    for at in range(40):
        for side in ("left", "right"):
            name = f"{side} {at}"
            # What is behind frees more memory than what is before: each tuple is followed.
            boxes[name] = FlowBox(name, (before,), {name: 0.9}, 1 / (at + 1))
        join = f"join {at}"
        inputs = (f"left {at}", f"right {at}")
        boxes[join] = FlowBox(join, inputs, {join: 0.9}, 1 / (at + 1.5))
        before = join
    tree = SuperboxTree(FlowModel(boxes), before)
    calls = traverse(tree, ["left 0", "right 0"], "mm")
    assert len(calls) <= 2 * 3 * 40 + 3 * 40
    assert set(calls) == set(boxes)
