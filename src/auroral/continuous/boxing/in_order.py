"""A network that keeps every stream in order, as systems before out-of-order processing did.

The papers compare the two; so can `engine: {order: enforce}`. Streams with disorder are sorted
where they enter, unions keep order, joins sort what they emit. The results are the same, what is
held back is not [3 §3.1, §5].
"""

from __future__ import annotations

import copy

from auroral.boxes import BSort, Join, Union
from auroral.boxes.join import joined
from auroral.boxes.order import Order
from auroral.continuous.boxing.progress import progressing
from auroral.network.box import Box
from auroral.network.check import type_arcs
from auroral.network.network import Network
from auroral.network.point_names import renamed_inputs, with_points_resolved

SORTED = "sorted"


def in_order(network: Network) -> Network:
    """The same network with sorts wherever order can be lost.

    >>> from auroral.progress.declaration import Delayed
    >>> net = Network("late")
    >>> stream = net.stream("s", schema="t bigint", progress=Delayed("t", 5))
    >>> _ = net.output("o", stream.filter("t > 0", name="f"))
    >>> {name: box.sources() for name, box in in_order(net).boxes.items()}
    {'s#sorted': ('s',), 'f': ('s#sorted',)}
    """
    network = with_points_resolved(network)
    arcs, order = type_arcs(network, network.boxes)
    progress = progressing(network, arcs, order)
    boxes: dict[str, Box] = {}
    instead: dict[str, str] = {}

    def sort(arc: str, on: str) -> None:
        boxes[f"{arc}#{SORTED}"] = BSort(input=arc, order=Order(on))
        instead[arc] = f"{arc}#{SORTED}"

    for name, stream in network.streams.items():
        for declared in stream.progressing[:1]:  # one order is kept: that of the first
            if not declared.by and not declared.ordered:
                sort(name, declared.on)
    for name in order:
        box = network.boxes[name]
        boxes[name] = renamed_inputs(box, instead)
        if isinstance(box, Union) and progress[name]:
            sort(name, progress[name][0])
        elif isinstance(box, Join) and progress[name] and box.left is not None:
            schemas = [arcs[arc].schema for arc in box.sources() if arc in arcs]
            if len(schemas) == 2:
                sort(name, joined(*schemas).field(box.left.on).name)
    changed = copy.copy(network)
    changed.boxes = boxes
    changed.outputs = {
        name: output.model_copy(update={"from_": instead.get(output.from_, output.from_)})
        for name, output in network.outputs.items()
    }
    return changed
