"""What drop boxes did, and which share of tuples was dropped in which moments."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from auroral.storage import ShedRow

Place = tuple[str, str]
"""A superbox, and the arc of which it gets only the rest."""
Shares = np.ndarray[Any, np.dtype[np.float64]]
Moments = np.ndarray[Any, np.dtype[np.int64]]


class ShedLog:
    """The rows of all drop boxes; those that continue each other are one row.

    >>> log = ShedLog([ShedRow("far", "reports", 0, 10, "half", 4, 8)], most=100)
    >>> log.add([ShedRow("far", "reports", 10, 20, "half", 6, 12)])
    >>> [(row.first, row.last, row.dropped, row.taken) for row in log.rows()]
    [(0, 20, 10, 20)]
    >>> log.shares(("far", "reports"), np.array([5, 10]), np.array([6, 30])).tolist()
    [0.5, 0.25]
    """

    def __init__(self, rows: Iterable[ShedRow], most: int):
        self._most = most
        self._lock = threading.Lock()
        self._places: dict[Place, list[ShedRow]] = {}
        self.add(rows)

    def add(self, rows: Iterable[ShedRow]) -> None:
        """Remember more of what drop boxes did."""
        with self._lock:
            for row in rows:
                held = self._places.setdefault((row.superbox, row.arc), [])
                both = held[-1].then(row) if held else None
                if both is None:
                    held.append(row)
                else:
                    held[-1] = both
                del held[: -self._most]

    def rows(self) -> list[ShedRow]:
        """Everything that is remembered, drop box by drop box."""
        with self._lock:
            return [row for held in self._places.values() for row in held]

    def places(self) -> list[Place]:
        """Where drop boxes are, or were."""
        with self._lock:
            return list(self._places)

    def shares(self, place: Place, first: Moments, last: Moments) -> Shares:
        """For each stretch of moments, `first` to before `last`, the share that was dropped.

        In the mean of its moments: in those in which there was no drop box it is nothing.
        """
        with self._lock:
            held = list(self._places.get(place, ()))
        if not held:
            return np.zeros(len(first))
        ends, total = _integral(held)
        found = np.interp(last, ends, total) - np.interp(first, ends, total)
        mean: Shares = found / np.maximum(last - first, 1)
        return mean


def _integral(rows: Sequence[ShedRow]) -> tuple[Shares, Shares]:
    """Borders of rows, and the sum of the shares of all moments before each border."""
    borders = np.array([border for row in rows for border in (row.first, row.last)], dtype=float)
    shares = [row.dropped / row.taken if row.taken else 0.0 for row in rows]
    grown = [more for row, s in zip(rows, shares, strict=True) for more in (0.0, s * _length(row))]
    return borders, np.cumsum(grown)


def _length(row: ShedRow) -> int:
    return row.last - row.first
