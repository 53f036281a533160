"""A discrete-event simulator: the schedulers of the engine on a virtual clock."""

from auroral.simulation.arrivals import (
    BurstArrivals,
    EvenArrivals,
    PoissonArrivals,
    arriving_runs,
)
from auroral.simulation.machine import SimulatedMachine
from auroral.simulation.prediction import Prediction, predict
from auroral.simulation.results import SimulationResult
from auroral.simulation.simulator import simulate

__all__ = [
    "BurstArrivals",
    "EvenArrivals",
    "PoissonArrivals",
    "Prediction",
    "SimulatedMachine",
    "SimulationResult",
    "arriving_runs",
    "predict",
    "simulate",
]
