"""When load is shed, how much and until when: a state machine without clock or threads [1 §4.4].

How the engine uses it:

    controller = LoadController(mode, capacity=cores * headroom)
    controller.serve(model, histograms, carry)      # at the start and when statistics were updated
    decision = controller.observe(Observation(…))   # once in a period
    if decision.changed: decision.drops             # by superbox; replaces all drops before it
    for note in decision.notes: log.note(note.about, "shed", note.why)
    controller.prepare()                            # if there is time: a plan for loads to come

`serve` may be called as often as one likes: plans are computed again only if the model differs
much from the one before. Several drops may sit in front of one superbox, also on the same arc; a
tuple is dropped if any of them chooses it. A controller is of use only if tuples arrive by the
wall clock: a replay of files, which may wait as long as it takes, needs none.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import latency_curve
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable
from auroral.shedding.drops import Drop
from auroral.shedding.evidence import ObservedCapacity, OverloadEvidence, WaitingWork
from auroral.shedding.histograms import Histogram
from auroral.shedding.load import (
    cost_to_go_s,
    effective_cost_s,
    flow_rates,
    load_of,
    rate_into,
    train_size,
)
from auroral.shedding.planning import LEVELS, PlanTable, plan_table, sheds
from auroral.shedding.sites import CarryInterval, MayDrop

_ENTER = 1.05
"""Shedding begins if work piles up and the load is more than this many times the capacity …"""
_LEAVE = 0.95
"""… and ends below this."""
_FAR_TOO_LATE = 2.0
"""Tuples that wait so many times as long as they may are an overload too, whatever arrives."""
_HOLD = 3
"""For how many periods less must be enough before less is dropped."""
_MEAN_PERIODS = 4
"""Over how many periods the load is averaged."""
_RECOVERY_PERIODS = 4
"""In how many periods the work that waits too long is to be done."""
_ALLOWED_PERIODS = (1.0, 60.0)
"""For how many periods work may wait, at least and at most, whatever latency graphs say."""
_ROUNDS = 5.0
"""Work may wait for so many rounds of calls of all boxes: shorter waits are no overload."""
_RELIEF = 1.05
"""By which factor the capacity is taken for larger if nothing waits while tuples are dropped …"""
_PATIENCE = 6
"""… after so many quiet periods; doubled each time that was wrong."""
_MOST_PATIENCE = 96
_BEYOND = 4
"""So much more patience is needed to take it for larger than was ever measured."""
_STALL_S = 1.5
_STALL_STEPS = 3.0
"""A step that has run for so many times the usual time, and so long, is not about the load."""
_MOST_EXCUSED_S = 30.0
"""If tuples are late for longer because of Spark, now and again, what waits counts all the same."""
_SETTLING_PERIODS = 8
"""For so long, at most, what has piled up while it compiled may be worked off."""
_MUCH = 0.2
"""By how much costs, selectivities or shares of streams may differ before plans are made anew."""


@dataclass(frozen=True)
class Observation:
    """What was seen in a period."""

    period_s: float
    rates: Mapping[str, float]
    """By stream, tuples per second that arrived."""
    queues: QueueTable
    """What waits in front of each superbox, and is not in a step yet."""
    now_s: float = 0.0
    """The time at its end, by the clock of the queues."""
    processed: Mapping[str, float] = field(default_factory=dict)
    """By superbox, tuples that steps have processed; those that were dropped do not count."""
    unfinished_s: float = 0.0
    """How long ago the oldest tuple of the steps under way arrived."""
    step_s: float = 0.0
    """How long steps usually take, of the superbox whose steps take longest."""
    running_s: float = 0.0
    """For how long the longest of the steps under way has run …"""
    expected_s: float = 0.0
    """… and how long it should, by its tuples: in an overload trains become long."""
    compiling: bool = False
    """Whether superboxes are in their first calls, or Spark compiles plans in the background."""
    outside: float | None = None
    """The share of outputs that are outside their good zone; None if nobody looks."""
    inactive: frozenset[str] = frozenset()
    """Outputs that the scheduler hardly serves: what waits for them alone does not count."""

    @property
    def is_stalled(self) -> bool:
        """Whether a step takes unusually long, as when Spark compiles a plan for it.

        What waits meanwhile says nothing of the load.
        """
        return self.running_s > max(_STALL_S, _STALL_STEPS * max(self.step_s, self.expected_s))


@dataclass(frozen=True)
class SheddingNote:
    """A decision in words, for the story of superboxes, arcs and outputs."""

    about: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class SheddingDecision:
    """What is to be dropped from now on."""

    drops: Mapping[str, tuple[Drop, ...]] = field(default_factory=dict)
    """By superbox; in place of all drops before."""
    changed: bool = False
    """Whether the drops differ from those of the decision before."""
    notes: tuple[SheddingNote, ...] = ()
    load: float = 0.0
    """The offered load as a multiple of the capacity."""
    level: float = 1.0
    """The load whose plan is in force; 1: no plan is."""


class LoadController:
    """Decides, period by period, which drops there are.

    Loads are multiples of the capacity. Shedding begins only if work is seen to pile up
    (`OverloadEvidence`) and more arrives than was processed meanwhile; costs that were measured
    decide where and how much is dropped, but not whether. How much work the machine does is
    measured while something waits (`ObservedCapacity`). The load that a plan must fit is what
    arrives, and the work that has waited for too long, spread over the next periods. A plan is
    raised at once when tuples are late. It is lowered, or removed, when less was enough for
    three periods; while nothing waits the capacity is taken for larger step by step.
    """

    def __init__(self, mode: SheddingMode, *, capacity: float, headroom: float = 1.0):
        """`capacity` is expected until it was measured, of which `headroom` is to be used.

        Both are one number, C·H, before anything was measured.
        """
        self._headroom = headroom
        self._mode: SheddingMode = mode
        self._capacity = ObservedCapacity(capacity / headroom)
        self._costs: Mapping[str, float] = {}
        """By box, what a tuple cost in the latest period."""
        self._nominal = capacity
        self._model = FlowModel({})
        self._planned_for = self._model
        """The model that plans were made for."""
        self._histograms: Mapping[str, Histogram] = {}
        self._carry: CarryInterval | None = None
        self._may_drop: MayDrop | None = None
        self._table: PlanTable | None = None
        self._table_rates: dict[str, float] = {}
        self._table_inactive: frozenset[str] = frozenset()
        self._level = 1.0
        self._drops: dict[str, tuple[Drop, ...]] = {}
        self._load = 0.0
        self._arrived: deque[Mapping[str, float]] = deque(maxlen=_MEAN_PERIODS)
        """Rates of the latest periods."""
        self._needs: deque[float] = deque(maxlen=_HOLD)
        self._evidence = OverloadEvidence()
        self._seen: Observation | None = None
        """The latest period, unless it says nothing of the load."""
        self._excused_s = 0.0
        """For how long what waits has not counted since no tuple was late."""
        self._stalled_at_s = -math.inf
        """When work was stalled last."""
        self._is_backlog = False
        """Whether tuples have been late ever since."""
        self._quiet = 0
        self._patience = _PATIENCE
        self._relieved = False
        """Whether the capacity was taken for larger since tuples were late."""

    @property
    def active(self) -> bool:
        """Whether this network sheds load at all."""
        outputs = self._model.outputs.values()
        return sheds(self._mode, (output.qos for output in outputs))

    def expect(self, capacity: float) -> None:
        """Expect another capacity until it was measured: more or fewer boxes run at a time."""
        self._nominal = capacity
        self._capacity.nominal = capacity / self._headroom

    def serve(
        self,
        model: FlowModel,
        histograms: Mapping[str, Histogram] | None = None,
        carry: CarryInterval | None = None,
        may_drop: MayDrop | None = None,
    ) -> None:
        """Decide for this network from now on.

        While tuples are dropped by their values, what comes out says little of what would come out
        without drops: histograms and selectivities stay as they were before.
        """
        by_value = any(drop.interval for held in self._drops.values() for drop in held)
        if by_value and _same_shape(self._model, model):
            model = _with_selectivities(model, self._model)
            histograms = self._histograms
        found = dict(histograms or {})
        if any(name not in model.boxes for name in self._model.boxes):
            self._capacity.settle(self._costs)
        if differs_much(self._planned_for, model):
            self._table, self._planned_for = None, model
        if _other_values(self._histograms, found):
            self._table, self._histograms = None, found
        self._model, self._carry, self._may_drop = model, carry, may_drop

    def observe(self, seen: Observation) -> SheddingDecision:
        """What is dropped after a period in which this was seen."""
        self._seen = None
        if not self.active:
            return self._decided({}, 0.0, ())
        self._arrived.append(seen.rates)
        if self._is_stalled(seen):
            self._evidence.forget()
            self._capacity.forget_run()
            return SheddingDecision(self._drops, load=self._load, level=self._level)
        self._seen = seen
        model = self._with_calls(seen.period_s, self._rates)
        costs = self._costs = {name: box.cost_s for name, box in model.boxes.items()}
        waits = self._note(seen, model)
        if waits.excess < 1:
            self._excused_s, self._is_backlog = 0.0, False
        self._learn(costs)
        capacity = self._capacity.at(costs) * self._headroom
        load = load_of(model, self._rates) / capacity
        late_s = waits.too_much / capacity
        need = load + late_s / (_RECOVERY_PERIODS * seen.period_s)
        self._needs.append(need)
        cause = self._cause(load, waits)
        if self._level == 1.0 and cause is None:
            return self._decided({}, load, ())
        return self._decide(seen, model, load, cause)

    def prepare(self) -> bool:
        """Make one more plan for loads to come while nothing is dropped; False if there is none.

        When an overload begins its plan is there then, if streams keep their proportions.
        """
        seen = self._seen
        if seen is None or not self.active or self._level > 1.0 or not any(self._rates.values()):
            return False
        if len(self._model.boxes) * len(self._model.outputs) > _MOST_PREPARED:
            return False
        model, before = self._with_calls(seen.period_s, self._rates_at_capacity()), self._table
        table = self._plans(seen, model)
        return table.prepare() or table is not before

    def forget_plans(self) -> None:
        """Make all plans anew when they are needed: more will be known then."""
        self._table = None

    def _rates_at_capacity(self) -> dict[str, float]:
        """The present rates, raised to where they use up the capacity: trains are long there."""
        raised = 1 / self._load if 0 < self._load < 1 else 1.0
        return {stream: rate * raised for stream, rate in self._rates.items()}

    def _is_stalled(self, seen: Observation) -> bool:
        """Whether what waits says nothing of the load: because of Spark steps are slow, or were."""
        if seen.is_stalled or seen.compiling:
            self._stalled_at_s, self._is_backlog = seen.now_s, True
        settling_s = seen.now_s - self._stalled_at_s
        settles = settling_s <= _SETTLING_PERIODS * seen.period_s and self._level == 1.0
        settles = settles and _oldest_arrival_s(seen.queues) <= self._stalled_at_s
        if self._excused_s >= _MOST_EXCUSED_S or not (settling_s == 0 or settles):
            return False
        self._excused_s += seen.period_s
        return True

    # ── decisions ──

    def _cause(self, load: float, waits: WaitingWork) -> str | None:
        """Why tuples are dropped, in words; None if nothing says that they must be."""
        told = f"{load:.3g} times the capacity arrives"
        if self._level > 1.0:
            return f"{told} and the oldest tuple has waited for {waits.oldest_s:.2g} s"
        found = self._evidence.found
        if found is None or not self._capacity.is_measurable:
            return None
        if self._seen is not None and self._seen.outside == 0 and waits.excess < _FAR_TOO_LATE:
            return None  # the scheduler lets tuples wait as long as that costs nothing
        far_too_late = waits.excess >= _FAR_TOO_LATE and self._needs[-1] > _ENTER
        far_too_late = far_too_late and not self._is_backlog
        is_too_much = load * self._headroom > _ENTER  # more arrives than was processed
        return f"{told} and {found}" if is_too_much or far_too_late else None

    def _decide(
        self, seen: Observation, model: FlowModel, load: float, cause: str | None
    ) -> SheddingDecision:
        before = self._level
        table = self._plans(seen, model)
        wanted, lately = table.level(self._needs[-1]), max(self._needs)
        if before == 1.0:
            self._level = max(wanted, table.level(_ENTER))
        elif wanted > before and self._evidence.is_late:
            self._level = wanted
        elif len(self._needs) == _HOLD and table.level(lately) < before:
            self._level = table.level(lately)
            if self._level == 1.0 and lately > _LEAVE:
                self._level = table.level(_ENTER)
        plan = table.at(self._level)
        drops = plan.by_superbox()
        for superbox, own in self._for_long_queues(seen, model, table).items():
            drops[superbox] = (*drops.get(superbox, ()), *own)
        notes: list[SheddingNote] = []
        if drops != self._drops:
            about = dict.fromkeys(
                name
                for group in (*drops.values(), *self._drops.values())
                for drop in group
                for name in (drop.superbox, drop.arc, *drop.outputs)
            )
            why = f"{cause}; {plan.why}" if drops else f"{cause}: nothing is dropped any more"
            notes.append(SheddingNote(tuple(about), why))
        elif not plan.fits and before != self._level:
            notes.append(SheddingNote(tuple(self._model.outputs), plan.why))
        return self._decided(drops, load, tuple(notes))

    def _decided(
        self,
        drops: dict[str, tuple[Drop, ...]],
        offered: float,
        notes: tuple[SheddingNote, ...],
    ) -> SheddingDecision:
        changed = drops != self._drops
        self._drops, self._load = drops, offered
        return SheddingDecision(drops, changed, notes, offered, self._level)

    def _for_long_queues(
        self, seen: Observation, model: FlowModel, table: PlanTable
    ) -> dict[str, tuple[Drop, ...]]:
        """Drops for a while in front of boxes between others whose queue alone takes too long."""
        found: dict[str, tuple[Drop, ...]] = {}
        if self._level == 1.0:
            return found
        planned = {(d.superbox, d.arc) for d in table.at(self._level).drops}
        to_go = cost_to_go_s(model)
        capacity = self._capacity.at({name: box.cost_s for name, box in model.boxes.items()})
        allowed = self._allowed_s(seen.period_s)
        for name, box in self._model.boxes.items():
            waits_s = _queued(seen.queues, name) * to_go[name] / capacity
            allowed_s = allowed[name]
            inner = [arc for arc in dict.fromkeys(box.inputs) if arc in self._model.writers]
            was = any((name, drop.arc) not in planned for drop in self._drops.get(name, ()))
            if waits_s <= (allowed_s / 2 if was else allowed_s) or not self._may_lose(name, seen):
                continue
            rate = round(1 - min(allowed_s / waits_s, 1.0) / 2, 1)
            outputs = self._model.outputs_of(name)
            own = tuple(
                Drop(name, arc, rate, _QUEUE_SEED, outputs)
                for arc in inner
                if (name, arc) not in planned
                and (self._may_drop is None or self._may_drop(name, arc))
            )
            if own:
                found[name] = own
        return found

    def _may_lose(self, name: str, seen: Observation) -> bool:
        """Whether tuples in front of a box may be dropped: its outputs said what a loss is."""
        outputs = self._model.outputs_of(name)
        return bool(outputs) and all(
            output not in seen.inactive and sheds("auto", [self._model.outputs[output].qos])
            for output in outputs
        )

    # ── what is known ──

    @property
    def _rates(self) -> dict[str, float]:
        """Tuples per second of each stream, over the latest periods."""
        names = dict.fromkeys(name for rates in self._arrived for name in rates)
        count = len(self._arrived)
        return {name: sum(r.get(name, 0.0) for r in self._arrived) / count for name in names}

    def _with_calls(self, period_s: float, rates: Mapping[str, float]) -> FlowModel:
        """The model in which a tuple has its share of a call, and calls cost nothing.

        In an overload trains are as long as tuples may wait, so that calls are shared by many.
        """
        rates = rates if any(rates.values()) else self._table_rates
        arcs, allowed = flow_rates(self._model, rates), self._allowed_s(period_s)
        boxes = {
            name: replace(
                box,
                cost_s=effective_cost_s(box, train_size(rate_into(box, arcs), allowed[name])),
                call_s=0.0,
            )
            for name, box in self._model.boxes.items()
        }
        return FlowModel(boxes, self._model.outputs)

    def _allowed_s(self, period_s: float) -> dict[str, float]:
        """By box, how long tuples may wait: half of the shortest good zone behind it.

        It is not less than a few rounds of calls take: there is no use in dropping tuples if the
        calls alone make a good zone unreachable.
        """
        calls = [box.call_s for box in self._model.boxes.values()]
        rounds_s = _ROUNDS * max(sum(calls) / self._nominal, *calls, 0.0)
        zones = {
            name: latency_curve(output.qos).good_until
            for name, output in self._model.outputs.items()
        }
        least, most = (periods * period_s for periods in _ALLOWED_PERIODS)
        found = {}
        for name in self._model.boxes:
            zone = min((zones[output] for output in self._model.outputs_of(name)), default=most)
            found[name] = min(max(zone / 2, rounds_s, least), most)
        return found

    def _note(self, seen: Observation, model: FlowModel) -> WaitingWork:
        """Remember what waits, and what was done."""
        allowed, to_go = self._allowed_s(seen.period_s), cost_to_go_s(model)
        ages = {
            name: max(seen.now_s - seen.queues[name].oldest_arrival_s, 0.0)
            for name in model.boxes
            if _queued(seen.queues, name) and not self._serves_only(name, seen.inactive)
        }
        oldest_s = max(ages.values(), default=0.0)
        self._capacity.note(
            seen.processed,
            seen.period_s,
            waiting=max(oldest_s, seen.unfinished_s) >= seen.period_s,
            step_s=seen.step_s,
        )
        work = sum(_queued(seen.queues, name) * to_go[name] for name in ages)
        waits = WaitingWork(
            work,
            oldest_s,
            max((age_s / allowed[name] for name, age_s in ages.items()), default=0.0),
            seen.outside or 0.0,
        )
        self._evidence.note(waits)
        return waits

    def _serves_only(self, name: str, outputs: Collection[str]) -> bool:
        """Whether a box is there for some of these outputs and for no others."""
        found = self._model.outputs_of(name)
        return bool(found) and all(output in outputs for output in found)

    def _learn(self, costs: Mapping[str, float]) -> None:
        """Find out how much the machine does."""
        evidence = self._evidence
        if evidence.is_late or (self._level == 1.0 and evidence.found is not None):
            if self._capacity.measure() and self._relieved and self._level > 1.0:
                self._patience = min(self._patience * 2, _MOST_PATIENCE)
            self._relieved = False
        else:
            self._capacity.measure_if_more(costs)
        self._quiet = self._quiet + 1 if evidence.is_quiet else 0
        if self._level == 1.0:
            self._quiet, self._patience = 0, _PATIENCE
        beyond = self._capacity.raised * self._headroom * _RELIEF > 1
        if self._quiet >= self._patience * (_BEYOND if beyond else 1):
            self._capacity.raise_by(_RELIEF)
            self._quiet, self._relieved = 0, True

    def _plans(self, seen: Observation, model: FlowModel) -> PlanTable:
        rates = self._rates if any(self._rates.values()) else self._table_rates
        rates = rates or dict.fromkeys(self._model.streams, 1.0)
        moved = _moved(self._table_rates, rates)
        if self._table is None or moved or seen.inactive != self._table_inactive:
            self._table = plan_table(
                model,
                rates,
                capacity=1.0,
                mode=self._mode,
                inactive=seen.inactive,
                histograms=self._histograms,
                carry=self._carry,
                may_drop=self._may_drop,
                levels=LEVELS,
                machine=self._capacity.at(self._costs) * self._headroom,
            )
            self._table_rates = dict(rates)
            self._table_inactive = seen.inactive
        return self._table


_MOST_PREPARED = 5_000
"""Plans are made in advance up to so many boxes times outputs.

Making one takes 3 to 25 µs for each of them, by the graphs: some tens of milliseconds in which the
engine decides nothing else. Larger networks would stand still for seconds while nothing is wrong.
"""
_QUEUE_SEED = 0x51EE
"""Of drops in front of long queues."""


def differs_much(old: FlowModel, new: FlowModel) -> bool:
    """Whether plans made for one model are of no use for the other."""
    return not _same_shape(old, new) or any(
        _apart(old.boxes[name].cost_s, box.cost_s)
        or _apart(old.boxes[name].call_s, box.call_s)
        or any(
            _apart(old.boxes[name].selectivities[arc], s) for arc, s in box.selectivities.items()
        )
        for name, box in new.boxes.items()
    )


def _same_shape(old: FlowModel, new: FlowModel) -> bool:
    """Whether boxes are the same but for what was measured of them."""
    return (
        old.outputs == new.outputs
        and old.boxes.keys() == new.boxes.keys()
        and all(
            box.inputs == old.boxes[name].inputs
            and box.selectivities.keys() == old.boxes[name].selectivities.keys()
            for name, box in new.boxes.items()
        )
    )


def _with_selectivities(model: FlowModel, of: FlowModel) -> FlowModel:
    boxes = {
        name: replace(box, selectivities=of.boxes[name].selectivities)
        for name, box in model.boxes.items()
    }
    return FlowModel(boxes, model.outputs)


def _other_values(old: Mapping[str, Histogram], new: Mapping[str, Histogram]) -> bool:
    """Whether outputs have other values than before, or a histogram for the first time."""
    return any(
        histogram.total and (name not in old or histogram.distance(old[name]) > _MUCH)
        for name, histogram in new.items()
    )


def _apart(old: float, new: float) -> bool:
    return abs(new - old) > _MUCH * max(abs(old), abs(new), 1e-12)


def _moved(old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """Whether streams bring another share of all tuples than before."""
    whole, now = sum(old.values()), sum(new.values())
    if not whole or not now:
        return True
    names: Collection[str] = {*old, *new}
    return any(abs(old.get(n, 0.0) / whole - new.get(n, 0.0) / now) > _MUCH for n in names)


def _oldest_arrival_s(queues: QueueTable) -> float:
    """When what waits longest has arrived."""
    held = (queue for queue in queues.queues.values() if queue.queued)
    return min((queue.oldest_arrival_s for queue in held), default=math.inf)


def _queued(queues: QueueTable, name: str) -> int:
    return queues[name].queued if name in queues.queues else 0
