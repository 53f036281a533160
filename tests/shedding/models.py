"""Random flow models."""

from __future__ import annotations

from hypothesis import strategies as st

from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput


def _costs() -> st.SearchStrategy[float]:
    return st.integers(1, 40).map(lambda n: n / 10_000)


def loss_graphs() -> st.SearchStrategy[list[tuple[float, float]]]:
    """Loss graphs that get steeper towards the worse side."""

    def graph(bend: int, height: int) -> list[tuple[float, float]]:
        x = bend / 10
        y = x + (1 - x) * height / 10
        return [(0, 0), (x, y), (1, 1)]

    return st.builds(graph, st.integers(1, 9), st.integers(0, 10))


def graphs() -> st.SearchStrategy[QoS]:
    """Loss graphs, value graphs, or both."""
    value = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(
        lambda ends: {"on": "v", "graph": [(0, ends[0] / 10), (10, max(ends[1], 1) / 10)]}
    )
    return st.one_of(
        st.builds(lambda g: QoS(loss=g), loss_graphs()),
        st.builds(lambda v: QoS(value=v), value),
        st.builds(lambda g, v: QoS(loss=g, value=v), loss_graphs(), value),
    )


@st.composite
def models(draw: st.DrawFn) -> tuple[FlowModel, dict[str, float]]:
    """A network of up to eight boxes whose every box leads to an output, and rates."""
    streams = [f"s{n}" for n in range(draw(st.integers(1, 3)))]
    arcs = list(streams)
    boxes: dict[str, FlowBox] = {}
    for n in range(draw(st.integers(1, 8))):
        name = f"b{n}"
        inputs = draw(st.lists(st.sampled_from(arcs), min_size=1, max_size=2, unique=True))
        selectivity = draw(st.integers(1, 10)) / 10
        boxes[name] = FlowBox(name, tuple(inputs), {name: selectivity}, draw(_costs()))
        arcs.append(name)
    read = {arc for box in boxes.values() for arc in box.inputs}
    ends = [name for name in boxes if name not in read]
    more = draw(st.lists(st.sampled_from(list(boxes)), max_size=2))
    outputs = {
        f"o_{name}": FlowOutput(f"o_{name}", name, draw(graphs()))
        for name in dict.fromkeys([*ends, *more])
    }
    model = FlowModel(boxes, outputs)
    return model, {stream: float(draw(st.integers(1, 1000))) for stream in model.streams}
