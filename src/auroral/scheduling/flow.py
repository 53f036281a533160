"""How tuples flow: what boxes read, cost and let through, and where outputs are (pure).

Schedulers, the simulator, the load shedder and static analysis share this picture of a network.
A box of the picture is one box, or the boxes of a superbox that run as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from auroral.qos.graphs import QoS


@dataclass(frozen=True)
class FlowBox:
    """What is known of a box: a call over n tuples lasts `call_s + n × cost_s`."""

    name: str
    inputs: tuple[str, ...]
    """The arcs that it reads: streams, or arcs of other boxes."""
    selectivities: Mapping[str, float]
    """For each arc that it writes, how many tuples come out for each that goes in."""
    cost_s: float
    call_s: float = 0.0
    tuple_bytes: float = 1.0
    """The size of a tuple on its input."""
    is_measured: bool = True
    """Whether its costs were measured; otherwise its first trains are short."""

    @property
    def selectivity(self) -> float:
        """How many tuples come out for each that goes in, on all arcs together."""
        return sum(self.selectivities.values())


@dataclass(frozen=True)
class FlowOutput:
    """An arc that an application gets, and what its tuples are worth."""

    name: str
    arc: str
    qos: QoS | None = None


@dataclass(frozen=True)
class FlowModel:
    """A network of boxes, in flow order: a box comes after those that it reads.

    >>> model = FlowModel(
    ...     {
    ...         "far": FlowBox("far", ("reports",), {"far": 0.5}, 0.001),
    ...         "near": FlowBox("near", ("reports",), {"near": 0.1}, 0.001),
    ...         "both": FlowBox("both", ("far", "near"), {"both": 1.0}, 0.002),
    ...     },
    ...     {"alerts": FlowOutput("alerts", "both"), "far": FlowOutput("far", "far")},
    ... )
    >>> model.streams, model.downstream("far"), model.outputs_of("far"), model.outputs_of("near")
    (('reports',), ('far', 'both'), ('alerts', 'far'), ('alerts',))
    """

    boxes: Mapping[str, FlowBox]
    outputs: Mapping[str, FlowOutput] = field(default_factory=dict)

    @cached_property
    def writers(self) -> dict[str, str]:
        """Boxes, by the arcs that they write."""
        return {arc: name for name, box in self.boxes.items() for arc in box.selectivities}

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The arcs that no box writes."""
        read = dict.fromkeys(arc for box in self.boxes.values() for arc in box.inputs)
        return tuple(arc for arc in read if arc not in self.writers)

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """The boxes that read an arc; arcs that none reads are left out."""
        found: dict[str, list[str]] = {}
        for name, box in self.boxes.items():
            for arc in dict.fromkeys(box.inputs):
                found.setdefault(arc, []).append(name)
        return {arc: tuple(names) for arc, names in found.items()}

    @cached_property
    def _downstream(self) -> dict[str, tuple[str, ...]]:
        behind: dict[str, set[str]] = {}
        for name in reversed(list(self.boxes)):
            next_boxes = self.next_boxes(name)
            behind[name] = {name}.union(*(behind[one] for one in next_boxes))
        in_order = self.place.__getitem__
        return {name: tuple(sorted(found, key=in_order)) for name, found in behind.items()}

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each box in flow order."""
        return {name: at for at, name in enumerate(self.boxes)}

    def next_boxes(self, name: str) -> tuple[str, ...]:
        """The boxes that read what a box writes."""
        arcs = self.boxes[name].selectivities
        return tuple(dict.fromkeys(r for arc in arcs for r in self.readers.get(arc, ())))

    def boxes_before(self, name: str) -> tuple[str, ...]:
        """The boxes that write what a box reads."""
        return self._before[name]

    @cached_property
    def _before(self) -> dict[str, tuple[str, ...]]:
        writers = {
            name: [self.writers[arc] for arc in box.inputs if arc in self.writers]
            for name, box in self.boxes.items()
        }
        return {name: tuple(dict.fromkeys(found)) for name, found in writers.items()}

    def downstream(self, name: str) -> tuple[str, ...]:
        """D(b) of [2 §4.1.2]: a box and all that its tuples pass after it, in flow order."""
        return self._downstream[name]

    def upstream(self, names: Iterable[str]) -> tuple[str, ...]:
        """Some boxes and all that lead to them, in flow order."""
        found: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += self.boxes_before(name)
        return tuple(sorted(found, key=self.place.__getitem__))

    def outputs_of(self, name: str) -> tuple[str, ...]:
        """The outputs that a box leads to."""
        return self._outputs[name]

    @cached_property
    def _outputs(self) -> dict[str, tuple[str, ...]]:
        direct: dict[str, list[str]] = {}
        for output in self.outputs.values():
            if output.arc in self.writers:
                direct.setdefault(self.writers[output.arc], []).append(output.name)
        place = {name: at for at, name in enumerate(self.outputs)}
        return {
            name: tuple(
                sorted(
                    {output for box in behind for output in direct.get(box, ())},
                    key=place.__getitem__,
                )
            )
            for name, behind in self._downstream.items()
        }
