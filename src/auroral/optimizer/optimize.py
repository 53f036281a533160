"""Reorder boxes that commute, subnetwork by subnetwork [1 §3.1] (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

from auroral.boxes import Filter, Map, Union
from auroral.boxes.join import SIDES, Sieve
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.network.types import Schema
from auroral.optimizer.diagram import Diagram, Move, as_moved, sieves_of
from auroral.optimizer.estimates import Estimate
from auroral.optimizer.rules import CommutingRules

ORDERING = ("passed", "sifted")
"""The tactics that measured costs decide."""


@dataclass(frozen=True)
class Optimised:
    """A network whose boxes have changed places, and what was moved."""

    checked: CheckedNetwork
    moves: tuple[Move, ...]


class Subnetworks:
    """The parts of a network within which boxes may change places.

    Connection points, outputs, arcs with several readers, arcs that queries read and boxes with
    state separate them; a join that may sift its inputs belongs to the boxes behind it. Only those
    are kept in which something may change.
    """

    def __init__(
        self,
        checked: CheckedNetwork,
        fixed: Collection[str] = (),
        resolver: Resolver | None = None,
        *,
        separate: bool = False,
        in_columns: Callable[[str, Schema], bool] | None = None,
    ):
        """`fixed` arcs are delivered, kept, or read by queries.

        `in_columns` tells which predicates a join can sift its inputs by; without it, all are.

        `separate`: each box is a step of its own, and every arc is written to a log. Then filters
        are combined, and maps give no fields that nobody reads. Fused boxes run as one job, which
        does both by itself.
        """
        self.checked = checked
        self.rules = CommutingRules(
            checked, what_boxes_see(checked.network, resolver), fixed, in_columns
        )
        self._separate = separate
        self._declared: dict[frozenset[str], Diagram] = {}

    @cached_property
    def all(self) -> tuple[frozenset[str], ...]:
        """The boxes of each subnetwork in which something may change."""
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
                    if self._separate or self.rules.pair(arc, name) is not None:
                        movable.add(name)
                elif self.rules.is_sifting(arc):
                    parent[root(arc)] = root(name)
        declared = Diagram.of(self.checked)
        for name in [name for name in self.checked.order if name in parent]:
            if any(True for _ in self._sieves(declared, name)):
                movable.add(name)
        wanted = {root(name) for name in movable}
        groups: dict[str, set[str]] = {}
        for name in self.checked.order:
            if name in parent and root(name) in wanted:
                groups.setdefault(root(name), set()).add(name)
        return tuple(map(frozenset, groups.values()))

    @cached_property
    def of_box(self) -> dict[str, frozenset[str]]:
        """By box, the subnetwork that it is in; boxes outside of all of them are left out."""
        return {box: boxes for boxes in self.all for box in boxes}

    def best(self, boxes: frozenset[str], estimates: Mapping[str, Estimate]) -> tuple[Move, ...]:
        """The moves that put the boxes of a subnetwork in the order of (1 − s) / c.

        Filters pass boxes of a smaller ratio, until none can any more. A box that was not
        measured is not passed, and does not move.
        """
        moves: list[Move] = []
        diagram = self._diagram(boxes)
        while (move := self._next(diagram, estimates)) is not None:
            diagram = diagram.exchanged(move.target, move.place)
            moves.append(move)
        return (*moves, *self._sifting(diagram, estimates))

    def tidied(self, boxes: frozenset[str], moves: Sequence[Move]) -> tuple[Move, ...]:
        """Some moves, and those that combine filters and narrow maps after them."""
        passed = [move for move in moves if move.tactic in ORDERING]
        if not self._separate:
            return tuple(passed)
        diagram, found = self._diagram(boxes).after(passed), list(passed)
        while (move := self._combining(diagram)) is not None:
            diagram = diagram.merged(move.target, move.place)
            found.append(move)
        return (*found, *self._narrowing(diagram))

    def origins(self, boxes: frozenset[str], moves: Sequence[Move]) -> Mapping[str, str]:
        """By place, in flow order, the declared box that works there after some moves."""
        return self._diagram(boxes).after(moves).origins_in_order()

    def steps(self, boxes: frozenset[str], moves: Sequence[Move]) -> list[str]:
        """The boxes of a subnetwork and the sieves of its joins, in flow order after moves."""
        return self._diagram(boxes).after(moves).steps_in_order()

    def is_same(self, boxes: frozenset[str], one: Sequence[Move], other: Sequence[Move]) -> bool:
        """Whether a subnetwork is the same after some moves as after others."""
        declared = self._diagram(boxes)
        return declared.after(one) == declared.after(other)

    def cost_s(
        self,
        boxes: frozenset[str],
        moves: Sequence[Move],
        estimates: Mapping[str, Estimate],
        arrivals: Mapping[str, float],
    ) -> float:
        """What a subnetwork costs after some moves, given how many tuples come on each arc.

        Boxes that were not measured cost nothing and pass everything; arcs of which nothing is
        known bring one tuple.
        """
        return self._cost_s(self._diagram(boxes).after(moves), estimates, arrivals)

    def _cost_s(
        self, diagram: Diagram, estimates: Mapping[str, Estimate], arrivals: Mapping[str, float]
    ) -> float:
        rates: dict[str, float] = {}
        sifted: dict[str, float] = {}
        """By filter, the share of its tuples that sieves let through."""
        total = 0.0
        for place, box in diagram.boxes.items():
            sources = [rates.get(arc, arrivals.get(arc, 1.0)) for arc in box.sources()]
            paired = 1.0
            for sieve in sieves_of(box):
                known = self._sieve_estimate(sieve, estimates)
                total += sources[sieve.side] * known.cost_s
                paired *= known.selectivity
                sifted[sieve.filter] = sifted.get(sieve.filter, 1.0) * known.selectivity
            came = sum(sources)
            for sieve in sieves_of(box):
                sources[sieve.side] *= self._sieve_estimate(sieve, estimates).selectivity
            own = diagram.origins[place]
            known = estimates.get(own, Estimate(0.0, 1.0))
            total += sum(sources) * known.cost_s
            before = sifted.get(own, 1.0)
            passes = min(known.selectivity / before, 1.0) if own in sifted and before else None
            rates[place] = came * paired * (known.selectivity if passes is None else passes)
        return total

    def _sieve_estimate(self, sieve: Sieve, estimates: Mapping[str, Estimate]) -> Estimate:
        """What is known of a sieve; of a part of a predicate, half as much as of the whole."""
        if sieve.name in estimates:
            return estimates[sieve.name]
        known = estimates.get(sieve.filter, Estimate(0.0, 1.0))
        if self.rules.is_whole(sieve):
            return known
        return replace(known, selectivity=sqrt(known.selectivity))

    def _diagram(self, boxes: frozenset[str]) -> Diagram:
        """The boxes of a subnetwork as they are declared."""
        if boxes not in self._declared:
            self._declared[boxes] = Diagram.of(self.checked, boxes)
        return self._declared[boxes]

    def _next(self, diagram: Diagram, estimates: Mapping[str, Estimate]) -> Move | None:
        found = (self._move(diagram, place, estimates) for place in diagram.boxes)
        return next((move for move in found if move is not None), None)

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
        return Move(own, passed, place, target, why=why)

    def _sieves(self, diagram: Diagram, place: str) -> Iterator[tuple[str, Sieve]]:
        """The joins that may sift by the filter at a place, and how."""
        own = diagram.origins.get(place)
        if own is None or not self.rules.is_movable(own):
            return
        (target,) = diagram.boxes[place].sources()
        while target in diagram.boxes and not self.rules.is_sifting(target):
            passed = diagram.boxes[target]
            free = self._is_free(target) and not isinstance(passed, Union)
            if not free or self.rules.pair(diagram.origins[target], own) is None:
                return
            (target,) = passed.sources()
        if target in diagram.boxes:
            known = {(sieve.side, sieve.where) for sieve in sieves_of(diagram.boxes[target])}
            for sieve in self.rules.sieves(diagram.origins[target], own):
                if (sieve.side, sieve.where) not in known:
                    yield target, sieve

    def _sifting(self, diagram: Diagram, estimates: Mapping[str, Estimate]) -> Iterator[Move]:
        """The sieves that save more than they cost."""
        for place, own in diagram.origins_in_order().items():
            for target, sieve in self._sieves(diagram, place):
                join = diagram.origins[target]
                if own not in estimates or join not in estimates:
                    continue
                tried = diagram.sifted(target, sieve)
                if self._cost_s(tried, estimates, {}) < self._cost_s(diagram, estimates, {}):
                    diagram, side = tried, SIDES[sieve.side]
                    one, other = self._sieve_estimate(sieve, estimates), estimates[join]
                    why = (
                        f"(1 − s)/c of {own} is {one.ratio:.4g} ({one}), of {join} before it"
                        f" {other.ratio:.4g} ({other}); only {side} is read"
                    )
                    yield Move(own, join, place, target, "sifted", (), side, sieve.where, why)

    def _combining(self, diagram: Diagram) -> Move | None:
        """The first filter that becomes a part of the one behind it."""
        for place, box in diagram.boxes.items():
            own = diagram.origins[place]
            if not self.rules.is_movable(own):
                continue
            (target,) = box.sources()
            before = diagram.origins.get(target)
            if before is None or not self._is_free(target) or not self.rules.is_movable(before):
                continue
            why = f"one call instead of two: {before} and {own} are one filter"
            return Move(own, before, place, target, "combined", why=why)
        return None

    def _narrowing(self, diagram: Diagram) -> list[Move]:
        """The maps that need not give all their fields, as the next map does not keep them."""
        readers = {arc: place for place, box in diagram.boxes.items() for arc in box.sources()}
        found: list[Move] = []
        for place, box in diagram.boxes.items():
            own = diagram.origins[place]
            if not isinstance(box, Map) or self.rules.calls(own):
                continue
            read = self._read_behind(diagram, place, readers)
            schema = self.checked.arcs[own].schema
            fields = tuple(n for n in schema.names if read is not None and n.lower() in read)
            if fields and len(fields) < len(schema.names):
                left = ", ".join(name for name in schema.names if name not in fields)
                why = f"nobody behind it reads {left}"
                found.append(Move(own, "", place, "", "narrowed", fields, why))
        return found

    def _read_behind(
        self, diagram: Diagram, place: str, readers: Mapping[str, str]
    ) -> frozenset[str] | None:
        """The fields that are read up to the next map; None if others may need all of them."""
        read: frozenset[str] = frozenset()
        while self._is_free(place) and place in readers:
            place = readers[place]
            box, names = diagram.boxes[place], {diagram.origins[place]}
            names |= diagram.combined.get(place, frozenset())
            if any(map(self.rules.calls, names)) or not isinstance(box, Filter | Map):
                return None
            read = read.union(*map(self.rules.fields_read, names))
            if isinstance(box, Map):
                return read if box.keep != "*" else None
            if not self.rules.has_one_arc(diagram.origins[place]):
                return None
        return None

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
    separate: bool = False,
) -> Optimised:
    """The network with its boxes in the order of (1 − s) / c, as far as they commute.

    See `Subnetworks` for the parameters.

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
    subnetworks = Subnetworks(checked, [*outputs, *fixed], resolver, separate=separate)
    moves = tuple(
        move
        for boxes in subnetworks.all
        for move in subnetworks.tidied(boxes, subnetworks.best(boxes, estimates))
    )
    return Optimised(as_moved(checked, moves, resolver), moves)
