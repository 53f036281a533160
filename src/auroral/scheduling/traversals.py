"""In which order the boxes of a superbox run, and what that costs [2 §4.1.2] (pure).

A superbox is a set of boxes that leads to one box, its root. `mc` calls each box once, `ml` brings
the tuples that are nearest to the output there first, `mm` frees memory first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from auroral.scheduling.flow import FlowBox, FlowModel

Traversal = Literal["mc", "ml", "mm"]


class SuperboxTree:
    """All boxes that lead to `root`, in the order in which a breadth first walk from it meets them.

    [2] has trees; where boxes feed several others of the superbox, they do so here, too.
    """

    def __init__(self, model: FlowModel, root: str):
        self.model = model
        self.root = root
        found = dict.fromkeys([root])
        front = [root]
        while front:
            before = dict.fromkeys(one for name in front for one in model.boxes_before(name))
            front = [name for name in before if name not in found]
            found.update(dict.fromkeys(front))
        self.boxes = tuple(found)

    def __contains__(self, name: str) -> bool:
        return name in self.fed

    @cached_property
    def fed(self) -> dict[str, tuple[tuple[str, float], ...]]:
        """The boxes of the tree that each box feeds, and how many tuples each gets for one."""
        inside = set(self.boxes)
        fed: dict[str, tuple[tuple[str, float], ...]] = {}
        for name in self.boxes:
            shares: dict[str, float] = {}
            for arc, share in self.model.boxes[name].selectivities.items():
                for reader in self.model.readers.get(arc, ()):
                    if reader in inside and share > 0:
                        shares[reader] = shares.get(reader, 0.0) + share
            fed[name] = tuple(shares.items())
        return fed

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """The boxes of the tree that each box feeds."""
        return {name: tuple(reader for reader, _ in fed) for name, fed in self.fed.items()}

    @cached_property
    def results(self) -> float:
        """How many results there are for each tuple that the root takes."""
        arcs = self.model.boxes[self.root].selectivities
        outputs = {output.arc for output in self.model.outputs.values()}
        return sum(share for arc, share in arcs.items() if arc in outputs) or sum(arcs.values())

    @cached_property
    def downstream(self) -> dict[str, tuple[str, ...]]:
        """D(b) within the tree: each box, and those that its tuples pass, in flow order."""
        place = self.model.place
        found: dict[str, tuple[str, ...]] = {}
        for name in sorted(self.boxes, key=place.__getitem__, reverse=True):
            behind = {name}.union(*(found[reader] for reader, _ in self.fed[name]))
            found[name] = tuple(sorted(behind, key=place.__getitem__))
        return found

    @cached_property
    def post_order(self) -> tuple[str, ...]:
        """Each box after all that feed it, inputs in the order in which boxes declare them."""
        order: dict[str, None] = {}
        stack = [(self.root, False)]
        while stack:
            name, is_complete = stack.pop()
            if is_complete:
                order[name] = None
            elif name not in order:
                before = self.model.boxes_before(name)
                stack.append((name, True))
                stack += [(one, False) for one in reversed(before) if one not in order]
        return tuple(order)

    @cached_property
    def by_output_cost(self) -> tuple[str, ...]:
        """The boxes by ascending output cost, equal ones as they are in the tree."""
        cost = {name: output_cost(self, name) for name in self.boxes}
        return tuple(sorted(self.boxes, key=cost.__getitem__))

    @cached_property
    def memory_rank(self) -> dict[str, int]:
        """The place of each box by descending memory reduction rate."""
        rate = {name: mem_rr(self.model.boxes[name]) for name in self.boxes}
        ordered = sorted(self.boxes, key=lambda name: -rate[name])
        return {name: at for at, name in enumerate(ordered)}

    @cached_property
    def output_selectivities(self) -> dict[str, float]:
        """`o_sel` of each box."""
        found: dict[str, float] = {}
        for name in reversed(self.post_order):
            own = self.results if name == self.root else 0.0
            found[name] = own + sum(share * found[reader] for reader, share in self.fed[name])
        return found


def o_sel(tree: SuperboxTree, name: str) -> float:
    """How many tuples reach the output for one in the queue of a box: ∏ sel(k), k ∈ D(b).

    Where ways part and meet again, the tuples of all ways count.
    """
    return tree.output_selectivities[name]


def output_cost(tree: SuperboxTree, name: str) -> float:
    """Seconds until the queue of a box has given one tuple of output: Σ cost(k) / o_sel(k)."""
    cost = 0.0
    for box in tree.downstream[name]:
        sel = o_sel(tree, box)
        cost += tree.model.boxes[box].cost_s / sel if sel > 0 else math.inf
    return cost


def mem_rr(box: FlowBox) -> float:
    """The memory that a box frees per second: tsize(b) × (1 − sel(b)) / cost(b)."""
    freed = box.tuple_bytes * (1 - box.selectivity)
    if box.cost_s > 0:
        return freed / box.cost_s
    return math.copysign(math.inf, freed) if freed else 0.0


def traverse(
    tree: SuperboxTree,
    queued: Collection[str],
    how: Traversal,
    excluded: Collection[str] = (),
) -> list[str]:
    """The boxes to call, in order, if tuples wait for those in `queued`.

    A box is called when tuples wait for it, or an earlier call has given it some, but never if it
    is among the `excluded`.
    """
    if how == "mc":
        return _min_cost(tree, queued, excluded)
    if how == "ml":
        return _min_latency(tree, queued, excluded)
    return _min_memory(tree, queued, excluded)


def _min_cost(tree: SuperboxTree, queued: Collection[str], excluded: Collection[str]) -> list[str]:
    """Post order: each box once, after all that feed it."""
    return _push(tree, tree.post_order, set(queued), excluded)


def _min_latency(
    tree: SuperboxTree, queued: Collection[str], excluded: Collection[str]
) -> list[str]:
    """D(b) of each box that has tuples, the one with the least output cost first."""
    return [
        box
        for name in tree.by_output_cost
        if name in queued
        for box in _push(tree, tree.downstream[name], {name}, excluded)
    ]


def _push(
    tree: SuperboxTree, order: Iterable[str], full: set[str], excluded: Collection[str]
) -> list[str]:
    """Those of an order that have tuples when their turn comes; changes `full`."""
    called = []
    for name in order:
        if name in full and name not in excluded:
            called.append(name)
            full.update(tree.readers[name])
    return called


def _min_memory(
    tree: SuperboxTree, queued: Collection[str], excluded: Collection[str]
) -> list[str]:
    """Always the box with tuples that frees most memory per second.

    That is how the order printed in [2] comes about; its text ("computed as in the case of ML")
    describes another one. Where ways part and meet again and again, following every way to its end
    would take too many calls: after as many as ML makes, what is left is pushed in post order.
    """
    rank = tree.memory_rank
    full = {name for name in queued if name in rank and name not in excluded}
    most = sum(len(tree.downstream[name]) for name in full)
    order: list[str] = []
    while full:
        if len(order) == most:
            return order + _push(tree, tree.post_order, full, excluded)
        name = min(full, key=rank.__getitem__)
        full.discard(name)
        full.update(reader for reader in tree.readers[name] if reader not in excluded)
        order.append(name)
    return order


@dataclass(frozen=True)
class TraversalRun:
    """What a traversal costs if nothing arrives meanwhile."""

    calls: int
    total_s: float
    mean_latency_s: float
    """From the beginning of the run until a tuple of output is there, on average; 0 if there is
    none."""
    mean_memory_bytes: float
    """Waiting tuples and results, after each call, on average over the calls."""
    memory_bytes: tuple[float, ...]
    """The same after each call."""
    ended_s: tuple[float, ...]
    """When each call ended."""


def run_traversal(
    tree: SuperboxTree,
    order: Sequence[str],
    queued: Mapping[str, float],
    *,
    results_at_end: bool = False,
) -> TraversalRun:
    """What the calls of an order cost if each takes all that waits for its box.

    A call over n tuples lasts `call_s + n × cost_s`. Its results appear one by one while it runs,
    as in [2], or with its end (`results_at_end`), as those of a Spark job do.

    >>> model = FlowModel({"b": FlowBox("b", ("s",), {"b": 1.0}, cost_s=1.0, call_s=2.0)})
    >>> run = run_traversal(SuperboxTree(model, "b"), ["b"], {"b": 3})
    >>> run.calls, run.total_s, run.mean_latency_s
    (1, 5.0, 4.0)
    """
    boxes = tree.model.boxes
    waiting = {name: float(queued.get(name, 0.0)) for name in tree.boxes}
    held = sum(count * boxes[name].tuple_bytes for name, count in waiting.items())
    now_s = waited = results = 0.0
    memory: list[float] = []
    ended: list[float] = []
    for name in order:
        box = boxes[name]
        count, waiting[name] = waiting[name], 0.0
        held -= count * box.tuple_bytes
        given = count * tree.results if name == tree.root else 0.0
        if given:
            mean_place = count if results_at_end or count < 1 else (count + 1) / 2
            waited += given * (now_s + box.call_s + mean_place * box.cost_s)
            results += given
            held += given * box.tuple_bytes
        for reader, share in tree.fed[name]:
            waiting[reader] += count * share
            held += count * share * boxes[reader].tuple_bytes
        now_s += box.call_s + count * box.cost_s
        memory.append(held)
        ended.append(now_s)
    return TraversalRun(
        len(order),
        now_s,
        waited / results if results else 0.0,
        sum(memory) / len(memory) if memory else 0.0,
        tuple(memory),
        tuple(ended),
    )
