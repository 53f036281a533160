"""Reorder boxes that commute, subnetwork by subnetwork [1 §3.1] (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from auroral.boxes import Union
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.optimizer.diagram import Diagram, Move, as_moved
from auroral.optimizer.estimates import Estimate
from auroral.optimizer.rules import CommutingRules


@dataclass(frozen=True)
class Optimised:
    """A network whose boxes have changed places, and what was moved."""

    checked: CheckedNetwork
    moves: tuple[Move, ...]


class Subnetworks:
    """The parts of a network within which boxes may change places.

    Connection points, outputs, arcs with several readers, arcs that queries read and boxes with
    state separate them. Only those are kept in which some filter may pass some box.
    """

    def __init__(
        self,
        checked: CheckedNetwork,
        fixed: Collection[str] = (),
        resolver: Resolver | None = None,
    ):
        """`fixed` arcs are delivered, kept, or read by queries."""
        self.checked = checked
        self.rules = CommutingRules(checked, what_boxes_see(checked.network, resolver), fixed)
        self.declared = Diagram.of(checked)

    @cached_property
    def all(self) -> tuple[frozenset[str], ...]:
        """The boxes of each subnetwork in which something may move."""
        parent: dict[str, str] = {}

        def root(name: str) -> str:
            while parent.setdefault(name, name) != name:
                name = parent[name]
            return name

        movable: set[str] = set()
        for name, box in self.checked.network.boxes.items():
            for arc in box.sources():
                if self.rules.is_free(arc):
                    parent[root(arc)] = root(name)
                    if self.rules.pair(arc, name) is not None:
                        movable.add(name)
        wanted = {root(name) for name in movable}
        groups: dict[str, set[str]] = {}
        for name in self.checked.order:
            if name in parent and root(name) in wanted:
                groups.setdefault(root(name), set()).add(name)
        return tuple(map(frozenset, groups.values()))

    def best(self, boxes: Collection[str], estimates: Mapping[str, Estimate]) -> tuple[Move, ...]:
        """The moves that put the boxes of a subnetwork in the order of (1 − s) / c.

        Filters pass boxes of a smaller ratio, until none can any more. A box that was not
        measured is not passed, and does not move.
        """
        moves: list[Move] = []
        diagram = self.declared
        while (move := self._next(diagram, boxes, estimates)) is not None:
            diagram = diagram.exchanged(move.target, move.place)
            moves.append(move)
        return tuple(moves)

    def origins(self, moves: Sequence[Move]) -> Mapping[str, str]:
        """By place, in flow order, the declared box that works there after some moves."""
        diagram = self.declared
        for move in moves:
            diagram = diagram.exchanged(move.target, move.place)
        return diagram.origins_in_order()

    def places(self, moves: Sequence[Move]) -> dict[str, str]:
        """The places that moves change, and the boxes that work there then."""
        return {place: box for place, box in self.origins(moves).items() if place != box}

    def cost_s(
        self,
        boxes: Collection[str],
        moves: Sequence[Move],
        estimates: Mapping[str, Estimate],
        arrivals: Mapping[str, float],
    ) -> float:
        """What a subnetwork costs after some moves, given how many tuples come on each arc.

        Boxes that were not measured cost nothing and pass everything; arcs of which nothing is
        known bring one tuple.
        """
        diagram = self.declared
        for move in moves:
            diagram = diagram.exchanged(move.target, move.place)
        rates: dict[str, float] = {}
        total = 0.0
        for place, box in diagram.boxes.items():
            origin = diagram.origins[place]
            if origin not in boxes:
                continue
            rate = sum(rates.get(arc, arrivals.get(arc, 1.0)) for arc in box.sources())
            known = estimates.get(origin, Estimate(0.0, 1.0))
            total += rate * known.cost_s
            rates[place] = rate * known.selectivity
        return total

    def _next(
        self, diagram: Diagram, boxes: Collection[str], estimates: Mapping[str, Estimate]
    ) -> Move | None:
        for place in diagram.boxes:
            if diagram.origins[place] in boxes:
                move = self._move(diagram, place, estimates)
                if move is not None:
                    return move
        return None

    def _move(self, diagram: Diagram, place: str, estimates: Mapping[str, Estimate]) -> Move | None:
        """The move of the filter at a place past the box before it, if there is a reason to."""
        own = diagram.origins[place]
        if not self.rules.is_movable(own):
            return None
        (target,) = diagram.boxes[place].sources()
        passed = diagram.origins.get(target)
        if passed is None or not self._is_free(target):
            return None
        one, other = estimates.get(own), estimates.get(passed)
        if one is None or other is None or one.ratio <= other.ratio:
            return None
        if self.rules.pair(passed, own) is None:
            return None
        if isinstance(diagram.boxes[target], Union):
            tried = diagram.exchanged(target, place)
            copies = tried.boxes[place].sources()
            if not any(self._move(tried, copy, estimates) for copy in copies):
                return None  # a union costs nothing: it is passed to get further
        why = (
            f"(1 − s)/c of {own} is {one.ratio:.4g} ({one}),"
            f" of {passed} before it {other.ratio:.4g} ({other})"
        )
        return Move(own, passed, place, target, why)

    def _is_free(self, target: str) -> bool:
        """Whether the arc behind a place may carry other tuples.

        The arcs behind copies are nobody else's.
        """
        return target not in self.checked.arcs or self.rules.is_free(target)


def optimize(
    checked: CheckedNetwork,
    estimates: Mapping[str, Estimate],
    *,
    fixed: Collection[str] = (),
    resolver: Resolver | None = None,
) -> Optimised:
    """The network with its boxes in the order of (1 − s) / c, as far as they commute.

    >>> from auroral.network.network import Network
    >>> net = Network("border")
    >>> reports = net.stream("reports", schema="sid int, pos int")
    >>> twice = reports.map(keep="*", twice="pos * 2", name="twice")
    >>> _ = net.output("alerts", twice.filter("sid > 3", name="some"))
    >>> known = {"twice": Estimate(0.001, 1.0), "some": Estimate(0.00001, 0.1)}
    >>> found = optimize(net.check(), known)
    >>> [(move.box, move.past) for move in found.moves]
    [('some', 'twice')]
    >>> {name: (box.kind, box.sources()) for name, box in found.checked.network.boxes.items()}
    {'twice': ('filter', ('reports',)), 'some': ('map', ('twice',))}
    """
    outputs = [output.from_ for output in checked.network.outputs.values()]
    subnetworks = Subnetworks(checked, [*outputs, *fixed], resolver)
    moves = tuple(m for boxes in subnetworks.all for m in subnetworks.best(boxes, estimates))
    return Optimised(as_moved(checked, moves, resolver), moves)
