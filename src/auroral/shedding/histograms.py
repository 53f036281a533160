"""How often values of an output field were seen, and what ranges of them are worth (pure)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from auroral.qos.graphs import QoS

_POINTS = 8
"""How many points of a cell are looked at for its mean utility."""


@dataclass(frozen=True)
class Histogram:
    """How many values were seen in each cell between two edges: `low <= value < high`.

    Values below the first edge count in the first cell, those above the last one in the last.

    >>> Histogram.of([1, 2, 2, 7, 99], edges=[0, 5, 10]).counts
    (3.0, 2.0)
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float], edges: Iterable[float]) -> Histogram:
        """Count values; NaN is left out."""
        bounds = tuple(float(edge) for edge in edges)
        counts = [0.0] * (len(bounds) - 1)
        for value in values:
            if value == value:
                counts[min(max(bisect_right(bounds, value) - 1, 0), len(counts) - 1)] += 1
        return cls(bounds, tuple(counts))

    @property
    def total(self) -> float:
        """How many values were counted."""
        return sum(self.counts)

    def distance(self, other: Histogram) -> float:
        """How much of the values is elsewhere in another histogram: 0 the same, 1 all of them."""
        if self.edges != other.edges or not self.total or not other.total:
            return 1.0
        pairs = zip(self.counts, other.counts, strict=True)
        return sum(abs(a / self.total - b / other.total) for a, b in pairs) / 2


@dataclass(frozen=True)
class ValueCell:
    """A range of values of an output: its share of the output's tuples and of their utility."""

    low: float | None
    high: float | None
    tuples: float
    utility: float

    @property
    def worth(self) -> float:
        """Utility by tuple, as a multiple of what a tuple is worth on average."""
        return self.utility / self.tuples if self.tuples else 0.0


def value_cells(histogram: Histogram, qos: QoS) -> tuple[ValueCell, ...]:
    """The ranges in which values were seen, in order of values [1 §4.5].

    The utility of a range is what its values are worth times how often they were seen. The first
    and the last one have no bound. Without any value, or if all are worth nothing, there are none.

    >>> qos = QoS(value={"on": "cnt", "graph": [(0, 0), (10, 1)]})
    >>> for cell in value_cells(Histogram((0, 5, 10), (30, 10)), qos):
    ...     print(cell)
    ValueCell(low=None, high=5, tuples=0.75, utility=0.5)
    ValueCell(low=5, high=None, tuples=0.25, utility=0.5)
    """
    total = histogram.total
    if not total:
        return ()
    worth = [
        count * _mean_utility(qos, low, high)
        for (low, high), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
    ]
    whole = sum(worth)
    if not whole:
        return ()
    last = len(histogram.counts) - 1
    return tuple(
        ValueCell(
            low if at else None,
            high if at < last else None,
            histogram.counts[at] / total,
            worth[at] / whole,
        )
        for at, (low, high) in enumerate(pairwise(histogram.edges))
        if histogram.counts[at] or at in (0, last)
    )


def _mean_utility(qos: QoS, low: float, high: float) -> float:
    width = (high - low) / _POINTS
    return sum(qos.utility("value", low + width * (at + 0.5)) for at in range(_POINTS)) / _POINTS
