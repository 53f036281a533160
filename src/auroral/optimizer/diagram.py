"""A network whose boxes change places; places keep their names, and so do the arcs behind them.

A filter that passes a map takes the map's place, and the map the filter's. So every arc that
somebody else reads keeps its name and its tuples, and superboxes and their cursors stay as they
are. `origins` says which declared box works at a place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from auroral.boxes import Union
from auroral.errors import AuroralError
from auroral.ids import ArcId, PartBoxId
from auroral.network.box import Box, Resolver, rewired
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network


@dataclass(frozen=True)
class Move:
    """A filter that has passed the box before it.

    `place` is where it was, `target` where it is now: its own name and that of the box that it
    has passed, unless these have moved before.
    """

    box: str
    past: str
    place: str
    target: str
    why: str = field(default="", compare=False)
    """The measured costs and selectivities that decided."""

    def document(self) -> dict[str, Any]:
        """The move as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Diagram:
    """Boxes by place, in flow order, and the declared boxes that they are."""

    boxes: Mapping[str, Box]
    origins: Mapping[str, str]

    @staticmethod
    def of(checked: CheckedNetwork) -> Diagram:
        """The network as it is declared."""
        boxes = checked.network.boxes
        return Diagram({name: boxes[name] for name in checked.order}, {n: n for n in checked.order})

    def exchanged(self, target: str, place: str) -> Diagram:
        """The filter at `place` passes the box at `target`, which it reads."""
        passed, filter_ = self.boxes[target], self.boxes[place]
        assert filter_.sources() == (target,)
        boxes, origins = dict(self.boxes), dict(self.origins)
        origins[place], origins[target] = origins[target], origins[place]
        if not isinstance(passed, Union):
            boxes[target] = rewired(filter_, passed.sources())
            boxes[place] = rewired(passed, (target,))
            return Diagram(boxes, origins)
        copies = {target: rewired(filter_, passed.sources()[:1])}
        for source in passed.sources()[1:]:
            name = self._copy_name(origins[target], copies)
            copies[name], origins[name] = rewired(filter_, (source,)), origins[target]
        boxes[place] = rewired(passed, tuple(copies))
        ordered: dict[str, Box] = {}
        for name, box in boxes.items():
            ordered |= copies if name == target else {name: box}
        return Diagram(ordered, origins)

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
            found[place] = frozenset((self.origins[place],)).union(*before)
        return found

    def origins_in_order(self) -> dict[str, str]:
        """By place, in flow order, the declared box that works there."""
        return {place: self.origins[place] for place in self.boxes}

    @property
    def moved(self) -> frozenset[str]:
        """Places where another box works than the one that is declared there."""
        return frozenset(place for place, origin in self.origins.items() if place != origin)


def as_moved(
    checked: CheckedNetwork, moves: Iterable[Move], resolver: Resolver | None = None
) -> CheckedNetwork:
    """The network after some moves, checked; a move that does not fit the network is left out."""
    diagram = Diagram.of(checked)
    for move in moves:
        box = diagram.boxes.get(move.place)
        if box is not None and box.sources() == (move.target,) and move.target in diagram.boxes:
            diagram = diagram.exchanged(move.target, move.place)
    if not diagram.moved:
        return checked
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
