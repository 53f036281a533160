"""Too many tuples: what is shed, how soon outputs are well again, and what that costs.

Four applications share a stream, as in [4 §3.3]: each looks for other values, all tolerate losses
to some degree. The stream brings more than the machine can do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import auroral as au
from benchmarks.lab import Lab
from benchmarks.report import Report

OVERLOAD = "Overload on Spark: what is lost, and how soon outputs are in their good zone again"
_WORK = "crc32(sha2(sha2(sha2(repeat(concat(k, '{salt}'), 40), 512), 512), 512))"
_GRAPHS: dict[str, Sequence[tuple[float, float]]] = {
    "near": ((0, 1), (30, 0.2), (100, 0.0)),
    "far": ((0, 0), (70, 0.2), (100, 1)),
    "middle": ((0, 0), (50, 1), (100, 0)),
    "all": ((0, 0.3), (100, 1)),
}
Mode = Literal["semantic", "random", "admission", "off"]


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
    """Several overloads, a burst, and the same without shedding."""
    most = _capacity(lab)
    section = report.section(
        OVERLOAD, "load", "shedding", "value_lost", "back_after_s", "back_after_steps",
        "largest_queue_s", "shed", "ended",
    )  # fmt: skip
    levels = (1.5,) if lab.quick else (1.2, 1.5, 2.0, 4.0)
    modes: tuple[Mode, ...] = ("semantic", "random", "admission")
    found: dict[tuple[float, Mode], Overloaded] = {}
    for level in levels:
        without: tuple[Mode, ...] = ("off",) if level == levels[-1] else ()
        for mode in (*modes, *without):
            lab.say(f"{mode} at {level}")
            one = _run(lab, mode, most * level, most * 0.4)
            found[level, mode] = one
            shown = (one.lost, one.back_after_s, one.back_after_steps, one.largest_queue_s)
            section.rows.append((level, mode, *shown, one.shed, one.ended))
    burst = _run(lab, "semantic", most * 5, most * 0.4, seconds=2.0)
    shown = (burst.lost, burst.back_after_s, burst.back_after_steps, burst.largest_queue_s)
    section.rows.append((5.0, "semantic, burst of 2 s", *shown, burst.shed, burst.ended))
    low = [level for level in levels if level <= 2]
    pairs: tuple[tuple[Mode, Mode], ...] = (("semantic", "random"), ("random", "admission"))
    for better, worse in pairs:
        reverse = sum(found[at, better].lost > found[at, worse].lost for at in low)
        name = f"overloads up to 2 in which {better} loses more than {worse}"
        report.bar(name, float(reverse), most=0.0)
    own = [found[at, mode] for at in levels for mode in modes[:2]]
    steps = [one.back_after_steps for one in own]
    worst = max((s if s is not None else 10_000) for s in steps)
    report.bar("steps until outputs are in their good zone again, most", float(worst), most=10.0)
    report.bar("runs after which shedding ended", float(sum(o.ended for o in own)), least=len(own))
    drowned = found[levels[-1], "off"].largest_queue_s
    kept = max(one.largest_queue_s for one in own)
    report.bar("oldest tuple without shedding / with it", drowned / max(kept, 0.01), least=1.5)


def _tuples(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table({"k": random.integers(0, 1 << 40, count), "pos": random.uniform(0, 100, count)})


def _capacity(lab: Lab) -> float:
    """Tuples a second that the machine can do for all four applications."""
    count = lab.rows(60_000)
    with au.Engine(battlefield("off"), spark=lab.spark) as engine:
        for seed in (1, 2):
            engine.enqueue("reports", _tuples(count, seed))
            began = time.perf_counter()
            engine.drain()
        return count / (time.perf_counter() - began)


def _run(
    lab: Lab, mode: Mode, rate: float, quiet_rate: float, seconds: float | None = None
) -> Overloaded:
    seconds = seconds or (6.0 if lab.quick else 15.0)
    with au.Engine(battlefield(mode), spark=lab.spark) as engine:
        for count in (500, 5_000, 2_000):
            engine.enqueue("reports", _tuples(count, 1))
            engine.drain()
        feed = _Offered(engine)
        feed.run_for(4.0, quiet_rate)
        engine.drain()
        feed.begin()
        feed.run_for(seconds, rate)
        feed.run_for(8.0, quiet_rate)
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
        self._oldest_s = 0.0
        self._shed = 0
        self._began = self._steps = 0.0
        self._owed = 0.0

    def begin(self) -> None:
        """The overload begins."""
        self.look()
        self._offered = dict.fromkeys(_GRAPHS, 0.0)
        self._got = dict.fromkeys(_GRAPHS, 0.0)
        self._well = []
        self._oldest_s = 0.0
        stats = self._engine.stats()
        self._steps, self._shed = stats["steps"]["count"], -stats["shedding"]["dropped"]
        self._began = time.perf_counter()

    def run_for(self, seconds: float, rate: float) -> None:
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
            self._got[name] += _worth(name, self._engine.dequeue(name)["pos"])
        stats = self._engine.stats()
        well = all(stats["qos"][name]["good_zone"] for name in _GRAPHS)
        passed = int(stats["steps"]["count"] - self._steps)
        self._well.append((time.perf_counter() - self._began, passed, well))
        oldest = [box.get("oldest_s") or 0.0 for box in stats["boxes"].values()]
        self._oldest_s = max(self._oldest_s, *oldest)

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
        return Overloaded(1 - got / offered, *back, self._oldest_s, shed, ended)


def _worth(name: str, values: Any) -> float:
    xs, ys = zip(*_GRAPHS[name], strict=True)
    return float(np.interp(np.asarray(values), xs, ys).sum())
