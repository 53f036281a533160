"""The greedy walk over drop sites: least utility lost for the work saved comes first (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from auroral.qos.curves import Curve
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowModel
from auroral.shedding.load import Kept
from auroral.shedding.sites import DropSite, Entry

_LINEAR = Curve(((0.0, 0.0), (1.0, 1.0)))
"""The loss graph of outputs that have none, if they must lose something."""
_LONGEST_MOVE = 1 / 16
"""The share of a site's tuples after which slopes are compared again, if sites depend on each
other."""
_TINY = 1e-12


@dataclass
class DroppedAmounts:
    """How much of each cell of each site is dropped: 0 nothing, 1 all."""

    sites: Sequence[DropSite]
    amounts: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.amounts = self.amounts or [[0.0] * len(site.cells) for site in self.sites]

    def next_cell(self, at: int) -> int | None:
        """The least valuable cell of a site of which some is left."""
        own = self.amounts[at]
        return next((n for n, amount in enumerate(own) if amount < 1), None)

    def kept(self) -> dict[Entry, float]:
        """The share of tuples that passes each entry."""
        found: dict[Entry, float] = {}
        for site, own in zip(self.sites, self.amounts, strict=True):
            lost = sum(a * cell.share for a, cell in zip(own, site.cells, strict=True))
            if lost:
                for entry in site.entries:
                    found[entry] = found.get(entry, 1.0) * max(1 - lost, 0.0)
        return found

    def kept_of(self, output: str, *, value: bool) -> dict[Entry, float]:
        """The share of an output's tuples, or of their value, that passes each entry."""
        found: dict[Entry, float] = {}
        for site, own in zip(self.sites, self.amounts, strict=True):
            lost = sum(
                a * (cell.value if value else cell.delivered).get(output, 0.0)
                for a, cell in zip(own, site.cells, strict=True)
            )
            if lost:
                for entry in site.entries:
                    found[entry] = found.get(entry, 1.0) * max(1 - lost, 0.0)
        return found


class FlowSums:
    """The work of a network and the tuples of its outputs, and how both depend on entries."""

    def __init__(self, model: FlowModel, rates: Mapping[str, float]):
        self.model = model
        self._rates = {stream: float(rates.get(stream, 0.0)) for stream in model.streams}
        self._leading: dict[str, tuple[str, ...]] = {}
        for name, output in model.outputs.items():
            writer = model.writers.get(output.arc)
            self._leading[name] = () if writer is None else model.upstream([writer])
        self._whole = {name: self._arriving(name, {}) for name in model.outputs}

    def work(self, kept: Kept) -> float:
        """Seconds of work for each second; calls apart."""
        return self._forward(self.model.boxes, kept)[1]

    def work_slopes(self, kept: Kept) -> dict[Entry, float]:
        """By entry, the work behind it if all tuples that come to it passed."""
        return self._slopes(tuple(self.model.boxes), kept, None)

    def share(self, output: str, kept: Kept) -> float:
        """The share of an output's tuples that arrives."""
        whole = self._whole[output]
        return self._arriving(output, kept) / whole if whole else 1.0

    def share_slopes(self, output: str, kept: Kept) -> dict[Entry, float]:
        """By entry, the share of an output's tuples that would pass it if it dropped none."""
        whole = self._whole[output]
        if not whole:
            return {}
        found = self._slopes(self._leading[output], kept, self.model.outputs[output].arc)
        return {entry: slope / whole for entry, slope in found.items()}

    def _arriving(self, output: str, kept: Kept) -> float:
        arcs, _ = self._forward(self._leading[output], kept)
        return arcs.get(self.model.outputs[output].arc, 0.0)

    def _forward(self, names: Iterable[str], kept: Kept) -> tuple[dict[str, float], float]:
        arcs = dict(self._rates)
        work = 0.0
        for name in names:
            box = self.model.boxes[name]
            taken = sum(
                arcs.get(arc, 0.0) * kept.get((name, arc), 1.0) for arc in dict.fromkeys(box.inputs)
            )
            work += taken * box.cost_s
            for arc, share in box.selectivities.items():
                arcs[arc] = taken * share
        return arcs, work

    def _slopes(self, names: Sequence[str], kept: Kept, target: str | None) -> dict[Entry, float]:
        arcs, _ = self._forward(names, kept)
        worth: dict[str, float] = {}
        found: dict[Entry, float] = {}
        for name in reversed(names):
            box = self.model.boxes[name]
            own = box.cost_s if target is None else 0.0
            for arc, share in box.selectivities.items():
                own += share * (worth.get(arc, 0.0) + (arc == target))
            for arc in dict.fromkeys(box.inputs):
                found[name, arc] = arcs.get(arc, 0.0) * own
                worth[arc] = worth.get(arc, 0.0) + kept.get((name, arc), 1.0) * own
        return found


@dataclass(frozen=True)
class OutputUtility:
    """What an output's tuples are worth: by the share that is delivered, and by their values."""

    loss: Curve | None
    by_loss: float
    """How much of the utility is by loss …"""
    by_value: float
    """… and how much by values."""

    @classmethod
    def of(cls, qos: QoS | None) -> OutputUtility:
        """That of an output; without a graph each tuple is worth the same."""
        if qos is None or not qos.sheddable:
            return cls(_LINEAR, 1.0, 0.0)
        loss = qos.curves.get("loss")
        weights = [qos.share("loss"), qos.share("value")]
        total = sum(weights) or 1.0
        return cls(loss, weights[0] / total, weights[1] / total)

    def at(self, delivered: float, value: float) -> float:
        """The utility that is left if a share of tuples and a share of their value is delivered."""
        loss = 1.0 if self.loss is None else self.loss.value(delivered)
        rest = 1 - self.by_loss - self.by_value
        return self.by_loss * loss + self.by_value * value + max(rest, 0.0)

    @cached_property
    def walked(self) -> Curve:
        """The loss graph without dents, so that slopes never fall on the way down."""
        return Curve(_hull((self.loss or _LINEAR).points))


@dataclass(frozen=True)
class WalkMove:
    """A stretch of the walk: some more of a site's cell is dropped."""

    site: int
    cell: int
    begin: float
    end: float
    before: float
    """The work that is left before it."""
    after: float


def greedy_walk(
    flow: FlowSums, sites: Sequence[DropSite], tiers: Sequence[int | None]
) -> list[WalkMove]:
    """Drop until nothing is left, each time where least utility is lost for the work saved.

    Sites of a higher tier are touched when the lower ones have nothing left; None is never.
    """
    moves: list[WalkMove] = []
    state = DroppedAmounts(sites)
    work = flow.work({})
    utilities = {name: OutputUtility.of(out.qos) for name, out in flow.model.outputs.items()}
    for tier in sorted({own for own in tiers if own is not None}):
        places = [at for at, own in enumerate(tiers) if own is not None and own <= tier]
        while (found := _steepest(flow, utilities, state, places)) is not None:
            at, cell, end = found
            begin = state.amounts[at][cell]
            state.amounts[at][cell] = end
            after = flow.work(state.kept())
            moves.append(WalkMove(at, cell, begin, end, work, after))
            work = after
    return moves


def amounts_at(
    sites: Sequence[DropSite], moves: Sequence[WalkMove], target: float
) -> DroppedAmounts:
    """Where the walk is when the work that is left is down to the target; or at its end."""
    state = DroppedAmounts(sites)
    for move in moves:
        if move.before <= target * (1 + 1e-9):
            break
        share = 1.0
        if move.after < target:
            share = (move.before - target) / (move.before - move.after)
        state.amounts[move.site][move.cell] = move.begin + share * (move.end - move.begin)
    return state


def _steepest(
    flow: FlowSums,
    utilities: Mapping[str, OutputUtility],
    state: DroppedAmounts,
    places: Sequence[int],
) -> tuple[int, int, float] | None:
    """The site and cell to drop next, and up to which amount."""
    saving = flow.work_slopes(state.kept())
    outputs = {name for at in places for name in state.sites[at].outputs}
    losses = _Losses(flow, utilities, state, outputs)
    least = _TINY * max(sum(saving.values()), _TINY)
    taken = _conflicting(state)
    best: tuple[float, float, int, int] | None = None
    for at in places:
        site = state.sites[at]
        cell = state.next_cell(at)
        if cell is None or (site.semantic and at in taken):
            continue
        others = _passing_others(state, at)
        saved = site.cells[cell].share * sum(
            saving[entry] * others.get(entry, 1.0) for entry in site.entries
        )
        if saved <= least:
            continue
        found = (losses.slope(at, cell) / saved, -saved, at, cell)
        best = found if best is None else min(best, found)
    if best is None:
        return None
    _, _, at, cell = best
    begin = state.amounts[at][cell]
    end = begin + losses.until_bend(at, cell)
    touched = set(state.sites[at].outputs)
    if any(other != at and touched.intersection(state.sites[other].outputs) for other in places):
        end = min(end, begin + _LONGEST_MOVE / min(state.sites[at].cells[cell].share, 1.0))
    return at, cell, 1.0 if end > 1 - 1e-9 else max(end, begin + 1e-6)


def _conflicting(state: DroppedAmounts) -> set[int]:
    """Sites by values of whose outputs some lose by values elsewhere already.

    What one drop takes by values, another one on the way does not find any more: what both take
    together could not be told.
    """
    used = {n for n, site in enumerate(state.sites) if site.semantic and any(state.amounts[n])}
    return {
        n
        for n, site in enumerate(state.sites)
        if any(n != m and {*site.outputs} & {*state.sites[m].outputs} for m in used)
    }


class _Losses:
    """How fast utility is lost at sites, at one point of the walk."""

    def __init__(
        self,
        flow: FlowSums,
        utilities: Mapping[str, OutputUtility],
        state: DroppedAmounts,
        outputs: Iterable[str],
    ):
        self._utilities = utilities
        self._state = state
        self._shares: dict[str, float] = {}
        self._slopes: dict[tuple[str, bool], dict[Entry, float]] = {}
        for output in outputs:
            kept = state.kept_of(output, value=False)
            by_value = state.kept_of(output, value=True)
            self._shares[output] = flow.share(output, kept)
            counted = flow.share_slopes(output, kept)
            self._slopes[output, False] = counted
            self._slopes[output, True] = (
                counted if by_value == kept else flow.share_slopes(output, by_value)
            )

    def slope(self, at: int, cell: int) -> float:
        """Utility that is lost by dropping a whole cell, at the present slopes of loss graphs."""
        lost = 0.0
        for output in self._state.sites[at].outputs:
            utility = self._utilities[output]
            if utility.by_loss:
                steep = _slope_below(utility.walked, self._shares[output])
                lost += utility.by_loss * steep * self._share_lost(output, at, cell, value=False)
            if utility.by_value:
                lost += utility.by_value * self._share_lost(output, at, cell, value=True)
        return lost

    def until_bend(self, at: int, cell: int) -> float:
        """How much of a cell can be dropped until the slope of a loss graph changes."""
        found = 1.0
        for output in self._state.sites[at].outputs:
            fall = self._share_lost(output, at, cell, value=False)
            if self._utilities[output].by_loss and fall > _TINY:
                here = self._shares[output]
                bends = [x for x, _ in self._utilities[output].walked.points if x < here - 1e-9]
                found = min(found, (here - max(bends)) / fall) if bends else found
        return found

    def _share_lost(self, output: str, at: int, cell: int, *, value: bool) -> float:
        """The share of an output that goes with a cell of a site."""
        site = self._state.sites[at]
        part = site.cells[cell]
        own = (part.value if value else part.delivered).get(output, 0.0)
        slopes = self._slopes[output, value]
        others = _passing_others(self._state, at, output=output, value=value)
        return own * sum(slopes.get(entry, 0.0) * others.get(entry, 1.0) for entry in site.entries)


def _passing_others(
    state: DroppedAmounts, at: int, *, output: str | None = None, value: bool = False
) -> dict[Entry, float]:
    """What other sites on the same entries as a site leave of the tuples."""
    entries = set(state.sites[at].entries)
    rest = [
        n
        for n, site in enumerate(state.sites)
        if n != at and any(state.amounts[n]) and entries.intersection(site.entries)
    ]
    if not rest:
        return {}
    alone = DroppedAmounts([state.sites[n] for n in rest], [state.amounts[n] for n in rest])
    return alone.kept() if output is None else alone.kept_of(output, value=value)


def _slope_below(curve: Curve, x: float) -> float:
    """How steep a curve is just below x."""
    return curve.gradient(x - 2e-9)


def _hull(graph: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The upper hull of a graph over [0, 1]."""
    points = sorted(graph)
    points = [(0.0, points[0][1])] * (points[0][0] > 0) + points
    points += [(1.0, points[-1][1])] * (points[-1][0] < 1)
    found: list[tuple[float, float]] = []
    for x, y in points:
        while len(found) > 1 and _below(found[-2], found[-1], (x, y)):
            found.pop()
        found.append((x, y))
    return tuple(found)


def _below(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    """Whether the middle of three points is not above the line between the others."""
    (x0, y0), (x1, y1), (x2, y2) = first, middle, last
    return (y1 - y0) * (x2 - x0) <= (y2 - y0) * (x1 - x0)
