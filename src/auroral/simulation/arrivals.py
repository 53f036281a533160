"""Arrival processes: when the tuples of a stream come (deterministic for a seed)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from auroral.simulation.runs import TupleRun

Seconds = npt.NDArray[np.floating[Any]]

MOST_RUNS = 100_000
"""Of a stream. If it has more tuples, neighbours form a run that arrives with its last tuple."""


class ArrivalProcess(Protocol):
    """When tuples arrive."""

    def times(self, rate: float, tuples: int, random: np.random.Generator) -> Seconds:
        """The moments at which this many tuples arrive, in order, from zero seconds on."""
        ...


@dataclass(frozen=True)
class EvenArrivals:
    """Tuples at equal distances; each stream starts at a random moment of the first interval."""

    def times(self, rate: float, tuples: int, random: np.random.Generator) -> Seconds:
        found: Seconds = (np.arange(tuples) + random.random()) / rate
        return found


@dataclass(frozen=True)
class PoissonArrivals:
    """Independent tuples: intervals are exponentially distributed."""

    def times(self, rate: float, tuples: int, random: np.random.Generator) -> Seconds:
        found: Seconds = np.cumsum(random.exponential(1 / rate, tuples))
        return found


@dataclass(frozen=True)
class BurstArrivals:
    """Groups of `size` tuples that come at once, with the same mean rate [2 §5.4].

    `together`: all streams have their bursts at the same moments.
    """

    size: int
    together: bool = False

    def times(self, rate: float, tuples: int, random: np.random.Generator) -> Seconds:
        start = 0.0 if self.together else random.random()
        found: Seconds = (np.arange(tuples) // self.size + start) * (self.size / rate)
        return found


def arriving_runs(
    rates: Mapping[str, float],
    duration_s: float,
    process: ArrivalProcess,
    seed: int,
    *,
    most_runs: int = MOST_RUNS,
) -> dict[str, list[TupleRun]]:
    """What arrives on each stream within `duration_s`, by its rate in tuples per second.

    >>> arriving_runs({"reports": 2.0}, 2.0, BurstArrivals(2, together=True), seed=1)
    {'reports': [(0.0, 1, 0.0), (0.0, 1, 0.0), (1.0, 1, 0.0), (1.0, 1, 0.0)]}
    """
    random = np.random.default_rng(seed)
    return {
        stream: _as_runs(process.times(rate, max(1, round(rate * duration_s)), random), most_runs)
        for stream, rate in rates.items()
        if rate > 0
    }


def _as_runs(times: Seconds, most_runs: int) -> list[TupleRun]:
    size = -(-len(times) // most_runs)
    starts = range(0, len(times), size)
    ends = [min(start + size, len(times)) for start in starts]
    return [
        (float(times[end - 1]), end - start, 0.0) for start, end in zip(starts, ends, strict=True)
    ]
