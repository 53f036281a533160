"""Where the time goes: tuple at a time, box at a time, and fused (figure 9 on Spark)."""

from __future__ import annotations

import time

import auroral as au
from benchmarks.lab import Lab
from benchmarks.qos.workloads import rows
from benchmarks.report import Report

OVERHEADS = "Four applications of three boxes: the same tuples in three ways (figure 9)"
_WAYS = {
    "tuple at a time": (au.EngineOptions(scheduler="rr", superbox="box", train=1), 10),
    "box at a time, trains": (au.EngineOptions(scheduler="rr", superbox="box"), 20_000),
    "fused": (au.EngineOptions(scheduler="rr", superbox="fuse"), 20_000),
}


def overheads(report: Report, lab: Lab) -> None:
    """Time for a thousand tuples of each application."""
    section = report.section(OVERHEADS, "way", "tuples", "steps", "milliseconds_per_1000")
    spent: dict[str, float] = {}
    for way, (options, tuples) in _WAYS.items():
        lab.say(way)
        net = _network(options)
        with au.Engine(net, spark=lab.spark, background=False) as engine:
            _push(engine, net, 10)
            before = engine.stats()["steps"]["count"]
            began = time.perf_counter()
            _push(engine, net, tuples)
            seconds = time.perf_counter() - began
            steps = engine.stats()["steps"]["count"] - before
        spent[way] = seconds * 1e6 / tuples
        section.rows.append((way, tuples, steps, spent[way]))
    one, trains, fused = spent.values()
    report.bar("tuple at a time / trains", one / trains, least=10.0)
    report.bar("box at a time / fused", trains / fused, least=1.5)


def _network(options: au.EngineOptions) -> au.Network:
    net = au.Network("four")
    for number in range(4):
        arc = net.stream(f"s{number}", "v bigint")
        arc = arc.filter("v % 10 < 9", name=f"a{number}").map(v="v + 1", name=f"b{number}")
        net.output(f"o{number}", arc.filter("v % 7 < 6", name=f"c{number}"))
    net.engine = options
    return net


def _push(engine: au.Engine, net: au.Network, tuples: int) -> None:
    for stream in net.streams:
        engine.enqueue(stream, rows(tuples, 5))
    engine.drain()
    for output in net.outputs:
        engine.dequeue(output)
