"""Four applications that share a stream, as in [4 §3.3], and what they get of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import auroral as au

Mode = Literal["semantic", "random", "admission", "off"]
GOOD_ZONE_S = 2.0
_LATENCY = ((0, 1), (GOOD_ZONE_S, 1), (4 * GOOD_ZONE_S, 0))
_LOOK_S = 0.2
_WORK = "crc32(sha2(repeat(concat(k, '{salt}'), {times}), 512))"
"""An expression that keeps a core busy for some tenths of a millisecond a tuple."""


@dataclass(frozen=True)
class Application:
    """What an application asks for; unequal, or it would not matter where tuples are dropped."""

    cost: int
    """Of a tuple, compared with those of the other applications."""
    loss: tuple[tuple[float, float], ...]
    value: tuple[tuple[float, float], ...]

    @property
    def qos(self) -> au.QoS:
        value = {"on": "pos", "graph": self.value}
        return au.QoS(latency=_LATENCY, loss=self.loss, value=value)


APPLICATIONS = {
    "alarms": Application(1, ((0, 0), (1, 1)), ((0, 0), (80, 0.1), (100, 1))),
    "tracks": Application(4, ((0, 0), (0.1, 0.9), (1, 1)), ((0, 1), (40, 0.1), (100, 0))),
    "map": Application(3, ((0, 0), (0.3, 0.8), (1, 1)), ((0, 0), (40, 0.1), (60, 1), (100, 1))),
    "archive": Application(1, ((0, 0), (1, 1)), ((0, 0.3), (100, 1))),
}


def battlefield(shedding: Mode, *, size: int = 4_000) -> au.Network:
    """One stream of positions, a box that all share, and four applications.

    `size` is how often a text is repeated that boxes make checksums of.
    """
    net = au.Network("battlefield")
    reports = net.stream("reports", "k bigint, run int, sent double, pos double")
    known = reports.filter("pos >= 0", name="known")
    for name, one in APPLICATIONS.items():
        work = _WORK.format(salt=name, times=size * one.cost)
        arc = known.map(keep=("run", "sent", "pos"), w=work, name=f"work_{name}")
        net.output(name, arc, qos=one.qos)
    net.engine = au.EngineOptions(shedding=shedding, headroom=0.9)
    return net


def tuples(count: int, run: int, seed: int, sent_s: float) -> pa.Table:
    """Some positions."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "k": random.integers(0, 1 << 40, count),
            "run": np.full(count, run, np.int32),
            "sent": np.full(count, sent_s),
            "pos": random.uniform(0, 100, count),
        }
    )


@dataclass
class Delivered:
    """What an application has got of a run."""

    count: int = 0
    worth: float = 0.0
    """The sum of the utilities of the values."""
    in_time: float = 0.0
    """The sum of the utilities of the delays."""


@dataclass
class RunResult:
    """What was offered in a run, and what came of it."""

    number: int
    offered: int
    """Tuples, the same for all applications."""
    worth: dict[str, float]
    """Of all that was offered, by application."""
    delivered: dict[str, Delivered]

    @property
    def utility(self) -> float:
        """The mean over applications of the composite quality of service.

        By the definition of the QoS monitor: the weighted mean of the utilities of the delays of
        what came, of the share that came and of the values that came.
        """
        found = []
        for name, one in APPLICATIONS.items():
            got, qos = self.delivered[name], one.qos
            known = {
                "latency": got.in_time / got.count if got.count else 1.0,
                "loss": qos.utility("loss", got.count / self.offered),
                "value": got.worth / got.count if got.count else 1.0,
            }
            found.append(qos.combined(known))  # type: ignore[arg-type]
        return float(np.mean(found))

    @property
    def value_lost(self) -> float:
        """The mean over applications of the share of the value that they did not get."""
        kept = [self.delivered[name].worth / worth for name, worth in self.worth.items()]
        return 1 - float(np.mean(kept))


@dataclass(frozen=True)
class Look:
    """What was seen at a moment."""

    at_s: float
    rounds: float
    """How often all boxes were called, on average."""
    well: bool
    """Whether all outputs are in their good zone."""
    oldest_s: float
    """The tuple that has waited longest in front of any box."""


class Feeder:
    """Feeds the stream at a rate, takes results, and looks at outputs five times a second."""

    def __init__(self, engine: au.Engine):
        self._engine = engine
        self._seed = 0
        self._owed = 0.0
        self._counts = False
        self.looks: list[Look] = []
        self.run = _nothing_yet(0)

    def begin(self) -> None:
        """What is fed from here on belongs to a run of its own."""
        self.run, self.looks = _nothing_yet(self.run.number + 1), []
        self._counts = True

    def end(self) -> None:
        """What is fed from here on belongs to no run; what comes of the run still counts."""
        self._counts = False

    def feed(self, seconds: float, rate: float) -> None:
        """Feed for so long, and take results."""
        began = last = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            self._owed += rate * (now - last)
            last = now
            self._send(int(self._owed))
            self._owed -= int(self._owed)
            self.look()
            left = _LOOK_S - (time.perf_counter() - now)
            if left > 0:
                time.sleep(left)

    def finish(self, patience_s: float = 60.0) -> None:
        """Take results until nothing waits any more."""
        end = time.perf_counter() + patience_s
        while self.looks[-1].oldest_s and time.perf_counter() < end:
            self.feed(_LOOK_S, 0.0)
        self._engine.drain()
        self.look()

    def _send(self, count: int) -> None:
        if not count:
            return
        self._seed += 1
        run = self.run.number if self._counts else -1
        sent = tuples(count, run, self._seed, time.perf_counter())
        self._engine.enqueue("reports", sent)
        if self._counts:
            self.run.offered += count
            for name in APPLICATIONS:
                self.run.worth[name] += _worth(name, sent["pos"])

    def look(self) -> None:
        """Take results, and see how outputs do."""
        for name in APPLICATIONS:
            found = self._engine.dequeue(name)
            own = found.filter(pc.equal(found["run"], self.run.number))
            delays_s = time.perf_counter() - own["sent"].to_numpy()
            got = self.run.delivered[name]
            got.count += own.num_rows
            got.worth += _worth(name, own["pos"])
            got.in_time += _sum_on(_LATENCY, delays_s)
        stats = self._engine.stats()
        quality: Mapping[str, Any] = stats["qos"]
        oldest = [box.get("oldest_s") or 0.0 for box in stats["boxes"].values()]
        self.looks.append(
            Look(
                time.perf_counter(),
                stats["steps"]["count"] / (len(APPLICATIONS) + 1),
                all(quality[name]["good_zone"] for name in APPLICATIONS),
                max(oldest, default=0.0),
            )
        )


def _nothing_yet(number: int) -> RunResult:
    delivered = {name: Delivered() for name in APPLICATIONS}
    return RunResult(number, 0, dict.fromkeys(APPLICATIONS, 0.0), delivered)


def _worth(name: str, values: Any) -> float:
    return _sum_on(APPLICATIONS[name].value, values)


def _sum_on(graph: Sequence[tuple[float, float]], values: Any) -> float:
    xs, ys = zip(*graph, strict=True)
    return float(np.interp(np.asarray(values), xs, ys).sum())
