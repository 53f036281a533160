"""Boxes that go by order of arrival: slack windows, tup# windows, bsort [1 §5.2.2]."""

from __future__ import annotations

import auroral as au
from benchmarks.data import PACKETS, SECOND_US, packet_trains
from benchmarks.lab import Lab
from benchmarks.oop.lab import sustain
from benchmarks.report import Report

ORDER = "Boxes that go by order of arrival"
_TRAIN = 250_000
_GROUPS = (5_000, 100_000)
_SLACK = 5
_WARM = 2


def order_network(kind: str) -> au.Network:
    """One box per group of source and destination: `slack window`, `tup# window` or `bsort`."""
    net = au.Network("ordered")
    m = net.stream("m", PACKETS)
    by = ("srcIP", "destIP")
    if kind == "bsort":
        arc = m.bsort(au.Order("ts", slack=_SLACK, by=by))
    elif kind == "tup# window":
        arc = m.aggregate(au.Order("tup#", by=by), au.Window(size=20), cnt="count(*)")
    else:
        order = au.Order("ts", slack=_SLACK, by=by)
        arc = m.aggregate(order, au.Window(size="10 seconds"), cnt="count(*)")
    net.output("out", arc)
    return net


def order(report: Report, lab: Lab) -> None:
    """Throughput of each with few and many groups."""
    section = report.section(ORDER, "box", "groups", "tuples_per_s", "median_ms", "results")
    for groups in map(lab.rows, _GROUPS):
        trains = packet_trains(
            _WARM + lab.steps(6, 4),
            lab.rows(_TRAIN),
            groups,
            span_us=5 * SECOND_US,
            jitter_us=SECOND_US // 10,
        )
        for kind in ("slack window", "tup# window", "bsort"):
            lab.say(f"{kind}, {groups:,} groups")
            with lab.engine(order_network(kind), lab.rows(_TRAIN), background=True) as engine:
                run = sustain(engine, trains, "out", _WARM)
            section.rows.append((kind, groups, run.rate, run.median_s * 1e3, run.table.num_rows))
            if groups == lab.rows(_GROUPS[0]):
                report.bar(f"{kind}, {groups:,} groups: tuples/s", run.rate, least=300_000)
