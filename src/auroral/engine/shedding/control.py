"""The drop boxes that there are now, what is counted of them, and what they have done."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auroral.continuous.boxing.gates import declared_name
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.dropping import LOST_BY, DropCount
from auroral.engine.shedding.places import (
    by_offered,
    losses,
    names_of,
    objection,
    shed_shares,
    upstream,
)
from auroral.engine.shedding.shed_log import Moments, Place, Shares, ShedLog
from auroral.engine.shedding.tally import StepTally
from auroral.ids import PartBoxId
from auroral.network.check import CheckedNetwork
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.drops import Drop, drops_text
from auroral.storage import ShedRow, Store
from auroral.storage.manifest import MOST_SHED

_SHED = "shed: "
"""How the names of counters begin that count dropped tuples of arcs; the reason follows."""
_LOST = "shed"
"""The name of the counter of tuples that an output has lost."""
_ESTIMATES = 50
"""For so many steps an estimate of what outputs lose is used."""


@dataclass(frozen=True)
class ShedStep:
    """What the drop boxes in front of one step did."""

    rows: tuple[ShedRow, ...] = ()
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    owed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By output and reason, what `counts` leave out, since they are whole numbers."""


class SheddingControl:
    """Owns the drop boxes of a running network; the stepper asks for them, a controller sets them.

    The thread that decides sets them and commits steps; any thread may look.
    """

    def __init__(
        self,
        store: Store,
        decisions: DecisionLog,
        now_us: Callable[[], int],
    ):
        self._store = store
        self._decisions = decisions
        self._now_us = now_us
        self.tally = StepTally()
        """Counts what steps do, for who decides on drop boxes."""
        self.log = ShedLog(store.manifest.shed(), MOST_SHED)
        self._lock = threading.Lock()
        self._boxes: dict[Place, tuple[Drop, ...]] = {}
        self._since_us: dict[Place, int] = {}
        self._owed: dict[tuple[str, str], float] = {}
        self._checked: CheckedNetwork | None = None
        self._superboxes: dict[str, Superbox] = {}
        self._outputs: dict[str, str] = {}
        self._losses: dict[tuple[str, str], dict[str, float]] = {}
        self._estimated = 0
        self._load: tuple[float | None, float] = None, 1.0

    def serve(
        self,
        checked: CheckedNetwork,
        superboxes: Sequence[Superbox],
        outputs: Mapping[str, str],
    ) -> None:
        """Shed in this network from now on; drop boxes that have no place in it are removed."""
        self._checked = checked
        self._superboxes = {superbox.name: superbox for superbox in superboxes}
        self._outputs = dict(outputs)
        self._losses = {}
        self.set(
            [drop for drop in self.drops if self.may_drop(drop.superbox, drop.arc)],
            "other boxes run",
        )

    # ── drop boxes come and go ──

    @property
    def drops(self) -> list[Drop]:
        """The drop boxes that there are."""
        with self._lock:
            return [drop for boxes in self._boxes.values() for drop in boxes]

    def set(self, drops: Iterable[Drop], why: str) -> None:
        """Have these drop boxes from the next train on, and no others; `why` in words.

        Those that drop nothing, and those that must not be, are left out.
        """
        wanted: dict[Place, tuple[Drop, ...]] = {}
        for drop in drops:
            refused = self._objection(drop.superbox, drop.arc)
            if refused is not None:
                self._decisions.note([drop.superbox], "waited", f"nothing is shed here: {refused}")
            elif drop.rate > 0:
                place = drop.superbox, drop.arc
                wanted[place] = (*wanted.get(place, ()), drop)
        now_us, before = self._now_us(), self._boxes
        with self._lock:
            self._boxes = wanted
            self._since_us = {place: self._since_us.get(place, now_us) for place in wanted}
        for place in dict.fromkeys([*before, *wanted]):
            was, now = before.get(place, ()), wanted.get(place, ())
            if was != now:
                arc = self._shown_name(place[1])
                told = " and ".join(_told(drop, arc) for drop in now)
                told = told or f"all tuples of {arc} are taken again"
                self._decisions.note(self._about(place, [*was, *now]), "shed", f"{told}: {why}")

    def drops_for(self, superbox: Superbox) -> list[Drop]:
        """The drop boxes in front of a superbox for its next train."""
        with self._lock:
            return [
                drop
                for (name, arc), boxes in self._boxes.items()
                if name == superbox.name and arc in superbox.sources
                for drop in boxes
            ]

    def may_drop(self, superbox: str, arc: str) -> bool:
        """Whether tuples of an arc may be dropped in front of a superbox."""
        return self._objection(superbox, arc) is None

    def _objection(self, superbox: str, arc: str) -> str | None:
        found = self._superboxes.get(superbox)
        if found is None or self._checked is None:
            return f"there is no superbox {superbox}"
        return objection(self._checked, found, arc)

    def note_load(self, load: float | None, level: float) -> None:
        """Let statistics say how large the load is, and for which load there are drop boxes."""
        self._load = load, level

    def _about(self, place: Place, drops: Iterable[Drop]) -> list[str]:
        superbox, arc = self._superboxes.get(place[0]), place[1]
        found = [output for drop in drops for output in drop.outputs]
        if superbox is not None and self._checked is not None and arc in self._checked.arcs:
            found = [*names_of(self._checked, superbox, arc), *found]
        return [PartBoxId.owner(self._shown_name(name)) for name in found or [place[0]]]

    # ── steps ──

    def shed(self, train: Train, counts: Mapping[str, DropCount]) -> ShedStep:
        """What is to be committed of the drop boxes in front of a step."""
        if not train.drops:
            return ShedStep()
        rows: list[ShedRow] = []
        counted: dict[tuple[str, str], int] = {}
        lost: dict[tuple[str, str], float] = {}
        for arc, drops in train.drops.items():
            count = counts.get(arc, DropCount(0))
            where = train.superbox.name, arc, train.first, train.last
            rows.append(ShedRow(*where, drops_text(drops), count.dropped, count.taken))
            for reason, dropped in count.by_reason.items():
                key = self._shown_name(arc), _SHED + reason
                counted[key] = counted.get(key, 0) + dropped
            if count.dropped:
                for output, each in self._losses_of(train.superbox, arc).items():
                    for why, dropped in count.by_reason.items():
                        lost[output, why] = lost.get((output, why), 0.0) + each * dropped
        owed: dict[tuple[str, str], float] = {}
        for key, more in lost.items():
            due = self._owed.get(key, 0.0) + more
            owed[key] = due - int(due)
            if int(due):
                output, by = key
                counted[output, LOST_BY + by] = int(due)
                counted[output, _LOST] = counted.get((output, _LOST), 0) + int(due)
        return ShedStep(tuple(rows), counted, owed)

    def _shown_name(self, arc: str) -> str:
        """What users call an arc, if it is the log of a stream."""
        streams = () if self._checked is None else self._checked.network.streams
        return declared_name(arc) if arc in streams else arc

    def committed(self, shed: ShedStep) -> None:
        """What was shed with a step has become true."""
        self.log.add(shed.rows)
        self._owed |= shed.owed

    def _losses_of(self, superbox: Superbox, arc: str) -> dict[str, float]:
        """How many tuples each output loses for one that is dropped, by what was measured."""
        if self._checked is None:
            return {}
        self._estimated = (self._estimated + 1) % _ESTIMATES
        if self._estimated == 0:
            self._losses = {}
        place = superbox.name, arc
        if place not in self._losses:
            arcs = {n: arc for n, arc in self._outputs.items() if arc in self._checked.arcs}
            outputs = {name: FlowOutput(name, arc) for name, arc in arcs.items()}
            with self._store.lock:
                costs, counters = dict(self._store.costs), dict(self._store.counters)
            tuples = {arc: n for (arc, what), n in counters.items() if what in ("tuples", "in")}
            model = flow_model(self._checked, costs, outputs, tuples=tuples)
            model = by_offered(self._checked, model, self._superboxes, costs, self._so_far()[1])
            self._losses[place] = losses(model, superbox, arc)
        return self._losses[place]

    # ── looking ──

    def statistics(self) -> dict[str, Any]:
        """The drop boxes that there are, and what was dropped so far."""
        with self._store.lock:
            counters = dict(self._store.counters)
        taken, dropped = self._so_far()
        with self._lock:
            boxes, since_us = dict(self._boxes), dict(self._since_us)
        arcs: dict[str, dict[str, int]] = {}
        for (entity, name), count in counters.items():
            if name.startswith(_SHED):
                arcs.setdefault(entity, {})[name.removeprefix(_SHED)] = count
        load, level = self._load
        return {
            "mode": None if self._checked is None else self._checked.network.engine.shedding,
            "load": load,
            "level": level,
            "drops": [
                {
                    "superbox": place[0],
                    "arc": self._shown_name(place[1]),
                    "boxes": [_shown(drop) for drop in held],
                    "since_us": since_us[place],
                    "dropped": dropped[place],
                    "taken": taken[place],
                }
                for place, held in boxes.items()
            ],
            "arcs": arcs,
            "outputs": {e: count for (e, name), count in counters.items() if name == _LOST},
            "dropped": sum(sum(by.values()) for by in arcs.values()),
        }

    def _so_far(self) -> tuple[Counter[Place], Counter[Place]]:
        """By place, how many tuples drop boxes have looked at, and how many they have dropped."""
        taken, dropped = Counter[Place](), Counter[Place]()
        for row in self.log.rows():
            taken[row.superbox, row.arc] += row.taken
            dropped[row.superbox, row.arc] += row.dropped
        return taken, dropped

    def shares(self, superbox: Superbox | None, moments: Moments, since: int) -> Shares:
        """The share of input tuples dropped on the way to results of a superbox; None: no box.

        `moments` are those of the results in order, `since` that of the result before them.
        """
        if superbox is None or not len(moments):
            return np.zeros(len(moments))
        leading = upstream(list(self._superboxes.values()), superbox)
        return shed_shares(leading, self._dropped, moments, since)

    def _dropped(self, superbox: str, source: str, first: Moments, last: Moments) -> Shares:
        return self.log.shares((superbox, source), first, last)


def with_reason(drop: Drop, mode: str) -> Drop:
    """A drop that counts under the way of shedding that has chosen it."""
    if mode == "admission":
        return replace(drop, reason="admission")
    return replace(drop, reason="random" if drop.interval is None else "semantic")


def _shown(drop: Drop) -> dict[str, Any]:
    """What a drop box does, without where it is."""
    document = drop.document()
    return {name: document[name] for name in ("rate", "interval", "reason", "outputs")}


def _told(drop: Drop, arc: str) -> str:
    share = f"{drop.rate:.0%} of the tuples of {arc}"
    if drop.interval is None:
        return f"{share} are dropped"
    low = "" if drop.interval.low is None else f"{drop.interval.low:g} <= "
    high = "" if drop.interval.high is None else f" < {drop.interval.high:g}"
    if not low and not high:
        return f"{share} with any {drop.interval.field} are dropped"
    return f"{share} with {low}{drop.interval.field}{high} are dropped"
