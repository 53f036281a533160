"""Figures of the papers, simulated: each gives its series and says which findings they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from auroral.simulation.figures.execution import (
    box_or_application,
    execution_overhead,
    overhead_distribution,
    thread_per_box,
)
from auroral.simulation.figures.lab import FigureScale
from auroral.simulation.figures.quality import (
    overhead_by_partitions,
    utility_by_load,
    utility_by_partitions,
)
from auroral.simulation.figures.shedding import value_utility_loss
from auroral.simulation.figures.trains import train_sizes
from auroral.simulation.figures.traversals import (
    cost_or_latency,
    memory_over_time,
    worked_example,
)
from auroral.simulation.report import SimulationReport

__all__ = ["FIGURES", "FigureScale"]

FIGURES: Mapping[str, Callable[[FigureScale], SimulationReport]] = {
    "fig3": thread_per_box,
    "fig5": box_or_application,
    "fig6": cost_or_latency,
    "fig7": memory_over_time,
    "fig8": train_sizes,
    "fig9": overhead_distribution,
    "fig11": utility_by_load,
    "fig13": utility_by_partitions,
    "fig14": overhead_by_partitions,
    "superbox": worked_example,
    "paper1-fig7": execution_overhead,
    "paper4-fig5": value_utility_loss,
}
"""By the name that `auroral simulate` takes; figN are those of [2]."""
