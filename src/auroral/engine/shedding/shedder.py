"""The load shedder of a running engine: observes a period, lets the controller decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from auroral.continuous.boxing.gates import running_names
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.shedding.control import SheddingControl, with_reason
from auroral.engine.shedding.trials import ValueTrials
from auroral.network.check import CheckedNetwork
from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.carrying import interval_carrier
from auroral.shedding.control import LoadController, Observation
from auroral.shedding.histograms import Histogram
from auroral.storage import Segment, Store

PERIOD_S = 0.5
"""How often it is decided what is dropped."""
_SERVED = 4
"""For so many periods costs and values are taken to be as they were."""


class Quality(Protocol):
    """What outputs are worth, and how they do."""

    @property
    def outputs(self) -> Mapping[str, QoS | None]:
        """The graphs that hold now."""
        ...

    def flow_outputs(self) -> dict[str, FlowOutput]:
        """The outputs for a flow model of the boxes that run."""
        ...

    def outside(self) -> float:
        """The share of outputs outside their good zone now."""
        ...

    def value_counts(self, output: str) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Edges of cells and how many values are in each; None if there is no value graph."""
        ...


@dataclass(frozen=True)
class ServedNetwork:
    """The network that runs."""

    checked: CheckedNetwork
    superboxes: tuple[Superbox, ...]


class LoadShedder:
    """Sets the drop boxes of a running network once in a period. One thread calls it.

    `workers` is how many steps run at the same time: costs of boxes are seconds of steps, so that
    this many seconds can be used in each second.
    """

    def __init__(
        self,
        store: Store,
        control: SheddingControl,
        quality: Quality,
        decisions: DecisionLog,
        *,
        workers: int,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._control = control
        self._quality = quality
        self._decisions = decisions
        self._workers = workers
        self._now_s = now_s
        self._at_s = now_s()
        self._arrived: dict[str, int] = {}
        self._controller: LoadController | None = None
        self._settings: tuple[SheddingMode, float] | None = None
        self._network: ServedNetwork | None = None
        self._periods = 0

    def tick(
        self, checked: CheckedNetwork, superboxes: tuple[Superbox, ...], *, live: bool
    ) -> None:
        """Decide again if a period has passed.

        If tuples are not `live`, since they come from files that can wait, only a network that
        says how to shed does so.
        """
        now_s = self._now_s()
        period_s = now_s - self._at_s
        if period_s < PERIOD_S:
            return
        self._at_s = now_s
        options = checked.network.engine
        mode: SheddingMode = "off" if options.shedding == "auto" and not live else options.shedding
        rates = self._rates(checked, period_s)
        if not self._serve(ServedNetwork(checked, superboxes), mode, options.headroom):
            return
        assert self._controller is not None
        seen = Observation(period_s, rates, self._queues(superboxes), self._quality.outside())
        decision = self._controller.observe(seen)
        self._control.note_load(decision.load, decision.level)
        if decision.changed:
            drops = [with_reason(d, mode) for held in decision.drops.values() for d in held]
            why = "; ".join(dict.fromkeys(note.why for note in decision.notes))
            self._control.set(drops, why or "the load has fallen")
        else:
            for note in decision.notes:
                self._decisions.note(note.about, "shed", note.why)

    def _serve(self, network: ServedNetwork, mode: SheddingMode, headroom: float) -> bool:
        """Let the controller know the network; False if nothing is shed in it."""
        settings = mode, headroom
        if settings != self._settings or self._controller is None:
            if self._control.drops:
                self._control.set([], f"shedding is {mode}")
            self._settings = settings
            self._controller = LoadController(mode, capacity=self._workers * headroom)
            self._network = None
        if mode == "off" or (mode == "auto" and not self._has_graphs()):
            if self._control.drops:
                self._control.set([], "no output says what a loss is worth")
            self._network = None
            self._control.note_load(None, 1.0)
            return False
        self._periods += 1
        if network != self._network or self._periods % _SERVED == 0:
            self._network = network
            self._tell(network)
        return True

    def _has_graphs(self) -> bool:
        graphs = self._quality.outputs.values()
        return any(qos is not None and (qos.loss or qos.value) for qos in graphs)

    def _tell(self, network: ServedNetwork) -> None:
        """Tell the controller what boxes cost now, and which values outputs have."""
        with self._store.lock:
            costs, counters = dict(self._store.costs), dict(self._store.counters)
        outputs = self._quality.flow_outputs()
        tuples = {arc: n for (arc, what), n in counters.items() if what in ("tuples", "in")}
        model = flow_model(network.checked, costs, outputs, network.superboxes, tuples=tuples)
        found = {name: self._quality.value_counts(name) for name in outputs}
        histograms = {name: Histogram(*cells) for name, cells in found.items() if cells is not None}
        assert self._controller is not None
        values = {
            name: (output.arc, output.qos.value.on)
            for name, output in outputs.items()
            if output.qos is not None and output.qos.value is not None
        }
        trials = ValueTrials(self._store, network.checked, values)
        carry = interval_carrier(network.checked, values, trials)
        self._controller.serve(model, histograms, carry, self._control.may_drop)

    def _rates(self, checked: CheckedNetwork, period_s: float) -> dict[str, float]:
        """Tuples per second of each stream, by the name of its log, in the latest period."""
        with self._store.lock:
            logs = running_names(checked.network).items()
            now = {log: self._store.counters.get((name, "in"), 0) for name, log in logs}
        before, self._arrived = self._arrived, now
        return {log: max(n - before.get(log, n), 0) / period_s for log, n in now.items()}

    def _queues(self, superboxes: tuple[Superbox, ...]) -> QueueTable:
        table = QueueTable([superbox.name for superbox in superboxes])
        for superbox in superboxes:
            queued = 0.0
            for source in superbox.sources:
                head = self._store.head(source, superbox.name)
                segments = self._store.segments(source, head)
                queued += sum(_rows_from(segment, head) for segment in segments)
            table.fill(superbox.name, round(queued), mean_arrival_s=0.0, oldest_arrival_s=0.0)
        return table


def _rows_from(segment: Segment, moment: int) -> float:
    """About how many tuples of a segment are not before a moment; nothing is read for that."""
    span = segment.last - segment.first + 1
    return segment.rows * min(1.0, (segment.last - moment + 1) / span)
