"""The event loop: boxes, queues, workers and a scheduler on a virtual clock.

A scheduler of `auroral.scheduling` decides exactly as it does in the engine: it sees the same
flow model and the same table of queues, and returns plans. Only the calls are not made: they take
the time that the model says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Protocol, runtime_checkable

import numpy as np

from auroral.scheduling.decisions import Scheduler, SchedulingPlan
from auroral.scheduling.flow import FlowBox, FlowModel
from auroral.scheduling.queues import QueueTable
from auroral.shedding.drops import Drop
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.results import SimulatedLoad, SimulatedOutput, SimulationResult
from auroral.simulation.runs import RunQueue, Share, TupleRun


@runtime_checkable
class CountsEvaluations(Protocol):
    """A scheduler that counts the work of its decisions."""

    @property
    def evaluated(self) -> int:
        """Boxes whose priority was computed so far."""
        ...


@runtime_checkable
class ObservesOutputs(Protocol):
    """A scheduler that wants to know how outputs do."""

    def observe(self, output: str, latency_s: float, in_good_zone: bool) -> None: ...


@dataclass(frozen=True)
class SimulatedPeriod:
    """What a load shedder sees of a period."""

    now_s: float
    arrived: Mapping[str, int]
    """Tuples that came on each stream, before anything was dropped."""
    latencies_s: Mapping[str, float]
    """The mean latency of what outputs got; those that got nothing are left out."""
    table: QueueTable
    processed: Mapping[str, int] = field(default_factory=dict)
    """Tuples that calls of each box have taken, those that have ended."""
    unfinished_s: float = 0.0
    """How long ago the oldest tuple of the calls under way arrived."""
    longest_call_s: float = 0.0


class SimulatedShedder(Protocol):
    """Decides after each period what is dropped from now on."""

    @property
    def period_s(self) -> float: ...

    def drops(self, period: SimulatedPeriod) -> Sequence[Drop]: ...


def simulate(
    model: FlowModel,
    arriving: Mapping[str, Sequence[TupleRun]],
    scheduler: Scheduler,
    machine: SimulatedMachine | None = None,
    *,
    queued: Mapping[str, Sequence[TupleRun]] | None = None,
    since_s: float = 0.0,
    until_s: float | None = None,
    shedder: SimulatedShedder | None = None,
) -> SimulationResult:
    """Run a network on a virtual clock until all tuples are processed, or until `until_s`.

    `arriving` is what comes on each stream, in order of time; `queued` waits for boxes at the
    beginning. Results of outputs count from `since_s` on.
    """
    machine = machine or SimulatedMachine()
    simulation = _NetworkSimulation(model, scheduler, machine, shedder, since_s)
    for box, runs in (queued or {}).items():
        simulation.put(box, None, list(runs))
    return simulation.run(arriving, until_s)


class _SimulatedBox:
    """A box with its queue, and the shares of its results that go to its arcs."""

    __slots__ = ("box", "load", "queue", "running", "shares")

    def __init__(self, box: FlowBox):
        self.box = box
        self.queue = RunQueue()
        self.load = SimulatedLoad()
        self.shares = {arc: Share(share) for arc, share in box.selectivities.items()}
        self.running = False


@dataclass
class _Worker:
    """A plan under way: which of its calls comes next, and what the current one has taken."""

    plan: SchedulingPlan
    at: int = 0
    called: _SimulatedBox | None = None
    taken: list[TupleRun] = field(default_factory=list)
    tuples: int = 0
    committing: bool = False
    """Whether its current call has ended, and the loop commits it."""
    brought: set[str] = field(default_factory=set)
    """Boxes that have had the tuples that storage brought for this plan."""
    made: dict[str, int] = field(default_factory=dict)
    """Tuples that calls of this plan have made for boxes, and that are still in memory."""


class _ActiveDrop:
    """A drop box in front of a box."""

    def __init__(self, drop: Drop):
        self.drop = drop
        self._kept = Share(1 - drop.rate)

    def rest_of(self, runs: list[TupleRun]) -> list[TupleRun]:
        """What is not dropped."""
        interval = self.drop.interval
        if interval is None:
            return self._kept.of(runs)
        low = float("-inf") if interval.low is None else interval.low
        high = float("inf") if interval.high is None else interval.high
        rest: list[TupleRun] = []
        for run in runs:
            rest += self._kept.of([run]) if low <= run[2] < high else [run]
        return rest


class _NetworkSimulation:
    """The state of a simulation: one thing happens after the other."""

    def __init__(
        self,
        model: FlowModel,
        scheduler: Scheduler,
        machine: SimulatedMachine,
        shedder: SimulatedShedder | None,
        since_s: float,
    ):
        self._model, self._scheduler, self._machine = model, scheduler, machine
        self._shedder = shedder
        self._boxes = {name: _SimulatedBox(box) for name, box in model.boxes.items()}
        self._table = QueueTable(model.boxes)
        outputs = {
            name: SimulatedOutput(name, one.qos, since_s) for name, one in model.outputs.items()
        }
        loads = {name: box.load for name, box in self._boxes.items()}
        self._result = SimulationResult(outputs, loads)
        self._given: dict[str, list[SimulatedOutput]] = {}
        for one in model.outputs.values():
            self._given.setdefault(one.arc, []).append(outputs[one.name])
        self._observer = scheduler if isinstance(scheduler, ObservesOutputs) else None
        self._evaluating = scheduler if isinstance(scheduler, CountsEvaluations) else None
        self._switching_s = machine.switching_s(len(model.boxes)) if machine.switch_s else 0.0
        self._now_s = 0.0
        self._decided_s = 0.0
        """When the scheduler has finished its latest decision."""
        self._loop_free_s = 0.0
        """When the loop has committed all that has ended."""
        self._idle = machine.workers
        self._ready: deque[tuple[float, SchedulingPlan]] = deque()
        self._under_way: list[tuple[float, int, _Worker]] = []
        self._numbers = count()
        self._runnable: set[str] = set()
        """Boxes with tuples that are in no plan."""
        self._stale: set[str] = set()
        """Boxes whose row of the table is not up to date."""
        self._refused = False
        """Whether the scheduler found nothing to do, and nothing has happened since."""
        self._bytes = 0.0
        self._drops: dict[tuple[str, str], list[_ActiveDrop]] = {}
        self._period_arrived: dict[str, int] = {}
        self._period_processed: dict[str, int] = {}
        self._longest_call_s = 0.0
        self._period_delays: dict[str, list[float]] = {}
        scheduler.serve(model)

    def put(self, name: str, arc: str | None, runs: list[TupleRun]) -> int:
        """Put tuples into the queue of a box, except for those that drop boxes remove."""
        drops = self._drops.get((name, arc or "")) if self._drops else None
        if drops:
            before = sum(run[1] for run in runs)
            for drop in drops:
                runs = drop.rest_of(runs)
            gone = before - sum(run[1] for run in runs)
            dropped = self._result.dropped
            dropped[name, arc or ""] = dropped.get((name, arc or ""), 0) + gone
        if not runs:
            return 0
        box = self._boxes[name]
        tuples = box.queue.put(runs)
        self._bytes += tuples * box.box.tuple_bytes
        self._stale.add(name)
        if not box.running:
            self._runnable.add(name)
            self._refused = False
        return tuples

    def run(
        self, arriving: Mapping[str, Sequence[TupleRun]], until_s: float | None
    ) -> SimulationResult:
        streams = list(arriving)
        times = [np.array([run[0] for run in arriving[name]]) for name in streams]
        counted = [len(some) for some in times]
        all_times = np.concatenate(times) if times else np.empty(0)
        order = np.argsort(all_times, kind="stable")
        arrival_s: list[float] = all_times[order].tolist()
        sources = np.repeat(np.arange(len(streams)), counted)[order].tolist()
        places = np.concatenate([np.arange(n) for n in counted])[order].tolist() if counted else []
        runs = [arriving[name] for name in streams]
        end_s = float("inf") if until_s is None else until_s
        period_s = self._shedder.period_s if self._shedder else float("inf")
        next_period_s = period_s
        position, last = 0, len(arrival_s)
        result = self._result
        self._note_memory()
        while True:
            while position < last and arrival_s[position] <= self._now_s:
                source = sources[position]
                self._arrive(streams[source], runs[source][places[position]])
                position += 1
            while next_period_s <= self._now_s:
                self._shed(next_period_s)
                next_period_s += period_s
            self._dispatch()
            next_s = self._under_way[0][0] if self._under_way else float("inf")
            if position < last and self._idle:
                next_s = min(next_s, arrival_s[position])
            if next_s == float("inf"):
                break
            next_s = max(self._now_s, min(next_s, next_period_s))
            if next_s > end_s:
                break
            self._now_s = next_s
            result.events += 1
            while self._under_way and self._under_way[0][0] <= self._now_s:
                _, number, worker = heappop(self._under_way)
                self._go_on(number, worker)
        result.waiting = sum(box.queue.queued for box in self._boxes.values())
        self._note_waiting(self._now_s if until_s is None else end_s)
        return result

    def _note_waiting(self, at_s: float) -> None:
        """Tell outputs what still waits for them at the end."""
        for name, box in self._boxes.items():
            if box.queue.queued:
                waited_s = at_s - box.queue.oldest_arrival_s
                for output in map(self._result.outputs.__getitem__, self._model.outputs_of(name)):
                    output.waited_s = max(output.waited_s, waited_s)

    def _arrive(self, stream: str, run: TupleRun) -> None:
        self._result.arrived += run[1]
        if self._shedder:
            arrived = self._period_arrived
            arrived[stream] = arrived.get(stream, 0) + run[1]
        self._hand_on(stream, [run], None, run[0], 0.0)
        self._note_memory()

    def _hand_on(
        self,
        arc: str,
        runs: list[TupleRun],
        made: dict[str, int] | None,
        end_s: float,
        apart_s: float,
    ) -> None:
        """Give tuples of an arc to the outputs and boxes that read it."""
        for output in self._given.get(arc, ()):
            mean_s = output.add(runs, end_s, apart_s)
            if self._observer is not None:
                self._observer.observe(output.name, mean_s, mean_s <= output.latency.good_until)
            if self._shedder:
                self._period_delays.setdefault(output.name, []).append(mean_s)
        for reader in self._model.readers.get(arc, ()):
            tuples = self.put(reader, arc, runs)
            if made is not None and tuples:
                made[reader] = made.get(reader, 0) + tuples

    def _dispatch(self) -> None:
        """Ask the scheduler if a worker has nothing to do, and start plans."""
        machine, result = self._machine, self._result
        if self._runnable and len(self._ready) < self._idle and not self._refused:
            wanted = self._idle - len(self._ready) + machine.plans_ahead
            plans = self._decide(wanted)
            self._refused = not plans
            for plan in plans:
                result.plans += 1
                for call in plan.calls:
                    self._boxes[call.box].running = True
                    self._runnable.discard(call.box)
                    self._table.set_running(call.box, True)
                self._ready.append((self._decided_s, plan))
        while self._idle and self._ready:
            ready_s, plan = self._ready.popleft()
            self._idle -= 1
            start_s = max(ready_s, self._now_s)
            heappush(self._under_way, (start_s, next(self._numbers), _Worker(plan)))

    def _fill_table(self) -> None:
        """Bring the table of queues up to date."""
        for name in self._stale:
            box = self._boxes[name]
            queue = box.queue
            self._table.fill(
                name,
                queue.queued,
                mean_arrival_s=queue.mean_arrival_s,
                oldest_arrival_s=queue.oldest_arrival_s,
                bytes=round(queue.queued * box.box.tuple_bytes),
            )
        self._stale.clear()

    def _decide(self, wanted: int) -> list[SchedulingPlan]:
        self._fill_table()
        machine, result = self._machine, self._result
        evaluated = self._evaluating.evaluated if self._evaluating else 0
        plans = self._scheduler.decide(self._table, self._now_s, wanted)
        evaluated = self._evaluating.evaluated - evaluated if self._evaluating else 0
        result.decisions += 1
        result.evaluated += evaluated
        took_s = (
            machine.decision_s
            + machine.evaluation_s * evaluated
            + machine.planning_s * sum(len({call.box for call in plan.calls}) for plan in plans)
        )
        result.spent.scheduler_s += took_s
        self._decided_s = max(self._now_s, self._decided_s) + took_s
        return plans

    def _go_on(self, number: int, worker: _Worker) -> None:
        """End the call of a worker, and begin the next one of its plan."""
        if worker.called is not None:
            if self._machine.loop_s and not worker.committing:
                worker.committing = True
                self._loop_free_s = max(self._loop_free_s, self._now_s) + self._machine.loop_s
                self._result.spent.scheduler_s += self._machine.loop_s
                heappush(self._under_way, (self._loop_free_s, number, worker))
                return
            worker.committing = False
            self._end_call(worker)
        calls = worker.plan.calls
        while worker.at < len(calls):
            call = calls[worker.at]
            worker.at += 1
            box = self._boxes[call.box]
            if box.queue.queued:
                lasts_s = self._begin_call(worker, box, call.tuples)
                heappush(self._under_way, (self._now_s + lasts_s, number, worker))
                return
        for name in {call.box for call in calls}:
            box = self._boxes[name]
            box.running = False
            self._table.set_running(name, False)
            if box.queue.queued:
                self._runnable.add(name)
        self._idle += 1
        self._refused = False

    def _begin_call(self, worker: _Worker, box: _SimulatedBox, most: int | None) -> float:
        machine, spent, load = self._machine, self._result.spent, box.load
        load.most_queued = max(load.most_queued, box.queue.queued)
        worker.taken = box.queue.take(most)
        worker.tuples = sum(run[1] for run in worker.taken)
        worker.called = box
        self._stale.add(box.box.name)
        in_memory = min(worker.made.get(box.box.name, 0), worker.tuples)
        if in_memory:
            worker.made[box.box.name] -= in_memory
        stored = worker.tuples - in_memory
        storage_s = machine.storage_tuple_s * stored
        if stored:
            if not worker.brought or box.box.name in worker.brought:
                storage_s += machine.storage_call_s
            worker.brought.add(box.box.name)
        processing_s = worker.tuples * box.box.cost_s
        worker_s = box.box.call_s + self._switching_s
        spent.processing_s += processing_s
        spent.worker_s += worker_s
        spent.storage_s += storage_s
        self._result.calls += 1
        lasts_s = processing_s + worker_s + storage_s
        load.calls += 1
        load.tuples += worker.tuples
        load.busy_s += lasts_s
        self._longest_call_s = max(self._longest_call_s, lasts_s)
        return lasts_s

    def _end_call(self, worker: _Worker) -> None:
        box, taken = worker.called, worker.taken
        assert box is not None
        self._bytes -= worker.tuples * box.box.tuple_bytes
        if self._shedder:
            done = self._period_processed
            done[box.box.name] = done.get(box.box.name, 0) + worker.tuples
        for arc, share in box.shares.items():
            given = share.of(taken)
            tuples = sum(run[1] for run in given)
            if not tuples:
                continue
            apart_s = worker.tuples * box.box.cost_s / tuples
            if self._machine.emits_at_end:
                apart_s = 0.0
            self._hand_on(arc, given, worker.made, self._now_s, apart_s)
        worker.called = None
        self._result.end_s = self._now_s
        self._note_memory()

    def _note_memory(self) -> None:
        self._result.memory.note(self._now_s, self._bytes)

    def _shed(self, now_s: float) -> None:
        assert self._shedder is not None
        latencies = {name: sum(some) / len(some) for name, some in self._period_delays.items()}
        self._fill_table()
        taken = [run[0] for _, _, worker in self._under_way for run in worker.taken]
        period = SimulatedPeriod(
            now_s,
            self._period_arrived,
            latencies,
            self._table,
            self._period_processed,
            now_s - min(taken, default=now_s),
            self._longest_call_s,
        )
        wanted = self._shedder.drops(period)
        active = {one.drop: one for drops in self._drops.values() for one in drops}
        self._drops = {}
        for drop in wanted:
            # A drop that goes on carries its fractions over.
            self._drops.setdefault((drop.superbox, drop.arc), []).append(
                active.get(drop) or _ActiveDrop(drop)
            )
        self._period_arrived, self._period_delays, self._period_processed = {}, {}, {}
        self._longest_call_s = 0.0
