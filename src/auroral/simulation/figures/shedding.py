"""The figure on load shedding: [4 Fig. 5]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from auroral.network.declarations import SheddingMode
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import make_scheduler
from auroral.shedding.histograms import Histogram
from auroral.shedding.sites import CarriedField, CarryInterval
from auroral.simulation.arrivals import EvenArrivals, arriving_runs
from auroral.simulation.figures.lab import ROUND_ROBIN_APPLICATIONS, FigureScale
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.report import SimulationReport
from auroral.simulation.results import SimulationResult
from auroral.simulation.runs import TupleRun
from auroral.simulation.shedding import ControlledShedder
from auroral.simulation.simulator import simulate
from auroral.simulation.workloads import rates_at

EXCESS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 3.0)
"""Load beyond the capacity, as a share of it."""
MODES: tuple[SheddingMode, ...] = ("semantic", "random", "admission")
_PERIOD_S = 0.25
_CALL_S = 0.001
_EDGES = tuple(float(edge) for edge in range(11))


def battlefield() -> FlowModel:
    """The network of [4 Fig. 4]: positions from two sources, united, for four ground stations.

    The stations differ in what a report costs them, and in what the values of reports (how near
    an enemy is, from 0 to 10) are worth to them.
    """
    boxes = {"all": FlowBox("all", ("radar", "images"), {"all": 1.0}, 0.0001, _CALL_S)}
    outputs: dict[str, FlowOutput] = {}
    for number, (cost_s, share, steep) in enumerate(
        ((0.0004, 1.0, 8.0), (0.0008, 0.8, 6.0), (0.0012, 0.6, 9.0), (0.0016, 0.5, 4.0))
    ):
        mine, shown = f"mine{number}", f"shown{number}"
        boxes[mine] = FlowBox(mine, ("all",), {mine: share}, 0.0001, _CALL_S)
        boxes[shown] = FlowBox(shown, (mine,), {shown: 1.0}, cost_s, _CALL_S)
        qos = QoS(
            latency=[(0, 1), (1, 1), (5, 0)],
            value={"on": "near", "graph": [(0, 0.05), (steep, 0.3), (10, 1)]},
        )
        outputs[f"station{number}"] = FlowOutput(f"station{number}", shown, qos)
    return FlowModel(boxes, outputs)


def value_utility_loss(scale: FigureScale) -> SimulationReport:
    """[4 Fig. 5]: what outputs lose of the utility of values, by excess load and kind of shedding.

    All three decide by the controller of the engine; the loss is counted on the tuples that
    outputs get, against those that they would get without any drop.
    """
    report = SimulationReport(
        "paper4-fig5",
        "Load shedding approaches [4 Fig. 5]",
        "excess load [%]",
        "value utility lost [%]",
    )
    model = battlefield()
    latest: dict[str, float] = {}
    for excess in EXCESS:
        arriving = _reports(model, 1 + excess, scale)
        whole = _run(model, arriving, "off")
        for mode in MODES:
            left = _run(model, arriving, mode)
            report.add(mode, round(excess * 100), 100 * _lost(whole, left))
            latest[mode] = left.mean_latency_s
        latest["off"] = whole.mean_latency_s
    _judge(report, latest)
    return report


def _reports(model: FlowModel, load: float, scale: FigureScale) -> dict[str, list[TupleRun]]:
    rates = rates_at(model, load)
    duration_s = max(12_000, scale.tuples(12_000)) / sum(rates.values())
    random = np.random.default_rng([scale.seed, 5])
    found = arriving_runs(rates, duration_s, EvenArrivals(), scale.seed)
    return {
        stream: [
            (arrival_s, count, float(value))
            for (arrival_s, count, _), value in zip(
                runs, 10 * random.random(len(runs)) ** 1.5, strict=True
            )
        ]
        for stream, runs in found.items()
    }


def _run(
    model: FlowModel, arriving: Mapping[str, list[TupleRun]], mode: SheddingMode
) -> SimulationResult:
    seen = [run[2] for runs in arriving.values() for run in runs]
    histogram = Histogram.of(seen, _EDGES)
    shedder = ControlledShedder(
        mode,
        model,
        capacity=1.0,
        period_s=_PERIOD_S,
        histograms=dict.fromkeys(model.outputs, histogram),
        carry=_same_field(model),
    )
    scheduler = make_scheduler(replace(ROUND_ROBIN_APPLICATIONS, superbox="box"))
    return simulate(
        model,
        arriving,
        scheduler,
        SimulatedMachine(),
        shedder=None if mode == "off" else shedder,
    )


def _same_field(model: FlowModel) -> CarryInterval:
    """No box changes the value, so it can be told as far upstream as tuples may be dropped."""

    def carry(_output: str, arcs: Collection[str]) -> Mapping[str, CarriedField]:
        return {
            arc: CarriedField("near")
            for arc in arcs
            if arc not in model.writers
            or not any(before in arcs for before in model.boxes[model.writers[arc]].inputs)
        }

    return carry


def _lost(whole: SimulationResult, left: SimulationResult) -> float:
    """The share of the utility of values that outputs lost, on average."""
    shares = [
        1 - left.outputs[name].value_utility / output.value_utility
        for name, output in whole.outputs.items()
    ]
    return sum(shares) / len(shares)


def _judge(report: SimulationReport, latest: Mapping[str, float]) -> None:
    semantic, random, admission = (report.curve(mode) for mode in MODES)
    most = 100.0
    to_double = [excess for excess in semantic if excess <= most]
    report.find(
        "semantic loses less than random at every level up to twice the capacity",
        all(semantic[excess] < random[excess] for excess in to_double),
    )
    report.find(
        "random loses less than admission at every level up to twice the capacity",
        all(random[excess] < admission[excess] for excess in to_double),
    )
    report.find(
        "semantic loses least at every level",
        all(semantic[e] < min(random[e], admission[e]) for e in semantic),
    )
    reversed_at = [e for e in semantic if not semantic[e] < random[e] < admission[e]]
    report.find(
        "at higher loads the order is never the reverse either",
        not reversed_at,
        ", ".join(
            f"random {random[e]:.0f}, admission {admission[e]:.0f} at {e:.0f} %"
            for e in reversed_at
        ),
    )
    first, last = min(semantic), max(semantic)
    ratios = [admission[excess] / semantic[excess] for excess in (first, last)]
    report.find(
        "they come closer to each other at very high loads",
        ratios[1] < ratios[0],
        f"admission loses ×{ratios[0]:.2f} at {first:.0f} %, ×{ratios[1]:.2f} at {last:.0f} %",
    )
    report.find(
        "without shedding queues grow, with it they do not",
        latest["off"] > 5 * max(latest[mode] for mode in MODES),
        f"mean latency {latest['off']:.0f} s; "
        + ", ".join(f"{mode} {latest[mode]:.2g} s" for mode in MODES),
    )
