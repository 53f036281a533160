"""A machine of a few lines that works off queues of tuples, to try the load controller on."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import QueueTable
from auroral.shedding.control import LoadController, Observation, SheddingDecision

PERIOD_S = 0.5


@dataclass
class PeriodReport:
    """What happened in a period."""

    decision: SheddingDecision
    delays_s: dict[str, float]
    """The longest delay of what outputs got."""
    delivered: dict[str, float]
    queued: float


@dataclass
class FluidMachine:
    """Serves the oldest tuples first, with `cores` seconds of work for each second."""

    model: FlowModel
    cores: float
    controller: LoadController | None = None
    cost_factor: float = 1.0
    """How much dearer tuples are than the model says."""
    compiling: bool = False
    """Nothing is processed while Spark compiles."""
    now_s: float = 0.0
    queues: dict[tuple[str, str], deque[tuple[float, float]]] = field(default_factory=dict)
    decision: SheddingDecision = field(default_factory=SheddingDecision)
    processed: dict[str, float] = field(default_factory=dict)
    """Tuples that each box has taken in the period, without those that were dropped."""

    def __post_init__(self) -> None:
        for name, box in self.model.boxes.items():
            for arc in box.inputs:
                self.queues[name, arc] = deque()

    def period(self, rates: Mapping[str, float]) -> PeriodReport:
        """Let tuples arrive for a period, work, and ask the controller."""
        for stream, rate in rates.items():
            self._arrive(stream, self.now_s, rate * PERIOD_S)
        self.now_s += PERIOD_S
        delays: dict[str, float] = {}
        delivered: dict[str, float] = {}
        self.processed = {}
        left_s = 0.0 if self.compiling else self.cores * PERIOD_S
        while left_s > 1e-9:
            waiting = [(queue[0][0], key) for key, queue in self.queues.items() if queue]
            if not waiting:
                break
            left_s -= self._serve(min(waiting)[1], left_s, delays, delivered)
        table = QueueTable(self.model.boxes)
        for name, box in self.model.boxes.items():
            held = [run for arc in box.inputs for run in self.queues[name, arc]]
            oldest_s = min((at_s for at_s, _ in held), default=0.0)
            waiting_now = int(sum(count for _, count in held))
            table.fill(name, waiting_now, mean_arrival_s=oldest_s, oldest_arrival_s=oldest_s)
        if self.controller is not None:
            seen = Observation(
                PERIOD_S,
                dict(rates),
                table,
                self.now_s,
                self.processed,
                compiling=self.compiling,
            )
            self.decision = self.controller.observe(seen)
        queued = sum(count for queue in self.queues.values() for _, count in queue)
        return PeriodReport(self.decision, delays, delivered, queued)

    def _serve(
        self,
        key: tuple[str, str],
        left_s: float,
        delays: dict[str, float],
        delivered: dict[str, float],
    ) -> float:
        """Take what fits of the first run of a queue; gives the seconds it took."""
        name, arc = key
        box = self.model.boxes[name]
        arrived_s, count = self.queues[key].popleft()
        passing = 1.0
        for drop in self.decision.drops.get(name, ()):
            passing *= 1 - drop.rate if drop.arc == arc else 1.0
        cost_s = box.cost_s * self.cost_factor * passing
        taken = count if count * cost_s <= left_s else left_s / cost_s
        if count - taken > 1e-6:
            self.queues[key].appendleft((arrived_s, count - taken))
        self.processed[name] = self.processed.get(name, 0.0) + taken * passing
        for out, share in box.selectivities.items():
            self._arrive(out, arrived_s, taken * passing * share)
            for output in self.model.outputs.values():
                if output.arc == out and taken * passing * share > 1e-6:
                    delay_s = self.now_s - arrived_s
                    delays[output.name] = max(delays.get(output.name, 0.0), delay_s)
                    delivered[output.name] = (
                        delivered.get(output.name, 0.0) + taken * passing * share
                    )
        return taken * cost_s

    def _arrive(self, arc: str, arrived_s: float, count: float) -> None:
        for name in self.model.readers.get(arc, ()):
            self.queues[name, arc].append((arrived_s, count))
