"""The drop boxes that there are now, what is counted of them, and what they have done."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.dropping import DropCount
from auroral.engine.shedding.places import losses, names_of, objection, remembers, shed_shares
from auroral.engine.shedding.shed_log import Moments, ShedLog
from auroral.network.check import CheckedNetwork
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.drops import Drop
from auroral.storage import ShedRow, Store
from auroral.storage.manifest import MOST_SHED

_SHED = "shed: "
"""How the names of counters begin that count dropped tuples of arcs; the reason follows."""
_LOST = "shed"
"""The name of the counter of tuples that an output has lost."""
_ESTIMATES = 50
"""For so many steps an estimate of what outputs lose is used."""


class LossMonitor(Protocol):
    """Is told what outputs lose."""

    def shed(self, output: str, count: float) -> None:
        """An output has lost so many tuples, as far as that can be estimated."""
        ...


@dataclass(frozen=True)
class ShedStep:
    """What the drop boxes in front of one step did."""

    rows: tuple[ShedRow, ...] = ()
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    lost: Mapping[str, float] = field(default_factory=dict)
    """By output, how many tuples it lost, as far as that can be estimated."""
    owed: Mapping[str, float] = field(default_factory=dict)
    """By output, what `counts` leave out, since they are whole numbers."""


@dataclass
class _DropBox:
    drop: Drop
    since_us: int


class SheddingControl:
    """Owns the drop boxes of a running network; the stepper asks for them, a controller sets them.

    The thread that decides sets them and commits steps; any thread may look.
    """

    def __init__(
        self,
        store: Store,
        decisions: DecisionLog,
        now_us: Callable[[], int],
        monitor: LossMonitor | None = None,
    ):
        self._store = store
        self._decisions = decisions
        self._now_us = now_us
        self.monitor = monitor
        self.log = ShedLog(store.manifest.shed(), MOST_SHED)
        self._lock = threading.Lock()
        self._boxes: dict[tuple[str, str], _DropBox] = {}
        self._owed: dict[str, float] = {}
        self._checked: CheckedNetwork | None = None
        self._superboxes: dict[str, Superbox] = {}
        self._outputs: dict[str, str] = {}
        self._losses: dict[tuple[str, str], dict[str, float]] = {}
        self._estimated = 0

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
        self.set([drop for drop in self.drops if self._objection(drop) is None], "other boxes run")

    # ── drop boxes come and go ──

    @property
    def drops(self) -> list[Drop]:
        """The drop boxes that there are."""
        with self._lock:
            return [box.drop for box in self._boxes.values()]

    def set(self, drops: Iterable[Drop], why: str) -> None:
        """Have these drop boxes from the next train on, and no others; `why` in words.

        Those that drop nothing, and those that must not be, are left out.
        """
        wanted: dict[tuple[str, str], Drop] = {}
        for drop in drops:
            refused = self._objection(drop)
            if refused is not None:
                self._decisions.note([drop.superbox], "waited", f"nothing is shed here: {refused}")
            elif drop.rate > 0:
                wanted[drop.superbox, drop.arc] = drop
        now_us = self._now_us()
        before = {place: box.drop for place, box in self._boxes.items()}
        with self._lock:
            self._boxes = {
                place: _DropBox(
                    drop, self._boxes[place].since_us if place in self._boxes else now_us
                )
                for place, drop in wanted.items()
            }
        for place in dict.fromkeys([*before, *wanted]):
            was, now = before.get(place), wanted.get(place)
            if was != now:
                told = "no more tuples are dropped" if now is None else _told(now)
                self._decisions.note(self._about(now or was, place), "shed", f"{told}: {why}")

    def drops_for(self, superbox: Superbox) -> dict[str, Drop]:
        """The drop boxes in front of a superbox, by arc, for its next train."""
        with self._lock:
            return {
                arc: box.drop
                for (name, arc), box in self._boxes.items()
                if name == superbox.name and arc in superbox.sources
            }

    def _objection(self, drop: Drop) -> str | None:
        superbox = self._superboxes.get(drop.superbox)
        if superbox is None or self._checked is None:
            return f"there is no superbox {drop.superbox}"
        return objection(self._checked, superbox, drop.arc)

    def _about(self, drop: Drop | None, place: tuple[str, str]) -> list[str]:
        superbox, arc = self._superboxes.get(place[0]), place[1]
        found = list(drop.outputs) if drop is not None else []
        if superbox is not None and self._checked is not None and arc in self._checked.arcs:
            found = [*names_of(self._checked, superbox, arc), *found]
        return found or [place[0]]

    # ── steps ──

    def shed(self, train: Train, counts: Mapping[str, DropCount]) -> ShedStep:
        """What is to be committed of the drop boxes in front of a step."""
        if not train.drops:
            return ShedStep()
        rows: list[ShedRow] = []
        counted: dict[tuple[str, str], int] = {}
        lost: dict[str, float] = {}
        for arc, drop in train.drops.items():
            count = counts.get(arc, DropCount(0, 0))
            document = json.dumps(drop.document(), sort_keys=True)
            where = train.superbox.name, arc, train.first, train.last
            rows.append(ShedRow(*where, document, count.dropped, count.taken))
            if count.dropped:
                key = arc, _SHED + drop.reason
                counted[key] = counted.get(key, 0) + count.dropped
                for output, each in self._losses_of(train.superbox, arc).items():
                    lost[output] = lost.get(output, 0.0) + each * count.dropped
        owed: dict[str, float] = {}
        for output, more in lost.items():
            due = self._owed.get(output, 0.0) + more
            owed[output] = due - int(due)
            if int(due):
                counted[output, _LOST] = int(due)
        return ShedStep(tuple(rows), counted, lost, owed)

    def committed(self, shed: ShedStep) -> None:
        """What was shed with a step has become true."""
        self.log.add(shed.rows)
        self._owed |= shed.owed
        if self.monitor is not None:
            for output, count in shed.lost.items():
                self.monitor.shed(output, count)

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
            self._losses[place] = losses(model, superbox, arc)
        return self._losses[place]

    # ── looking ──

    def statistics(self) -> dict[str, Any]:
        """The drop boxes that there are, and what was dropped so far."""
        with self._store.lock:
            counters = dict(self._store.counters)
        done = {place: DropCount(0, 0) for place in self.log.places()}
        for row in self.log.rows():
            place = row.superbox, row.arc
            before = done[place]
            done[place] = DropCount(before.taken + row.taken, before.dropped + row.dropped)
        with self._lock:
            boxes = dict(self._boxes)
        arcs: dict[str, dict[str, int]] = {}
        for (entity, name), count in counters.items():
            if name.startswith(_SHED):
                arcs.setdefault(entity, {})[name.removeprefix(_SHED)] = count
        return {
            "drops": [
                {
                    **box.drop.document(),
                    "since_us": box.since_us,
                    "dropped": done.get(place, DropCount(0, 0)).dropped,
                    "taken": done.get(place, DropCount(0, 0)).taken,
                }
                for place, box in boxes.items()
            ],
            "arcs": arcs,
            "outputs": {e: count for (e, name), count in counters.items() if name == _LOST},
            "dropped": sum(sum(by.values()) for by in arcs.values()),
        }

    def remembers(self, arc: str) -> bool:
        """Whether tuples of an arc may come from tuples of earlier moments."""
        return remembers(list(self._superboxes.values()), arc)

    def shares(self, arc: str, first: Moments, last: Moments) -> Any:
        """The share of input tuples dropped before an arc in stretches of moments."""
        return shed_shares(
            list(self._superboxes.values()),
            arc,
            lambda superbox, source, a, b: self.log.shares((superbox, source), a, b),
            first,
            last,
        )


def with_reason(drop: Drop, mode: str) -> Drop:
    """A drop that counts under the way of shedding that has chosen it."""
    if mode == "admission":
        return replace(drop, reason="admission")
    return replace(drop, reason="random" if drop.interval is None else "semantic")


def _told(drop: Drop) -> str:
    share = f"{drop.rate:.0%} of the tuples of {drop.arc}"
    if drop.interval is None:
        return f"{share} are dropped"
    low = "" if drop.interval.low is None else f"{drop.interval.low:g} <= "
    high = "" if drop.interval.high is None else f" < {drop.interval.high:g}"
    return f"{share} with {low}{drop.interval.field}{high} are dropped"
