"""The simulator against Spark: three networks, with the costs that Spark has shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import auroral as au
from auroral.network.declarations import SuperboxMode
from auroral.scheduling.policies import SchedulerSettings
from auroral.simulation.arrivals import BurstArrivals
from auroral.simulation.networks import measured_network
from auroral.simulation.prediction import measured_machine, predict
from benchmarks.lab import Lab
from benchmarks.qos.workloads import applications, run_at
from benchmarks.report import Report

PREDICTED = "Mean delay and utility: simulated from measured costs, and on Spark"
_PERIOD_S = 0.1
"""How often tuples are enqueued."""


@dataclass(frozen=True)
class _Case:
    make: Callable[[], au.Network]
    rate: float
    """Tuples a second of each stream."""


def predictions(report: Report, lab: Lab) -> None:
    """Run three networks on Spark, then simulate them with the costs that were measured."""
    section = report.section(
        PREDICTED, "network", "delay_s", "predicted_delay_s", "utility", "predicted_utility"
    )
    worst = 0.0
    for number, (name, case) in enumerate(_CASES.items()):
        lab.say(name)
        net, state = case.make(), lab.place / f"predicted{number}"
        rates = dict.fromkeys(net.streams, case.rate)
        seconds = 8 if lab.quick else 25
        real = run_at(
            lab.spark, net, rates, seconds=seconds, warm_s=8, period_s=_PERIOD_S, state=state
        )
        measured = measured_network(net, state)
        rate = real.tuples_per_s / len(net.streams)
        found = predict(
            measured.model,
            dict.fromkeys(net.streams, rate),
            replace(SchedulerSettings.of(net.engine), superbox=_how(net.engine.superbox)),
            float(seconds + 8),
            os.cpu_count() or 2,
            warm_s=8.0,
            drained=False,
            process=BurstArrivals(max(round(rate * real.period_s), 1), together=True),
            machine=measured_machine(measured.loop_s),
        )
        ours = [found[output] for output in net.outputs]
        delay_s = sum(one.mean_latency_s for one in ours) / len(ours)
        utility = sum(one.utility for one in ours) / len(ours)
        section.rows.append((name, real.delay_s, delay_s, real.utility, utility))
        worst = max(worst, _off(delay_s, real.delay_s), _off(utility, real.utility))
    report.bar("largest error of a mean delay or utility", worst, most=0.25)


def _how(superbox: SuperboxMode) -> SuperboxMode:
    """What the engine does with `auto`."""
    return "fuse" if superbox == "auto" else superbox


def _off(found: float, real: float) -> float:
    return abs(found - real) / max(real, 1e-6)


_CASES: Mapping[str, _Case] = {
    "20 applications, in turn": _Case(
        lambda: applications(20, au.EngineOptions(scheduler="rr")), 500.0
    ),
    "20 applications, qos": _Case(
        lambda: applications(20, au.EngineOptions(scheduler="qos")), 500.0
    ),
    "4 applications, box by box": _Case(
        lambda: applications(4, au.EngineOptions(scheduler="fifo", superbox="box"), boxes=4),
        2_000.0,
    ),
}
