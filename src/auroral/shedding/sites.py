"""Where tuples can be dropped: as far upstream as no other output loses by it [1 §4.5] (pure).

The boxes that lead to the same outputs form a region. A drop in front of a region, on every arc
that comes into it, takes tuples from just those outputs: the producers of these arcs are the
split points. Regions that several outputs share are places, too: the ones that are left when the
inner ones do not save enough.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from auroral.scheduling.flow import FlowModel
from auroral.shedding.drops import DropInterval
from auroral.shedding.histograms import Histogram, ValueCell, value_cells
from auroral.shedding.load import flow_rates

Entry = tuple[str, str]
"""A box (or superbox) and an arc that it reads."""


@dataclass(frozen=True)
class CarriedField:
    """A field of an arc from which an output's value is computed: `value = scale × field + offset`.

    >>> CarriedField("celsius", 1.8, 32).interval(50, 212)
    DropInterval(field='celsius', low=10.0, high=100.0)
    """

    field: str
    scale: float = 1.0
    offset: float = 0.0
    selective: bool = False
    """Whether some box in between passes tuples by their value, so that those on the arc are not
    distributed as those of the output are."""

    def interval(self, low: float | None, high: float | None) -> DropInterval:
        """The values of the field for which the output's value is within `low <= value < high`."""
        begin, end = (
            None if one is None else (one - self.offset) / self.scale for one in (low, high)
        )
        if self.scale > 0:
            return DropInterval(self.field, begin, end)
        # The interval is open below and closed above then.
        return DropInterval(self.field, _next(end), _next(begin))


def _next(bound: float | None) -> float | None:
    return None if bound is None else math.nextafter(bound, math.inf)


class ValueOnArc(Protocol):
    """How the value of an output is told from a field of an arc."""

    @property
    def field(self) -> str: ...
    @property
    def selective(self) -> bool: ...
    def interval(self, low: float | None, high: float | None) -> DropInterval: ...


CarryInterval = Callable[[str, Collection[str]], Mapping[str, ValueOnArc] | None]
"""Given an output and the arcs on which its tuples may be dropped, the arcs on which an interval
of its value can be dropped, so that all of its tuples pass one of them; None if there are none."""

MayDrop = Callable[[str, str], bool]
"""Whether tuples of an arc may be dropped in front of a box."""


@dataclass(frozen=True)
class SiteCell:
    """A part of the tuples at a site that is dropped before the next one is touched."""

    share: float
    """Of the tuples that come to the site."""
    delivered: Mapping[str, float]
    """By output, the share of its tuples that is lost with them."""
    value: Mapping[str, float]
    """By output, the share of its value that is lost with them."""
    intervals: Mapping[str, DropInterval] = field(default_factory=dict)
    """By arc, where these tuples are; empty: they are chosen at random."""


@dataclass(frozen=True)
class DropSite:
    """Arcs in front of boxes on which tuples are dropped together."""

    outputs: tuple[str, ...]
    """Those that lose tuples."""
    entries: tuple[Entry, ...]
    cells: tuple[SiteCell, ...]
    """The least valuable first."""
    side_effects: bool = False
    """Whether boxes behind it serve no output, such as those that change tables."""
    by_value_of: str | None = None
    """The outputs whose values choose the tuples; None: chance does."""

    @property
    def semantic(self) -> bool:
        """Whether tuples are chosen by their values."""
        return self.by_value_of is not None

    @property
    def seed(self) -> int:
        """The same wherever the same tuples are to be dropped, and in every plan."""
        return zlib.crc32(" ".join((*self.outputs, "by", self.by_value_of or "chance")).encode())


def random_sites(model: FlowModel) -> list[DropSite]:
    """A site for each set of outputs that some boxes lead to, tuples chosen at random."""
    found = []
    for outputs, boxes in _regions(model):
        everything = dict.fromkeys(outputs, 1.0)
        cell = SiteCell(1.0, everything, everything)
        entries = _entries(model, boxes)
        found.append(DropSite(outputs, entries, (cell,), _has_side_effects(model, boxes)))
    return found


def admission_site(model: FlowModel, may_drop: MayDrop | None = None) -> DropSite:
    """All network inputs at once, as far as tuples may be dropped there."""
    entries = tuple(
        (name, arc)
        for name, box in model.boxes.items()
        for arc in dict.fromkeys(box.inputs)
        if arc in model.streams and (may_drop is None or may_drop(name, arc))
    )
    everything = dict.fromkeys(model.outputs, 1.0)
    cell = SiteCell(1.0, everything, everything)
    names = {name for name, _ in entries}
    return DropSite(tuple(model.outputs), entries, (cell,), _has_side_effects(model, names))


def semantic_sites(
    model: FlowModel,
    rates: Mapping[str, float],
    histograms: Mapping[str, Histogram],
    carry: CarryInterval,
) -> list[DropSite]:
    """Sites at which the least valuable tuples of outputs are dropped first.

    There is one for each region with an output that has a value graph, was seen to have values,
    and whose values can be told on some arc before or in the region.
    """
    found = []
    cells = {
        name: value_cells(histograms[name], output.qos)
        for name, output in model.outputs.items()
        if name in histograms and output.qos is not None and output.qos.value is not None
    }
    for outputs, boxes in _regions(model):
        arcs = {arc for name in boxes for arc in model.boxes[name].inputs}
        groups: dict[object, dict[str, Mapping[str, ValueOnArc]]] = {}
        for output in outputs:
            carried = carry(output, arcs) if cells.get(output) else None
            if carried:
                groups.setdefault(_line_of(carried), {})[output] = carried
        for group in groups.values():
            site = _site(model, rates, outputs, boxes, group, cells)
            if site is not None:
                found.append(site)
    return found


def _line_of(carried: Mapping[str, ValueOnArc]) -> object:
    """What is the same for outputs whose values are told alike."""
    return frozenset(
        (arc, one.field, one.scale, one.offset) if isinstance(one, CarriedField) else (arc, id(one))
        for arc, one in carried.items()
    )


def _site(
    model: FlowModel,
    rates: Mapping[str, float],
    outputs: tuple[str, ...],
    boxes: Collection[str],
    group: Mapping[str, Mapping[str, ValueOnArc]],
    cells: Mapping[str, tuple[ValueCell, ...]],
) -> DropSite | None:
    """The site at which the values of a group of outputs decide; all of the region lose by it."""
    carried = next(iter(group.values()))
    entries = tuple(
        (name, arc)
        for name in boxes
        for arc in dict.fromkeys(model.boxes[name].inputs)
        if arc in carried
    )
    known = {name: cells[name] for name in group}
    bounds = sorted({edge for own in known.values() for cell in own for edge in _edges(cell)})
    reach = {
        name: _reach(model, rates, name, entries)
        for name, own in group.items()
        if any(one.selective for one in own.values())
    }
    ranges = list(zip([None, *bounds], [*bounds, None], strict=True))
    parts: list[SiteCell] = []
    for low, high in ranges:
        own = {name: _part(known[name], low, high) for name in known}
        share = _share_on_arc({name: part.tuples for name, part in own.items()}, reach)
        intervals = {arc: one.interval(low, high) for arc, one in carried.items()}
        if share > 0 and not any(_is_empty(one) for one in intervals.values()):
            parts.append(
                SiteCell(
                    share,
                    {name: own[name].tuples if name in known else share for name in outputs},
                    {name: own[name].utility if name in known else share for name in outputs},
                    intervals,
                )
            )
    total = sum(part.share for part in parts)
    if not parts:
        return None
    if total > 1:
        parts = [
            SiteCell(part.share / total, part.delivered, part.value, part.intervals)
            for part in parts
        ]
    parts.sort(key=lambda part: sum(part.value.values()) / part.share)
    names = {name for name, _ in entries}
    chooser = " ".join(group)
    return DropSite(outputs, entries, tuple(parts), _has_side_effects(model, names), chooser)


def _share_on_arc(tuples: Mapping[str, float], reach: Mapping[str, float]) -> float:
    """The share of an arc's tuples in a range, by the shares of outputs' tuples.

    Outputs that boxes pass tuples to whatever their value are each a sample of the arc. Of those
    with a `reach`, which get some values only, the one counts that gets most.
    """
    samples = [share for name, share in tuples.items() if name not in reach]
    if samples:
        return min(1.0, sum(samples) / len(samples))
    return min(1.0, max(reach[name] * share for name, share in tuples.items()))


def _is_empty(interval: DropInterval) -> bool:
    return interval.low is not None and interval.low == interval.high


def _edges(cell: ValueCell) -> list[float]:
    return [edge for edge in (cell.low, cell.high) if edge is not None]


def _part(cells: tuple[ValueCell, ...], low: float | None, high: float | None) -> ValueCell:
    """What falls into a range; values are taken to be spread evenly over a cell with two bounds.

    A range without a lower (upper) bound takes all of the first (last) cell's open part.
    """
    tuples = utility = 0.0
    for cell in cells:
        share = _overlap(cell, low, high)
        tuples += share * cell.tuples
        utility += share * cell.utility
    return ValueCell(low, high, tuples, utility)


def _overlap(cell: ValueCell, low: float | None, high: float | None) -> float:
    """The share of a cell that is in a range; an open cell counts where its bounded end is."""
    if cell.low is None and cell.high is None:
        return 1.0 if low is None else 0.0
    if cell.low is None:
        return 1.0 if high == cell.high else 0.0
    if cell.high is None:
        return 1.0 if low == cell.low else 0.0
    begin = cell.low if low is None else max(low, cell.low)
    end = cell.high if high is None else min(high, cell.high)
    return max(0.0, end - begin) / (cell.high - cell.low)


def _reach(
    model: FlowModel, rates: Mapping[str, float], output: str, entries: tuple[Entry, ...]
) -> float:
    """How many tuples of an output there are for each tuple that comes in at entries; at most 1."""
    arcs = flow_rates(model, rates)
    came = sum(arcs.get(arc, 0.0) for _, arc in entries)
    left = arcs.get(model.outputs[output].arc, 0.0)
    return min(1.0, left / came) if came else 1.0


def _regions(model: FlowModel) -> list[tuple[tuple[str, ...], list[str]]]:
    """Boxes by the outputs that they lead to; those that lead to none are left out.

    Boxes that also lead to boxes without outputs, such as those that change tables, are apart.
    """
    found: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for name in model.boxes:
        if model.outputs_of(name):
            key = model.outputs_of(name), _has_side_effects(model, [name])
            found.setdefault(key, []).append(name)
    return [(outputs, boxes) for (outputs, _), boxes in found.items()]


def _entries(model: FlowModel, boxes: Collection[str]) -> tuple[Entry, ...]:
    """The arcs that come into a region from outside."""
    return tuple(
        (name, arc)
        for name in boxes
        for arc in dict.fromkeys(model.boxes[name].inputs)
        if model.writers.get(arc) not in boxes
    )


def _has_side_effects(model: FlowModel, boxes: Collection[str]) -> bool:
    return any(not model.outputs_of(one) for name in boxes for one in model.downstream(name))
