"""Shedding plans: they fit, lose little, and leave alone who must not lose."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import Kind, QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.shedding.drops import Drop, DropInterval
from auroral.shedding.histograms import Histogram
from auroral.shedding.load import load_of
from auroral.shedding.planning import plan_table
from auroral.shedding.sites import CarriedField, random_sites
from auroral.shedding.walk import DroppedAmounts, FlowSums, OutputUtility
from tests.shedding.models import loss_graphs, models
from tests.shedding.sampling import same_value, sampled, utilities

LEVELS = (1.1, 1.25, 1.5, 2.0, 4.0)
LINEAR = QoS(loss=[(0, 0), (1, 1)])


def chain(**qos: QoS | None) -> FlowModel:
    """A cleaning box that all outputs share, and a box of its own for each."""
    boxes = {"clean": FlowBox("clean", ("reports",), {"clean": 1.0}, 0.0001)}
    boxes |= {name: FlowBox(name, ("clean",), {name: 0.5}, 0.001) for name in qos}
    return FlowModel(boxes, {name: FlowOutput(name, name, own) for name, own in qos.items()})


def where(drops: tuple[Drop, ...]) -> set[tuple[str, str]]:
    return {(drop.superbox, drop.arc) for drop in drops}


# ── which output loses, and where ──


def test_the_output_with_the_smallest_slope_loses_until_another_has_a_smaller_one() -> None:
    tolerant = QoS(loss=[(0, 0), (0.5, 0.9), (1, 1)])
    model = chain(dear=LINEAR, cheap=tolerant)
    table = plan_table(model, {"reports": 1000}, capacity=1.0, levels=(1.2, 1.5, 3.0))
    assert where(table.at(1.2).drops) == {("cheap", "clean")}
    # Half of it costs 0.1; then both have slopes of 1.8 and 1: the other one goes.
    assert table.at(1.5).delivered["cheap"] == pytest.approx(0.5)
    assert where(table.at(1.5).drops) == {("cheap", "clean"), ("dear", "clean")}


def test_drops_are_as_far_upstream_as_no_other_output_loses() -> None:
    model = FlowModel(
        {
            "clean": FlowBox("clean", ("reports",), {"clean": 1.0}, 0.001),
            "pick": FlowBox("pick", ("clean",), {"pick": 0.5}, 0.001),
            "count": FlowBox("count", ("pick",), {"count": 0.5}, 0.001),
            "other": FlowBox("other", ("clean",), {"other": 0.5}, 0.001),
        },
        {"count": FlowOutput("count", "count", LINEAR), "other": FlowOutput("other", "other")},
    )
    plan = plan_table(model, {"reports": 100}, capacity=0.3, mode="auto").at(1.2)
    assert where(plan.drops) == {("pick", "clean")}
    assert plan.fits


def test_an_output_that_shares_nothing_is_shed_at_the_network_input() -> None:
    model = FlowModel(
        {
            "clean": FlowBox("clean", ("reports",), {"clean": 1.0}, 0.001),
            "count": FlowBox("count", ("clean",), {"count": 0.5}, 0.001),
        },
        {"count": FlowOutput("count", "count", LINEAR)},
    )
    plan = plan_table(model, {"reports": 100}, capacity=0.1).at(2.0)
    (drop,) = plan.drops
    assert (drop.superbox, drop.arc) == ("clean", "reports")
    assert drop.rate == pytest.approx(0.5)


def test_boxes_that_read_one_stream_for_one_output_drop_the_same_tuples() -> None:
    model = FlowModel(
        {
            "far": FlowBox("far", ("reports",), {"far": 0.5}, 0.001),
            "near": FlowBox("near", ("reports",), {"near": 0.5}, 0.001),
            "both": FlowBox("both", ("far", "near"), {"both": 1.0}, 0.001),
        },
        {"both": FlowOutput("both", "both", LINEAR)},
    )
    plan = plan_table(model, {"reports": 100}, capacity=0.1).at(2.0)
    assert where(plan.drops) == {("far", "reports"), ("near", "reports")}
    assert len({(drop.seed, drop.rate) for drop in plan.drops}) == 1


def test_auto_leaves_outputs_without_graphs_alone_and_says_so() -> None:
    model = chain(dear=None, cheap=LINEAR)
    plan = plan_table(model, {"reports": 1000}, capacity=1.0, mode="auto").at(4.0)
    assert plan.outputs == ("cheap",)
    assert plan.delivered == {"dear": 1.0, "cheap": pytest.approx(0.0, abs=1e-6)}
    assert not plan.fits
    assert "dear must not lose tuples" in plan.why


def test_other_modes_take_from_outputs_without_graphs_what_nobody_else_can_give() -> None:
    model = chain(dear=None, cheap=LINEAR)
    table = plan_table(model, {"reports": 1000}, capacity=1.0, mode="random")
    assert table.at(1.2).outputs == ("cheap",)
    assert table.at(4.0).fits
    assert table.at(4.0).delivered["dear"] < 1


def test_inactive_outputs_lose_nothing() -> None:
    model = chain(dear=LINEAR, cheap=QoS(loss=[(0, 0.9), (1, 1)]))
    table = plan_table(model, {"reports": 1000}, capacity=1.0, inactive=["cheap"])
    assert table.at(1.3).outputs == ("dear",)


def test_boxes_without_outputs_keep_their_input() -> None:
    boxes = {
        "clean": FlowBox("clean", ("reports",), {"clean": 1.0}, 0.001),
        "write": FlowBox("write", ("clean",), {}, 0.001),
        "count": FlowBox("count", ("clean",), {"count": 1.0}, 0.001),
    }
    model = FlowModel(boxes, {"count": FlowOutput("count", "count", LINEAR)})
    plan = plan_table(model, {"reports": 1000}, capacity=1.0).at(4.0)
    assert where(plan.drops) == {("count", "clean")}


def test_places_where_nothing_may_be_dropped_are_left_out() -> None:
    model = chain(dear=LINEAR, cheap=QoS(loss=[(0, 0.9), (1, 1)]))

    def may_drop(superbox: str, _arc: str) -> bool:
        return superbox != "cheap"

    for mode in ("auto", "admission"):
        plan = plan_table(model, {"reports": 1000}, capacity=1.0, mode=mode, may_drop=may_drop).at(
            1.5
        )
        assert plan.drops
        assert "cheap" not in plan.by_superbox()


def test_admission_drops_the_same_share_at_all_inputs() -> None:
    model = FlowModel(
        {
            "a": FlowBox("a", ("s", "t"), {"a": 1.0}, 0.001),
            "b": FlowBox("b", ("s",), {"b": 1.0}, 0.003),
        },
        {"a": FlowOutput("a", "a"), "b": FlowOutput("b", "b", LINEAR)},
    )
    plan = plan_table(model, {"s": 100, "t": 10}, capacity=0.2, mode="admission").at(2.0)
    assert where(plan.drops) == {("a", "s"), ("a", "t"), ("b", "s")}
    assert {(drop.rate, drop.seed) for drop in plan.drops} == {(0.5, plan.drops[0].seed)}
    assert plan.delivered == {"a": pytest.approx(0.5), "b": pytest.approx(0.5)}


def test_calls_cost_what_they_cost_however_much_is_dropped() -> None:
    boxes = {"far": FlowBox("far", ("reports",), {"far": 1.0}, 0.001, 0.25)}
    model = FlowModel(boxes, {"far": FlowOutput("far", "far", LINEAR)})
    plan = plan_table(model, {"reports": 1000}, capacity=1.0, period_s=0.5).at(2.0)
    # 0.5 of calls; 1.5 of tuples, of which 0.5 may stay.
    assert plan.load == pytest.approx(1.0)
    assert plan.drops[0].rate == pytest.approx(2 / 3, abs=1e-5)
    tight = plan_table(model, {"reports": 1000}, capacity=0.4, period_s=0.5).at(2.0)
    assert not tight.fits
    assert "calling the boxes alone" in tight.why


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_nothing_is_shed_if_nobody_said_what_a_loss_costs(mode: SheddingMode) -> None:
    graph = None if mode == "auto" else LINEAR
    plan = plan_table(chain(one=graph), {"reports": 1000}, capacity=0.5, mode=mode).at(2.0)
    assert plan.drops == ()
    assert plan.load == pytest.approx(1.0)
    assert ("off" in plan.why) == (mode == "off")


# ── values ──


def by_value(graph: list[tuple[float, float]]) -> QoS:
    return QoS(value={"on": "v", "graph": graph})


def test_the_interval_of_least_utility_goes_first() -> None:
    model = chain(alerts=by_value([(0, 0), (5, 0.2), (10, 1)]))
    histogram = Histogram((0, 2.5, 5, 7.5, 10), (10, 10, 10, 10))
    table = plan_table(
        model,
        {"reports": 1000},
        capacity=1.0,
        mode="semantic",
        histograms={"alerts": histogram},
        carry=same_value(model),
        levels=(1.2, 2.0),
    )
    (drop,) = table.at(1.2).drops
    assert drop.interval == DropInterval("v", None, 2.5)
    assert drop.rate == pytest.approx((1 - 1 / 1.2) / 0.25, abs=1e-5)
    (drop,) = table.at(2.0).drops  # two intervals that touch are one
    assert (drop.interval, drop.rate) == (DropInterval("v", None, 5), 1.0)
    assert table.at(2.0).utilities["alerts"] > 0.85
    assert "with v < 5" in table.at(2.0).why


def test_intervals_are_written_in_fields_of_the_arc_that_they_are_dropped_on() -> None:
    model = chain(alerts=by_value([(32, 0), (212, 1)]))
    plan = plan_table(
        model,
        {"reports": 1000},
        capacity=1.0,
        histograms={"alerts": Histogram((32, 122, 212), (10, 10))},
        carry=lambda _output, _arcs: {"reports": CarriedField("celsius", 1.8, 32)},
        levels=(2.0,),
    ).at(2.0)
    (drop,) = plan.drops
    assert drop.interval == DropInterval("celsius", None, 50)


def test_values_that_cannot_be_told_upstream_are_dropped_where_they_can() -> None:
    model = FlowModel(
        {
            "clean": FlowBox("clean", ("reports",), {"clean": 1.0}, 0.0001),
            "count": FlowBox("count", ("clean",), {"count": 1.0}, 0.001),
        },
        {"count": FlowOutput("count", "count", by_value([(0, 0), (10, 1)]))},
    )
    plan = plan_table(
        model,
        {"reports": 1000},
        capacity=0.5,
        histograms={"count": Histogram((0, 5, 10), (50, 50))},
        carry=lambda _output, arcs: {"clean": CarriedField("v")} if "clean" in arcs else None,
    ).at(1.5)
    assert where(plan.drops) == {("count", "clean")}


def test_outputs_that_share_a_place_and_a_field_lose_what_both_need_least() -> None:
    model = FlowModel(
        {"fused": FlowBox("fused", ("reports",), {"low": 0.5, "high": 0.5}, 0.001)},
        {
            "low": FlowOutput("low", "low", by_value([(0, 0), (2.5, 0), (5, 1), (10, 1)])),
            "high": FlowOutput("high", "high", by_value([(0, 0), (10, 1)])),
        },
    )
    histogram = Histogram((0, 2.5, 5, 7.5, 10), (10, 10, 10, 10))
    plan = plan_table(
        model,
        {"reports": 1000},
        capacity=1.0,
        histograms={"low": histogram, "high": histogram},
        carry=same_value(model),
        levels=(4 / 3,),
    ).at(4 / 3)
    (drop,) = plan.drops
    assert drop.interval == DropInterval("v", None, 2.5)
    assert drop.outputs == ("low", "high")
    assert plan.utilities["low"] == pytest.approx(1.0)
    assert plan.utilities["high"] == pytest.approx(15 / 16)


def test_an_output_that_counts_results_per_second_is_left_what_it_needs() -> None:
    boxes = {n: FlowBox(n, ("s",), {n: 1.0}, 0.001) for n in ("plain", "paced")}
    even = [(0, 0), (1, 1)]
    paced = QoS(loss=even, throughput=[(0, 0), (400, 1)], weights={"throughput": 3})
    graphs = {"plain": QoS(loss=even), "paced": paced}
    model = FlowModel(boxes, {name: FlowOutput(name, name, qos) for name, qos in graphs.items()})

    def delivered(level: float) -> dict[str, float]:
        """At a load of 2, each of both outputs would get 1,000 results per second."""
        levels = (1.2, 2.0, 4.0)
        plan = plan_table(model, {"s": 500}, capacity=1.0, levels=levels).at(level)
        assert plan.fits
        other = plan_table(model, {"s": 50}, capacity=0.5, levels=levels, machine=1.0).at(level)
        assert other.delivered == pytest.approx(plan.delivered), "only the machine counts"
        for name, share in plan.delivered.items():
            paid: dict[Kind, float] = {
                "loss": share,
                "throughput": paced.utility("throughput", share * 500 * level),
            }
            assert plan.utilities[name] == pytest.approx(graphs[name].combined(paid))
        return dict(plan.delivered)

    # More than 400 a second are worth little; the other output gives way to those.
    assert delivered(1.2) == pytest.approx({"plain": 1.0, "paced": 400 / 600})
    assert delivered(2.0) == pytest.approx({"plain": 0.6, "paced": 400 / 1000})
    assert delivered(4.0) == pytest.approx({"plain": 0.3, "paced": 400 / 2000})


@given(loss_graphs(), loss_graphs(), st.integers(1, 500), st.integers(0, 20))
def test_throughput_counts_as_the_share_of_the_rate(
    loss: list[tuple[float, float]], through: list[tuple[float, float]], rate: int, share: int
) -> None:
    graph = [(100 * x, y) for x, y in through]
    qos = QoS(loss=loss, throughput=graph)
    delivered = share / 20
    found = OutputUtility.of(qos, rate).at(delivered, 1.0)
    expected: dict[Kind, float] = {
        "loss": qos.utility("loss", delivered),
        "throughput": qos.utility("throughput", delivered * rate),
    }
    assert found == pytest.approx(qos.combined(expected))


# ── laws ──


@settings(max_examples=60)
@given(models(), st.sampled_from(["auto", "random", "semantic", "admission"]))
def test_what_a_plan_leaves_fits(
    drawn: tuple[FlowModel, dict[str, float]], mode: SheddingMode
) -> None:
    model, rates = drawn
    capacity = load_of(model, rates)
    table = plan_table(model, rates, capacity=capacity, mode=mode, levels=LEVELS)
    assert table.at(1.0).drops == ()
    for level in LEVELS:
        plan = table.at(level)
        assert plan.fits
        kept: dict[tuple[str, str], float] = {}
        for drop in plan.drops:
            entry = drop.superbox, drop.arc
            kept[entry] = kept.get(entry, 1.0) * (1 - drop.rate)
        more = {stream: rate * level for stream, rate in rates.items()}
        assert load_of(model, more, kept) <= capacity * 1.001


@settings(max_examples=40)
@given(models(), st.sampled_from([1.0, 2.0]))
def test_values_lose_least_then_chance_then_admission(
    drawn: tuple[FlowModel, dict[str, float]], skew: float
) -> None:
    """Paper 4, Figure 5: up to twice the capacity, never the reverse."""
    model, rates = drawn
    assume(all(rate >= 50 for rate in rates.values()))
    whole = sampled(model, rates, skew=skew)
    assume(all(len(values) > 1000 for _, values in whole.outputs.values()))
    levels = (1.1, 1.25, 1.5, 2.0)
    modes: tuple[SheddingMode, ...] = ("semantic", "random", "admission")
    tables = {
        mode: plan_table(
            model,
            rates,
            capacity=load_of(model, rates),
            mode=mode,
            histograms=whole.histograms(),
            carry=same_value(model),
            levels=levels,
        )
        for mode in modes
    }
    for level in levels:
        plans = {mode: tables[mode].at(level) for mode in modes}
        assert plans["semantic"].utility >= plans["random"].utility - 1e-9
        assert plans["random"].utility >= plans["admission"].utility - 1e-9
        counted = {}
        for mode, plan in plans.items():
            left = sampled(model, rates, plan.drops, skew)
            # A histogram of a thousand values tells shares to a few per cent.
            assert left.load * level <= whole.load * 1.08
            found = utilities(model, whole, left)
            counted[mode] = sum(found.values()) / len(found)
            assert counted[mode] == pytest.approx(plan.utility, abs=0.05)
        assert counted["semantic"] >= counted["random"] - 0.04
        assert counted["random"] >= counted["admission"] - 0.04


@settings(max_examples=40)
@given(st.lists(st.tuples(loss_graphs(), st.integers(1, 30)), min_size=2, max_size=3))
def test_the_walk_finds_what_trying_everything_finds(
    drawn: list[tuple[list[tuple[float, float]], int]],
) -> None:
    boxes = {
        f"b{n}": FlowBox(f"b{n}", ("s",), {f"b{n}": 1.0}, cost / 1000)
        for n, (_, cost) in enumerate(drawn)
    }
    outputs = {f"b{n}": FlowOutput(f"b{n}", f"b{n}", QoS(loss=g)) for n, (g, _) in enumerate(drawn)}
    model = FlowModel(boxes, outputs)
    whole = load_of(model, {"s": 100})
    table = plan_table(model, {"s": 100}, capacity=whole, levels=(1.5, 2.0))
    shares = [n / 10 for n in range(11)]
    for level in (1.5, 2.0):
        best = 0.0
        for kept in product(shares, repeat=len(drawn)):
            load = sum(k * 100 * box.cost_s for k, box in zip(kept, boxes.values(), strict=True))
            if load * level <= whole * (1 + 1e-9):
                found = [
                    QoS(loss=graph).utility("loss", k)
                    for (graph, _), k in zip(drawn, kept, strict=True)
                ]
                best = max(best, sum(found) / len(found))
        assert table.at(level).utility >= best - 1e-6


@settings(max_examples=40)
@given(models())
def test_the_walk_is_close_to_the_best_if_outputs_share_boxes(
    drawn: tuple[FlowModel, dict[str, float]],
) -> None:
    model, rates = drawn
    sites = random_sites(model)
    assume(2 <= len(sites) <= 3)
    flow = FlowSums(model, rates)
    worth = {name: OutputUtility.of(output.qos) for name, output in model.outputs.items()}
    whole = load_of(model, rates)
    plan = plan_table(model, rates, capacity=whole, mode="random", levels=(1.5,)).at(1.5)
    best = 0.0
    for amounts in product([n / 8 for n in range(9)], repeat=len(sites)):
        state = DroppedAmounts(sites, [[amount] for amount in amounts])
        if flow.work(state.kept()) * 1.5 <= whole * (1 + 1e-9):
            shares = {name: flow.share(name, state.kept_of(name, value=False)) for name in worth}
            found = sum(worth[name].at(share, share) for name, share in shares.items())
            best = max(best, found / len(worth))
    assert plan.utility >= best - 0.1
