"""When load is shed, how much and until when: a state machine without clock or threads [1 §4.4].

How the engine uses it:

    controller = LoadController(mode, capacity=cores * headroom)
    controller.serve(model, histograms, carry)      # at the start and when statistics were updated
    decision = controller.observe(Observation(…))   # once in a period
    if decision.changed: decision.drops             # by superbox; replaces all drops before it
    for note in decision.notes: log.note(note.about, "shed", note.why)

`serve` may be called as often as one likes: plans are computed again only if the model differs
much from the one before. Several drops may sit in front of one superbox, also on the same arc; a
tuple is dropped if any of them chooses it. A controller is of use only if tuples arrive by the
wall clock: a replay of files, which may wait as long as it takes, needs none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import latency_curve
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable
from auroral.shedding.drops import Drop
from auroral.shedding.histograms import Histogram
from auroral.shedding.load import cost_to_go_s, load_of
from auroral.shedding.planning import LEVELS, PlanTable, plan_table, sheds
from auroral.shedding.sites import CarryInterval, MayDrop

_ENTER = 1.05
"""Shedding begins if the load is more than this many times the capacity …"""
_LEAVE = 0.95
"""… and ends below this."""
_HOLD = 3
"""For how many periods less must be enough before less is dropped."""
_RECOVERY_PERIODS = 2
"""In how many periods the work that waits too long is to be done."""
_ALLOWED_PERIODS = (1.0, 10.0)
"""For how many periods work may wait, at least and at most, whatever latency graphs say."""
_SURPRISE = 1.15
"""How much dearer tuples are thought to be for each period in which a plan does not help."""
_MOST_SURPRISE = 5.0
_RELIEF = 0.95
_PATIENCE = 20
"""After how many quiet periods some of it is forgotten; doubled each time that was wrong."""
_MUCH = 0.2
"""By how much costs, selectivities or shares of streams may differ before plans are made anew."""


@dataclass(frozen=True)
class Observation:
    """What was seen in a period."""

    period_s: float
    rates: Mapping[str, float]
    """By stream, tuples per second that arrived."""
    queues: QueueTable
    """What waits in front of each superbox."""
    outside: float = 0.0
    """The share of outputs that are outside their good zone."""
    inactive: frozenset[str] = frozenset()
    """Outputs that the scheduler hardly serves."""


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

    Loads are multiples of the capacity C·H. The load that a plan must fit is what arrives, if it
    does so for two periods, and the work that has waited for too long, spread over the next
    periods. A plan is raised at once. It is lowered, or removed, when less was enough for three
    periods. If the queues do not get shorter in spite of a plan, boxes are taken to cost more than
    was measured.
    """

    def __init__(self, mode: SheddingMode, *, capacity: float):
        self._mode: SheddingMode = mode
        self._capacity = capacity
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
        self._loads: deque[float] = deque(maxlen=_HOLD)
        self._needs: deque[float] = deque(maxlen=_HOLD)
        self._late_s = 0.0
        """How long work waited beyond what is allowed, in the period before."""
        self._surprise = 1.0
        self._quiet = 0
        self._patience = _PATIENCE
        self._forgot = False
        """Whether tuples were taken for cheaper since they turned out to be dear."""

    @property
    def active(self) -> bool:
        """Whether this network sheds load at all."""
        outputs = self._model.outputs.values()
        return sheds(self._mode, (output.qos for output in outputs))

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
        if differs_much(self._planned_for, model):
            self._table, self._planned_for = None, model
            self._surprise = 1.0  # what was measured has followed what happens
        if _other_values(self._histograms, found):
            self._table, self._histograms = None, found
        self._model, self._carry, self._may_drop = model, carry, may_drop

    def observe(self, seen: Observation) -> SheddingDecision:
        """What is dropped after a period in which this was seen."""
        if not self.active:
            return self._decided({}, 0.0, ())
        offered = load_of(self._model, seen.rates, period_s=seen.period_s) / self._capacity
        self._loads.append(offered)
        waits_s = self._work_waiting(seen.queues) / self._capacity
        late_s = max(0.0, waits_s - self._allowed_s(seen.period_s))
        self._learn(late_s, offered)
        lasting = self._surprise * min(list(self._loads)[-2:])
        need = lasting + late_s / (_RECOVERY_PERIODS * seen.period_s)
        self._needs.append(need)
        return self._decide(seen, offered, waits_s)

    # ── decisions ──

    def _decide(self, seen: Observation, offered: float, waits_s: float) -> SheddingDecision:
        need = self._needs[-1]
        before = self._level
        if before == 1.0 and need <= _ENTER:
            return self._decided({}, offered, ())
        table = self._plans(seen)
        wanted = table.level(need)
        lately = max(self._needs)
        if wanted > before:
            self._level = wanted
        elif len(self._needs) == _HOLD and table.level(lately) < before:
            self._level = table.level(lately)
            if self._level == 1.0 and lately > _LEAVE:
                self._level = table.level(_ENTER)
        plan = table.at(self._level)
        drops = plan.by_superbox()
        for superbox, own in self._for_long_queues(seen, table).items():
            drops[superbox] = (*drops.get(superbox, ()), *own)
        notes: list[SheddingNote] = []
        if drops != self._drops:
            about = dict.fromkeys(
                name
                for group in (*drops.values(), *self._drops.values())
                for drop in group
                for name in (drop.superbox, drop.arc, *drop.outputs)
            )
            why = f"{self._cause(offered, waits_s)}; {plan.why}"
            if not drops:
                why = f"{self._cause(offered, waits_s)}: nothing is dropped any more"
            notes.append(SheddingNote(tuple(about), why))
        elif not plan.fits and before != self._level:
            notes.append(SheddingNote(tuple(self._model.outputs), plan.why))
        return self._decided(drops, offered, tuple(notes))

    def _decided(
        self,
        drops: dict[str, tuple[Drop, ...]],
        offered: float,
        notes: tuple[SheddingNote, ...],
    ) -> SheddingDecision:
        changed = drops != self._drops
        self._drops = drops
        return SheddingDecision(drops, changed, notes, offered, self._level)

    def _cause(self, offered: float, waits_s: float) -> str:
        found = f"{offered:.3g} times the capacity arrives and work waits for {waits_s:.2g} s"
        if self._surprise > 1:
            found += f"; tuples seem to cost {self._surprise:.2g} times what was measured"
        return found

    def _for_long_queues(self, seen: Observation, table: PlanTable) -> dict[str, tuple[Drop, ...]]:
        """Drops for a while in front of boxes between others whose queue alone takes too long."""
        found: dict[str, tuple[Drop, ...]] = {}
        if self._level == 1.0:
            return found
        allowed_s = self._allowed_s(seen.period_s)
        planned = {(d.superbox, d.arc) for d in table.at(self._level).drops}
        costs = cost_to_go_s(self._model)
        for name, box in self._model.boxes.items():
            waits_s = _queued(seen.queues, name) * costs[name] / self._capacity
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

    def _work_waiting(self, queues: QueueTable) -> float:
        """Seconds of one core that what waits will take."""
        costs = cost_to_go_s(self._model)
        return sum(_queued(queues, name) * cost for name, cost in costs.items())

    def _allowed_s(self, period_s: float) -> float:
        """How long work may wait: half of the shortest good zone."""
        zones = [latency_curve(output.qos).good_until for output in self._model.outputs.values()]
        least, most = (periods * period_s for periods in _ALLOWED_PERIODS)
        return min(max(min(zones, default=most) / 2, least), most)

    def _learn(self, late_s: float, offered: float) -> None:
        """Take tuples for dearer if a plan does not help, and forget it when all is quiet."""
        stuck = late_s > 0 and late_s >= self._late_s * 0.95 and self._late_s > 0
        if stuck and self._surprise * min(list(self._loads)[-2:]) <= self._level:
            if self._forgot:
                self._patience *= 2
            self._forgot = False
            self._surprise = min(self._surprise * _SURPRISE, _MOST_SURPRISE)
        self._quiet = 0 if late_s > 0 else self._quiet + 1
        if offered * self._surprise < _LEAVE / 2:
            self._surprise, self._patience = max(1.0, self._surprise * _RELIEF), _PATIENCE
        elif self._quiet > self._patience and self._surprise > 1:
            self._surprise = max(1.0, self._surprise * _RELIEF)
            self._quiet, self._forgot = 0, True
        self._late_s = late_s

    def _plans(self, seen: Observation) -> PlanTable:
        rates = seen.rates if any(seen.rates.values()) else self._table_rates
        rates = rates or dict.fromkeys(self._model.streams, 1.0)
        moved = _moved(self._table_rates, rates)
        if self._table is None or moved or seen.inactive != self._table_inactive:
            self._table = plan_table(
                self._model,
                rates,
                capacity=self._capacity,
                mode=self._mode,
                inactive=seen.inactive,
                histograms=self._histograms,
                carry=self._carry,
                may_drop=self._may_drop,
                levels=LEVELS,
                period_s=seen.period_s,
            )
            self._table_rates = dict(rates)
            self._table_inactive = seen.inactive
        return self._table


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


def _queued(queues: QueueTable, name: str) -> int:
    return queues[name].queued if name in queues.queues else 0
