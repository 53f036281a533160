"""Statistics that survive a restart: arrival rates, ages of queues, how outputs have done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.round_cost import RoundCost
from auroral.qos.monitor import QoSMonitor
from auroral.qos.output_monitor import HISTORY_S, OutputSums, SecondSums
from auroral.scheduling.rates import ArrivalRates
from auroral.storage import Store
from auroral.storage.statistics import KeptStatistics

PERIOD_S = 1.0
"""Statistics are written with a commit if so much time has passed since they were last."""
_MOST_AGES = 64
"""So many ages of what waits are kept."""


class StatisticsKeeper:
    """Writes statistics with the commits of steps, and at the end; restores them at the start.

    After a crash they are at most `PERIOD_S` older than the last step. Ages and rates go on as
    they were: the time in which no engine ran does not count.
    """

    def __init__(
        self,
        store: Store,
        rates: ArrivalRates,
        times: ArrivalTimes,
        monitor: QoSMonitor,
        cost: RoundCost,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._rates = rates
        self._times = times
        self._monitor = monitor
        self._cost = cost
        self._earlier_loop_s: float | None = None
        self._now_s = now_s
        self._written_s = -math.inf
        self._since = 0
        """Seconds of outputs before this one are written, and have not changed since."""
        self._outputs: dict[str, OutputSums] = {}
        """What is written of outputs."""
        # Whole seconds, so that a second that was restored is written as what it was.
        self._to_wall_s = round(time.time() - time.monotonic())

    def restore(self, earlier: KeptStatistics) -> None:
        """Go on with what an earlier run has left."""
        self._rates.restore(earlier.rates, self._now_s())
        self._earlier_loop_s = earlier.loop_s
        self._outputs = {name: sums for name, (sums, _) in earlier.outputs.items()}
        found = {
            name: (sums, self._shifted(seconds, -self._to_wall_s))
            for name, (sums, seconds) in earlier.outputs.items()
        }
        self._monitor.restore(found)

    @property
    def is_due(self) -> bool:
        """Whether the next commit should write the statistics."""
        return self._store.durable and self._now_s() - self._written_s >= PERIOD_S

    def save(self, waiting_since: int) -> None:
        """Write the statistics now."""
        if self._store.durable:
            self._store.save_statistics(self.take(waiting_since))

    def take(self, waiting_since: int) -> KeptStatistics:
        """What has changed, to be written now; what waits has moments from one on."""
        now_s = self._now_s()
        kept = self._monitor.kept(self._since)
        gone = [name for name in self._outputs if name not in kept]
        changed = {
            name: (sums, self._shifted(seconds, self._to_wall_s))
            for name, (sums, seconds) in kept.items()
            if seconds or sums != self._outputs.get(name)
        }
        self._outputs = {name: sums for name, (sums, _) in kept.items()}
        self._written_s, self._since = now_s, math.floor(now_s)
        return KeptStatistics(
            self._rates.kept(now_s),
            self._times.ages(waiting_since, _MOST_AGES),
            changed,
            gone,
            self._since + self._to_wall_s - HISTORY_S,
            self.loop_s,
        )

    @property
    def loop_s(self) -> float | None:
        """What the loop costs for each step; before the first, what an earlier run has left."""
        return self._earlier_loop_s if self._cost.per_step_s is None else self._cost.per_step_s

    @staticmethod
    def _shifted(seconds: Iterable[SecondSums], by: int) -> list[SecondSums]:
        return [replace(one, at=one.at + by) for one in seconds]
