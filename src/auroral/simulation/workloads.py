"""Artificial networks as in [2 §5.1]: trees of universal boxes, and the rates that load them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput

LEAST_COST_S, MOST_COST_S = 0.0001, 0.001
"""Seconds for a tuple of a box, drawn evenly from this range [2 §5.1]."""

TIGHT_QOS = QoS(latency=[(0, 1), (0.001, 1), (1, 0)])
LOOSE_QOS = QoS(latency=[(0, 1), (4, 1), (5, 0)])
"""The two graphs of [2 §6.1]."""


@dataclass(frozen=True)
class TreeWorkload:
    """Applications, each a tree of boxes rooted at an output box.

    `depth` counts the levels of a tree, `fan_out` the boxes that feed a box. Boxes of the last
    level read a stream each. Fan-out one makes chains.
    """

    applications: int
    depth: int = 5
    fan_out: int = 3
    call_s: float = 0.0
    cost_s: float | None = None
    """Of each box; None: drawn from the range of [2]."""
    selectivity: float | tuple[float, float] = 1.0
    """Of each box; two numbers: drawn from between them."""

    def model(
        self, random: np.random.Generator, graphs: Mapping[str, QoS] | None = None
    ) -> FlowModel:
        """The network; `graphs` are those of outputs, which are named a0, a1, …"""
        boxes: dict[str, FlowBox] = {}
        outputs: dict[str, FlowOutput] = {}
        for number in range(self.applications):
            name = f"a{number}"
            levels = self._levels(name)
            for level in reversed(range(self.depth)):
                for at, box in enumerate(levels[level]):
                    if level + 1 < self.depth:
                        first = at * self.fan_out
                        inputs = tuple(levels[level + 1][first : first + self.fan_out])
                    else:
                        inputs = (f"{box}.in",)
                    boxes[box] = FlowBox(
                        box,
                        inputs,
                        {box: self._drawn_selectivity(random)},
                        self._drawn_cost_s(random),
                        self.call_s,
                    )
            outputs[name] = FlowOutput(name, levels[0][0], (graphs or {}).get(name))
        return FlowModel(boxes, outputs)

    def _levels(self, application: str) -> list[list[str]]:
        """Names of boxes, from the output box on."""
        return [
            [f"{application}.{level}.{at}" for at in range(self.fan_out**level)]
            for level in range(self.depth)
        ]

    def _drawn_cost_s(self, random: np.random.Generator) -> float:
        if self.cost_s is not None:
            return self.cost_s
        return float(random.uniform(LEAST_COST_S, MOST_COST_S))

    def _drawn_selectivity(self, random: np.random.Generator) -> float:
        if isinstance(self.selectivity, float):
            return self.selectivity
        return float(random.uniform(*self.selectivity))


def work_per_tuple(model: FlowModel) -> dict[str, float]:
    """Seconds of processing that a tuple of each stream needs in all boxes together.

    >>> boxes = {
    ...     "f": FlowBox("f", ("s",), {"f": 0.5}, 1.0),
    ...     "m": FlowBox("m", ("f",), {"m": 1.0}, 4.0),
    ... }
    >>> work_per_tuple(FlowModel(boxes))
    {'s': 3.0}
    """
    arcs: dict[str, float] = {}
    for box in reversed(list(model.boxes.values())):
        behind = sum(share * arcs.get(arc, 0.0) for arc, share in box.selectivities.items())
        for arc in dict.fromkeys(box.inputs):
            arcs[arc] = arcs.get(arc, 0.0) + box.cost_s + behind
    return {stream: arcs[stream] for stream in model.streams}


def rates_at(model: FlowModel, capacity: float, workers: int = 1) -> dict[str, float]:
    """Equal rates of all streams that use this share of what workers can process [2 §5.1].

    Overheads come on top: a machine is overloaded at a capacity below one.
    """
    work_s = sum(work_per_tuple(model).values())
    return dict.fromkeys(model.streams, capacity * workers / work_s)


def mixed_graphs(applications: int, random: np.random.Generator) -> dict[str, QoS]:
    """Tight and loose graphs, half of each, assigned to applications at random [2 §6.1]."""
    tight = set(random.permutation(applications)[: applications // 2].tolist())
    return {f"a{at}": TIGHT_QOS if at in tight else LOOSE_QOS for at in range(applications)}


def figure_4_tree(
    costs_s: Mapping[str, float], call_s: float, selectivities: Mapping[str, float] | None = None
) -> FlowModel:
    """The query tree of [2 Fig. 4]: b1 is the output box, b5 → b3 → b2 → b1 its longest path."""
    inputs = {
        "b4": ("s4",),
        "b5": ("s5",),
        "b3": ("b5", "s3"),
        "b2": ("b4", "b3", "s2"),
        "b6": ("s6",),
        "b1": ("b2", "b6", "s1"),
    }
    sel = selectivities or {}
    boxes = {
        name: FlowBox(name, arcs, {name: sel.get(name, 1.0)}, costs_s[name], call_s)
        for name, arcs in inputs.items()
    }
    return FlowModel(boxes, {"application": FlowOutput("application", "b1")})
