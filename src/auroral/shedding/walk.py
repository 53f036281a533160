"""The greedy walk over drop sites: least utility lost for the work saved comes first (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


class DroppedAmounts:
    """How much of each cell of each site is dropped: 0 nothing, 1 all."""

    def __init__(self, sites: Sequence[DropSite], amounts: Iterable[Iterable[float]] | None = None):
        self.sites = sites
        self.amounts = [[0.0] * len(site.cells) for site in sites]
        self._shares = [0.0] * len(sites)
        """By site, the share of tuples that is dropped …"""
        self._lost: list[dict[str, list[float]]] = [{} for _ in sites]
        """… and by output the share of its tuples and of their value."""
        self._by_output: dict[str, list[int]] = {}
        for at, site in enumerate(sites):
            for output in site.outputs:
                self._by_output.setdefault(output, []).append(at)
        for at, own in enumerate(amounts or ()):
            for cell, amount in enumerate(own):
                self.drop(at, cell, amount)

    def drop(self, at: int, cell: int, amount: float) -> None:
        """Drop this much of a cell."""
        more = amount - self.amounts[at][cell]
        if more:
            part = self.sites[at].cells[cell]
            self.amounts[at][cell] = amount
            self._shares[at] += more * part.share
            for output in self.sites[at].outputs:
                lost = self._lost[at].setdefault(output, [0.0, 0.0])
                lost[False] += more * part.delivered.get(output, 0.0)
                lost[True] += more * part.value.get(output, 0.0)

    def is_used(self, at: int) -> bool:
        """Whether anything is dropped at a site."""
        return self._shares[at] > 0

    def next_cell(self, at: int) -> int | None:
        """The least valuable cell of a site of which some is left."""
        own = self.amounts[at]
        return next((n for n, amount in enumerate(own) if amount < 1), None)

    def kept(self, sites: Iterable[int] | None = None) -> dict[Entry, float]:
        """The share of tuples that passes each entry, if there are just these sites."""
        found: dict[Entry, float] = {}
        for at in range(len(self.sites)) if sites is None else sites:
            if self._shares[at]:
                for entry in self.sites[at].entries:
                    found[entry] = found.get(entry, 1.0) * max(1 - self._shares[at], 0.0)
        return found

    def kept_of(
        self, output: str, *, value: bool, sites: Iterable[int] | None = None
    ) -> dict[Entry, float]:
        """The share of an output's tuples, or of their value, that passes each entry."""
        found: dict[Entry, float] = {}
        for at in self._by_output.get(output, ()) if sites is None else sites:
            lost = self._lost[at].get(output)
            if lost is not None and lost[value]:
                for entry in self.sites[at].entries:
                    found[entry] = found.get(entry, 1.0) * max(1 - lost[value], 0.0)
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

    def whole(self, output: str) -> float:
        """Tuples per second that an output gets if none are dropped."""
        return self._whole[output]

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
    """What an output's tuples are worth: by the share that is delivered, and by their values.

    A graph of throughput tells what the share is worth, too, if the rate is known.
    """

    loss: Curve | None
    by_loss: float
    """How much of the utility is by the share …"""
    by_value: float
    """… and how much by values."""

    @classmethod
    def of(cls, qos: QoS | None, rate: float = 0.0) -> OutputUtility:
        """That of an output; without a graph each tuple is worth the same.

        `rate` is how many tuples per second it would get if none were dropped.
        """
        if qos is None or not qos.sheddable:
            return cls(_LINEAR, 1.0, 0.0)
        loss, by_loss = qos.curves.get("loss"), qos.share("loss")
        through, by_rate = qos.curves.get("throughput"), qos.share("throughput")
        if through is not None and by_rate and rate > 0:
            part = Curve(tuple((x / rate, y) for x, y in through.points))
            loss, by_loss = _mixed([(loss, by_loss), (part, by_rate)]), by_loss + by_rate
        weights = [by_loss, qos.share("value")]
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


class GreedyWalk:
    """Drops ever more, each time where least utility is lost for the work saved.

    Sites of a higher tier are touched when the lower ones have nothing left; None is never. It
    goes as far as it is asked to.
    """

    def __init__(
        self,
        flow: FlowSums,
        sites: Sequence[DropSite],
        tiers: Sequence[int | None],
        utilities: Mapping[str, OutputUtility],
    ):
        self._flow = flow
        self._sites = sites
        self._tiers = sorted({own for own in tiers if own is not None})
        self._tier_of = tiers
        self._state = DroppedAmounts(sites)
        self._work = flow.work({})
        self._moves: list[WalkMove] = []
        self._losses = _Losses(flow, self._state, utilities)
        self._near = [
            [
                other
                for other, theirs in enumerate(sites)
                if other != at and {*site.outputs} & {*theirs.outputs}
            ]
            for at, site in enumerate(sites)
        ]
        """By site, the others that take from the same outputs."""

    def amounts_at(self, target: float) -> DroppedAmounts:
        """What is dropped when the work that is left is down to the target; or at the end."""
        while self._work > target * (1 + 1e-9) and self._go():
            pass
        state = DroppedAmounts(self._sites)
        for move in self._moves:
            if move.before <= target * (1 + 1e-9):
                break
            share = 1.0
            if move.after < target:
                share = (move.before - target) / (move.before - move.after)
            state.drop(move.site, move.cell, move.begin + share * (move.end - move.begin))
        return state

    def _go(self) -> bool:
        """Make a move; False if there is none left."""
        found = self._steepest()
        while found is None and len(self._tiers) > 1:
            self._tiers = self._tiers[1:]
            found = self._steepest()
        if found is None:
            return False
        at, cell, end = found
        begin = self._state.amounts[at][cell]
        self._state.drop(at, cell, end)
        self._losses.forget(self._sites[at].outputs)
        after = self._flow.work(self._state.kept())
        self._moves.append(WalkMove(at, cell, begin, end, self._work, after))
        self._work = after
        return True

    def _steepest(self) -> tuple[int, int, float] | None:
        """The site and cell to drop next, and up to which amount."""
        if not self._tiers:
            return None
        state, losses = self._state, self._losses
        saving = self._flow.work_slopes(state.kept())
        least = _TINY * max(sum(saving.values()), _TINY)
        best: tuple[float, float, int, int] | None = None
        for at, site in enumerate(self._sites):
            tier = self._tier_of[at]
            cell = state.next_cell(at)
            if cell is None or tier is None or tier > self._tiers[0] or self._is_in_conflict(at):
                continue
            others = state.kept(losses.sharing[at])
            saved = site.cells[cell].share * sum(
                saving[entry] * others.get(entry, 1.0) for entry in site.entries
            )
            if saved > least:
                found = (losses.slope(at, cell) / saved, -saved, at, cell)
                best = found if best is None else min(best, found)
        if best is None:
            return None
        _, _, at, cell = best
        begin = state.amounts[at][cell]
        end = begin + losses.until_bend(at, cell)
        if self._near[at]:
            end = min(end, begin + _LONGEST_MOVE / min(self._sites[at].cells[cell].share, 1.0))
        return at, cell, 1.0 if end > 1 - 1e-9 else max(end, begin + 1e-6)

    def _is_in_conflict(self, at: int) -> bool:
        """Whether some output loses by its values elsewhere already.

        What one drop takes by values, another one on the way does not find any more: what both
        take together could not be told.
        """
        return self._sites[at].semantic and any(
            self._sites[other].semantic and self._state.is_used(other) for other in self._near[at]
        )


class _Losses:
    """How fast utility is lost at sites, at the present point of the walk."""

    def __init__(
        self, flow: FlowSums, state: DroppedAmounts, utilities: Mapping[str, OutputUtility]
    ):
        self._flow = flow
        self._state = state
        self._utilities = utilities
        self._shares: dict[str, float] = {}
        self._slopes: dict[tuple[str, bool], dict[Entry, float]] = {}
        self._known: dict[tuple[int, int], float] = {}
        self.sharing = [
            [
                other
                for other, theirs in enumerate(state.sites)
                if other != at and {*site.entries} & {*theirs.entries}
            ]
            for at, site in enumerate(state.sites)
        ]
        """By site, the others on the same entries."""

    def forget(self, outputs: Collection[str]) -> None:
        """What is known of some outputs holds no more."""
        for output in outputs:
            self._shares.pop(output, None)
        self._known = {
            (at, cell): slope
            for (at, cell), slope in self._known.items()
            if not {*outputs} & {*self._state.sites[at].outputs}
        }

    def slope(self, at: int, cell: int) -> float:
        """Utility that is lost by dropping a whole cell, at the present slopes of loss graphs."""
        if (at, cell) not in self._known:
            self._known[at, cell] = sum(
                self._slope_of(output, at, cell) for output in self._state.sites[at].outputs
            )
        return self._known[at, cell]

    def _slope_of(self, output: str, at: int, cell: int) -> float:
        utility = self._utilities[output]
        lost = 0.0
        if utility.by_loss:
            steep = _slope_below(utility.walked, self._share(output))
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
                here = self._share(output)
                bends = [x for x, _ in self._utilities[output].walked.points if x < here - 1e-9]
                found = min(found, (here - max(bends)) / fall) if bends else found
        return found

    def _share(self, output: str) -> float:
        """The share of its tuples that an output gets; computes the slopes with it."""
        if output not in self._shares:
            kept = self._state.kept_of(output, value=False)
            by_value = self._state.kept_of(output, value=True)
            self._shares[output] = self._flow.share(output, kept)
            counted = self._flow.share_slopes(output, kept)
            self._slopes[output, False] = counted
            self._slopes[output, True] = (
                counted if by_value == kept else self._flow.share_slopes(output, by_value)
            )
        return self._shares[output]

    def _share_lost(self, output: str, at: int, cell: int, *, value: bool) -> float:
        """The share of an output that goes with a cell of a site."""
        self._share(output)
        site = self._state.sites[at]
        part = site.cells[cell]
        own = (part.value if value else part.delivered).get(output, 0.0)
        slopes = self._slopes[output, value]
        others = self._state.kept_of(output, value=value, sites=self.sharing[at])
        return own * sum(slopes.get(entry, 0.0) * others.get(entry, 1.0) for entry in site.entries)


def _mixed(parts: Sequence[tuple[Curve | None, float]]) -> Curve:
    """The weighted mean of some curves over [0, 1]."""
    known = [(curve, weight) for curve, weight in parts if curve is not None and weight]
    total = sum(weight for _, weight in known)
    xs = {0.0, 1.0, *(x for curve, _ in known for x, _ in curve.points if 0 < x < 1)}
    return Curve(
        tuple((x, sum(w * curve.value(x) for curve, w in known) / total) for x in sorted(xs))
    )


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
