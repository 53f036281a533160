"""Networks for schedulers: examples, random ones, and queues that plans are carried out on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from hypothesis import strategies as st

from auroral.network.declarations import SchedulerName, SuperboxMode, TraversalName
from auroral.qos.graphs import QoS
from auroral.scheduling.decisions import SchedulingPlan
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings
from auroral.scheduling.queues import QueueTable

SCHEDULERS: tuple[SchedulerName, ...] = get_args(SchedulerName)
SUPERBOXES: tuple[SuperboxMode, ...] = get_args(SuperboxMode)
TRAVERSALS: tuple[TraversalName, ...] = get_args(TraversalName)
TIGHT = QoS(latency=[(0, 1), (0.001, 1), (1, 0)])
LOOSE = QoS(latency=[(0, 1), (4, 1), (5, 0)])


def sample_tree(
    figures: Mapping[str, tuple[float, float]] | None = None, *, p: float = 1.0, o: float = 0.0
) -> FlowModel:
    """The tree of [2], Figure 4, with selectivities and costs of boxes, or 1 and p for all."""
    children = {"b1": ("b2", "b6"), "b2": ("b4", "b3"), "b3": ("b5",)}
    boxes = {}
    for name in ("b5", "b3", "b4", "b2", "b6", "b1"):
        selectivity, cost_s = (figures or {}).get(name, (1.0, p))
        inputs = (*children.get(name, ()), f"stream of {name}")
        boxes[name] = FlowBox(name, inputs, {name: selectivity}, cost_s, o)
    return FlowModel(boxes, {"answers": FlowOutput("answers", "b1")})


def chains(
    graphs: Sequence[QoS | None], depth: int, *, cost_s: float = 0.0005, call_s: float = 0.0001
) -> FlowModel:
    """Applications that share nothing, each a chain of boxes `a0.0`, `a0.1`, … and an output."""
    boxes: dict[str, FlowBox] = {}
    outputs = {}
    for at, graph in enumerate(graphs):
        for level in range(depth):
            name = f"a{at}.{level}"
            source = f"a{at}.{level - 1}" if level else f"stream {at}"
            boxes[name] = FlowBox(name, (source,), {name: 1.0}, cost_s, call_s)
        outputs[f"out {at}"] = FlowOutput(f"out {at}", f"a{at}.{depth - 1}", graph)
    return FlowModel(boxes, outputs)


def filled(model: FlowModel, waiting: Mapping[str, tuple[int, float]]) -> QueueTable:
    """A table in which so many tuples wait for boxes, all arrived at one time."""
    table = QueueTable(model.boxes)
    for box, (queued, arrival_s) in waiting.items():
        table.fill(box, queued, mean_arrival_s=arrival_s, oldest_arrival_s=arrival_s)
    return table


class PlannedQueues:
    """Queues of tuples by arrival time, with a table of them; plans are carried out at once."""

    def __init__(self, model: FlowModel):
        self.model = model
        self.table = QueueTable(model.boxes)
        self.waiting: dict[str, list[float]] = {box: [] for box in model.boxes}

    def put(self, box: str, arrivals: Sequence[float]) -> None:
        """More tuples wait for a box."""
        self.waiting[box] = sorted([*self.waiting[box], *arrivals])
        self._tell(box)

    def carry_out(self, plan: SchedulingPlan) -> list[str]:
        """Make the calls of a plan; returns those for which tuples were waiting."""
        made = []
        for call in plan.calls:
            held = self.waiting[call.box]
            count = len(held) if call.tuples is None else min(call.tuples, len(held))
            taken, self.waiting[call.box] = held[:count], held[count:]
            self._tell(call.box)
            if taken:
                made.append(call.box)
            for arc, share in self.model.boxes[call.box].selectivities.items():
                for reader in self.model.readers.get(arc, ()):
                    self.put(reader, taken[: round(count * share)])
        return made

    def _tell(self, box: str) -> None:
        held = self.waiting[box]
        mean_s = sum(held) / len(held) if held else 0.0
        oldest_s = held[0] if held else 0.0
        self.table.fill(
            box, len(held), mean_arrival_s=mean_s, oldest_arrival_s=oldest_s, bytes=len(held)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not any(self.waiting.values())


@st.composite
def latency_graphs(draw: st.DrawFn) -> QoS:
    good = draw(st.sampled_from([0.0, 0.01, 0.5, 2.0, 5.0]))
    until = good + draw(st.sampled_from([0.5, 1.0, 4.0, 50.0]))
    points = [(0, 1), (good, 1), (until, 0)] if good else [(0, 1), (until, 0)]
    return QoS(latency=points)


@st.composite
def flow_models(draw: st.DrawFn, most: int = 8) -> FlowModel:
    """Boxes with one or two inputs and arcs each; some arcs are outputs, some with QoS."""
    arcs = ["first stream", "second stream"]
    boxes = {}
    for at in range(draw(st.integers(1, most))):
        name = f"box {at}"
        inputs = draw(st.lists(st.sampled_from(arcs), min_size=1, max_size=2, unique=True))
        written = [name, f"{name}.rest"][: draw(st.integers(1, 2))]
        shares = {arc: draw(st.sampled_from([0.0, 0.3, 1.0, 2.0])) for arc in written}
        cost_s = draw(st.sampled_from([0.0, 0.001, 0.1]))
        call_s = draw(st.sampled_from([0.0, 0.02]))
        known = draw(st.booleans())
        boxes[name] = FlowBox(name, tuple(inputs), shares, cost_s, call_s, is_measured=known)
        arcs += written
    given = draw(st.lists(st.sampled_from(arcs), max_size=4, unique=True))
    graph = st.none() | latency_graphs()
    outputs = {f"out {arc}": FlowOutput(f"out {arc}", arc, draw(graph)) for arc in given}
    return FlowModel(boxes, outputs)


def scheduler_settings() -> st.SearchStrategy[SchedulerSettings]:
    return st.builds(
        SchedulerSettings,
        scheduler=st.sampled_from(SCHEDULERS),
        superbox=st.sampled_from(SUPERBOXES),
        traversal=st.sampled_from(TRAVERSALS),
        train=st.sampled_from(["auto", None, 1, 3]),
        memory_bytes=st.sampled_from([None, 10]),
        train_spread_s=st.sampled_from([None, 0.5]),
        train_cost_s=st.sampled_from([None, 0.2]),
        train_bytes=st.sampled_from([None, 5]),
        spanner_boxes=st.integers(1, 4),
        partitions=st.sampled_from([1, 2, 20]),
    )
