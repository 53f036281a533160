"""Shedding plans: what is dropped where, so that a load fits [1 §4.5, 4 §3.3] (pure).

The greedy walk drops next where least utility is lost for each second of work that is saved: it
moves along the loss graph of an output until another output has the smaller slope. An output
that has a value graph loses value with each tuple; if tuples can be chosen by their values, the
least valuable range goes first.

How to use it: `plan_table(model, rates, capacity=…, mode=…)` walks once and gives a `PlanTable`;
`table.at(load)` is the `SheddingPlan` for an offered load, as a multiple of the capacity. Its
`drops` go in front of superboxes. Several drops may sit in front of one superbox on one arc; a
tuple is dropped if any of them chooses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowModel
from auroral.shedding.drops import Drop, DropInterval
from auroral.shedding.histograms import Histogram
from auroral.shedding.load import DEFAULT_PERIOD_S, load_of
from auroral.shedding.sites import (
    CarryInterval,
    DropSite,
    MayDrop,
    admission_site,
    random_sites,
    semantic_sites,
)
from auroral.shedding.walk import (
    DroppedAmounts,
    FlowSums,
    GreedyWalk,
    OutputUtility,
)

LEVELS = (
    *(round(1 + tenth / 10, 1) for tenth in range(1, 11)),
    *(2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0),
)
"""The multiples of the capacity for which a table has a plan."""


@dataclass(frozen=True)
class SheddingPlan:
    """What is dropped, and what comes of it."""

    drops: tuple[Drop, ...]
    offered: float
    """Seconds of one core for each second without any drop."""
    load: float
    """The same with the drops."""
    capacity: float
    utilities: Mapping[str, float]
    """By output what is left of its loss and value utility."""
    delivered: Mapping[str, float]
    """By output the share of its tuples that it still gets."""
    why: str
    """In words, for `engine.story`."""

    @property
    def fits(self) -> bool:
        """Whether the load that is left is within the capacity."""
        return self.load <= self.capacity * (1 + 1e-6)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Those that lose something."""
        return tuple(dict.fromkeys(name for drop in self.drops for name in drop.outputs))

    @property
    def utility(self) -> float:
        """The mean over all outputs."""
        return sum(self.utilities.values()) / len(self.utilities) if self.utilities else 1.0

    def by_superbox(self) -> dict[str, tuple[Drop, ...]]:
        """The drops in front of each superbox."""
        found: dict[str, tuple[Drop, ...]] = {}
        for drop in self.drops:
            found[drop.superbox] = (*found.get(drop.superbox, ()), drop)
        return found

    def document(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "drops": [drop.document() for drop in self.drops],
            "offered": self.offered,
            "load": self.load,
            "capacity": self.capacity,
            "fits": self.fits,
            "utilities": dict(self.utilities),
            "delivered": dict(self.delivered),
            "why": self.why,
        }


def sheds(mode: SheddingMode, qos: Iterable[QoS | None]) -> bool:
    """Whether there is anything to shed: a loss or value graph, or a mode that says so."""
    return _has_graph(qos) if mode == "auto" else mode != "off"


class PlanTable:
    """Plans for loads up to many times the capacity [4 §3.3].

    One walk gives them all: a plan for a higher load goes further along it. Each is made when it is
    asked for the first time, or in advance (`prepare`).

    >>> from auroral.scheduling.flow import FlowBox, FlowOutput
    >>> boxes = {"far": FlowBox("far", ("reports",), {"far": 0.5}, 0.001)}
    >>> qos = QoS(loss=[(0, 0), (1, 1)])
    >>> model = FlowModel(boxes, {"alerts": FlowOutput("alerts", "far", qos)})
    >>> table = plan_table(model, {"reports": 1000}, capacity=1.0, mode="auto")
    >>> plan = table.at(2.0)
    >>> [(drop.superbox, drop.arc, round(drop.rate, 3)) for drop in plan.drops]
    [('far', 'reports', 0.5)]
    >>> plan.utilities, table.at(0.9).drops
    ({'alerts': 0.5}, ())
    >>> print(plan.why)
    load 2 is more than the capacity 1: drop 50 % of reports before far; alerts keeps 50 %
    """

    def __init__(self, planner: _Planner, levels: Sequence[float]):
        self._planner = planner
        self._levels = sorted(levels)
        self._plans: dict[float, SheddingPlan] = {}

    def at(self, load: float) -> SheddingPlan:
        """The plan for a load, as a multiple of the capacity: of the next level at or above it."""
        level = self.level(load)
        if level not in self._plans:
            self._plans[level] = self._planner.plan(level)
        return self._plans[level]

    def level(self, load: float) -> float:
        """The level whose plan is used for a load; 1 if nothing is dropped."""
        if load <= 1:
            return 1.0
        above = (level for level in self._levels if level >= load * (1 - 1e-9))
        return next(above, self._levels[-1])

    def prepare(self) -> bool:
        """Make the plan of the least level that has none; False if all have one."""
        level = next((one for one in (1.0, *self._levels) if one not in self._plans), None)
        if level is not None:
            self.at(level)
        return level is not None


def plan_table(
    model: FlowModel,
    rates: Mapping[str, float],
    *,
    capacity: float,
    mode: SheddingMode = "auto",
    inactive: Collection[str] = (),
    histograms: Mapping[str, Histogram] | None = None,
    carry: CarryInterval | None = None,
    may_drop: MayDrop | None = None,
    levels: Sequence[float] = LEVELS,
    period_s: float = DEFAULT_PERIOD_S,
    machine: float | None = None,
) -> PlanTable:
    """Plans for each of the `levels`, if the streams' rates keep their proportions.

    `capacity` is C·H, or 1 if only proportions are asked for; then `machine` is C·H, so that graphs
    of throughput are judged by the rates that there are at each level. `inactive` outputs, which
    the scheduler hardly serves, are left alone. In mode auto, outputs without a loss or value graph
    lose nothing either; in the other modes they lose when the others have nothing left to lose.
    `histograms` and `carry` are needed to choose tuples by their values (modes auto and semantic).
    `may_drop` says of a superbox and an arc whether tuples may be dropped there.

    Of the walk by values, the walk by chance and equal drops at all inputs, each level takes what
    is allowed in its mode and loses least.
    """
    planner = _Planner(model, rates, capacity, mode, frozenset(inactive), may_drop, period_s)
    planner.machine = capacity if machine is None else machine
    planner.choose(histograms or {}, carry)
    return PlanTable(planner, levels)


class _Planner:
    def __init__(
        self,
        model: FlowModel,
        rates: Mapping[str, float],
        capacity: float,
        mode: SheddingMode,
        inactive: frozenset[str],
        may_drop: MayDrop | None,
        period_s: float,
    ):
        self._model = model
        self._rates = rates
        self._capacity = self.machine = capacity
        self._mode = mode
        self._inactive = inactive
        self._may_drop = may_drop
        self._sites: list[tuple[list[DropSite], list[int | None]]] = []
        """What can be walked, with the tier of each site; the better ones first."""
        self._walks: list[GreedyWalk] = []
        """They serve all levels, if what shares are worth does not depend on rates."""
        self._flow = FlowSums(model, rates)
        self._work = self._flow.work({})
        self._calls = max(0.0, load_of(model, rates, period_s=period_s) - self._work)

    def choose(self, histograms: Mapping[str, Histogram], carry: CarryInterval | None) -> None:
        """Find out where tuples can be dropped."""
        if sheds(self._mode, (output.qos for output in self._model.outputs.values())):
            choices = self._choices(histograms, carry)
            self._sites = [(sites, [self._tier(site) for site in sites]) for sites in choices]
            self._walks = self._begun(1.0)

    def plan(self, level: float) -> SheddingPlan:
        """The plan for a level: the one that fits and loses least."""
        target = self._target(level)
        walks = self._begun(level) if self._goes_by_rate else self._walks
        plans = [self._plan(level, walk.amounts_at(target)) for walk in walks]
        return max(plans, key=_rank) if plans else self._plan(level, DroppedAmounts([]))

    @property
    def _goes_by_rate(self) -> bool:
        """Whether what a share is worth depends on rates, and so on the level."""
        graphs = (output.qos for output in self._model.outputs.values())
        return any(qos is not None and qos.sheddable and qos.throughput for qos in graphs)

    def _begun(self, level: float) -> list[GreedyWalk]:
        utilities = self._utilities(level)
        return [GreedyWalk(self._flow, sites, tiers, utilities) for sites, tiers in self._sites]

    def _utilities(self, level: float) -> dict[str, OutputUtility]:
        """What outputs' tuples are worth at the rates of a level."""
        factor = self._factor(level) * self.machine / self._capacity
        return {
            name: OutputUtility.of(output.qos, self._flow.whole(name) * factor)
            for name, output in self._model.outputs.items()
        }

    def _choices(
        self, histograms: Mapping[str, Histogram], carry: CarryInterval | None
    ) -> list[list[DropSite]]:
        """What can be walked: by values and chance, by chance alone, all inputs alike."""
        admission = admission_site(self._model, self._may_drop)
        if self._mode == "admission":
            return [[admission]]
        by_chance = random_sites(self._model)
        found = [by_chance]
        if self._mode != "random" and carry is not None:
            by_value = semantic_sites(self._model, self._rates, histograms, carry)
            alone = [site for site in by_value if len(site.outputs) == 1]
            choices = [by_value, alone] if alone and len(alone) < len(by_value) else [by_value]
            found = [*([*sites, *by_chance] for sites in choices if sites), by_chance]
        return [*found, [admission]] if self._tier(admission) == 0 else found

    def _tier(self, site: DropSite) -> int | None:
        """When a site's turn comes: 0 at once, 1 if nothing else is left, None never."""
        if self._may_drop is not None and not all(self._may_drop(*one) for one in site.entries):
            return None
        if self._mode == "admission":
            return 0
        qos = (self._model.outputs[name].qos for name in site.outputs)
        graphs = all(_has_graph([one]) for one in qos)
        if graphs and not site.side_effects and not self._inactive.intersection(site.outputs):
            return 0
        return None if self._mode == "auto" else 1

    def _factor(self, level: float) -> float:
        """The multiple of the rates at which the load is `level` times the capacity."""
        return max(level * self._capacity - self._calls, 0.0) / self._work if self._work else 0.0

    def _target(self, level: float) -> float:
        """How much work of tuples may be left, at the rates of the model."""
        factor = self._factor(level)
        return max(self._capacity - self._calls, 0.0) / factor if factor else self._work

    def _plan(self, level: float, state: DroppedAmounts) -> SheddingPlan:
        load = self._calls + self._factor(level) * self._flow.work(state.kept())
        delivered, utilities = {}, {}
        for name, utility in self._utilities(level).items():
            got = self._flow.share(name, state.kept_of(name, value=False))
            value = self._flow.share(name, state.kept_of(name, value=True))
            delivered[name], utilities[name] = got, utility.at(got, value)
        offered = level * self._capacity
        drops = tuple(_drops(state))
        plan = SheddingPlan(drops, offered, load, self._capacity, utilities, delivered, "")
        return replace(plan, why=_why(plan, self._obstacle()))

    def _obstacle(self) -> str:
        """Why more cannot be shed than the walk has shed."""
        if not self._walks:
            off = self._mode == "off"
            return "shedding is off" if off else "no output has a loss or value graph"
        if self._calls >= self._capacity:
            return "calling the boxes alone takes more than the capacity"
        kept = [
            name
            for name, output in self._model.outputs.items()
            if name in self._inactive or not _has_graph([output.qos])
        ]
        if self._mode == "auto" and kept:
            return f"{', '.join(kept)} must not lose tuples, and nothing else is left"
        if self._may_drop is not None and not all(
            self._may_drop(name, arc)
            for name, box in self._model.boxes.items()
            for arc in box.inputs
        ):
            return "boxes that change tables or number tuples get all of them"
        return "nothing is left to drop"


def _rank(plan: SheddingPlan) -> tuple[bool, float]:
    """The better plan has the greater rank; differences by rounding do not count."""
    return plan.fits, round(plan.utility if plan.fits else -plan.load, 9)


def _has_graph(qos: Iterable[QoS | None]) -> bool:
    return any(one is not None and one.sheddable for one in qos)


def _drops(state: DroppedAmounts) -> Iterable[Drop]:
    """The drops of a plan: ranges that are dropped alike and touch each other are one."""
    for site, amounts in zip(state.sites, state.amounts, strict=True):
        for superbox, arc in site.entries:
            if not site.semantic:
                parts: list[tuple[DropInterval | None, float]] = [(None, amounts[0])]
            else:
                ranges = [cell.intervals[arc] for cell in site.cells]
                parts = list(_joined(zip(ranges, amounts, strict=True)))
            for interval, amount in parts:
                rate = min(round(amount, 6), 1.0)
                if rate > 0:
                    yield Drop(superbox, arc, rate, site.seed, site.outputs, interval)


def _joined(
    parts: Iterable[tuple[DropInterval, float]],
) -> Iterable[tuple[DropInterval, float]]:
    """Intervals in order of values, those that are dropped whole put together if they touch."""
    low = float("-inf")
    found: list[tuple[DropInterval, float]] = []
    ordered = sorted(parts, key=lambda part: low if part[0].low is None else part[0].low)
    for interval, amount in ordered:
        before, dropped = found[-1] if found else (None, 0.0)
        if before is not None and dropped == amount == 1 and before.high == interval.low:
            found[-1] = replace(before, high=interval.high), amount
        elif amount > 0:
            found.append((interval, amount))
    return found


def _why(plan: SheddingPlan, obstacle: str) -> str:
    """The reason for a plan, in words."""
    if plan.offered <= plan.capacity * (1 + 1e-9):
        return f"load {plan.offered:.3g} is within the capacity {plan.capacity:.3g}"
    found = f"load {plan.offered:.3g} is more than the capacity {plan.capacity:.3g}"
    drops = [_drop_words(drop) for drop in plan.drops]
    if drops:
        found += f": drop {', '.join(drops)}"
    left = [f"{name} keeps {plan.delivered[name]:.0%}".replace("%", " %") for name in plan.outputs]
    if left:
        found += f"; {', '.join(left)}"
    if not plan.fits:
        found += f"; load {plan.load:.3g} is left: {obstacle}"
    return found


def _drop_words(drop: Drop) -> str:
    share = f"{drop.rate:.0%}".replace("%", " %")
    if drop.interval is None:
        return f"{share} of {drop.arc} before {drop.superbox}"
    low, high, name = drop.interval.low, drop.interval.high, drop.interval.field
    bounds = f"any {name}"
    if low is not None and high is not None:
        bounds = f"{low:g} <= {name} < {high:g}"
    elif high is not None:
        bounds = f"{name} < {high:g}"
    elif low is not None:
        bounds = f"{name} >= {low:g}"
    return f"{share} of {drop.arc} with {bounds} before {drop.superbox}"
