"""Utility graphs: what delay, loss and values are worth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import Network, NetworkError, QoS
from auroral.qos.curves import Curve
from auroral.qos.graphs import (
    KINDS,
    Kind,
    default_qos,
    latency_curve,
    loss_curve,
    qos_or_default,
)

FULL = QoS.model_validate(
    {
        "latency": [(0, 1), (2, 1), (10, 0)],
        "loss": [(1, 1), (0.5, 0.2), (0, 0)],
        "value": {"on": "cnt", "graph": [(-3, 0.2), (10, 1)]},
        "throughput": [(0, 0), (100, 1)],
        "convex": False,
    }
)


@pytest.mark.parametrize(
    ("kind", "x", "utility"),
    [
        ("latency", -1, 1),
        ("latency", 0, 1),
        ("latency", 2, 1),
        ("latency", 4, 0.75),
        ("latency", 6, 0.5),
        ("latency", 10, 0),
        ("latency", 1e9, 0),
        ("loss", 1, 1),
        ("loss", 0.75, 0.6),
        ("loss", 0.5, 0.2),
        ("loss", 0.25, 0.1),
        ("loss", 0, 0),
        ("value", -9, 0.2),
        ("value", 3.5, 0.6),
        ("value", 99, 1),
        ("throughput", 25, 0.25),
    ],
)
def test_utility_between_the_points(kind: Kind, x: float, utility: float) -> None:
    assert FULL.utility(kind, x) == pytest.approx(utility)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_graph_all_is_well(kind: Kind) -> None:
    assert QoS().utility(kind, 1e9) == 1.0


points = st.lists(
    st.tuples(st.integers(0, 1000), st.floats(0, 1)), min_size=2, unique_by=lambda point: point[0]
).map(sorted)


@given(points, st.floats(-10, 1010), st.booleans())
def test_utility_stays_between_its_neighbours(
    graph: list[tuple[int, float]], x: float, backwards: bool
) -> None:
    graph_of = {"on": "cnt", "graph": graph[::-1] if backwards else graph}
    qos = QoS.model_validate({"value": graph_of})
    below = [y for at, y in graph if at <= x][-1:]
    above = [y for at, y in graph if at >= x][:1]
    near = below + above
    assert min(near) - 1e-9 <= qos.utility("value", x) <= max(near) + 1e-9
    for at, y in graph:
        assert qos.utility("value", at) == pytest.approx(y)


@pytest.mark.parametrize(
    ("graphs", "said"),
    [
        ({"latency": []}, "two points"),
        ({"latency": [(0, 1)]}, "two points"),
        ({"latency": [(0, 1), (0, 0)]}, "order of x"),
        ({"latency": [(0, 1), (2, 1), (1, 0)]}, "order of x"),
        ({"latency": [(0, 1.5), (2, 1)]}, r"within \[0, 1\]"),
        ({"latency": [(0, -0.5), (2, 1)]}, r"within \[0, 1\]"),
        ({"latency": [(-1, 1), (2, 1)]}, r"within \[0, ∞\]"),
        ({"latency": [(0, float("nan")), (2, 1)]}, "finite"),
        ({"latency": [(0, 1), (float("inf"), 0)]}, "finite"),
        ({"latency": [(0, "1"), (2, 1)]}, "latency"),
        ({"latency": [(0, True), (2, 1)]}, "latency"),
        ({"latency": 5}, "latency"),
        ({"loss": [(2, 1), (0, 0)]}, r"within \[0, 1\]"),
        ({"value": {"on": "x", "graph": [(0, 2), (1, 1)]}}, "value.graph"),
        ({"value": {"graph": [(0, 0), (1, 1)]}}, "value.on"),
        ({"value": {"on": 5, "graph": [(0, 0), (1, 1)]}}, "value.on"),
        ({"delay": []}, "delay"),
        ({"latency": [(0, 0), (2, 1)]}, "falls"),
        ({"latency": [(0, 1), (2, 0.5), (3, 0.6), (9, 0)]}, "falls"),
        ({"latency": [(0, 1), (10**400, 0)]}, "finite"),
        ({"latency": [(0, 1), (2**53, 1), (2**53 + 1, 0)]}, "order of x"),
        ({"latency": [(0, 1), (1, 0.2), (10, 0)]}, "steeper"),
        ({"loss": [(1, 0), (0, 1)]}, "rises"),
        ({"loss": [(1, 1), (0.5, 0.2), (0, 0)]}, "steeper"),
        ({"throughput": [(0, 1), (5, 0)]}, "rises"),
        ({"throughput": [(-5, 0), (5, 1)]}, r"within \[0, ∞\]"),
        ({"throughput": [(0, 0), (5, 0.1), (9, 1)]}, "steeper"),
        ({"latency": [(0, 1), (2, 0)], "weights": {"loss": 2}}, "no loss graph"),
        ({"latency": [(0, 1), (2, 0)], "weights": {"latency": -1}}, "0 or more"),
        ({"latency": [(0, 1), (2, 0)], "weights": {"latency": 0}}, "above 0"),
        ({"latency": [(0, 1), (2, 0)], "weights": {"price": 1}}, "weights.price"),
        ({"latency": [(0, 1), (2, 0)], "weights": {"latency": "2"}}, "weights.latency"),
        ({"latency": [(0, 1), (2, 0)], "convex": 1}, "convex"),
    ],
)
def test_bad_graphs(graphs: Any, said: str) -> None:
    with pytest.raises(NetworkError, match=said) as raised:
        QoS(**graphs)
    assert raised.value.code == "BAD_QOS"


def test_a_mistake_in_a_file_is_told_with_its_place() -> None:
    document = {
        "network": "n",
        "streams": {"s": {"schema": {"x": "int"}}},
        "outputs": {"o": {"from": "s", "qos": {"latency": [[0, 0], [2, 1]]}}},
    }
    with pytest.raises(NetworkError, match=r"output o, key qos.latency.*falls.*found \[\[0, 0\]"):
        Network.parse(document)


@pytest.mark.parametrize(
    ("graphs", "hint"),
    [
        ({"latency": [(0, 0), (2, 1)]}, "did you mean [[0, 1], [2, 0]]?"),
        (
            {"latency": [(0, 1), (2, 0), (3, 1)]},
            "a point is the delay in seconds, then its utility",
        ),
        ({"loss": [(0, 1), (1, 0)]}, "did you mean [[0, 0], [1, 1]]?"),
        ({"loss": [(100, 1), (0, 0)]}, "the share delivered: 1 is all"),
        ({"latency": [(0, 1)]}, "as in [[0, 1], [2, 1], [10, 0]]"),
        ({"latency": [(0, 1), (9, 0), (3, 0.5)]}, "did you mean [[0, 1], [3, 0.5], [9, 0]]?"),
        ({"latency": [(0, 1), (2, 1), (2, 0)]}, "for a jump, give two x"),
        ({"latency": [(0, 100), (2, 0)]}, "1 is the best"),
    ],
)
def test_mistakes_have_a_hint(graphs: Any, hint: str) -> None:
    with pytest.raises(NetworkError) as raised:
        QoS(**graphs)
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    "graphs",
    [
        {"latency": [(0, 1), (2, 1), (10, 0)]},
        {"latency": [(0, 1), (2, 1), (10, 0.1), (20, 0.1)]},
        {"latency": [(0, 1), (5, 1)]},
        {"loss": [(1, 1), (0.5, 0.8), (0, 0)]},
        {"loss": [(1, 1), (0.5, 0), (0, 0)]},
        {"throughput": [(0, 0), (5, 0.9), (9, 1)]},
        {"value": {"on": "cnt", "graph": [(0, 1), (5, 0), (9, 1)]}},
        {"latency": [(0, 1), (1, 0.2), (10, 0)], "convex": False},
    ],
)
def test_graphs_that_may_be(graphs: Any) -> None:
    qos = QoS(**graphs)
    assert QoS.model_validate(qos.document()) == qos
    assert hash(qos) == hash(QoS(**graphs))


def test_the_utility_of_an_output_is_the_weighted_mean_of_its_graphs() -> None:
    graph = [(0, 0), (1, 1)]
    qos = QoS.model_validate({"loss": graph, "throughput": graph, "weights": {"loss": 3}})
    assert qos.combined({"loss": 1.0, "throughput": 0.0, "latency": 0.0}) == 0.75
    assert (qos.share("loss"), qos.share("throughput"), qos.share("latency")) == (0.75, 0.25, 0)
    assert QoS().combined({"latency": 0.1}) == 1.0


def test_what_counts_for_outputs_without_graphs() -> None:
    assert qos_or_default(None) == qos_or_default(QoS()) == default_qos()
    assert [default_qos().utility("latency", x) for x in (0, 1, 30.5, 60)] == [1, 1, 0.5, 0]
    assert latency_curve(QoS.model_validate({"loss": [(0, 0), (1, 1)]})).good_until == 1
    assert latency_curve(FULL).good_until == 2
    assert loss_curve(None) is loss_curve(default_qos()) is None
    valued = QoS.model_validate({"value": {"on": "x", "graph": [(0, 0), (1, 1)]}})
    curve = loss_curve(valued)
    assert curve is not None
    assert curve.value(0.25) == 0.25


steps = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=8)


@given(steps, st.floats(0, 500), st.floats(0, 500))
def test_latency_utility_never_rises_with_delay(
    steps: list[tuple[int, int]], one: float, other: float
) -> None:
    """Slopes that are sorted make a graph that is valid as it is."""
    steps.sort(key=lambda step: step[1] / step[0])
    fallen = sum(down for _, down in steps) or 1
    graph = [(0.0, 1.0)]
    for along, down in steps:
        x, y = graph[-1]
        graph.append((x + along, max(y - down / fallen, 0.0)))
    qos = QoS.model_validate({"latency": graph})
    low, high = sorted((one, other))
    assert 1 >= qos.utility("latency", low) >= qos.utility("latency", high) >= 0


def test_what_can_be_asked_of_a_curve() -> None:
    curve = Curve.through([(0, 1), (2, 1), (6, 0.5), (10, 0), (12, 0)])
    assert curve.critical_points == (2, 10)
    assert [curve.gradient(x) for x in (-1, 0, 1.9, 2, 6, 9.9, 10, 99)] == [
        0, 0, 0, -0.125, -0.125, -0.125, 0, 0,
    ]  # fmt: skip
    assert [curve.slack(x) for x in (0, 2, 9, 10)] == [2, 8, 1, float("inf")]
    assert (curve.good_until, curve.good_from) == (2, float("-inf"))
    assert curve.area(0, 10) == curve.area(0, 12) == -curve.area(12, 0) == 6
    assert Curve.through([(0, 1), (1, 1)]).good_until == float("inf")
    loss = Curve.through([(1, 1), (0.8, 1), (0, 0)])
    assert (loss.good_from, loss.good_until) == (0.8, float("inf"))


@given(points, st.floats(-10, 1010), st.floats(-10, 1010))
def test_gradient_and_area_follow_from_the_value(
    graph: list[tuple[int, float]], one: float, other: float
) -> None:
    curve = Curve.through(graph)
    low, high = sorted((one, other))
    ahead = min(curve.slack(low), 1.0) / 2
    moved = curve.value(low + ahead) - curve.value(low)
    assert moved == pytest.approx(curve.gradient(low) * ahead, abs=1e-6)
    piece = curve.area(low, low + ahead)
    assert piece == pytest.approx((curve.value(low) + moved / 2) * ahead, abs=1e-6)
    rest = curve.area(low + ahead, high)
    assert curve.area(low, high) == pytest.approx(piece + rest, abs=1e-6)


@pytest.mark.parametrize("section", ["outputs", "views"])
@pytest.mark.parametrize(
    ("on", "said"), [("y", "UNKNOWN_FIELD.*there is no field y"), ("t", "BAD_QOS.*t is string")]
)
def test_a_value_graph_is_on_a_number_that_is_there(section: str, on: str, said: str) -> None:
    graph = {"value": {"on": on, "graph": [[0, 0], [1, 1]]}}
    document = {
        "network": "n",
        "streams": {"s": {"schema": {"x": "int", "t": "string"}}},
        section: {"o": {"from": "s", "qos": graph}},
    }
    with pytest.raises(NetworkError, match=rf"{said}") as raised:
        Network.parse(document).check()
    assert "key qos.value.on" in str(raised.value)
