"""A band join and a count of its pairs, without and with enforced order [3 §8: N1, Figure 11]."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

import pyarrow as pa

import auroral as au
from auroral.errors import RunError
from benchmarks.data import PACKETS, SECOND_US, START_US, Batch, arrivals, link, size
from benchmarks.lab import Lab
from benchmarks.oop.lab import Held, enqueue, finish, most_held, with_options
from benchmarks.oop.memory import SYSTEMS, same_rows
from benchmarks.report import Report

BAND = "Figure 11 (Q7): band join and count"
_BANDS_S = (1, 5, 10, 20, 40)
_WINDOW_S = 10
_TRAIN_S = 10
_WARM = 2


@dataclass
class Fed:
    """An engine that gets its trains in turn with another, so that both see the same machine."""

    engine: au.Engine
    seconds: float = 0.0
    arrived: list[float] = field(default_factory=list)
    latencies_s: dict[int, float] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    results: list[pa.Table] = field(default_factory=list)

    @property
    def execution_s(self) -> float:
        """All trains but the first ones, which pay for what starts."""
        return self.seconds - self.arrived[_WARM]

    def feed(self, train: list[Batch], band_s: int) -> None:
        """One train through; notes how long windows took since the train that completed them."""
        began = time.perf_counter()
        self.arrived.append(self.seconds)
        enqueue(self.engine, train)
        self.engine.drain()
        table = self.engine.dequeue("counts")
        self.seconds += time.perf_counter() - began
        for start in table["ts"].cast(pa.int64()).to_pylist():
            covering = covering_train(start, band_s)
            if 0 <= covering < len(self.arrived):
                self.latencies_s[start] = self.seconds - self.arrived[covering]
        self.held.append(Held.of(self.engine))
        self.results.append(table)


def covering_train(start_us: int, band_s: int) -> int:
    """The train after which no more pair of a window can come: both streams are past it.

    A pair of the window has its M1 tuple before the window's end, its M2 tuple at most a band
    later; so M2's punctuation must have passed the end by the band.
    """
    end_s = (start_us - START_US) // SECOND_US + _WINDOW_S
    return int((end_s + band_s) // _TRAIN_S)


def q7(band_s: int) -> au.Network:
    """Count pairs of packets and replies at most a band apart, in windows over M1's time."""
    net = au.Network("q7")
    m1, m2 = (net.stream(name, PACKETS, progress=au.Ordered("ts")) for name in ("m1", "m2"))
    reply = "left.srcIP = right.destIP and left.destIP = right.srcIP"
    order = au.Order("ts")
    pairs = m1.join(m2, reply, left=order, right=order, within=f"{band_s} seconds")
    window = au.Window(size=f"{_WINDOW_S} seconds")
    net.output("counts", pairs.aggregate(order, window, cnt="count(*)"))
    return net


def band(report: Report, lab: Lab) -> None:
    """Memory, latency and execution time by band size."""
    section = report.section(
        BAND,
        "band_s",
        "system",
        "rows_held",
        "rows_needed",
        "latency_ms",
        "execution_s",
        "pairs",
    )
    seconds, rate = lab.steps(160, 110), lab.rows(2_000)
    links = {name: link(seconds, rate, 10 * rate, seed=at) for at, name in enumerate(("m1", "m2"))}
    trains = arrivals(links, {}, _TRAIN_S)
    worst = {"rows held": 0.0, "latency": 0.0, "execution time": 0.0}
    agree = 0
    _compare(lab, _BANDS_S[0], trains[: 2 * _WARM])  # so that neither pays for the first start
    for band_s in _BANDS_S:
        lab.say(f"band join, {band_s} s")
        free, ordered = _compare(lab, band_s, trains)
        for name, fed in zip(SYSTEMS, (free, ordered), strict=True):
            pairs = sum(pa.concat_tables(fed.results)["cnt"].to_pylist())
            held = most_held(fed.held)
            times = (_latency(fed) * 1e3, fed.execution_s)
            section.rows.append((band_s, name, held.rows, held.needed, *times, pairs))
        ratios = {
            "rows held": most_held(free.held).over(most_held(ordered.held)),
            "latency": _latency(free) / _latency(ordered),
            "execution time": free.execution_s / ordered.execution_s,
        }
        worst = {name: max(worst[name], ratio) for name, ratio in ratios.items()}
        agree += same_rows(pa.concat_tables(free.results), pa.concat_tables(ordered.results))
    for name, limit in (("rows held", 0.99), ("latency", 1.0), ("execution time", 1.05)):
        report.bar(f"Figure 11: {name}, out of order / in order, worst", worst[name], most=limit)
    report.bar("Figure 11: runs that agree with in order", agree / len(_BANDS_S), least=1.0)


def _compare(lab: Lab, band_s: int, trains: list[list[Batch]]) -> tuple[Fed, Fed]:
    train = max(map(size, trains))
    free, ordered = (
        lab.engine(with_options(q7(band_s), **options), train) for options in SYSTEMS.values()
    )
    with free, ordered:
        feds = Fed(free), Fed(ordered)
        for number, some in enumerate(trains):
            # Whoever comes second finds warm caches: take turns in that too.
            for fed in feds if number % 2 else reversed(feds):
                fed.feed(some, band_s)
        for fed in feds:
            fed.results.append(finish(fed.engine, "counts"))
    return feds


def _latency(fed: Fed) -> float:
    """The median over windows but the first ones."""
    known = list(fed.latencies_s.values())[_WARM:]
    if not known:
        raise RunError("NO_RESULTS", "no window came out before the end of the input")
    return statistics.median(known)
