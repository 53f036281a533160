"""Rows held without and with enforced order [3 §8: G2, N2, N3; Figures 1, 12, 13]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

import auroral as au
from benchmarks.data import PACKETS, arrivals, link, size
from benchmarks.lab import Lab
from benchmarks.oop.lab import Held, Run, finish, most_held, pump, with_options
from benchmarks.report import Report

SKEW = "Figure 1 (Q5): rows held, union of two streams with skew"
SLIDING = "Figure 13 (Q9): rows held, sliding count with one late stream"
LATE_JOIN = "Figure 12 (Q8): rows held, join with one late stream"
SYSTEMS = {"out of order": {}, "in order": {"order": "enforce"}}
_DELAYS_S = (0, 10, 20, 30, 40, 60)
_JOIN_DELAYS_S = (0, 10, 20, 40, 60)

Links = dict[str, list[pa.Table]]


@dataclass(frozen=True)
class Experiment:
    """A query over links one of which is late."""

    title: str
    network: au.Network
    output: str
    links: Links
    late: str
    train_s: int


def skew(report: Report, lab: Lab) -> None:
    """Q5: the in-order union keeps one stream until the other has caught up."""
    seconds, rate = lab.steps(190, 130), lab.rows(2_000)
    groups = round(65_536 / 110_000 * rate)
    links = {name: link(seconds, rate, groups, seed=at) for at, name in enumerate(("m1", "m2"))}
    _compare_counts(report, lab, Experiment(SKEW, q5(), "counts", links, "m2", 10))


def sliding(report: Report, lab: Lab) -> None:
    """Q9: the same with a stream of few tuples that is late."""
    seconds, rate = lab.steps(440, 380), lab.rows(1_000)
    links = {name: link(seconds, rate, 500, seed=at) for at, name in enumerate(("m1", "m2"))}
    links["c"] = link(seconds, 2, 500, seed=9)
    _compare_counts(report, lab, Experiment(SLIDING, q9(), "counts", links, "c", 20))


def late_join(report: Report, lab: Lab) -> None:
    """Q8: without order the join drops tuples of the punctual stream sooner."""
    seconds, rate = lab.steps(120, 100), lab.rows(2_000)
    links = {
        name: link(seconds, rate, 4 * rate, seed=at, whole_seconds=True)
        for at, name in enumerate(("m1", "m2"))
    }
    links["c"] = link(seconds, 2, 4 * rate, seed=9, whole_seconds=True)
    experiment = Experiment(LATE_JOIN, q8(), "pairs", links, "c", 10)
    held = _measure(report, lab, experiment, _JOIN_DELAYS_S)
    most = max(free.over(ordered) for free, ordered in held.values())
    report.bar("Figure 12: rows held, out of order / in order, worst delay", most, most=1.0)
    first, last = held[_JOIN_DELAYS_S[0]], held[_JOIN_DELAYS_S[-1]]
    growth = last[0].since(first[0]).over(last[1].since(first[1]))
    report.bar("Figure 12: growth with delay, out of order / in order", growth, most=0.9)


def q5() -> au.Network:
    """Tumbling count by source and destination over M1 UNION M2."""
    net = au.Network("q5")
    m1, m2 = (net.stream(name, PACKETS, progress=au.Ordered("ts")) for name in ("m1", "m2"))
    order = au.Order("ts", by=("srcIP", "destIP"))
    counted = m1.union(m2).aggregate(order, au.Window(size="1 minute"), cnt="count(*)")
    net.output("counts", counted)
    return net


def q8() -> au.Network:
    """Replies of the same second, found in M2 UNION C."""
    net = au.Network("q8")
    m1, m2, c = (net.stream(n, PACKETS, progress=au.Ordered("ts")) for n in ("m1", "m2", "c"))
    reply = "left.srcIP = right.destIP and left.destIP = right.srcIP"
    order = au.Order("ts")
    pairs = m1.join(m2.union(c), reply, left=order, right=order, within="0 seconds")
    net.output("pairs", pairs.map(keep=("srcIP", "destIP", "ts")))
    return net


def q9() -> au.Network:
    """Sliding count over M1 UNION M2 UNION C."""
    net = au.Network("q9")
    m1, m2, c = (net.stream(n, PACKETS, progress=au.Ordered("ts")) for n in ("m1", "m2", "c"))
    window = au.Window(size="5 minutes", advance="1 minute")
    net.output("counts", m1.union(m2, c).aggregate(au.Order("ts"), window, cnt="count(*)"))
    return net


def _compare_counts(report: Report, lab: Lab, experiment: Experiment) -> None:
    held = _measure(report, lab, experiment, _DELAYS_S)
    figure = experiment.title.partition(" (")[0]
    free, ordered = held[40]
    report.bar(
        f"{figure}: rows held at 40 s, out of order / in order", free.over(ordered), most=0.3
    )
    flat = held[60][0].over(held[10][0])
    report.bar(f"{figure}: rows held out of order, 60 s / 10 s", flat, most=1.3)


def _measure(
    report: Report, lab: Lab, experiment: Experiment, delays_s: Sequence[int]
) -> dict[int, tuple[Held, Held]]:
    """The most rows held by delay, out of order and in order."""
    section = report.section(
        experiment.title, "delay_s", "system", "rows_held", "rows_needed", "results"
    )
    most: dict[int, tuple[Held, Held]] = {}
    agree = 0
    for delay_s in delays_s:
        lab.say(f"{experiment.title}, {delay_s} s")
        runs = {name: _run(lab, experiment, delay_s, **SYSTEMS[name]) for name in SYSTEMS}
        for name, run in runs.items():
            held = most_held(run.held)
            section.rows.append((delay_s, name, held.rows, held.needed, run.table.num_rows))
        free, ordered = runs.values()
        most[delay_s] = most_held(free.held), most_held(ordered.held)
        agree += same_rows(free.table, ordered.table)
    figure = experiment.title.partition(" (")[0]
    report.bar(f"{figure}: runs that agree with in order", agree / len(delays_s), least=1.0)
    return most


def _run(lab: Lab, experiment: Experiment, delay_s: int, **options: str) -> Run:
    network = with_options(experiment.network, **options)
    trains = arrivals(experiment.links, {experiment.late: delay_s}, experiment.train_s)
    run = Run()
    with lab.engine(network, max(map(size, trains))) as engine:
        for train in trains:
            run.results.append(pump(engine, train, experiment.output)[1])
            run.held.append(Held.of(engine))
        run.results.append(finish(engine, experiment.output))
    return run


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same rows, in whatever order."""
    keys = [(name, "ascending") for name in one.column_names]
    return bool(one.sort_by(keys).equals(other.sort_by(keys)))
