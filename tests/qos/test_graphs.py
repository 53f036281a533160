"""Utility graphs: what delay, loss and values are worth."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import NetworkError, QoS

FULL = QoS.model_validate(
    {
        "latency": [(0, 1), (2, 1), (10, 0)],
        "loss": [(1, 1), (0.5, 0.2), (0, 0)],
        "value": {"on": "cnt", "graph": [(-3, 0.2), (10, 1)]},
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
    ],
)
def test_utility_between_the_points(
    kind: Literal["latency", "loss", "value"], x: float, utility: float
) -> None:
    assert FULL.utility(kind, x) == pytest.approx(utility)


@pytest.mark.parametrize("kind", ["latency", "loss", "value"])
def test_without_a_graph_all_is_well(kind: Literal["latency", "loss", "value"]) -> None:
    assert QoS().utility(kind, 1e9) == 1.0


points = st.lists(
    st.tuples(st.integers(0, 1000), st.floats(0, 1)), min_size=2, unique_by=lambda point: point[0]
).map(sorted)


@given(points, st.floats(-10, 1010), st.booleans())
def test_utility_stays_between_its_neighbours(
    graph: list[tuple[int, float]], x: float, backwards: bool
) -> None:
    qos = QoS.model_validate({"latency": graph[::-1] if backwards else graph})
    below = [y for at, y in graph if at <= x][-1:]
    above = [y for at, y in graph if at >= x][:1]
    near = below + above
    assert min(near) - 1e-9 <= qos.utility("latency", x) <= max(near) + 1e-9
    for at, y in graph:
        assert qos.utility("latency", at) == pytest.approx(y)


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
    ],
)
def test_bad_graphs(graphs: Any, said: str) -> None:
    with pytest.raises(NetworkError, match=said) as raised:
        QoS(**graphs)
    assert raised.value.code == "BAD_QOS"
