"""What a simulation measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from auroral.qos.curves import Curve
from auroral.qos.graphs import QoS, latency_curve
from auroral.simulation.runs import TupleRun


@dataclass
class TimeSpent:
    """Seconds of all workers and of the scheduler, by what they did [2 §5.5]."""

    processing_s: float = 0.0
    """Tuples in boxes."""
    worker_s: float = 0.0
    """Calls of boxes, and switches between threads."""
    storage_s: float = 0.0
    scheduler_s: float = 0.0

    @property
    def overhead_s(self) -> float:
        """All but processing."""
        return self.worker_s + self.storage_s + self.scheduler_s

    @property
    def total_s(self) -> float:
        return self.processing_s + self.overhead_s

    def overhead_shares(self) -> dict[str, float]:
        """How the overhead is divided between worker, storage and scheduler."""
        parts = {"worker": self.worker_s, "storage": self.storage_s, "scheduler": self.scheduler_s}
        return {name: part / self.overhead_s for name, part in parts.items()}


@dataclass
class SimulatedOutput:
    """What reached an output, and how late."""

    name: str
    qos: QoS | None = None
    since_s: float = 0.0
    """Results before that do not count."""
    tuples: int = 0
    waited_s: float = 0.0
    """For how long a tuple has waited that was not there at the end."""
    _delays_s: list[float] = field(default_factory=list)
    _counts: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)

    def add(self, runs: list[TupleRun], end_s: float, apart_s: float) -> float:
        """Note the results of a call that ended at `end_s`, in order, so far apart from each other.

        Returns their mean latency.
        """
        count = sum(run[1] for run in runs)
        place = 0.0
        total_s = 0.0
        counts = end_s >= self.since_s
        for arrival_s, some, value in runs:
            at_s = end_s - (count - place - (some + 1) / 2) * apart_s
            place += some
            delay_s = at_s - arrival_s
            total_s += delay_s * some
            if counts:
                self._delays_s.append(delay_s)
                self._counts.append(some)
                self._values.append(value)
        self.tuples += count if counts else 0
        return total_s / count

    @property
    def mean_latency_s(self) -> float:
        """The latency of a tuple on average; if none came, how long one has waited in vain."""
        if not self.tuples:
            return self.waited_s
        return float(np.average(self._delays_s, weights=self._counts))

    def latency_quantile_s(self, share: float) -> float:
        """The latency that this share of tuples does not exceed; without tuples as on average."""
        if not self.tuples:
            return self.waited_s
        order = np.argsort(self._delays_s, kind="stable")
        reached = np.cumsum(np.array(self._counts)[order])
        place = int(np.searchsorted(reached, share * self.tuples))
        return float(np.array(self._delays_s)[order][min(place, len(order) - 1)])

    @cached_property
    def latency(self) -> Curve:
        """The latency graph of the output, or the default one."""
        return latency_curve(self.qos)

    @property
    def utility(self) -> float:
        """The utility of a tuple by its latency, on average; if none came, of one that waited."""
        if not self.tuples:
            return self.latency.value(self.waited_s)
        return float(np.average(_values(self.latency, self._delays_s), weights=self._counts))

    @property
    def value_utility(self) -> float:
        """The utility of all tuples by their values together: drops take something from it."""
        curve = None if self.qos is None else self.qos.curves.get("value")
        if curve is None or not self._counts:
            return float(self.tuples)
        return float(np.dot(_values(curve, self._values), self._counts))


def _values(curve: Curve, xs: list[float]) -> npt.NDArray[np.floating[Any]]:
    found: npt.NDArray[np.floating[Any]] = np.interp(
        xs, [x for x, _ in curve.points], [y for _, y in curve.points]
    )
    return found


@dataclass
class SimulatedLoad:
    """What a box did."""

    calls: int = 0
    tuples: int = 0
    busy_s: float = 0.0
    most_queued: int = 0


@dataclass
class MemoryTrace:
    """The bytes of all queues over time: a step function."""

    times_s: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)

    def note(self, now_s: float, size: float) -> None:
        """Say how large the queues are from now on."""
        if self.times_s and self.times_s[-1] == now_s:
            self.bytes[-1] = size
        elif not self.bytes or self.bytes[-1] != size:
            self.times_s.append(now_s)
            self.bytes.append(size)

    def at(self, times_s: list[float]) -> list[float]:
        """The bytes at some moments; 0 before the first that was noted."""
        places = np.searchsorted(self.times_s, times_s, side="right") - 1
        return [self.bytes[place] if place >= 0 else 0.0 for place in places]

    @property
    def mean(self) -> float:
        """The mean over time, until the last change."""
        if len(self.times_s) < 2:
            return 0.0
        lasted = np.diff(self.times_s)
        return float(np.dot(lasted, self.bytes[:-1]) / lasted.sum())

    @property
    def most(self) -> float:
        return max(self.bytes, default=0.0)


@dataclass
class SimulationResult:
    """What happened until all tuples were processed, or until the simulation was stopped."""

    outputs: Mapping[str, SimulatedOutput]
    boxes: Mapping[str, SimulatedLoad]
    spent: TimeSpent = field(default_factory=TimeSpent)
    memory: MemoryTrace = field(default_factory=MemoryTrace)
    end_s: float = 0.0
    """When the last call ended."""
    arrived: int = 0
    decisions: int = 0
    plans: int = 0
    calls: int = 0
    waiting: int = 0
    """Tuples that were in queues when the simulation was stopped."""
    events: int = 0
    """Steps of the simulation itself: its work, whatever the speed of the machine."""
    evaluated: int = 0
    """Boxes whose priority the scheduler computed."""
    dropped: dict[tuple[str, str], int] = field(default_factory=dict)
    """Tuples that a drop box removed, by box and arc."""

    @property
    def mean_latency_s(self) -> float:
        """The latency of an output tuple on average, over all outputs."""
        found = [output for output in self.outputs.values() if output.tuples]
        total = sum(output.tuples for output in found)
        return sum(o.mean_latency_s * o.tuples for o in found) / total if total else 0.0

    @property
    def mean_utility(self) -> float:
        """The utility of an output on average, by latency."""
        found = [output.utility for output in self.outputs.values()]
        return sum(found) / len(found) if found else 1.0
