"""Which boxes may run as one: what `engine: {superbox}` says, and what outputs are worth (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from auroral.network.check import CheckedNetwork
from auroral.network.declarations import SuperboxMode
from auroral.network.network import Network
from auroral.network.point_names import point_arcs
from auroral.qos.graphs import QoS

_ONE_BY_ONE: tuple[SuperboxMode, ...] = ("box", "application", "spanner")


RULE = 2
"""By which rule boxes are fused now. State directories say by which theirs were."""
EARLIER_RULE = 1
"""Outputs without graphs and views were not told apart, nor was anything by the only graphs."""
NO_GRAPHS = -1
"""The worth of what is delivered without graphs, and of boxes that lead to no output at all."""


@dataclass(frozen=True)
class Fusion:
    """How boxes are fused.

    With `superbox: auto` outputs of different worth are scheduled and shed apart, so boxes that
    lead to different sets of them do not run as one. Outputs with the same graphs are of the same
    worth, and so are all outputs without graphs. Views with graphs count as outputs. If nothing
    has graphs, nothing is kept apart.
    """

    mode: Literal["box", "fuse"] = "fuse"
    """Each box by itself, or the largest parts that Spark runs well."""
    worth: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By arc, which of the different graphs the outputs that read it have; empty if none has."""
    rule: int = RULE
    """Whether what has no graphs is one more worth."""

    @classmethod
    def of(cls, network: Network, rule: int = RULE) -> Fusion:
        """The fusion that a network asks for, by a rule.

        >>> network = Network("n")
        >>> s = network.stream("s", schema="a int")
        >>> for name, latest in ("soon", 1), ("later", 60), ("also_soon", 1), ("some_time", None):
        ...     graphs = {"latency": [[0, 1], [latest, 0]]} if latest else None
        ...     _ = network.output(name, s.filter("a > 0", name=f"{name}_only"), qos=graphs)
        >>> {arc: sorted(worth) for arc, worth in Fusion.of(network).worth.items()}
        {'soon_only': [0], 'later_only': [1], 'also_soon_only': [0], 'some_time_only': [-1]}
        """
        mode: Literal["box", "fuse"] = (
            "box" if network.engine.superbox in _ONE_BY_ONE or _is_threaded(network) else "fuse"
        )
        graphs: dict[str, int] = {}
        found: dict[str, set[int]] = {}
        for arc, qos in _delivered(network) if rule == RULE else _with_graphs(network):
            number = NO_GRAPHS
            if qos is not None and (qos.kinds or rule != RULE):
                text = json.dumps(qos.model_dump(mode="json"), sort_keys=True)
                number = graphs.setdefault(text, len(graphs))
            found.setdefault(arc, set()).add(number)
        alike = len(graphs) < (1 if rule == RULE else 2)
        if network.engine.superbox != "auto" or mode == "box" or alike:
            return cls(mode)
        return cls(mode, {arc: frozenset(numbers) for arc, numbers in found.items()}, rule)

    def document(self) -> dict[str, Any]:
        """The fusion as plain data; empty if it is the usual one."""
        found: dict[str, Any] = {} if self.mode == "fuse" else {"mode": self.mode}
        if self.worth:
            found["worth"] = {arc: sorted(numbers) for arc, numbers in self.worth.items()}
        return found

    def classes(
        self, checked: CheckedNetwork, boxes: Iterable[str], delivered: Iterable[str] = ()
    ) -> dict[str, frozenset[int]]:
        """For each box, which of the different graphs the outputs have that it leads to.

        Arcs that are `delivered` and are no output of the network have no graphs. Boxes that lead
        to no output, but to kept history or tables, count as if they led to one without graphs:
        the scheduler takes them for as urgent.
        """
        found: dict[str, set[int]] = {box: set() for box in boxes}
        if not self.worth:
            return {box: frozenset() for box in found}
        none = frozenset({NO_GRAPHS}) if self.rule == RULE else frozenset()
        plain = dict.fromkeys(delivered, none)
        for arc, numbers in {**plain, **self.worth}.items():
            if arc in checked.arcs and checked.arcs[arc].producer in found:
                found[checked.arcs[arc].producer] |= numbers
        for name in reversed(list(checked.order)):
            for read in checked.inputs_of(name) if name in found else ():
                if read.producer in found:
                    found[read.producer] |= found[name]
        return {box: frozenset(numbers) or none for box, numbers in found.items()}


def _delivered(network: Network) -> Iterator[tuple[str, QoS | None]]:
    """The arcs of outputs, and of views that have graphs, with the graphs."""
    for output in network.outputs.values():
        yield output.from_, output.qos
    arcs = point_arcs(network)
    for view in network.views.values():
        if view.qos is not None:
            yield arcs.get(view.from_, view.from_), view.qos


def _with_graphs(network: Network) -> Iterator[tuple[str, QoS | None]]:
    """What the earlier rule looked at."""
    outputs = network.outputs.values()
    return ((output.from_, output.qos) for output in outputs if output.qos is not None)


def _is_threaded(network: Network) -> bool:
    return network.engine.scheduler == "thread-per-box"
