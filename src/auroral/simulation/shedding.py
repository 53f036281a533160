"""The load shedder in a simulation: the controller of the engine, asked once in a period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import latency_curve
from auroral.scheduling.flow import FlowModel
from auroral.shedding.control import LoadController, Observation
from auroral.shedding.drops import Drop
from auroral.shedding.histograms import Histogram
from auroral.shedding.sites import CarryInterval, MayDrop
from auroral.simulation.simulator import SimulatedPeriod


class ControlledShedder:
    """Tells a `LoadController` what happened in each period, and does what it decides."""

    def __init__(
        self,
        mode: SheddingMode,
        model: FlowModel,
        capacity: float,
        *,
        headroom: float = 1.0,
        period_s: float = 0.5,
        histograms: Mapping[str, Histogram] | None = None,
        carry: CarryInterval | None = None,
        may_drop: MayDrop | None = None,
    ):
        self.period_s = period_s
        self._controller = LoadController(mode, capacity=capacity, headroom=headroom)
        self._controller.serve(model, histograms, carry, may_drop)
        self._good_until_s = {
            name: latency_curve(output.qos).good_until for name, output in model.outputs.items()
        }
        self._latencies_s: dict[str, float] = {}
        self.active = self._controller.active
        """Whether this network sheds load at all."""
        self.outside: list[float] = []
        """The share of outputs outside their good zone, period by period."""

    def drops(self, period: SimulatedPeriod) -> Sequence[Drop]:
        """What is dropped in the next period."""
        self._latencies_s.update(period.latencies_s)
        late = [
            name
            for name, seconds in self._latencies_s.items()
            if seconds > self._good_until_s[name]
        ]
        self.outside.append(len(late) / max(len(self._good_until_s), 1))
        seen = Observation(
            self.period_s,
            {stream: count / self.period_s for stream, count in period.arrived.items()},
            period.table,
            period.now_s,
            period.processed,
            period.unfinished_s,
            step_s=period.longest_call_s,
            outside=self.outside[-1],
        )
        decision = self._controller.observe(seen)
        return [drop for drops in decision.drops.values() for drop in drops]
