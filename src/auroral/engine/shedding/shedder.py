"""The load shedder of a running engine: observes a period, lets the controller decide."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from auroral.continuous.boxing.gates import running_names
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.control import SheddingControl, with_reason
from auroral.engine.shedding.trials import ValueTrials
from auroral.network.check import CheckedNetwork
from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowModel, FlowOutput
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.carrying import interval_carrier
from auroral.shedding.control import LoadController, Observation
from auroral.shedding.histograms import Histogram
from auroral.shedding.neglect import NeglectedSuperboxes
from auroral.storage import Store

PERIOD_S = 0.5
"""How often it is decided what is dropped."""
_PAUSE = 100.0
"""So many times as long as it took to make a plan in advance no other one is made."""
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

    `workers` is how many steps run at the same time, each with a core: costs of boxes are seconds
    of cores, so that this many can be used in each second, if there are as many superboxes: each
    one has one step under way at a time.
    """

    def __init__(
        self,
        store: Store,
        control: SheddingControl,
        quality: Quality,
        times: ArrivalTimes,
        decisions: DecisionLog,
        *,
        workers: int,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._control = control
        self._quality = quality
        self._times = times
        self._decisions = decisions
        self._workers = workers
        self._now_s = now_s
        self._at_s = now_s()
        self._arrived: dict[str, int] = {}
        self._since: dict[tuple[str, int], float] = {}
        """When each step under way was seen first, by superbox and first moment."""
        self._neglected = NeglectedSuperboxes()
        self._model = FlowModel({})
        self._controller: LoadController | None = None
        self._settings: tuple[SheddingMode, float] | None = None
        """The way of shedding and the headroom that the controller was made for."""
        self._network: ServedNetwork | None = None
        self._periods = 0
        self._prepare_at_s = -math.inf
        """When a plan may be made in advance again."""
        self._trials: ValueTrials | None = None

    @property
    def is_due(self) -> bool:
        """Whether a period has passed."""
        return self._now_s() - self._at_s >= PERIOD_S

    def stop(self) -> None:
        """Drop nothing from now on, whenever a period ends: the network says so."""
        if self._control.drops:
            self._control.set([], "shedding was switched off")

    def tick(
        self,
        checked: CheckedNetwork,
        superboxes: tuple[Superbox, ...],
        trains: Mapping[str, Train],
        *,
        live: bool,
        starting: Collection[str] = (),
        compiling: bool = False,
    ) -> None:
        """Decide again if a period has passed; `trains` are those of the steps under way.

        `starting` superboxes have not had their first calls, in which Spark compiles; `compiling`
        says that it does so in the background.
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
        rates, done = self._rates(checked, period_s), self._control.tally.take()
        working = sum(bool(superbox.boxes) for superbox in superboxes)
        capacity = min(self._workers, max(working, 1)) * options.headroom
        if not self._serve(ServedNetwork(checked, superboxes), mode, capacity):
            return
        assert self._controller is not None
        queues, at_s = self._queues(superboxes, trains), self._times.now_s()
        compiling = compiling or any(n in trains or queues[n].queued for n in starting)
        inactive = self._inactive(queues, trains, done.steps, compiling=compiling)
        began = [self._times.at(train.first) for train in trains.values()]
        running_s, expected_s = self._running(trains, now_s)
        seen = Observation(
            period_s,
            rates,
            queues,
            at_s,
            done.processed,
            unfinished_s=max(at_s - min(began, default=at_s), 0.0),
            step_s=done.step_s,
            running_s=running_s,
            expected_s=expected_s,
            compiling=compiling,
            outside=self._quality.outside(),
            inactive=inactive,
        )
        decision = self._controller.observe(seen)
        self._control.note_load(decision.load, decision.level)
        drops = [with_reason(d, mode) for held in decision.drops.values() for d in held]
        drops = [drop for drop in drops if self._control.may_drop(drop.superbox, drop.arc)]
        if set(drops) != set(self._control.drops):  # also if other superboxes run since then
            why = "; ".join(dict.fromkeys(note.why for note in decision.notes))
            self._control.set(drops, why or f"{decision.load:.3g} times the capacity arrives")
        else:
            for note in decision.notes:
                self._decisions.note(note.about, "shed", note.why)
        self._prepare(self._controller, now_s)

    def _prepare(self, controller: LoadController, now_s: float) -> None:
        """Make a plan for an overload to come, if that does not take long.

        Where values are told by trial, too few tuples may be there for it as long as all is quiet.
        """
        if now_s >= self._prepare_at_s and self._trials is not None:
            began_s, self._trials.lacked_sample = time.perf_counter(), False
            controller.prepare()
            if self._trials.lacked_sample:
                controller.forget_plans()
            self._prepare_at_s = now_s + _PAUSE * (time.perf_counter() - began_s)

    def _serve(self, network: ServedNetwork, mode: SheddingMode, capacity: float) -> bool:
        """Let the controller know the network; False if nothing is shed in it.

        It stays the same, with its drops and what it has learnt, when boxes come or go.
        """
        headroom = network.checked.network.engine.headroom
        settings = mode, headroom
        if settings != self._settings or self._controller is None:
            if self._control.drops:
                self._control.set([], "the load is measured anew")
            self._settings = settings
            self._controller = LoadController(mode, capacity=capacity, headroom=headroom)
            self._network = None
        self._controller.expect(capacity)
        if mode == "off" or (mode == "auto" and not self._has_graphs()):
            if self._control.drops:
                self._control.set([], "no output says what a loss is worth")
            self._network = None
            self._control.note_load(None, 1.0)
            return False
        self._periods += 1
        if network != self._network:
            self._neglected.forget()
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
        self._model = model
        values = {
            name: (output.arc, output.qos.value.on)
            for name, output in outputs.items()
            if output.qos is not None and output.qos.value is not None
        }
        self._trials = ValueTrials(self._store, network.checked, values)
        carry = interval_carrier(network.checked, values, self._trials)
        self._controller.serve(model, histograms, carry, self._control.may_drop)

    def _rates(self, checked: CheckedNetwork, period_s: float) -> dict[str, float]:
        """Tuples per second of each stream, by the name of its log, in the latest period."""
        with self._store.lock:
            logs = running_names(checked.network).items()
            now = {log: self._store.counters.get((name, "in"), 0) for name, log in logs}
        before, self._arrived = self._arrived, now
        return {log: max(n - before.get(log, n), 0) / period_s for log, n in now.items()}

    def _inactive(
        self,
        queues: QueueTable,
        trains: Collection[str],
        steps: Mapping[str, int],
        *,
        compiling: bool,
    ) -> frozenset[str]:
        """The outputs that the scheduler hardly serves: superboxes on their way get no turn."""
        if compiling:
            self._neglected.forget()
            return frozenset()
        waiting = [name for name, queue in queues.queues.items() if queue.queued]
        self._neglected.note(steps, waiting=waiting, under_way=trains)
        known = (name for name in self._neglected.found if name in self._model.boxes)
        return frozenset(output for name in known for output in self._model.outputs_of(name))

    def _running(self, trains: Mapping[str, Train], now_s: float) -> tuple[float, float]:
        """For how long, at least, the longest of the steps under way has run, and what it costs."""
        keys = {(name, train.first) for name, train in trains.items()}
        self._since = {key: self._since.get(key, now_s) for key in keys}
        if not self._since:
            return 0.0, 0.0
        (name, _), since_s = min(self._since.items(), key=lambda item: item[1])
        box = self._model.boxes.get(name)
        cost_s = 0.0 if box is None else box.call_s + box.cost_s * trains[name].tuples
        return now_s - since_s, cost_s

    def _queues(self, superboxes: tuple[Superbox, ...], trains: Mapping[str, Train]) -> QueueTable:
        """What waits for each superbox, without what the steps under way have taken."""
        table = QueueTable([superbox.name for superbox in superboxes])
        for superbox in superboxes:
            queued, first = 0.0, []
            taken = trains.get(superbox.name)
            for source in superbox.sources:
                head = self._store.head(source, superbox.name)
                head = head if taken is None else max(head, taken.last)
                segments = self._store.segments(source, head)
                queued += sum(segment.rows_from(head) for segment in segments)
                first += [max(segment.first, head) for segment in segments if segment.rows]
            oldest_s = self._times.at(min(first)) if first else 0.0
            table.fill(
                superbox.name, round(queued), mean_arrival_s=oldest_s, oldest_arrival_s=oldest_s
            )
        return table
