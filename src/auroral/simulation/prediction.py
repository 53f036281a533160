"""What outputs of a network will be like: the simulator with the measured costs of a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.simulation.arrivals import ArrivalProcess, EvenArrivals, arriving_runs
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.results import SimulationResult
from auroral.simulation.simulator import SimulatedShedder, simulate

SPARK = SimulatedMachine(emits_at_end=True, decision_s=0.0005)
"""The engine on Spark: a call is a job whose results are there when it commits. The fixed cost
of jobs is part of the measured costs of boxes; deciding takes about half a millisecond."""


def measured_machine(loop_s: float | None) -> SimulatedMachine:
    """Spark with the time that the engine's loop was measured to take for each step.

    Deciding is a part of that.
    """
    return SPARK if loop_s is None else replace(SPARK, loop_s=loop_s, decision_s=0.0)


@dataclass(frozen=True)
class Prediction:
    """What an output is expected to get."""

    mean_latency_s: float
    utility: float
    """By latency, on average over tuples."""
    tuples: int
    latency_95_s: float
    """19 of 20 tuples are not later."""


def predict(
    model: FlowModel,
    rates: Mapping[str, float],
    settings: SchedulerSettings,
    duration_s: float,
    workers: int = 1,
    *,
    process: ArrivalProcess | None = None,
    seed: int = 1,
    machine: SimulatedMachine = SPARK,
    shedder: SimulatedShedder | None = None,
    warm_s: float = 0.0,
    drained: bool = True,
) -> dict[str, Prediction]:
    """Mean latency and utility of each output if streams bring tuples at these rates.

    `rates` are tuples per second by stream, for `duration_s` of virtual time after `warm_s` of
    which the results do not count. `drained`: what waits at the end is processed and counts
    too, as in a run whose input ends; otherwise the simulation stops there. The model's boxes are
    those that run as one call: superboxes.

    >>> from auroral.scheduling.flow import FlowBox, FlowOutput
    >>> box = FlowBox("far", ("reports",), {"far": 0.5}, cost_s=0.001, call_s=0.1)
    >>> model = FlowModel({"far": box}, {"alerts": FlowOutput("alerts", "far")})
    >>> found = predict(model, {"reports": 100.0}, SchedulerSettings(), 60.0)["alerts"]
    >>> 0.1 < found.mean_latency_s < 0.3, found.utility
    (True, 1.0)
    """
    result = simulated_run(
        model,
        rates,
        settings,
        duration_s,
        workers,
        process=process,
        seed=seed,
        machine=machine,
        shedder=shedder,
        warm_s=warm_s,
        drained=drained,
    )
    return {
        name: Prediction(
            output.mean_latency_s, output.utility, output.tuples, output.latency_quantile_s(0.95)
        )
        for name, output in result.outputs.items()
    }


def simulated_run(
    model: FlowModel,
    rates: Mapping[str, float],
    settings: SchedulerSettings,
    duration_s: float,
    workers: int = 1,
    *,
    process: ArrivalProcess | None = None,
    seed: int = 1,
    machine: SimulatedMachine = SPARK,
    shedder: SimulatedShedder | None = None,
    warm_s: float = 0.0,
    drained: bool = True,
) -> SimulationResult:
    """The simulation behind a prediction, with all that it measured."""
    end_s = warm_s + duration_s
    arriving = arriving_runs(rates, end_s, process or EvenArrivals(), seed)
    return simulate(
        model,
        arriving,
        make_scheduler(settings),
        replace(machine, workers=workers),
        since_s=warm_s,
        until_s=None if drained else end_s,
        shedder=shedder,
    )
