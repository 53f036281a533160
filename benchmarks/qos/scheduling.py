"""Which application runs next: QoS against turns at several loads, and what deciding costs."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import auroral as au
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.scheduling.queues import QueueTable
from auroral.simulation.arrivals import BurstArrivals
from auroral.simulation.figures.lab import FigureScale, run_loaded
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.workloads import TreeWorkload, mixed_graphs
from benchmarks.lab import Lab
from benchmarks.qos.workloads import LOOSE, TIGHT, applications, capacity, run_at
from benchmarks.report import Report

UTILITY = "20 applications on Spark, tight and loose graphs (figure 11)"
SUPERBOXES = "5 applications of 4 boxes on Spark, box by box and fused (figure 5)"
DECIDING = "Deciding for 1,000 boxes"
WORTH = "200 applications of 5 boxes, simulated: exact and bucketed"
_APPLICATIONS = 20


def scheduling(report: Report, lab: Lab) -> None:
    """Utility of `qos`, `qos-bucketed` and `rr` at 50 to 90 % load."""
    most = capacity(lab.spark, _APPLICATIONS)
    section = report.section(
        UTILITY, "load", "scheduler", "utility", "delay_s", "deciding_share", "tuples_per_s"
    )
    gains, deciding = [], []
    for load in (0.7,) if lab.quick else (0.5, 0.7, 0.9):
        found = {}
        for scheduler in ("rr", "qos", "qos-bucketed"):
            lab.say(f"{scheduler} at {load}")
            net = applications(_APPLICATIONS, au.EngineOptions(scheduler=scheduler))
            rates = dict.fromkeys(net.streams, load * most / _APPLICATIONS)
            seconds, warm_s = (6, 4) if lab.quick else (25, 10)
            one = run_at(lab.spark, net, rates, seconds=seconds, warm_s=warm_s)
            found[scheduler] = one
            shown = (one.utility, one.delay_s, one.deciding, one.tuples_per_s)
            section.rows.append((load, scheduler, *shown))
        gains.append(found["qos"].utility - found["rr"].utility)
        deciding += [one.deciding for one in found.values()]
    report.bar("utility of qos less that of rr, least of all loads", min(gains), least=0.2)
    report.bar("share of the time spent on deciding", max(deciding), most=0.02)


def superboxes(report: Report, lab: Lab) -> None:
    """Delay by load, if each box is a job and if the boxes of an application are one."""
    count = 5
    most = capacity(lab.spark, count)
    section = report.section(SUPERBOXES, "load", "superbox", "delay_s", "utility")
    delays: dict[str, list[float]] = {}
    for load in (0.5,) if lab.quick else (0.3, 0.6, 0.9):
        for superbox in ("box", "application", "fuse"):
            lab.say(f"{superbox} at {load}")
            options = au.EngineOptions(scheduler="rr", superbox=superbox, traversal="mc")
            net = applications(count, options, boxes=4)
            rates = dict.fromkeys(net.streams, load * most / count)
            seconds, warm_s = (5, 3) if lab.quick else (15, 8)
            one = run_at(lab.spark, net, rates, seconds=seconds, warm_s=warm_s)
            delays.setdefault(superbox, []).append(one.delay_s)
            section.rows.append((load, superbox, one.delay_s, one.utility))
    ratio = min(a / b for a, b in zip(delays["box"], delays["fuse"], strict=True))
    report.bar("delay box by box, by that of fused boxes, least of all loads", ratio, least=1.0)


@dataclass(frozen=True)
class _Decided:
    seconds: float
    evaluated: int


def deciding(report: Report, lab: Lab) -> None:
    """How long `qos` and `qos-bucketed` take to decide for many boxes."""
    section = report.section(DECIDING, "ready", "scheduler", "microseconds", "boxes_looked_at")
    rounds = lab.steps(400, 80)
    for ready in 1_000, 100:
        exact, bucketed = (_decide(name, rounds, ready) for name in ("qos", "qos-bucketed"))
        for name, found in ("qos", exact), ("qos-bucketed", bucketed):
            section.rows.append((ready, name, found.seconds * 1e6, found.evaluated))
        ratio = bucketed.seconds / exact.seconds
        report.bar(f"time to decide, {ready} boxes ready: bucketed / exact", ratio, most=0.1)
    _worth(report, lab)


def _worth(report: Report, lab: Lab) -> None:
    """What `qos-bucketed` loses by deciding approximately, on a virtual clock."""
    section = report.section(WORTH, "load", "scheduler", "utility", "boxes_looked_at")
    random = np.random.default_rng(5)
    model = TreeWorkload(200, fan_out=1, call_s=0.0002).model(random, mixed_graphs(200, random))
    worst = 0.0
    for load in (0.7,) if lab.quick else (0.5, 0.7, 0.9):
        found = {}
        for scheduler in ("qos", "qos-bucketed"):
            lab.say(f"{scheduler} at {load}, simulated")
            result = run_loaded(
                model,
                SchedulerSettings(
                    scheduler="qos" if scheduler == "qos" else "qos-bucketed",
                    superbox="application",
                    traversal="mc",
                    weighs_trains=True,
                ),
                load,
                lab.steps(20_000, 5_000),
                FigureScale(5),
                process=BurstArrivals(5, together=True),
                machine=SimulatedMachine(workers=2),
            )
            found[scheduler] = result.mean_utility
            section.rows.append((load, scheduler, result.mean_utility, result.evaluated))
        worst = max(worst, 1 - found["qos-bucketed"] / found["qos"])
    report.bar("utility of 1,000 boxes: 1 − bucketed / exact, most", worst, most=0.03)


def _decide(scheduler: str, rounds: int, ready: int, applications: int = 200) -> _Decided:
    """Decide again and again while a few boxes run and get more tuples: mean of one decision."""
    model = _chains(applications)
    settings = SchedulerSettings(
        scheduler="qos" if scheduler == "qos" else "qos-bucketed",
        superbox="box",
        traversal="mc",
        weighs_trains=True,
    )
    chosen = make_scheduler(settings)
    chosen.serve(model)
    table = QueueTable(model.boxes)
    names = list(model.boxes)[:: len(model.boxes) // ready]
    for at, name in enumerate(names):
        table.fill(name, 10, mean_arrival_s=at * 1e-4, oldest_arrival_s=at * 1e-4)
    now_s = 0.2
    chosen.decide(table, now_s, 2)
    evaluated, spent = chosen.evaluated, 0.0
    for turn in range(rounds):
        now_s += 0.001
        name = names[turn * 37 % len(names)]
        table.fill(name, 10 + turn, mean_arrival_s=now_s, oldest_arrival_s=now_s)
        began = time.perf_counter()
        plans = chosen.decide(table, now_s, 1)
        spent += time.perf_counter() - began
        for call in plans[0].calls:
            table.fill(call.box, 10, mean_arrival_s=now_s, oldest_arrival_s=now_s)
    return _Decided(spent / rounds, (chosen.evaluated - evaluated) // rounds)


def _chains(count: int, length: int = 5) -> FlowModel:
    boxes: dict[str, FlowBox] = {}
    outputs = {}
    for number in range(count):
        source = f"s{number}"
        for place in range(length):
            name = f"b{number}_{place}"
            boxes[name] = FlowBox(name, (source,), {name: 1.0}, 1e-4, 1e-3)
            source = name
        graph = TIGHT if number % 2 else LOOSE
        outputs[f"o{number}"] = FlowOutput(f"o{number}", source, QoS(latency=graph))
    return FlowModel(boxes, outputs)
