"""Too many tuples: what is shed, how soon outputs are well again, and what that costs.

The four applications of `battlefield` share a stream that brings more than the machine can do. The
capacity of a machine that others use as well varies, so it is measured anew for each round of
runs, which follow each other in one engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import auroral as au
from benchmarks.lab import Lab
from benchmarks.qos.battlefield import GOOD_ZONE_S, Feeder, Mode, battlefield, tuples
from benchmarks.report import Report

OVERLOAD = "Overload on Spark: what is lost, and how soon outputs are in their good zone again"
HEAVY = "Overload of four times the capacity, and a burst of five times for two seconds"
_MODES: tuple[Mode, ...] = ("semantic", "random", "admission")
_QUIET = 0.4
"""What arrives before and after an overload, as a share of the capacity."""
_MOST_STEPS = 10
"""In so many steps outputs must be in their good zone again. A step: each box is called once."""
_MOST_ZONES = 4.0
"""So many good zones the oldest tuple may wait at the worst time."""
_WARM_RATE = 300.0
"""Tuples a second: fewer than two cores can do."""
_CLEAR = 0.01
"""By how much shares of value that are lost must differ at least."""


@dataclass(frozen=True)
class Timing:
    """How long the parts of a run are, in seconds."""

    warm_s: float
    capacity_s: float
    before_s: float
    overload_s: float
    after_s: float


_FULL, _QUICK = Timing(6.0, 4.0, 2.0, 14.0, 8.0), Timing(3.0, 2.0, 2.0, 8.0, 6.0)


@dataclass(frozen=True)
class Overloaded:
    """What came of an overload."""

    utility: float
    """The mean over outputs of the composite quality of service, as the QoS monitor has it."""
    value_lost: float
    """Share of the value of all tuples that applications did not get: the measure of [4 Fig. 5]."""
    back_after_s: float | None
    """After which time all outputs stayed in their good zone; None if they did not."""
    back_after_steps: float | None
    oldest_s: float
    """The oldest tuple that waited, at the worst time."""
    shed: int
    ended: bool
    """Whether nothing was dropped any more some seconds after the load had fallen."""


def overload(report: Report, lab: Lab, timing: Timing | None = None) -> None:
    """Overloads of 1.2 to 2 times the capacity, and the largest of them without shedding."""
    levels = (1.5,) if lab.quick else (1.2, 1.5, 2.0)
    _overloads(report, lab, OVERLOAD, levels, timing or _timing(lab))


def heavy_overload(report: Report, lab: Lab, timing: Timing | None = None) -> None:
    """Four times the capacity, and a burst of five times the capacity for two seconds."""
    timing = timing or _timing(lab)
    _overloads(report, lab, HEAVY, (4.0,), timing)
    with au.Engine(battlefield("off"), spark=lab.spark) as engine:
        bench = _Bench(engine, timing)
        bench.measure_capacity()
        burst = bench.run("semantic", 5.0, seconds=timing.overload_s / 4)
    report.sections[-1].rows.append((5.0, "semantic, burst of 2 s", *_shown([burst])))
    name = "burst: steps until outputs are in their good zone again"
    report.bar(name, _steps(burst), most=_MOST_STEPS)


def _timing(lab: Lab) -> Timing:
    return _QUICK if lab.quick else _FULL


def _overloads(
    report: Report, lab: Lab, title: str, levels: Sequence[float], timing: Timing
) -> None:
    """Shed at these multiples of the capacity, in three ways."""
    section = report.section(
        title, "load", "shedding", "utility", "value_lost", "back_after_s", "back_after_steps",
        "oldest_s", "shed", "ended",
    )  # fmt: skip
    found: dict[tuple[float, Mode], list[Overloaded]] = {}
    for level in levels:
        for turn in range(1 if lab.quick else 2):
            with au.Engine(battlefield("off"), spark=lab.spark) as engine:
                bench = _Bench(engine, timing)
                most = bench.measure_capacity()
                lab.say(f"{most:,.0f} tuples/s")
                for mode in _MODES:
                    lab.say(f"{mode} at {level}")
                    found.setdefault((level, mode), []).append(bench.run(mode, level))
                if level == levels[-1] and turn == 0:
                    lab.say(f"off at {level}")
                    found[level, "off"] = [bench.run("off", level)]
    section.rows += [(*key, *_shown(runs)) for key, runs in found.items()]
    _judge(report, found, levels)


def _judge(
    report: Report, found: dict[tuple[float, Mode], list[Overloaded]], levels: Sequence[float]
) -> None:
    def utility(level: float, mode: Mode) -> float:
        return median(one.utility for one in found[level, mode])

    def lost(level: float, mode: Mode) -> float:
        return median(one.value_lost for one in found[level, mode])

    for better, worse in pairwise(_MODES):
        gain = min(lost(level, worse) - lost(level, better) for level in levels)
        name = f"share of the value lost, {worse} − {better}, at loads of {levels}, least"
        report.bar(name, gain, least=_CLEAR)
    runs = [one for (_, mode), own in found.items() if mode != "off" for one in own]
    own = [one for level in levels for mode in _MODES[:2] for one in found[level, mode]]
    worst = max(map(_steps, own))
    report.bar("steps until outputs are in their good zone again, most", worst, most=_MOST_STEPS)
    oldest = max(one.oldest_s for one in runs)
    report.bar("oldest tuple in good zones, most", oldest / GOOD_ZONE_S, most=_MOST_ZONES)
    report.bar("runs after which shedding ended", sum(o.ended for o in runs), least=len(runs))
    (drowned,) = found[levels[-1], "off"]
    kept = median(one.oldest_s for mode in _MODES for one in found[levels[-1], mode])
    ratio = drowned.oldest_s / max(kept, 0.01)
    report.bar("oldest tuple without shedding / with it", ratio, least=1.5)
    gained = min(utility(levels[-1], mode) for mode in _MODES[:2]) - drowned.utility
    report.bar("utility with shedding − without", gained, least=0.0)


def _steps(one: Overloaded) -> float:
    return 10_000.0 if one.back_after_steps is None else one.back_after_steps


def _shown(runs: Sequence[Overloaded]) -> tuple[Any, ...]:
    back = [one.back_after_s for one in runs if one.back_after_s is not None]
    steps = max(map(_steps, runs))
    return (
        median(one.utility for one in runs),
        median(one.value_lost for one in runs),
        max(back) if len(back) == len(runs) else None,
        steps if len(back) == len(runs) else None,
        max(one.oldest_s for one in runs),
        round(median(one.shed for one in runs)),
        all(one.ended for one in runs),
    )


class _Bench:
    """One engine in which runs follow each other."""

    def __init__(self, engine: au.Engine, timing: Timing):
        self._engine = engine
        self._timing = timing
        self._feeder = Feeder(engine)
        self._most = 0.0
        for count in (50, 500, 200, 1_000, 100):  # Spark compiles; trains of different sizes
            engine.enqueue("reports", tuples(count, -1, 1, 0.0))
            engine.drain()
        self._feeder.feed(timing.warm_s, _WARM_RATE)  # Java gets faster for a while
        self._feeder.finish()

    def measure_capacity(self) -> float:
        """Tuples a second that the machine does for all applications.

        They are all there when it begins, and it has done its work when nothing waits any more.
        """
        count = 1_000
        for _ in range(2):  # the second time with as many tuples as take some seconds
            began = time.perf_counter()
            self._engine.enqueue("reports", tuples(count, -1, 2, began))
            self._engine.drain()
            self._most = count / (time.perf_counter() - began)
            self._feeder.look()
            count = int(self._most * self._timing.capacity_s)
        return self._most

    def run(self, mode: Mode, level: float, *, seconds: float | None = None) -> Overloaded:
        """An overload, with quiet times before and after it."""
        engine, feeder, quiet = self._engine, self._feeder, self._most * _QUIET
        engine.modify(network=battlefield(mode))
        feeder.feed(self._timing.before_s, quiet)
        feeder.begin()
        before = engine.stats()["shedding"]["dropped"]
        feeder.feed(seconds or self._timing.overload_s, self._most * level)
        feeder.end()
        feeder.feed(self._timing.after_s, quiet)
        ended = not engine.stats()["shedding"]["drops"]
        feeder.finish()
        shed = engine.stats()["shedding"]["dropped"] - before
        oldest_s = max(look.oldest_s for look in feeder.looks)
        run = feeder.run
        return Overloaded(run.utility, run.value_lost, *self._back(), oldest_s, shed, ended)

    def _back(self) -> tuple[float | None, float | None]:
        """From the first look at which an output was not well: when all were, for good."""
        looks = self._feeder.looks
        bad = [at for at, look in enumerate(looks) if not look.well]
        if not bad:
            return 0.0, 0.0
        if bad[-1] + 1 == len(looks):
            return None, None
        first, after = looks[bad[0]], looks[bad[-1] + 1]
        return after.at_s - first.at_s, after.rounds - first.rounds
