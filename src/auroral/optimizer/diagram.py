"""A network whose boxes change places; places keep their names, and so do the arcs behind them.

A filter that passes a map takes the map's place, and the map the filter's. So every arc that
somebody else reads keeps its name and its tuples, and superboxes and their cursors stay as they
are. `origins` says which declared box works at a place.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from auroral.boxes import Filter, Join, Map, Union
from auroral.boxes.join import SIDES, Sieve, SiftedJoin
from auroral.errors import AuroralError
from auroral.ids import ArcId, PartBoxId
from auroral.network.box import Box, Resolver, rewired
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network

Tactic = Literal["passed", "sifted", "combined", "narrowed"]


@dataclass(frozen=True)
class Move:
    """One change of a network.

    `passed`: a filter has passed the box before it. `place` is where it was, `target` where it is
    now: its own name and that of the box that it has passed, unless these have moved before.
    `sifted`: the join at `target` drops tuples of one `side` that the filter at `place`, which
    stays there, would drop: those for which `where` is not true.
    `combined`: the filter at `target` is a part of the one at `place`. `narrowed`: the map at
    `place` gives `fields` only, which are all that the boxes behind it read.
    """

    box: str
    past: str
    place: str
    target: str
    tactic: Tactic = "passed"
    fields: tuple[str, ...] = ()
    side: str = ""
    where: str = ""
    why: str = field(default="", compare=False)
    """The measured costs and selectivities that decided."""

    @property
    def sieve(self) -> Sieve | None:
        """How the join sifts, if the move makes it do so."""
        if self.tactic != "sifted":
            return None
        return Sieve(SIDES.index(self.side), self.box, self.where)

    def document(self) -> dict[str, Any]:
        """The move as plain data."""
        return {**asdict(self), "fields": list(self.fields)}

    @staticmethod
    def parse(document: Mapping[str, Any]) -> Move:
        """A move from plain data."""
        return Move(**{**document, "fields": tuple(document.get("fields", ()))})


@dataclass(frozen=True)
class Diagram:
    """Boxes by place, in flow order, and the declared boxes that they are."""

    boxes: Mapping[str, Box]
    origins: Mapping[str, str]
    combined: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By place, the declared boxes that are a part of the one there."""

    @staticmethod
    def of(checked: CheckedNetwork, some: Collection[str] | None = None) -> Diagram:
        """The network as it is declared, or some of its boxes."""
        boxes = checked.network.boxes
        names = [name for name in checked.order if some is None or name in some]
        return Diagram({name: boxes[name] for name in names}, {name: name for name in names})

    def after(self, moves: Iterable[Move]) -> Diagram:
        """The network after some moves; a move that does not fit it is left out."""
        diagram = self
        for move in moves:
            box = diagram.boxes.get(move.place)
            if (sieve := move.sieve) is not None:
                if isinstance(diagram.boxes.get(move.target), Join):
                    diagram = diagram.sifted(move.target, sieve)
                continue
            if move.tactic == "narrowed":
                if isinstance(box, Map):
                    diagram = diagram.narrowed(move.place, move.fields)
            elif box is not None and box.sources() == (move.target,):
                if move.target not in diagram.boxes:
                    continue
                how = diagram.exchanged if move.tactic == "passed" else diagram.merged
                diagram = how(move.target, move.place)
        return diagram

    def merged(self, target: str, place: str) -> Diagram:
        """The filter at `target` becomes a part of the one at `place`, which reads it."""
        first, second = self.boxes[target], self.boxes[place]
        assert isinstance(first, Filter)
        assert isinstance(second, Filter)
        where = f"({first.where}\n) AND ({second.where}\n)"  # a comment may end a predicate
        boxes, origins = dict(self.boxes), dict(self.origins)
        boxes[place] = rewired(second.model_copy(update={"where": where}), first.sources())
        del boxes[target]
        own = {origins.pop(target), *self.combined.get(target, ()), *self.combined.get(place, ())}
        return Diagram(boxes, origins, {**self.combined, place: frozenset(own)})

    def sifted(self, place: str, sieve: Sieve) -> Diagram:
        """The join at a place sifts one of its inputs."""
        join = self.boxes[place]
        assert isinstance(join, Join)
        return replace(self, boxes={**self.boxes, place: SiftedJoin.of(join, sieve)})

    def narrowed(self, place: str, fields: Collection[str]) -> Diagram:
        """The map at a place gives some fields only."""
        box = self.boxes[place]
        assert isinstance(box, Map)
        kept = tuple(name for name in fields if name not in box.compute)
        made = {name: how for name, how in box.compute.items() if name in fields}
        narrow = box.model_copy(update={"keep": kept, "compute": made})
        return replace(self, boxes={**self.boxes, place: narrow})

    def exchanged(self, target: str, place: str) -> Diagram:
        """The filter at `place` passes the box at `target`, which it reads."""
        passed, filter_ = self.boxes[target], self.boxes[place]
        assert filter_.sources() == (target,)
        boxes, origins = dict(self.boxes), dict(self.origins)
        origins[place], origins[target] = origins[target], origins[place]
        if not isinstance(passed, Union):
            boxes[target] = rewired(filter_, passed.sources())
            boxes[place] = rewired(passed, (target,))
            return replace(self, boxes=boxes, origins=origins)
        copies = {target: rewired(filter_, passed.sources()[:1])}
        for source in passed.sources()[1:]:
            name = self._copy_name(origins[target], copies)
            copies[name], origins[name] = rewired(filter_, (source,)), origins[target]
        boxes[place] = rewired(passed, tuple(copies))
        ordered: dict[str, Box] = {}
        for name, box in boxes.items():
            ordered |= copies if name == target else {name: box}
        return replace(self, boxes=ordered, origins=origins)

    def _copy_name(self, origin: str, more: Mapping[str, Box]) -> str:
        number = 2
        while (name := str(PartBoxId(origin, f"copy{number}"))) in self.boxes or name in more:
            number += 1
        return name

    def passed(self) -> dict[str, frozenset[str]]:
        """By place, the declared boxes that its tuples have passed, itself among them."""
        found: dict[str, frozenset[str]] = {}
        for place, box in self.boxes.items():
            before = (found.get(ArcId.parse(arc).producer, frozenset()) for arc in box.sources())
            own = {self.origins[place], *self.combined.get(place, ())}
            own |= {sieve.filter for sieve in sieves_of(box)}
            found[place] = frozenset(own).union(*before)
        return found

    def steps_in_order(self) -> list[str]:
        """The declared boxes, and the sieves of joins in front of these, in flow order."""
        return [
            name
            for place, box in self.boxes.items()
            for name in (*(sieve.name for sieve in sieves_of(box)), self.origins[place])
        ]

    def origins_in_order(self) -> dict[str, str]:
        """By place, in flow order, the declared box that works there."""
        return {place: self.origins[place] for place in self.boxes}

    @property
    def moved(self) -> frozenset[str]:
        """Places where another box works than the one that is declared there."""
        return frozenset(place for place, origin in self.origins.items() if place != origin)


def sieves_of(box: Box) -> tuple[Sieve, ...]:
    """The sieves of a join; other boxes have none."""
    return box.sieves if isinstance(box, SiftedJoin) else ()


def as_moved(
    checked: CheckedNetwork, moves: Iterable[Move], resolver: Resolver | None = None
) -> CheckedNetwork:
    """The network after some moves, checked; a move that does not fit the network is left out."""
    given = tuple(moves)
    if not given:
        return checked
    diagram = Diagram.of(checked).after(given)
    network: Network = copy.copy(checked.network)
    network.boxes = dict(diagram.boxes)
    try:
        found = network.check(resolver)
    except AuroralError:  # it was found out for another version of the network
        return checked
    origins = {place: diagram.origins[place] for place in diagram.moved}
    return replace(found, origins=origins, displaced=_displaced(Diagram.of(checked), diagram))


def _displaced(declared: Diagram, moved: Diagram) -> frozenset[str]:
    """The places behind which a tuple has passed other boxes than it would have by declaration."""
    before, after = declared.passed(), moved.passed()
    return frozenset(place for place, boxes in after.items() if before.get(place) != boxes)
