"""Which boxes may run as one: what `engine: {superbox}` says, and what outputs are worth (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from auroral.network.check import CheckedNetwork
from auroral.network.declarations import SuperboxMode
from auroral.network.network import Network

_ONE_BY_ONE: tuple[SuperboxMode, ...] = ("box", "application", "spanner")


@dataclass(frozen=True)
class Fusion:
    """How boxes are fused.

    With `superbox: auto` outputs of different worth are scheduled and shed apart, so boxes that
    lead to different sets of them do not run as one. Outputs with the same graphs are of the same
    worth.
    """

    mode: Literal["box", "fuse"] = "fuse"
    """Each box by itself, or the largest parts that Spark runs well."""
    worth: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By arc, which of the different graphs the outputs that read it have."""

    @classmethod
    def of(cls, network: Network) -> Fusion:
        """The fusion that a network asks for.

        >>> network = Network("n")
        >>> s = network.stream("s", schema="a int")
        >>> for name, latest in ("soon", 1), ("later", 60), ("also_soon", 1):
        ...     graphs = {"latency": [[0, 1], [latest, 0]]}
        ...     _ = network.output(name, s.filter("a > 0", name=f"{name}_only"), qos=graphs)
        >>> {arc: sorted(worth) for arc, worth in Fusion.of(network).worth.items()}
        {'soon_only': [0], 'later_only': [1], 'also_soon_only': [0]}
        """
        mode: Literal["box", "fuse"] = (
            "box" if network.engine.superbox in _ONE_BY_ONE or _is_threaded(network) else "fuse"
        )
        graphs: dict[str, int] = {}
        found: dict[str, set[int]] = {}
        for output in network.outputs.values():
            if output.qos is not None:
                text = json.dumps(output.qos.model_dump(mode="json"), sort_keys=True)
                number = graphs.setdefault(text, len(graphs))
                found.setdefault(output.from_, set()).add(number)
        if network.engine.superbox != "auto" or mode == "box" or len(graphs) < 2:
            return cls(mode)
        return cls(mode, {arc: frozenset(numbers) for arc, numbers in found.items()})

    def document(self) -> dict[str, Any]:
        """The fusion as plain data; empty if it is the usual one."""
        found: dict[str, Any] = {} if self.mode == "fuse" else {"mode": self.mode}
        if self.worth:
            found["worth"] = {arc: sorted(numbers) for arc, numbers in self.worth.items()}
        return found

    def classes(self, checked: CheckedNetwork, boxes: Iterable[str]) -> dict[str, frozenset[int]]:
        """For each box, which of the different graphs the outputs have that it leads to."""
        found: dict[str, set[int]] = {box: set() for box in boxes}
        for arc, numbers in self.worth.items():
            if arc in checked.arcs and checked.arcs[arc].producer in found:
                found[checked.arcs[arc].producer] |= numbers
        for name in reversed(list(checked.order)):
            for read in checked.inputs_of(name) if name in found else ():
                if read.producer in found:
                    found[read.producer] |= found[name]
        return {box: frozenset(numbers) for box, numbers in found.items()}


def _is_threaded(network: Network) -> bool:
    return network.engine.scheduler == "thread-per-box"
