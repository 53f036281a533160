"""How one output does: its delays, losses and values of the last minute (pure)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import takewhile
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from auroral.qos.graphs import Kind, QoS, qos_or_default

WINDOW_S = 60
"""Means are over so many seconds."""
HISTORY_S = 600
"""The course of utility is kept for so many seconds."""
VALUE_CELLS = 32
"""Into so many cells the range of a value graph is divided."""
_NOW_S = 5
"""What was lost lately is what was lost in so many seconds: drops come apart from deliveries."""
_DELAY_STEP = 1.05
"""Delays within a factor of this are not told apart by percentiles."""
_LEAST_DELAY_S = 1e-3

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SecondSums:
    """The sums of one second, as the history needs them; see `_Second`."""

    at: int
    tuples: float
    delay: float
    worth: float
    good: float
    shed: float
    valued: float
    value_worth: float


@dataclass(frozen=True)
class OutputSums:
    """What is known of an output since its state directory was made."""

    delivered: float
    shed: Mapping[str, float]
    """Results lost because tuples were shed, by reason."""
    lost: Mapping[Kind, float]
    """Utility lost, integrated over seconds, by the kind of graph that says so."""


@dataclass
class _Second:
    """What happened within one second."""

    at: int
    tuples: float = 0.0
    delay: float = 0.0
    """The sum of all delays."""
    worth: float = 0.0
    """The sum of latency utilities."""
    good: float = 0.0
    """Tuples within the good zone."""
    shed: float = 0.0
    valued: float = 0.0
    """Tuples whose value was looked at."""
    value_worth: float = 0.0
    """The sum of their value utilities."""
    delays: dict[int, float] = field(default_factory=dict)
    """How many tuples have a delay of about `_DELAY_STEP` to such a power."""
    cells: npt.NDArray[np.int64] | None = None
    """How many values are in each cell."""

    @property
    def sums(self) -> SecondSums:
        return SecondSums(*(getattr(self, each.name) for each in fields(SecondSums)))


@dataclass(frozen=True)
class QoSReading:
    """How an output does, by what it is worth."""

    latency: float
    loss: float
    value: float
    throughput: float
    utility: float


class OutputMonitor:
    """Watches one output. Times are seconds of any clock that does not go backwards.

    A kind of graph that the output does not have has utility 1, and so has one of which nothing is
    known: where nothing was delivered, nothing was late, unless tuples wait on the way to it.

    >>> monitor = OutputMonitor(QoS(latency=[(0, 1), (2, 1), (10, 0)]), 0.0)
    >>> monitor.record(5.0, [(1.0, 30), (6.0, 10)])
    >>> monitor.reading(5.0).utility, monitor.delay_s(5.0), monitor.in_good_zone(5.0)
    (0.875, 2.25, False)
    >>> monitor.wait(8.0)
    >>> monitor.latest(90.0).latency, monitor.reading(90.0).latency, monitor.in_good_zone(90.0)
    (0.25, 0.25, False)
    """

    def __init__(self, qos: QoS | None, since_s: float):
        self._seconds: deque[_Second] = deque()
        self._history: deque[_Second] = deque(maxlen=HISTORY_S)
        self.delivered = 0.0
        self.shed: dict[str, float] = {}
        """By reason."""
        self.lost: dict[Kind, float] = {}
        """Utility lost so far, integrated over seconds, by the kind of graph that says so."""
        self.waiting_s = 0.0
        """How long the oldest tuple on the way to the output has waited when it was told last."""
        self.serve(qos, since_s)

    def serve(self, qos: QoS | None, now_s: float) -> None:
        """Judge by other graphs from now on; the means of the last minute begin anew."""
        self.qos = qos_or_default(qos)
        self._since_s = now_s
        self._judged: dict[Kind, float] = dict.fromkeys(self.qos.kinds, now_s)
        """Up to when utility that was lost has been counted."""
        self._seconds.clear()
        self._latest: tuple[float, Mapping[Kind, float]] = 0.0, {}
        """The mean delay of the latest delivery, and what it was worth."""
        latency = self.qos.curves.get("latency")
        self._good_s = math.inf if latency is None else latency.good_until
        value = self.qos.curves.get("value")
        self._edges: Floats | None = None
        if value is not None:
            low, high = value.points[0][0], value.points[-1][0]
            self._edges = np.linspace(low, high, VALUE_CELLS + 1)
        self.lost = {kind: self.lost.get(kind, 0.0) for kind in {*self.lost, *self.qos.kinds}}

    # ── over restarts ──

    @property
    def sums(self) -> OutputSums:
        """What a later run has to know, besides the seconds."""
        return OutputSums(self.delivered, dict(self.shed), dict(self.lost))

    def seconds_since(self, at: int) -> list[SecondSums]:
        """The seconds from one on in which something came."""
        found = takewhile(lambda second: second.at >= at, reversed(self._history))
        return [second.sums for second in found][::-1]

    def restore(self, sums: OutputSums, seconds: Iterable[SecondSums], now_s: float) -> None:
        """Go on with the sums and the history of an earlier run; means begin anew."""
        self.delivered, self.shed = sums.delivered, dict(sums.shed)
        self.lost = {**self.lost, **sums.lost}
        for one in seconds:
            if now_s - HISTORY_S < one.at < math.floor(now_s):
                self._history.append(_Second(**vars(one)))

    # ── what happens ──

    def record(
        self,
        now_s: float,
        delays: Sequence[tuple[float, float]] = (),
        *,
        shed: Mapping[str, float] = MappingProxyType({}),
        values: Floats | None = None,
    ) -> None:
        """A step has delivered tuples: their delays, each with how many tuples have it.

        `shed` says by reason how many more it would have delivered. `values` are those of the field
        that the value graph is about, or a sample of them; NaN is left out.
        """
        second = self._second(now_s)
        now: dict[Kind, float] = {}
        tuples = sum(count for _, count in delays)
        if tuples:
            total = sum(delay * count for delay, count in delays)
            worth = sum(self.qos.utility("latency", delay) * count for delay, count in delays)
            second.tuples += tuples
            second.delay += total
            second.worth += worth
            second.good += sum(count for delay, count in delays if delay <= self._good_s)
            for delay, count in delays:
                place = _place(delay)
                second.delays[place] = second.delays.get(place, 0.0) + count
            self.delivered += tuples
            now["latency"] = worth / tuples
        second.shed += sum(shed.values())
        for reason, count in shed.items():
            self.shed[reason] = self.shed.get(reason, 0.0) + count
        known = values[~np.isnan(values)] if values is not None else ()
        if isinstance(known, np.ndarray) and len(known):
            now["value"] = self._value(second, known)
        if tuples:
            earlier = {k: u for k, u in self._latest[1].items() if k not in now}
            self._latest = total / tuples, {**earlier, **now}
        self._lose(now_s, now)

    def wait(self, oldest_s: float) -> None:
        """The oldest tuple on the way to the output has waited for so long; 0: none waits."""
        self.waiting_s = oldest_s

    def _value(self, second: _Second, values: Floats) -> float:
        """What values are worth on average."""
        value = self.qos.curves.get("value")
        if value is None or self._edges is None:
            return 1.0
        xs, ys = zip(*value.points, strict=True)
        worth = float(np.sum(np.interp(values, xs, ys)))
        within = np.clip(values, self._edges[0], self._edges[-1])
        cells = np.histogram(within, self._edges)[0].astype(np.int64)
        second.cells = cells if second.cells is None else second.cells + cells
        second.valued += len(values)
        second.value_worth += worth
        return worth / len(values)

    def _lose(self, now_s: float, now: Mapping[Kind, float]) -> None:
        """Count what was lost since the step before this one, over a minute at most."""
        by_minute = "loss" in self.qos.curves or "throughput" in self.qos.curves
        reading = {**(self._of_minute(now_s) if by_minute else {}), "latency": None, "value": None}
        for kind in self.qos.kinds:
            utility = now.get(kind, reading[kind])
            if utility is not None:
                seconds = min(max(now_s - self._judged[kind], 0.0), WINDOW_S)
                self.lost[kind] += seconds * (1 - utility) * self.qos.share(kind)
                self._judged[kind] = now_s

    def _second(self, now_s: float) -> _Second:
        at = math.floor(now_s)
        if not self._seconds or self._seconds[-1].at < at:
            self._seconds.append(_Second(at))
            self._history.append(self._seconds[-1])
        while self._seconds[0].at <= at - WINDOW_S:
            past = self._seconds.popleft()  # the history needs its sums alone
            past.delays, past.cells = {}, None
        return self._seconds[-1]

    # ── how it does ──

    def _within(self, now_s: float, seconds: int) -> list[_Second]:
        after = math.floor(now_s) - seconds
        return [second for second in self._seconds if second.at > after]

    def _of_minute(self, now_s: float) -> dict[Kind, float]:
        known_s = min(max(now_s - self._since_s, 1.0), float(WINDOW_S))
        seconds = self._within(now_s, WINDOW_S)
        found = self._mean(seconds, known_s)
        if not any(second.tuples for second in seconds):
            found["latency"] = self.qos.utility("latency", self.waiting_s)
        return found

    def _mean(self, seconds: Sequence[_Second], known_s: float) -> dict[Kind, float]:
        """Utilities by kind over some seconds, which are so long."""
        tuples = sum(second.tuples for second in seconds)
        shed = sum(second.shed for second in seconds)
        valued = sum(second.valued for second in seconds)
        return {
            "latency": sum(one.worth for one in seconds) / tuples if tuples else 1.0,
            "loss": self.qos.utility("loss", tuples / (tuples + shed)) if tuples or shed else 1.0,
            "value": sum(one.value_worth for one in seconds) / valued if valued else 1.0,
            "throughput": self.qos.utility("throughput", tuples / known_s),
        }

    def _reading(self, utilities: Mapping[Kind, float]) -> QoSReading:
        return QoSReading(
            utilities["latency"],
            utilities["loss"],
            utilities["value"],
            utilities["throughput"],
            self.qos.combined(utilities),
        )

    def reading(self, now_s: float) -> QoSReading:
        """Utilities over the last minute."""
        return self._reading(self._of_minute(now_s))

    def latest(self, now_s: float) -> QoSReading:
        """Utilities of the latest delivery; of losses, in the latest seconds.

        Latency is worth at most what it would be if the oldest tuple that waits came now.
        """
        utilities: dict[Kind, float] = {"latency": 1.0, "value": 1.0, **self._latest[1]}
        waiting = self.qos.utility("latency", self.waiting_s)
        utilities["latency"] = min(utilities["latency"], waiting)
        utilities["loss"] = self._mean(self._within(now_s, _NOW_S), _NOW_S)["loss"]
        utilities["throughput"] = self._of_minute(now_s)["throughput"]
        return self._reading(utilities)

    def in_good_zone(self, now_s: float) -> bool:
        """Whether the mean delay of its latest delivery, and what waits, are within the good zone.

        A delivery counts for a minute.
        """
        if self.waiting_s > self._good_s:
            return False
        seconds = self._within(now_s, WINDOW_S)
        return self._latest[0] <= self._good_s or not any(one.tuples for one in seconds)

    def good_share(self, now_s: float) -> float:
        """The share of the tuples of the last minute that came within the good zone."""
        seconds = self._within(now_s, WINDOW_S)
        tuples = sum(second.tuples for second in seconds)
        return sum(second.good for second in seconds) / tuples if tuples else 1.0

    def delay_s(self, now_s: float) -> float | None:
        """The mean delay of the last minute; None if nothing was delivered."""
        seconds = self._within(now_s, WINDOW_S)
        tuples = sum(second.tuples for second in seconds)
        return sum(second.delay for second in seconds) / tuples if tuples else None

    def delay_percentile_s(self, now_s: float, share: float) -> float | None:
        """The delay that a share of the tuples of the last minute did not exceed, within 5 %."""
        counts = self.delay_counts(now_s)
        left = share * sum(count for _, count in counts)
        for delay_s, count in counts:
            left -= count
            if left <= 1e-9:
                return delay_s
        return None

    def delay_counts(self, now_s: float) -> list[tuple[float, float]]:
        """The delays of the last minute within 5 %, shortest first, each with its tuples."""
        counts: dict[int, float] = {}
        for second in self._within(now_s, WINDOW_S):
            for place, count in second.delays.items():
                counts[place] = counts.get(place, 0.0) + count
        return [(_LEAST_DELAY_S * _DELAY_STEP**place, counts[place]) for place in sorted(counts)]

    def value_counts(self, now_s: float) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """The edges of cells, and how many values of the last minute are in each of them.

        None if there is no value graph. Values outside of the graph are in the cells at its ends.
        """
        if self._edges is None:
            return None
        found = np.zeros(VALUE_CELLS, np.int64)
        for second in self._within(now_s, WINDOW_S):
            if second.cells is not None:
                found += second.cells
        return tuple(map(float, self._edges)), tuple(map(float, found))

    def history(self, now_s: float) -> list[dict[str, float]]:
        """The course of utility: the seconds of the last ten minutes in which something came."""
        return [
            {
                "ago_s": max(now_s - second.at - 1, 0.0),
                "utility": self._reading(self._mean([second], 1.0)).utility,
                "delay_s": second.delay / second.tuples,
                "delivered": second.tuples,
            }
            for second in self._history
            if second.tuples and second.at > now_s - HISTORY_S
        ]


def _place(delay_s: float) -> int:
    """The power of `_DELAY_STEP` that a delay does not exceed."""
    if delay_s <= _LEAST_DELAY_S:
        return 0
    return math.ceil(math.log(delay_s / _LEAST_DELAY_S, _DELAY_STEP))


def gathered(spread: Iterable[tuple[float, float]], now_s: float) -> list[tuple[float, float]]:
    """Delays from arrival times with their counts; none is negative.

    >>> gathered([(3.0, 10), (5.5, 2)], 5.0)
    [(2.0, 10), (0.0, 2)]
    """
    return [(max(now_s - at, 0.0), count) for at, count in spread]
