"""Too many tuples: what is shed, how soon outputs are well again, and what that costs.

Four applications share a stream, as in [4 §3.3]: each looks for other values, all tolerate losses
to some degree. The stream brings more than the machine can do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import auroral as au
from benchmarks.lab import Lab
from benchmarks.report import Report

OVERLOAD = "Overload on Spark: what is lost, and how soon outputs are in their good zone again"
HEAVY = "Overload of four times the capacity, and a burst of two seconds"
_WAITS_S = 1.2
"""If tuples wait for so long, the rate is too high."""
_WORK = "crc32(sha2(repeat(concat(k, '{salt}'), 800), 512))"
"""An expression that keeps a core busy for some tens of microseconds a tuple."""
_GRAPHS: dict[str, Sequence[tuple[float, float]]] = {
    "near": ((0, 1), (30, 0.2), (100, 0.0)),
    "far": ((0, 0), (70, 0.2), (100, 1)),
    "middle": ((0, 0), (50, 1), (100, 0)),
    "all": ((0, 0.3), (100, 1)),
}
Mode = Literal["semantic", "random", "admission", "off"]
_MODES: tuple[Mode, ...] = ("semantic", "random", "admission")


def battlefield(shedding: Mode) -> au.Network:
    """One stream of positions, a box that all share, and four applications."""
    net = au.Network("battlefield")
    reports = net.stream("reports", "k bigint, pos double")
    known = reports.filter("pos >= 0", name="known")
    for name, graph in _GRAPHS.items():
        arc = known.map(pos="pos", w=_WORK.format(salt=name), name=f"work_{name}")
        qos = au.QoS(
            latency=((0, 1), (2, 1), (8, 0)),
            loss=((0, 0), (0.3, 0.7), (1, 1)),
            value={"on": "pos", "graph": graph},
        )
        net.output(name, arc, qos=qos)
    net.engine = au.EngineOptions(shedding=shedding, headroom=0.9)
    return net


@dataclass(frozen=True)
class Overloaded:
    """What came of an overload."""

    lost: float
    """Share of the value of all tuples that applications did not get."""
    back_after_s: float | None
    """After which time all outputs stayed in their good zone; None if they did not."""
    back_after_steps: int | None
    largest_queue_s: float
    """The oldest tuple that waited, at the worst time."""
    shed: int
    ended: bool
    """Whether nothing was dropped any more some seconds after the load had fallen."""


def overload(report: Report, lab: Lab) -> None:
    """Overloads of 1.2 to 2 times the capacity, and the largest of them without shedding."""
    _overloads(report, lab, OVERLOAD, (1.5,) if lab.quick else (1.2, 1.5, 2.0))


def heavy_overload(report: Report, lab: Lab) -> None:
    """Four times the capacity, and a burst of five times the capacity for two seconds."""
    most = _overloads(report, lab, HEAVY, (4.0,))
    lab.say("burst")
    burst = _run(lab, "semantic", most * 5, most * 0.4, seconds=2.0)
    report.sections[-1].rows.append((5.0, "semantic, burst of 2 s", *_shown(burst)))
    worst = burst.back_after_steps if burst.back_after_steps is not None else 10_000
    report.bar("burst: rounds until outputs are in their good zone again", worst, most=10.0)


def _overloads(report: Report, lab: Lab, title: str, levels: Sequence[float]) -> float:
    """Shed at these multiples of the capacity, in three ways; gives the capacity."""
    most = _capacity(lab)
    section = report.section(
        title, "load", "shedding", "value_lost", "back_after_s", "back_after_rounds",
        "largest_queue_s", "shed", "ended",
    )  # fmt: skip
    section.rows.append((1.0, f"capacity: {most:,.0f} tuples/s", *[None] * 6))
    found: dict[tuple[float, Mode], Overloaded] = {}
    for level in levels:
        without: tuple[Mode, ...] = ("off",) if level == levels[-1] else ()
        for mode in (*_MODES, *without):
            lab.say(f"{mode} at {level}")
            one = found[level, mode] = _run(lab, mode, most * level, most * 0.4)
            section.rows.append((level, mode, *_shown(one)))
    for better, worse in pairwise(_MODES):
        reverse = sum(found[at, better].lost > found[at, worse].lost for at in levels)
        name = f"overloads of {levels} in which {better} loses more than {worse}"
        report.bar(name, float(reverse), most=0.0)
    own = [found[at, mode] for at in levels for mode in _MODES[:2]]
    steps = [one.back_after_steps for one in own]
    worst = max((s if s is not None else 10_000) for s in steps)
    report.bar("rounds until outputs are in their good zone again, most", float(worst), most=10.0)
    report.bar("runs after which shedding ended", float(sum(o.ended for o in own)), least=len(own))
    drowned = found[levels[-1], "off"].largest_queue_s
    kept = max(one.largest_queue_s for one in own)
    report.bar("oldest tuple without shedding / with it", drowned / max(kept, 0.01), least=1.5)
    return most


def _shown(one: Overloaded) -> tuple[Any, ...]:
    back = (one.back_after_s, one.back_after_steps)
    return (one.lost, *back, one.largest_queue_s, one.shed, one.ended)


def _tuples(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table({"k": random.integers(0, 1 << 40, count), "pos": random.uniform(0, 100, count)})


def _capacity(lab: Lab) -> float:
    """Tuples a second that the machine does for all applications, at a rate that is too high.

    The rate rises until tuples wait; then it is counted how many come out.
    """
    with au.Engine(battlefield("off"), spark=lab.spark) as engine:
        _warm_up(engine)
        feed, rate = _Offered(engine), 5_000.0
        feed.run_for(3.0 if lab.quick else 8.0, rate)  # Java gets faster for a while
        engine.drain()
        while True:
            rate *= 1.4
            feed.begin()
            feed.run_for(2.0, rate)
            if feed.oldest_s >= _WAITS_S:
                before, began = feed.least_got, time.perf_counter()
                feed.run_for(6.0, rate)
                found = (feed.least_got - before) / (time.perf_counter() - began)
                if found < 0.9 * rate:  # else it was no more than a pause
                    return found


def _warm_up(engine: au.Engine) -> None:
    """Let Spark compile, and let costs be measured with trains of different sizes."""
    for count in (500, 5_000, 2_000, 10_000, 1_000):
        engine.enqueue("reports", _tuples(count, 1))
        engine.drain()
    for name in _GRAPHS:
        engine.dequeue(name)


def _run(
    lab: Lab, mode: Mode, rate: float, quiet_rate: float, seconds: float | None = None
) -> Overloaded:
    seconds = seconds or (6.0 if lab.quick else 8.0)
    with au.Engine(battlefield(mode), spark=lab.spark) as engine:
        _warm_up(engine)
        feed = _Offered(engine)
        feed.run_for(1.0, quiet_rate)
        engine.drain()
        feed.begin()
        feed.run_for(seconds, rate)
        feed.run_for(4.0, quiet_rate)
        engine.drain()
        feed.look()
        dropping = engine.stats()["shedding"]["drops"]
        return feed.result(seconds, ended=not dropping)


class _Offered:
    """Feeds one stream, takes results, and looks at outputs five times a second."""

    def __init__(self, engine: au.Engine):
        self._engine = engine
        self._random = 0
        self._offered = dict.fromkeys(_GRAPHS, 0.0)
        self._got = dict.fromkeys(_GRAPHS, 0.0)
        self._well: list[tuple[float, int, bool]] = []
        self.oldest_s = 0.0
        """How long the oldest tuple waited, at the worst time."""
        self._tuples = dict.fromkeys(_GRAPHS, 0)
        self._shed = 0
        self._began = self._steps = 0.0
        self._owed = 0.0

    def begin(self) -> None:
        """The overload begins."""
        self.look()
        self._offered = dict.fromkeys(_GRAPHS, 0.0)
        self._got = dict.fromkeys(_GRAPHS, 0.0)
        self._well = []
        self.oldest_s = 0.0
        stats = self._engine.stats()
        self._steps, self._shed = stats["steps"]["count"], -stats["shedding"]["dropped"]
        self._began = time.perf_counter()

    @property
    def least_got(self) -> int:
        """How many tuples the output has got that got least."""
        return min(self._tuples.values())

    def run_for(self, seconds: float, rate: float) -> None:
        """Feed at a rate."""
        began = last = time.perf_counter()
        while time.perf_counter() - began < seconds:
            now = time.perf_counter()
            self._owed += rate * (now - last)
            last = now
            self._send(int(self._owed))
            self._owed -= int(self._owed)
            self.look()
            left = 0.2 - (time.perf_counter() - now)
            if left > 0:
                time.sleep(left)

    def _send(self, count: int) -> None:
        if count:
            self._random += 1
            tuples = _tuples(count, self._random)
            self._engine.enqueue("reports", tuples)
            for name in _GRAPHS:
                self._offered[name] += _worth(name, tuples["pos"])

    def look(self) -> None:
        """Take results, and see how outputs do."""
        for name in _GRAPHS:
            got = self._engine.dequeue(name)["pos"]
            self._tuples[name] += len(got)
            self._got[name] += _worth(name, got)
        stats = self._engine.stats()
        well = all(stats["qos"][name]["good_zone"] for name in _GRAPHS)
        passed = int(stats["steps"]["count"] - self._steps)
        self._well.append((time.perf_counter() - self._began, passed, well))
        oldest = [box.get("oldest_s") or 0.0 for box in stats["boxes"].values()]
        self.oldest_s = max(self.oldest_s, *oldest)

    def result(self, seconds: float, *, ended: bool) -> Overloaded:
        offered, got = sum(self._offered.values()), sum(self._got.values())
        during = [one for one in self._well if one[0] <= seconds + 2.0]
        bad = [at for at, one in enumerate(during) if not one[2]]
        back: tuple[float | None, int | None] = (0.0, 0)
        if bad:
            after = during[bad[-1] + 1] if bad[-1] + 1 < len(during) else None
            first = during[bad[0]]
            back = (None, None)
            if after is not None:
                superboxes = len(_GRAPHS) + 1
                back = (after[0] - first[0], (after[1] - first[1]) // superboxes)
        shed = self._shed + self._engine.stats()["shedding"]["dropped"]
        return Overloaded(1 - got / offered, *back, self.oldest_s, shed, ended)


def _worth(name: str, values: Any) -> float:
    xs, ys = zip(*_GRAPHS[name], strict=True)
    return float(np.interp(np.asarray(values), xs, ys).sum())
